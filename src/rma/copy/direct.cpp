// Puts and gets through the machine that need nothing else: small ones should cost little more than the machine's own.
#include <cassert>
#include <cstdint>
#include <new>
#include <type_traits>
#include <utility>

#include "weft/base/error.h"

#include "base/format.h"
#include "machine/machine.h"
#include "rma/copy/copies.h"

namespace weft::rma {

using base::Status;

namespace {

// The data that the end of a put or a get needs. It lies in the last bytes of the operation's state.
struct DirectTransfer {
  KnownSegment* far;
  KnownSegment* near;  // of the local memory; null if that lies in no segment
  GlobalAddress address;
  std::size_t size_bytes;

  static void* place_in(runtime::OperationState* state) {
    assert(state->extra_bytes() >= sizeof(DirectTransfer));
    return state->extra() + state->extra_bytes() - sizeof(DirectTransfer);
  }

  // `name`: "put" or "get". What is rare is out of line, and comes last, so that the rest keeps no values.
  void end(runtime::OperationState* state, Segments& segments, const char* name) const {
    bool is_rare = far->end_use();
    if (near != nullptr) is_rare |= near->end_use();
    if (is_rare || state->status().failed()) [[unlikely]]
      end_rarely(state, segments, name);
  }

  [[gnu::cold, gnu::noinline]] void end_rarely(runtime::OperationState* state, Segments& segments,
                                               const char* name) const {
    if (state->status().failed()) state->set_outcome(described(state->status(), name), 0);
    // Both uses have ended, but to reclaim one segment runs nothing that could reclaim the other.
    segments.reclaim_if_unused(*far);
    if (near != nullptr) segments.reclaim_if_unused(*near);
  }

  [[gnu::cold, gnu::noinline]] Status described(const Status& status, const char* name) const {
    return {status.code(), base::format("a {} of {} bytes at {} failed: {}", name, size_bytes,
                                        describe(address), status.message())};
  }
};
static_assert(std::is_trivially_copyable_v<DirectTransfer> && alignof(DirectTransfer) == sizeof(void*));
static_assert(sizeof(runtime::OperationState) + sizeof(std::uint64_t) + sizeof(DirectTransfer) <=
              runtime::OperationState::kSmallBlockBytes);

void put_ended(runtime::OperationState* state, void* segments) {
  static_cast<DirectTransfer*>(DirectTransfer::place_in(state))
      ->end(state, *static_cast<Segments*>(segments), "put");
}

void get_ended(runtime::OperationState* state, void* segments) {
  static_cast<DirectTransfer*>(DirectTransfer::place_in(state))
      ->end(state, *static_cast<Segments*>(segments), "get");
}

// After the start. No completion is called inside it, so the uses begin in time, and a start that throws leaves nothing to undo.
void keep(runtime::OperationState* state, Status started, Segments& segments, const DirectTransfer& transfer,
          runtime::OperationState::Finisher ended) {
  transfer.far->begin_use();
  if (transfer.near != nullptr) transfer.near->begin_use();
  new (DirectTransfer::place_in(state)) DirectTransfer(transfer);
  state->set_finisher(ended, &segments);
  state->started(std::move(started), transfer.size_bytes);
}

// Whether the machine puts and gets there, and its key is here.
bool is_direct(const KnownSegment* segment) {
  return segment != nullptr && !segment->is_reached() && segment->remote.has_value();
}

}  // namespace

KnownSegment* Copies::direct_segment(const GlobalAddress& address, std::size_t size_bytes) {
  KnownSegment* const segment = segments_.find_inside(address, size_bytes);
  return is_direct(segment) ? segment : nullptr;
}

runtime::OperationState* Copies::make_state(std::size_t value_bytes) {
  constexpr std::size_t kAlignment = alignof(DirectTransfer);
  const std::size_t rounded_bytes = (value_bytes + kAlignment - 1) / kAlignment * kAlignment;
  return runtime::OperationState::create(runtime_, rounded_bytes + sizeof(DirectTransfer));
}

// Inline, because start_between() pays for the call. The near segment is looked up when the message is on its way.
[[gnu::always_inline]] inline void Copies::put_directly(KnownSegment& to, const GlobalAddress& address,
                                                        const memory::ConstBuffer& from,
                                                        runtime::OperationState* state,
                                                        const GlobalAddress* near) {
  Status started = runtime_.machine().put_and_flush(address.pe(), from, *to.remote, address.offset_bytes(),
                                                    state->completion());
  KnownSegment* const near_segment = near == nullptr ? nullptr : segments_.known(*near);
  keep(state, std::move(started), segments_, {&to, near_segment, address, from.size_bytes}, &put_ended);
}

void Copies::start_put(KnownSegment& to, const GlobalAddress& address, const memory::ConstBuffer& from,
                       runtime::OperationState* state) {
  put_directly(to, address, from, state, nullptr);
}

void Copies::start_get(KnownSegment& from, const GlobalAddress& address, const memory::Buffer& to,
                       runtime::OperationState* state, const GlobalAddress* near) {
  Status started =
      runtime_.machine().get(address.pe(), to, *from.remote, address.offset_bytes(), state->completion());
  KnownSegment* const near_segment = near == nullptr ? nullptr : segments_.known(*near);
  keep(state, std::move(started), segments_, {&from, near_segment, address, to.size_bytes}, &get_ended);
}

runtime::OperationState* Copies::start_between(const GlobalAddress& from, const GlobalAddress& to,
                                               std::size_t size_bytes, std::byte* near) {
  KnownSegment* const target = segments_.find_inside(to, size_bytes);
  const bool is_put = is_direct(target);
  KnownSegment* const source = is_put ? nullptr : segments_.find_inside(from, size_bytes);
  if (!is_put && !is_direct(source)) return nullptr;
  if (near == nullptr) [[unlikely]] {
    const GlobalAddress& end = is_put ? from : to;
    const KnownSegment* const segment = segments_.find_inside(end, size_bytes);
    if (segment == nullptr || !segment->is_reached() || !segment->memory.place.is_host()) return nullptr;
    near = static_cast<std::byte*>(segment->part(end, 0).data);
  }
  auto* const state = make_state();
  if (is_put) {
    put_directly(*target, to, {near, size_bytes}, state, &from);
  } else {
    start_get(*source, from, {near, size_bytes, {}, nullptr}, state, &to);
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
    start_put(*segment, address, buffer, state);
  } else {
    start_get(*segment, address, buffer, state);
  }
  return true;
}

}  // namespace weft::rma
