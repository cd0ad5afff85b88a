// Communicator: what a handle of type MPI_Comm stands for.
//
// Its messages carry a context that no other communicator has. An intercommunicator has two groups: ranks in calls are those
// of the remote one. Threads: the PE's.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <set>
#include <utility>

#include "models/mpi/communicators/collective_context.h"
#include "models/mpi/objects/contexts.h"
#include "models/mpi/objects/error_handler.h"
#include "models/mpi/objects/info.h"
#include "models/mpi/p2p/buffer_space.h"
#include "models/mpi/p2p/point_to_point.h"
#include "models/mpi/topology/topology.h"

namespace weft::mpi {

class StreamTransfers;

class Communicator final : public ErrorScope {
 public:
  struct Groups {
    MembersPointer local;
    int rank = 0;           // of this process, in `local`
    MembersPointer remote;  // null for an intracommunicator
  };
  // `local_context`: for collectives of the local group alone; of an intercommunicator only.
  Communicator(PointToPoint& engine, std::uint64_t context, Groups groups, std::uint64_t local_context,
               Ref<ErrorHandler> handler)
      : ErrorScope(ObjectKind::kCommunicator, std::move(handler)),
        engine_(engine),
        context_(context),
        local_context_(local_context),
        groups_(std::move(groups)),
        peers_(groups_.remote == nullptr ? groups_.local.get() : groups_.remote.get()),
        num_reachable_(static_cast<unsigned>(peers_->size())),
        listed_in_(engine.shared().communicators()) {
    listed_in_->insert(this);
    if (engine.shared().outsiders().are_known()) [[unlikely]]
      count_outsiders(1);
    if (engine.shared().troubles().any()) [[unlikely]]
      meet_troubles();
  }
  ~Communicator() override {
    listed_in_->erase(this);
    if (has_outsiders_) [[unlikely]]
      count_outsiders(-1);
  }

  PointToPoint& engine() const { return engine_; }
  std::uint64_t context() const { return context_; }
  std::uint64_t local_context() const { return local_context_; }
  bool is_inter() const { return groups_.remote != nullptr; }
  int rank() const { return groups_.rank; }
  int size() const { return static_cast<int>(groups_.local->size()); }
  // Whether it has processes of other jobs.
  bool has_outsiders() const { return has_outsiders_; }
  int remote_size() const { return is_inter() ? static_cast<int>(groups_.remote->size()) : 0; }
  // Of a window, which gives it to no program.
  bool is_of_window() const { return is_of_window_; }
  void give_to_window() { is_of_window_ = true; }
  const MembersPointer& group() const { return groups_.local; }
  const MembersPointer& remote_group() const { return groups_.remote; }

  // --- Messages
  // How many ranks messages go to, and the rank of each in MPI_COMM_WORLD.
  int num_peers() const { return static_cast<int>(peers_->size()); }
  bool has_peer(int rank) const { return rank >= 0 && rank < num_peers(); }
  // As has_peer(), but false in a communicator with troubles: the call then takes a way that asks for them.
  bool can_reach(int rank) const { return static_cast<unsigned>(rank) < num_reachable_; }
  int world_rank_of_peer(int rank) const { return (*peers_)[static_cast<std::size_t>(rank)]; }
  SendAddress address(int to, int tag) const {
    return {context_of(context_, ContextUse::kMessages), rank(), tag, world_rank_of_peer(to)};
  }
  // `source` and `tag` may be kAny.
  MatchKey key(int source, int tag) const {
    return {context_of(context_, ContextUse::kMessages), source, tag};
  }

  // --- Processes that are lost, and revocation, see Troubles
  // Whether the communicator is revoked, or has lost a process.
  bool has_troubles() const { return num_reachable_ == 0; }
  bool is_revoked() const { return has_troubles() && engine_.shared().troubles().is_revoked(context_); }
  // The lost processes and how many the program has acknowledged; null if there is no trouble.
  Troubles::Record* trouble() const {
    return has_troubles() ? &engine_.shared().troubles().record(context_) : nullptr;
  }
  bool has_member(int world_rank) const;
  // A member is lost, or the communicator is revoked. Collectives end, and none begins any more.
  void lose(int world_rank);
  void revoke();
  // The number of the next call of MPIX_Comm_agree or MPIX_Comm_shrink: all members make them in the same order.
  std::uint32_t next_agreement() { return num_agreements_++; }
  std::uint32_t num_agreements() const { return num_agreements_; }

