// A collective context: the processes that take part in one collective operation, and its messages. Collectives are coroutines on it.
//
//     Task<> to_the_right(CollectiveContext context, DataView out, DataView in) {
//       const auto receive = context.receive(context.left(), in);
//       const auto send = context.send(context.right(), out);
//       co_await context.completed(*receive);
//       co_await context.completed(*send);
//     }
//
// Messages of a pair of processes within a context are received in the order in which they were sent. Two contexts of one
// communicator have different tags. Threads: the PE's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/base/error.h"
#include "weft/runtime/task.h"

#include "collective/run.h"
#include "models/mpi/communicators/local_team.h"
#include "models/mpi/objects/members.h"
#include "models/mpi/p2p/point_to_point.h"
#include "models/mpi/p2p/point_to_point_requests.h"

namespace weft::mpi {

class CollectiveContext {
 public:
  // `rank` is this process's number among the senders that the peers expect messages of. In a context of one group it is its
  // place in `peers`; in a context of two groups it is its place in its own group, and `peers` are the other one.
  // `team`: of the members on this PE; null if each has a PE of its own, or for collectives in which they do not work together.
  // Transfers of device memory come after the work that is queued on `stream` when they start; null: after nothing.
  // `group`: of the processes, if it is known. `starts`: how often the operation has been started, if it is persistent.
  CollectiveContext(PointToPoint& engine, std::uint64_t id, int tag, MembersPointer peers, int rank,
                    std::shared_ptr<LocalTeam> team = nullptr, memory::StreamHandle stream = nullptr,
                    std::shared_ptr<collective::Group> group = nullptr,
                    std::shared_ptr<const std::uint32_t> starts = nullptr)
      : engine_(engine),
        id_(id),
        tag_(tag),
        peers_(std::move(peers)),
        rank_(rank),
        team_(std::move(team)),
        stream_(stream),
        group_(std::move(group)),
        starts_(std::move(starts)) {}

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(peers_->size()); }
  std::uint64_t id() const { return id_; }
  int tag() const { return tag_; }
  // The number of a call of the engine: no other one of the communicator has it.
  std::uint64_t call_number() const {
    const std::uint64_t number = static_cast<std::uint32_t>(tag_);
    return starts_ == nullptr ? number : number | std::uint64_t{*starts_} << 32;
  }
  const std::shared_ptr<const std::uint32_t>& starts() const { return starts_; }
  LocalTeam* team() const { return team_.get(); }
  runtime::Scheduler& scheduler() const { return engine_.messenger(); }
  int left() const { return (rank_ + size() - 1) % size(); }
  int right() const { return (rank_ + 1) % size(); }

  Ref<SendRequest> send(int to, const DataView& view) const {
    const int world_rank = (*peers_)[static_cast<std::size_t>(to)];
    const SendAddress address{id_, rank_, tag_, world_rank};
    if (waits_for_stream(view)) [[unlikely]]
      return engine_.send(address, on_stream(view), SendMode::kStandard);
    return engine_.send(address, view, SendMode::kStandard);
  }
  Ref<ReceiveRequest> receive(int from, const DataView& view) const {
    const MatchKey key{id_, from, tag_};
    const int world_rank = (*peers_)[static_cast<std::size_t>(from)];
    if (waits_for_stream(view)) [[unlikely]]
      return engine_.receive(key, on_stream(view), world_rank);
    return engine_.receive(key, view, world_rank);
  }
  // The view, with the stream of the context if it is device memory and names none.
  DataView on_stream(DataView view) const {
    if (waits_for_stream(view)) view.stream = stream_;
    return view;
  }
  // The processes as a group of the engine below the models. REQUIRES: a context of one group.
  std::shared_ptr<collective::Group> group() const {
    return group_ != nullptr ? group_ : find_group(engine_, id_, *peers_, rank_);
  }
  static std::shared_ptr<collective::Group> find_group(PointToPoint& engine, std::uint64_t id,
                                                       const Members& members, int rank);
  // The error class of a collective that has failed: `other`, unless its communicator has troubles.
  int failure_class(int other) const;
  // Awaitable: the outcome of a request. The caller keeps the request.
  Completed completed(Request& request) const { return Completed(request, engine_.messenger()); }

 private:
  bool waits_for_stream(const DataView& view) const {
    return stream_ != nullptr && !view.place.is_host() && view.stream == nullptr;
  }

  PointToPoint& engine_;
  std::uint64_t id_;
  int tag_;
  MembersPointer peers_;
  int rank_;
  std::shared_ptr<LocalTeam> team_;
  memory::StreamHandle stream_;
  std::shared_ptr<collective::Group> group_;
  std::shared_ptr<const std::uint32_t> starts_;
};

// A message of a collective has failed with that error class of mpi.h.
class TransferFailed final : public base::Error {
 public:
  explicit TransferFailed(int error_class);
  TransferFailed(int error_class, const std::string& text);
  int error_class() const noexcept { return error_class_; }

 private:
  int error_class_;
};

// --- Collectives on few bytes, for what communicators must agree on. A process that fails takes all steps of the function, sends no
// bytes from then on (see transfers.h), and throws TransferFailed.

// Returns when the run is over and its messages have left. The rank that calls it is the current one then.
runtime::Task<> ended(collective::Run& run);
// Returns when all of the context have called it.
runtime::Task<> barrier(CollectiveContext context);
// `bytes` of `root` replaces that of the others, which has the same size.
runtime::Task<> broadcast_bytes(CollectiveContext context, int root, std::span<std::byte> bytes);
// The bytes of all, in the order of ranks. All give equally many.
runtime::Task<std::vector<std::byte>> allgather_bytes(CollectiveContext context,
                                                      std::span<const std::byte> mine);
// The bytes of some processes, in the order of `members`, which are their ranks in the context. They alone call it; `place` is this
// process's among them. A message tells the rank of its sender in the context, so calls of processes with different members do not mix:
// each pair of processes makes its common calls in one order.
runtime::Task<std::vector<std::byte>> allgather_bytes_among(CollectiveContext context,
                                                            std::vector<int> members, int place,
                                                            std::span<const std::byte> mine);
// Sends and receives, at the same time.
runtime::Task<> swap_bytes(CollectiveContext context, int peer, std::span<const std::byte> mine,
                           std::span<std::byte> theirs);

// The id of the context of messages between the leaders of a LocalTeam. `id`: that of a communicator's collectives.
inline std::uint64_t leaders_context_id(std::uint64_t id) { return id | 2; }

// The bytes of a value that may be copied as bytes.
template <class T>
std::span<std::byte> bytes_of_value(T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  return std::as_writable_bytes(std::span<T, 1>(&value, 1));
}

}  // namespace weft::mpi
