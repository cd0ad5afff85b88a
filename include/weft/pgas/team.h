// weft::pgas::Team: an ordered set of PEs that call one another and take part in collective operations.
//
//   double sum = co_await world.allreduce(mine, weft::Reducer::kSum);
//   pgas::Team row = co_await world.split(world.rank() / 4, world.rank());
//   co_await row.barrier();
//
// The world is the team of all PEs. A PE's number in a team is its rank. All members of a team call the same collective
// operations on it in the same order. A collective operation starts in the call, and the future that it returns may be
// awaited later. A team lives until the job ends, and copies of a Team are cheap.
//
// A collective that fails on one rank gives the exception to that rank and to those that depend on it. If a value does not
// pack, the call throws the exception, and the futures of the other ranks get it. Errors: a rank that the team does not have
// is Error(kOutOfRange); that call is no collective. An empty Team may be tested and assigned, nothing else. Threads: the
// PE's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/base/pup.h"
#include "weft/base/small_bytes.h"
#include "weft/memory/buffer.h"
#include "weft/pgas/element_combine.h"
#include "weft/pgas/function_traits.h"
#include "weft/pgas/team_id.h"
#include "weft/queued/device_group.h"
#include "weft/runtime/future.h"
#include "weft/runtime/reduction.h"
#include "weft/runtime/runtime.h"

namespace weft::pgas {

class TeamState;
using queued::DeviceGroup;
using queued::DeviceGroupOptions;

// A rank's value in a collective, packed.
struct PackedValue {
  base::SmallBytes bytes;
  std::exception_ptr error;  // why it does not pack; `bytes` are not used then
};

// A colour of split(): this PE becomes a member of no team.
inline constexpr std::int64_t kNoTeam = std::numeric_limits<std::int64_t>::min();

class Team {
 public:
  // No team.
  Team() = default;
  explicit operator bool() const { return state_ != nullptr; }
  friend bool operator==(const Team&, const Team&) = default;

  // --- Members
  int rank() const;
  int size() const;
  int pe_of(int rank) const;
  // -1 if the PE is no member.
  int rank_of_pe(int pe) const;
  // The PEs in the order of their ranks.
  std::vector<int> members() const;
  TeamId id() const;
  World& world() const;
  runtime::Runtime& runtime() const;

  // Collective. The members that give the same colour become a team. Their ranks follow the keys; equal keys keep the
  // order of this team. A member that gives kNoTeam gets an empty Team.
  runtime::Future<Team> split(std::int64_t colour, std::int64_t key) const;

  // --- Calls of functions on other ranks; defined in rpc.h

  // Runs `Function(arguments...)` on that rank, from its scheduler. Returns a future of its result or of its exception. A
  // function that returns a Task may wait. Arguments and results are values: they are packed in the call, so the caller may
  // change them at once. Include weft/pgas/rpc.h.
  template <auto Function, class... Args>
  runtime::Future<RpcValue<Function>> rpc(int rank, Args&&... arguments) const;
  // Calls the function as rpc() does, without a result. An exception of the function ends the job.
  template <auto Function, class... Args>
  void rpc_ff(int rank, Args&&... arguments) const;

  // --- Barrier
  // Ready when all ranks have called it.
  runtime::Future<> barrier() const;
  // Returns when all ranks have called barrier() or blocking_barrier(). This PE runs nothing else meanwhile: a rank that
  // needs an answer of this PE to reach the barrier waits for ever. Throws Error(kClosed) if the job ends first.
  void blocking_barrier() const;

  // --- Collectives of values that pup.h packs
  // The value of `root`, on all ranks. The values of the others are not used.
  template <class T>
  runtime::Future<T> broadcast(const T& value, int root) const;
  // The values of all ranks, merged; on `root` alone, and empty on the others. Sums of floating-point numbers may differ in
  // the last bits from those of another order.
  template <class T>
  runtime::Future<std::optional<T>> reduce(const T& value, runtime::Reducer reducer, int root) const;
  // With `T Merge(T, T)`, which is associative and commutative.
  template <auto Merge, class T>
  runtime::Future<std::optional<T>> reduce(const T& value, int root) const;
  // reduce() with the result on all ranks. All get the same bits.
  template <class T>
  runtime::Future<T> allreduce(const T& value, runtime::Reducer reducer) const;
  template <auto Merge, class T>
  runtime::Future<T> allreduce(const T& value) const;
  // The values of all ranks, in the order of the ranks.
  template <class T>
  runtime::Future<std::vector<T>> allgather(const T& value) const;