  // --- Collectives
  // They throw TransferFailed in a communicator with troubles.
  // The contexts of one collective operation. All processes make their calls of one kind in the same order. Calls that wait and calls
  // that give a request are counted apart: the standard forbids another order among both, but other libraries bear it.
  enum class CallKind : std::uint8_t { kWaits, kGivesRequest };
  struct ContextPair {
    CollectiveContext local;
    CollectiveContext remote;  // the other group; in an intracommunicator, the same as `local`
  };
  // `starts`: see CollectiveContext.
  ContextPair next_collective_contexts(CallKind kind = CallKind::kWaits,
                                       const std::shared_ptr<const std::uint32_t>& starts = nullptr);
  // The tag of a collective that has no CollectiveContext.
  int next_tag(CallKind kind = CallKind::kWaits) {
    const auto number = static_cast<std::uint32_t>(kind);
    return static_cast<int>((num_calls_[number]++ * 2 + number) & 0x7fffffff);
  }
  // How many calls of each kind there have been. A communicator of a rank that has moved goes on with the numbers that it had.
  using CallNumbers = std::array<std::uint32_t, 2>;
  const CallNumbers& call_numbers() const { return num_calls_; }
  void set_call_numbers(const CallNumbers& numbers) { num_calls_ = numbers; }
  // The team of the local group; null if each member is on a PE of its own.
  const std::shared_ptr<LocalTeam>& local_team();
  // The local group for the engine of collectives.
  const std::shared_ptr<collective::Group>& collective_group();
  // The context in which a group of processes creates a communicator. `tag` is the program's.
  CollectiveContext creation_context(int tag) const {
    const MembersPointer& peers = is_inter() ? groups_.remote : groups_.local;
    return {engine_, context_of(context_, ContextUse::kGroupCreation), tag, peers, rank()};
  }

  // Becomes the communicator that a non-blocking call has agreed on. REQUIRES: it was made with context 0 and the same groups.
  void set_contexts(std::uint64_t context, std::uint64_t local_context) {
    context_ = context;
    local_context_ = local_context;
    if (engine_.shared().troubles().any()) [[unlikely]]
      meet_troubles();
  }

  // The hints of the program. They may name the stream, see mpi/src/objects/hints.h.
  Info::Pairs info;
  // Transfers of device memory come after the work that is queued there when they start; null: after nothing.
  memory::StreamHandle stream = nullptr;
  // Messages that a stream of a device orders (MPIX_Stream_comm_create); null without a stream.
  std::shared_ptr<StreamTransfers> stream_transfers;
  // Null if the communicator has no virtual topology.
  std::shared_ptr<const Topology> topology;
  // The memory of buffered sends: its own, and that of the session that it comes from, which is null without one.
  BufferSpace buffer_space;
  std::shared_ptr<BufferSpace> session_space;

 private:
  [[gnu::cold]] void count_outsiders(int count);
  // Of a communicator that is made when there are troubles.
  [[gnu::cold]] void meet_troubles();
  void end_collectives();

  PointToPoint& engine_;
  std::uint64_t context_;
  std::uint64_t local_context_;
  Groups groups_;
  const Members* peers_;
  unsigned num_reachable_;  // 0 with troubles
  const std::shared_ptr<std::set<const Communicator*>> listed_in_;
  bool has_outsiders_ = false;
  bool is_of_window_ = false;
  CallNumbers num_calls_{};  // of each kind
  std::uint32_t num_agreements_ = 0;
  std::shared_ptr<LocalTeam> team_;  // of the local group
  bool has_looked_for_team_ = false;
  std::shared_ptr<collective::Group> collective_group_;
  std::shared_ptr<collective::Group> ended_group_;  // calls that have failed in it still refer to it
};

// How two communicators compare: MPI_IDENT, MPI_CONGRUENT, MPI_SIMILAR or MPI_UNEQUAL.
int compare(const Communicator& one, const Communicator& other);

}  // namespace weft::mpi
