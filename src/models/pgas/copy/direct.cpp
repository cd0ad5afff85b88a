// Puts and gets through the machine that need nothing else: small ones should cost little more than the machine's own.
#include <new>
#include <utility>

#include "weft/base/error.h"

#include "base/format.h"
#include "machine/machine.h"
#include "models/pgas/copy/copies.h"

namespace weft::pgas {

using base::Status;

namespace {

// A put and then the flush of that PE, or a get.
class DirectTransfer : public base::Completion {
 public:
  // The memory of both ends, of which one may lie in no segment, stays until the end.
  struct Uses {
    SegmentUse far;
    SegmentUse near;
  };

  static DirectTransfer* make(runtime::Runtime& runtime, runtime::OperationState* state, Uses uses,
                              const GlobalAddress& address, std::size_t size_bytes, bool is_put) {
    void* const block = runtime.pool().allocate(sizeof(DirectTransfer));
    return new (block) DirectTransfer(runtime, state, std::move(uses), address, size_bytes, is_put);
  }

  void started(Status status) {
    if (!status.is_pending()) ended(std::move(status));
  }

 private:
  DirectTransfer(runtime::Runtime& runtime, runtime::OperationState* state, Uses uses,
                 const GlobalAddress& address, std::size_t size_bytes, bool is_put)
      : base::Completion([](base::Completion* self, Status status, std::size_t) {
          static_cast<DirectTransfer*>(self)->ended(std::move(status));
        }),
        runtime_(runtime),
        state_(state),
        uses_(std::move(uses)),
        address_(address),
        size_bytes_(size_bytes),
        is_put_(is_put),
        needs_flush_(is_put) {}

  void ended(Status status) {
    if (status.ok() && std::exchange(needs_flush_, false)) {
      return started(runtime_.machine().flush(address_.pe(), this));
    }
    runtime::OperationState* const state = state_;
    const std::size_t size_bytes = size_bytes_;
    if (status.failed()) {
      status =
          Status(status.code(), base::format("a {} of {} bytes at {} failed: {}", is_put_ ? "put" : "get",
                                             size_bytes_, describe(address_), status.message()));
    }
    runtime::BlockPool& pool = runtime_.pool();
    this->~DirectTransfer();
    pool.deallocate(this, sizeof(DirectTransfer));
    state->complete(std::move(status), size_bytes);
  }

  runtime::Runtime& runtime_;
  runtime::OperationState* state_;
  Uses uses_;
  GlobalAddress address_;
  std::size_t size_bytes_;
  bool is_put_;
  bool needs_flush_;
};

}  // namespace

bool Copies::start_direct(const Copy& copy, runtime::OperationState* state) {
  if (copy.runs.size() != 1 || !copy.completions.is_empty()) return false;
  KnownSegment* const from = copy.from.is_local ? nullptr : segments_.find(copy.from.address);
  KnownSegment* const to = copy.to.is_local ? nullptr : segments_.find(copy.to.address);
  const bool is_put = is_host_end(copy.from, from);
  if (is_put == is_host_end(copy.to, to)) return false;
  const CopyEnd& near = is_put ? copy.from : copy.to;
  const GlobalAddress& address = is_put ? copy.to.address : copy.from.address;
  KnownSegment* const near_segment = is_put ? from : to;
  KnownSegment* const far_segment = is_put ? to : from;
  if (far_segment == nullptr || far_segment->is_reached() || !far_segment->remote.has_value()) return false;
  expect_ends(copy, from, to);
  const Run& run = copy.runs.front();
  const memory::Buffer local =
      part_of(base_of(near, near_segment, nullptr), is_put ? run.from_bytes : run.to_bytes, run.size_bytes);
  SegmentUse near_use = near_segment == nullptr ? SegmentUse() : segments_.use(*near_segment);
  auto* const transfer = DirectTransfer::make(
      runtime_, state, {segments_.use(*far_segment), std::move(near_use)}, address, run.size_bytes, is_put);
  machine::Machine& machine = runtime_.machine();
  const machine::RemoteMemory& remote = *far_segment->remote;
  const std::uint64_t offset_bytes = address.moved_by(is_put ? run.to_bytes : run.from_bytes).offset_bytes();
  transfer->started(is_put ? machine.put(address.pe(), local, remote, offset_bytes, transfer)
                           : machine.get(address.pe(), local, remote, offset_bytes, transfer));
  return true;
}

}  // namespace weft::pgas
