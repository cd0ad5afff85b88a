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

// Whether the machine puts and gets there, and its key is here.
bool is_direct(const KnownSegment* segment) {
  return segment != nullptr && !segment->is_reached() && segment->remote.has_value();
}

}  // namespace

KnownSegment* Copies::direct_segment(const GlobalAddress& address, std::size_t size_bytes) {
  KnownSegment* const segment = segments_.find(address);
  if (!is_direct(segment)) return nullptr;
  segments_.expect_inside(*segment, address, size_bytes);
  return segment;
}

void Copies::start_put(KnownSegment& to, const GlobalAddress& address, const memory::Buffer& from,
                       SegmentUse from_use, runtime::OperationState* state) {
  auto* const transfer = DirectTransfer::make(runtime_, state, {segments_.use(to), std::move(from_use)},
                                              address, from.size_bytes, true);
  transfer->started(runtime_.machine().put(address.pe(), from, *to.remote, address.offset_bytes(), transfer));
}

void Copies::start_get(KnownSegment& from, const GlobalAddress& address, const memory::Buffer& to,
                       SegmentUse to_use, runtime::OperationState* state) {
  auto* const transfer = DirectTransfer::make(runtime_, state, {segments_.use(from), std::move(to_use)},
                                              address, to.size_bytes, false);
  transfer->started(runtime_.machine().get(address.pe(), to, *from.remote, address.offset_bytes(), transfer));
}

runtime::OperationState* Copies::start_between(const GlobalAddress& from, const GlobalAddress& to,
                                               std::size_t size_bytes) {
  KnownSegment* const source = segments_.find(from);
  KnownSegment* const target = segments_.find(to);
  const bool is_put = is_direct(target);
  KnownSegment* const near = is_put ? source : target;
  if ((!is_put && !is_direct(source)) || near == nullptr || !near->is_reached() ||
      !near->memory.place.is_host()) {
    return nullptr;
  }
  segments_.expect_inside(*source, from, size_bytes);
  segments_.expect_inside(*target, to, size_bytes);
  auto* const state = runtime::OperationState::create(runtime_);
  if (is_put) {
    start_put(*target, to, source->part(from, size_bytes), segments_.use(*source), state);
  } else {
    start_get(*source, from, target->part(to, size_bytes), segments_.use(*target), state);
  }
  return state;
}

bool Copies::start_direct(const Copy& copy, runtime::OperationState* state) {
  if (copy.runs.size() != 1 || !copy.completions.is_empty() || copy.from.is_local == copy.to.is_local) {
    return false;
  }
  const bool is_put = copy.from.is_local;
  const Run& run = copy.runs.front();
  const memory::Buffer& local = is_put ? copy.from.local : copy.to.local;
  const GlobalAddress address =
      is_put ? copy.to.address.moved_by(run.to_bytes) : copy.from.address.moved_by(run.from_bytes);
  KnownSegment* const segment = local.place.is_host() ? direct_segment(address, run.size_bytes) : nullptr;
  if (segment == nullptr) return false;
  memory::Buffer buffer = part_of(local, is_put ? run.from_bytes : run.to_bytes, run.size_bytes);
  buffer.stream = nullptr;
  if (is_put) {
    start_put(*segment, address, buffer, {}, state);
  } else {
    start_get(*segment, address, buffer, {}, state);
  }
  return true;
}

}  // namespace weft::pgas
