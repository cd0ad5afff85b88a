// The collective operations of a Team, except split().
#include "weft/base/error.h"
#include "weft/pgas/team.h"

#include "memory/memory.h"
#include "models/pgas/team/buffer_collectives.h"
#include "models/pgas/team/engine_collectives.h"
#include "models/pgas/team/gather_collectives.h"
#include "models/pgas/team/team_state.h"
#include "models/pgas/team/value_collectives.h"

namespace weft::pgas {

// --- Barrier

runtime::Future<> Team::barrier() const { return start_barrier(*state_); }

void Team::blocking_barrier() const {
  // Before this rank counts as arrived.
  if (size() > 1 && !runtime().may_progress()) {
    throw base::Error(
        base::StatusCode::kInvalidArgument,
        "blocking_barrier() was called where this PE cannot communicate, for example outside of a "
        "coroutine or function that the scheduler runs");
  }
  if (!wait_in_barrier(*state_)) {
    throw base::Error(base::StatusCode::kClosed, "the job ended before all ranks had reached the barrier");
  }
}

// --- Collectives

void Team::start_broadcast(const PackedValue& mine, int root, std::uint64_t type,
                           runtime::FutureState& result) const {
  expect_rank(root);
  pgas::start_broadcast(*state_, mine, root, type, result);
}

void Team::start_reduce(const PackedValue& mine, runtime::Reducer reducer, const runtime::Combiner* combiner,
                        int root, std::uint64_t type, runtime::FutureState& result, bool is_optional) const {
  if (combiner == nullptr) return start_gather(*state_, mine, type, result);
  pgas::start_reduce(*state_, mine, reducer, combiner, root, type, result, is_optional);
}

void Team::start_fixed_broadcast(std::span<const std::byte> mine, int root, std::uint64_t type,
                                 runtime::FutureState& result) const {
  start_value(*state_, {CollectiveKind::kBroadcast, root, mine.size(), type}, mine, result);
}

void Team::start_fixed_reduce(std::span<const std::byte> mine, const ElementCombine& combine,
                              runtime::Reducer reducer, int root, runtime::FutureState& result) const {
  const auto kind = root < 0 ? CollectiveKind::kAllReduce : CollectiveKind::kReduce;
  start_value(*state_, {kind, root, mine.size(), combine.number, combine, reducer}, mine, result);
}

void Team::start_fixed_allgather(std::span<const std::byte> mine, std::uint64_t type,
                                 runtime::FutureState& result) const {
  start_fixed_gather(*state_, mine, type, result);
}

namespace {

memory::Buffer with_place(const TeamState& team, memory::Buffer values) {
  if (values.size_bytes > 0) values.place = team.runtime.memory().place_of(values.data);
  if (values.place.is_host()) values.stream = nullptr;
  return values;
}

}  // namespace

runtime::Future<> Team::broadcast_buffer(memory::Buffer values, std::uint64_t type, int root) const {
  expect_rank(root);
  values = with_place(*state_, values);
  const EngineOperation what{CollectiveKind::kBroadcastBuffer, root, values.size_bytes, type};
  return takes_buffers(*state_, what) ? start_buffer(*state_, what, values)
                                      : start_buffer_broadcast(*state_, values, type, root);
}

runtime::Future<> Team::reduce_buffer(memory::Buffer values, const ElementCombine& combine,
                                      runtime::Reducer reducer, int root) const {
  values = with_place(*state_, values);
  const auto kind = root < 0 ? CollectiveKind::kAllReduceBuffer : CollectiveKind::kReduceBuffer;
  const EngineOperation what{kind, root, values.size_bytes, combine.number, combine, reducer};
  return takes_buffers(*state_, what) ? start_buffer(*state_, what, values)
                                      : start_buffer_reduce(*state_, values, combine, reducer, root);
}

}  // namespace weft::pgas