  // --- Collectives in place, on memory of any kind
  // All ranks give the same number of elements. The memory belongs to the operation until the future is ready. The
  // operation begins after the work that is queued on `stream` now; host memory has no stream. Device memory of
  // more than 64 KiB is broadcast from device to device. Smaller broadcasts, and reductions, copy it to the host
  // and back. If the operation fails, the elements have any value.
  template <class T>
  runtime::Future<> broadcast_in_place(std::span<T> values, int root,
                                       memory::StreamHandle stream = nullptr) const;
  // The values of `root` are replaced; those of the others stay.
  template <class T>
  runtime::Future<> reduce_in_place(std::span<T> values, runtime::Reducer reducer, int root,
                                    memory::StreamHandle stream = nullptr) const;
  template <auto Merge, class T>
  runtime::Future<> reduce_in_place(std::span<T> values, int root,
                                    memory::StreamHandle stream = nullptr) const;
  template <class T>
  runtime::Future<> allreduce_in_place(std::span<T> values, runtime::Reducer reducer,
                                       memory::StreamHandle stream = nullptr) const;
  template <auto Merge, class T>
  runtime::Future<> allreduce_in_place(std::span<T> values, memory::StreamHandle stream = nullptr) const;

  // --- Collectives of device arrays, queued on streams
  // Collective: a group for them, see weft/queued/device_group.h. Each member gives its PE's own device, and the same options. All
  // members get the first failure: Error(kUnsupported) if a device does not reach that of a peer, also on another host.
  runtime::Future<DeviceGroup> device_group(memory::Place device,
                                            const DeviceGroupOptions& options = {}) const;

  // As an argument or a result it arrives as the same team. Throws Error(kNotFound) on a PE that is no member, or that has
  // not made the team yet.
  void pup(base::Pup& p);

  // --- For other languages, which pack by themselves. Collective `bytes` of all ranks have the type `type`, any number.
  // The result is set with FutureState::set_packed().
  // If this rank's value does not pack, it starts the collective with the error, so that the other ranks get that.
  void start_broadcast(const PackedValue& mine, int root, std::uint64_t type,
                       runtime::FutureState& result) const;
  // To `root`, to all if root < 0. The result of the other ranks has no bytes. With `is_optional`, the result is packed
  // as a std::optional. `combiner` is null: all ranks get all packed values in the order of the ranks, behind their number.
  void start_reduce(const PackedValue& mine, runtime::Reducer reducer, const runtime::Combiner* combiner,
                    int root, std::uint64_t type, runtime::FutureState& result,
                    bool is_optional = false) const;
  // The same of values that are their packed bytes, equally many on all ranks, and with a function that does
  // not throw. They cost less.
  static constexpr std::size_t kMostFixedBytes = 64;
  template <class T>
  static constexpr bool has_fixed_bytes = base::pup_detail::kIsBulk<T> && sizeof(T) <= kMostFixedBytes;
  void start_fixed_broadcast(std::span<const std::byte> mine, int root, std::uint64_t type,
                             runtime::FutureState& result) const;
  // The result is packed as a std::optional if root >= 0.
  void start_fixed_reduce(std::span<const std::byte> mine, const ElementCombine& combine,
                          runtime::Reducer reducer, int root, runtime::FutureState& result) const;
  // The result is the packed vector of all values, in the order of the ranks.
  static constexpr std::size_t kMostFixedGatherBytes = std::size_t{64} << 10;
  void start_fixed_allgather(std::span<const std::byte> mine, std::uint64_t type,
                             runtime::FutureState& result) const;
  // The place of the memory is found from its address.
  runtime::Future<> broadcast_buffer(memory::Buffer values, std::uint64_t type, int root) const;
  runtime::Future<> reduce_buffer(memory::Buffer values, const ElementCombine& combine,
                                  runtime::Reducer reducer, int root) const;  // to all if root < 0

  // Throws Error(kOutOfRange) if the team has no such rank.
  void expect_rank(int rank) const;
  // Throws Error(kInvalidArgument) for kGather, kConcat and kCustom.
  static void expect_merging(runtime::Reducer reducer);

  explicit Team(TeamState* state) : state_(state) {}
  TeamState* state() const { return state_; }

 private:
  template <class Pack>
  static PackedValue packed_or_error(const Pack& pack) {
    try {
      return {pack(), nullptr};  // in place: the bytes may be many
    } catch (...) {
      return {{}, std::current_exception()};
    }
  }
  // Starts a collective with what `pack` returns, or with the exception that it throws, which is thrown again.
  template <class Pack, class Start>
  static void start_packed(const Pack& pack, const Start& start) {
    const PackedValue mine = packed_or_error(pack);
    start(mine);
    if (mine.error) std::rethrow_exception(mine.error);
  }

  template <class T>
  memory::Buffer buffer_of(std::span<T> values, memory::StreamHandle stream) const {
    static_assert(std::is_trivially_copyable_v<T> && !std::is_const_v<T>,
                  "a buffer's elements are replaced as bytes: give a span of a trivially copyable type");
    return {values.data(), values.size_bytes(), {}, stream};
  }

