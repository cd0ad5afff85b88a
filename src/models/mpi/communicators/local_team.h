// LocalTeam: the members of a communicator on one PE. In a collective they work together inside the process, and one of them
// takes part in the exchange between PEs for all.
//
// In each collective the member that arrives last does the work of the team, with the data of all, and then releases the
// others. Host memory of the others is read and written directly: all are in one process.
//
// Threads: the PE's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "weft/runtime/scheduler.h"
#include "weft/runtime/work.h"

#include "models/mpi/objects/members.h"
#include "models/mpi/p2p/data_view.h"
#include "models/mpi/p2p/point_to_point.h"
#include "models/mpi/virtual_ranks/virtual_rank.h"

namespace weft::collective {
class Group;
}

namespace weft::mpi {

class ScratchElements;

// The part of one member in a collective. It lives in the member's coroutine, which waits until the team has used it.
struct TeamMember {
  DataView data;
  ScratchElements* elements = nullptr;  // of reductions
  int error = 0;                        // the outcome for this member, an error class of mpi.h
};

// One collective of a team.
class TeamRound {
 public:
  bool is_complete() const { return num_arrived_ == members_.size(); }
  // By their places in the team.
  TeamMember& member(std::size_t place) { return *members_[place]; }
  std::span<TeamMember* const> members() const { return members_; }
  std::size_t size() const { return members_.size(); }
  // All members continue.
  void release();
  bool is_over() const { return !is_active_; }
  // release() wakes the rank. For members that wait without a coroutine.
  void add_waiting(VirtualRank& rank) { waiting_ranks_.push_back(&rank); }

  // Awaitable: continues after release().
  class Released : public runtime::ResumeWork {
   public:
    Released(TeamRound& round, runtime::Scheduler& scheduler) : round_(round), scheduler_(scheduler) {}
    // A frame that is destroyed while it waits must not be resumed.
    ~Released();
    Released(const Released&) = delete;
    Released& operator=(const Released&) = delete;
    bool await_ready() const { return !round_.is_active_; }
    void await_suspend(std::coroutine_handle<> waiting) {
      suspend(waiting, scheduler_.meter());
      round_.waiting_.push_back(this);
    }
    void await_resume() const { VirtualRank::set_current(rank_); }

   private:
    friend class TeamRound;
    TeamRound& round_;
    runtime::Scheduler& scheduler_;
    VirtualRank* rank_ = VirtualRank::current();
  };

 private:
  friend class LocalTeam;
  bool is_active_ = false;
  int tag_ = 0;
  std::size_t num_arrived_ = 0;
  std::vector<TeamMember*> members_;
  std::vector<Released*> waiting_;
  std::vector<VirtualRank*> waiting_ranks_;
};

class LocalTeam {
 public:
  // The team of the communicator with that context, which the members on this PE share. Null if each member is on a PE of its
  // own. `members` include the rank of the engine.
  static std::shared_ptr<LocalTeam> find(PointToPoint& engine, std::uint64_t context, const Members& members);

  LocalTeam(const PointToPoint& engine, const Members& members);

  std::size_t size() const { return ranks_.size(); }
  // The place of a rank of the communicator. REQUIRES: it is on this PE.
  std::size_t place_of(int rank) const;
  bool is_here(int rank) const { return pe_place_of(rank) == pe_place_; }

  // --- Between PEs
  // One member of each PE, the first, in the order of their ranks.
  const MembersPointer& leaders() const { return leaders_; }
  // This PE among them, and the PE of a rank of the communicator.
  int pe_place() const { return pe_place_; }
  int pe_place_of(int rank) const { return pe_places_[static_cast<std::size_t>(rank)]; }
  // The engine of this PE's leader.
  PointToPoint& leader_engine() const { return *leader_engine_; }
  // Whether the members of each PE have successive ranks, so that data may be combined PE by PE in the order of ranks.
  bool keeps_order() const { return keeps_order_; }

  // The leaders as a group of the engine of collectives, once it is needed. A team has one communicator.
  std::shared_ptr<collective::Group> leaders_group;

  // `rank` arrives at the collective with that tag. Collectives of a member with one tag follow each other.
  std::shared_ptr<TeamRound> arrive(int tag, int rank, TeamMember& member);

 private:
  std::vector<int> ranks_;      // of the communicator, on this PE
  std::vector<int> pe_places_;  // by rank of the communicator
  MembersPointer leaders_;
  int pe_place_ = 0;
  bool keeps_order_ = true;
  PointToPoint* leader_engine_ = nullptr;
  std::vector<std::shared_ptr<TeamRound>> rounds_;  // under way, and others to be used again
};

}  // namespace weft::mpi
