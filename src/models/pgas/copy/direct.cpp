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
  static DirectTransfer* make(runtime::Runtime& runtime, runtime::OperationState* state, SegmentUse segment,
                              const GlobalAddress& address, std::size_t size_bytes, bool is_put) {
    void* const block = runtime.pool().allocate(sizeof(DirectTransfer));
    return new (block) DirectTransfer(runtime, state, std::move(segment), address, size_bytes, is_put);
  }

  void started(Status status) {
    if (!status.is_pending()) ended(std::move(status));
  }

 private:
  DirectTransfer(runtime::Runtime& runtime, runtime::OperationState* state, SegmentUse segment,
                 const GlobalAddress& address, std::size_t size_bytes, bool is_put)
      : base::Completion([](base::Completion* self, Status status, std::size_t) {
          static_cast<DirectTransfer*>(self)->ended(std::move(status));
        }),
        runtime_(runtime),
        state_(state),
        segment_(std::move(segment)),
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
  SegmentUse segment_;
  GlobalAddress address_;
  std::size_t size_bytes_;
  bool is_put_;
  bool needs_flush_;
};

}  // namespace

bool Copies::start_direct(const Copy& copy, runtime::OperationState* state) {
  if (copy.runs.size() != 1 || copy.from.is_local == copy.to.is_local || copy.has_completions()) return false;
  const bool is_put = copy.from.is_local;
  const Run& run = copy.runs.front();
  const CopyEnd& local = is_put ? copy.from : copy.to;
  const GlobalAddress address =
      is_put ? copy.to.address.moved_by(run.to_bytes) : copy.from.address.moved_by(run.from_bytes);
  KnownSegment* const segment = segments_.find(address);
  if (segment == nullptr || segment->is_reached() || !segment->remote.has_value() ||
      !local.local.place.is_host()) {
    return false;
  }
  const std::size_t size_bytes = run.size_bytes;
  segments_.expect_inside(*segment, address, size_bytes);
  auto* const transfer =
      DirectTransfer::make(runtime_, state, segments_.use(*segment), address, size_bytes, is_put);
  machine::Machine& machine = runtime_.machine();
  const memory::Buffer buffer = part_of(local.local, is_put ? run.from_bytes : run.to_bytes, size_bytes);
  transfer->started(
      is_put ? machine.put(address.pe(), buffer, *segment->remote, address.offset_bytes(), transfer)
             : machine.get(address.pe(), buffer, *segment->remote, address.offset_bytes(), transfer));
  return true;
}

}  // namespace weft::pgas