  TeamState* state_ = nullptr;
};

// --- Collectives of values

template <class T>
runtime::Future<T> Team::broadcast(const T& value, int root) const {
  expect_rank(root);
  runtime::Future<T> result(runtime());
  if constexpr (has_fixed_bytes<T>) {
    const base::SmallBytes mine = base::pack_small(value, &runtime());
    start_fixed_broadcast({mine.data(), mine.size()}, root, rpc_detail::type_number<T>(), *result.state());
  } else {
    start_packed([&] { return rank() == root ? base::pack_small(value, &runtime()) : base::SmallBytes(); },
                 [&](const PackedValue& mine) {
                   start_broadcast(mine, root, rpc_detail::type_number<T>(), *result.state());
                 });
  }
  return result;
}

template <class T>
runtime::Future<std::optional<T>> Team::reduce(const T& value, runtime::Reducer reducer, int root) const {
  expect_merging(reducer);
  expect_rank(root);
  runtime::Future<std::optional<T>> result(runtime());
  if constexpr (std::is_arithmetic_v<T>) {
    start_fixed_reduce(std::as_bytes(std::span(&value, 1)), number_combine<T>(), reducer, root,
                       *result.state());
  } else {
    const runtime::Combiner* const combiner = runtime::value_combiner<T>(reducer);
    start_packed([&] { return runtime::pack_contribution(value, reducer, runtime()); },
                 [&](const PackedValue& mine) {
                   start_reduce(mine, reducer, combiner, root, rpc_detail::type_number<T>(), *result.state(),
                                true);
                 });
  }
  return result;
}

template <auto Merge, class T>
runtime::Future<std::optional<T>> Team::reduce(const T& value, int root) const {
  expect_rank(root);
  runtime::Future<std::optional<T>> result(runtime());
  start_packed([&] { return base::pack_small(value, &runtime()); },
               [&](const PackedValue& mine) {
                 start_reduce(mine, runtime::Reducer::kCustom, runtime::custom_combiner<T, Merge>(), root,
                              rpc_detail::type_number<T>(), *result.state(), true);
               });
  return result;
}

template <class T>
runtime::Future<T> Team::allreduce(const T& value, runtime::Reducer reducer) const {
  expect_merging(reducer);
  runtime::Future<T> result(runtime());
  if constexpr (std::is_arithmetic_v<T>) {
    start_fixed_reduce(std::as_bytes(std::span(&value, 1)), number_combine<T>(), reducer, -1,
                       *result.state());
  } else {
    const runtime::Combiner* const combiner = runtime::value_combiner<T>(reducer);
    start_packed([&] { return runtime::pack_contribution(value, reducer, runtime()); },
                 [&](const PackedValue& mine) {
                   start_reduce(mine, reducer, combiner, -1, rpc_detail::type_number<T>(), *result.state());
                 });
  }
  return result;
}

template <auto Merge, class T>
runtime::Future<T> Team::allreduce(const T& value) const {
  runtime::Future<T> result(runtime());
  start_packed([&] { return base::pack_small(value, &runtime()); },
               [&](const PackedValue& mine) {
                 start_reduce(mine, runtime::Reducer::kCustom, runtime::custom_combiner<T, Merge>(), -1,
                              rpc_detail::type_number<T>(), *result.state());
               });
  return result;
}

template <class T>
runtime::Future<std::vector<T>> Team::allgather(const T& value) const {
  runtime::Future<std::vector<T>> result(runtime());
  if constexpr (base::pup_detail::kIsBulk<T> && sizeof(T) <= kMostFixedGatherBytes) {
    const base::SmallBytes mine = base::pack_small(value, &runtime());
    start_fixed_allgather({mine.data(), mine.size()}, rpc_detail::type_number<T>(), *result.state());
  } else {
    start_packed([&] { return base::pack_small(value, &runtime()); },
                 [&](const PackedValue& mine) {
                   start_reduce(mine, runtime::Reducer::kGather, nullptr, -1, rpc_detail::type_number<T>(),
                                *result.state());
                 });
  }
  return result;
}

// --- Collectives in place

template <class T>
runtime::Future<> Team::broadcast_in_place(std::span<T> values, int root, memory::StreamHandle stream) const {
  return broadcast_buffer(buffer_of(values, stream), rpc_detail::type_number<T>(), root);
}

template <class T>
runtime::Future<> Team::reduce_in_place(std::span<T> values, runtime::Reducer reducer, int root,
                                        memory::StreamHandle stream) const {
  expect_merging(reducer);
  expect_rank(root);
  return reduce_buffer(buffer_of(values, stream), number_combine<T>(), reducer, root);
}

template <auto Merge, class T>
runtime::Future<> Team::reduce_in_place(std::span<T> values, int root, memory::StreamHandle stream) const {
  expect_rank(root);
  return reduce_buffer(buffer_of(values, stream), custom_combine<T, Merge>(), runtime::Reducer::kCustom,
                       root);
}

template <class T>
runtime::Future<> Team::allreduce_in_place(std::span<T> values, runtime::Reducer reducer,
                                           memory::StreamHandle stream) const {
  expect_merging(reducer);
  return reduce_buffer(buffer_of(values, stream), number_combine<T>(), reducer, -1);
}

template <auto Merge, class T>
runtime::Future<> Team::allreduce_in_place(std::span<T> values, memory::StreamHandle stream) const {
  return reduce_buffer(buffer_of(values, stream), custom_combine<T, Merge>(), runtime::Reducer::kCustom, -1);
}

}  // namespace weft::pgas
