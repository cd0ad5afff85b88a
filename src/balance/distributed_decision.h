// One PE's part of a decision that all PEs make together (DistributedStrategy): the objects that it has by the decisions so far,
// and what it tells its partners.
//
// It is a state machine without a runtime. The caller sends what advance() returns, and hands in what comes from other PEs in
// any order: early ones are kept.
//
//   state     Each PE of a pair tells the other its time and speed. Both then know which of them gives.
//   proposal  The descriptions of the objects that the one gives to the other; perhaps none. If neither gives, there is no proposal.
//
// After the last round each object has one owner. The owner tells each object that has come to it to the PE where the object is,
// its origin, which travels with the description (arrivals()). The origin knows how many of its objects are away, so it knows
// when it has heard of all (take()). No PE counts for all.
//
// Messages of other PEs are claims: each number is checked. A PE cannot know what another one owns, so a proposal of an object
// that the giver does not have may pass. Its origin finds that when the object is taken.
//
// Threads: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "weft/base/status.h"

#include "balance/distributed_strategy.h"

namespace weft::balance {

// An object that a PE gives. It can move. Travels as its bytes.
struct GivenObject {
  std::uint64_t object = 0;
  double load_s = 0;
  std::uint64_t origin = 0;  // the PE where it is
  std::uint64_t num_edges = 0;
};
static_assert(std::is_trivially_copyable_v<GivenObject> && sizeof(GivenObject) == 32);

// The bytes that an object has exchanged with another one. Travels as its bytes.
struct GivenEdge {
  std::uint64_t other = 0;
  std::uint64_t other_origin = 0;  // the PE where the other one is
  std::uint64_t bytes = 0;
};
static_assert(std::is_trivially_copyable_v<GivenEdge> && sizeof(GivenEdge) == 24);

struct TransferProposal {
  std::vector<GivenObject> objects;
  std::vector<GivenEdge> edges;  // of the first object, of the second one, ...
};

// To that PE: this PE's state in a round, or the proposal of that round.
struct PairMessage {
  int to_pe = 0;
  std::uint64_t round = 0;
  PeState state;
  std::optional<TransferProposal> proposal;
};

// The objects that this PE has taken from another one.
struct Arrivals {
  int origin = 0;
  std::vector<std::uint64_t> objects;
};

class DistributedDecision {
 public:
  // The part of PE `pe`. Numbers of objects are less than `num_objects`. The strategy must outlive this object.
  DistributedDecision(const DistributedStrategy& strategy, int pe, int num_pes, std::uint64_t num_objects);

  // --- Before the first round. kInvalidArgument: a number is none, or the object is there twice, or is not here.

  // An object of this PE. All PEs add theirs in ascending order: the decision depends on the order.
  base::Status add_object(std::uint64_t object, double load_s, bool can_move);
  // Adds the bytes that an object of this PE has exchanged with an object that is on PE `other_origin`.
  base::Status add_edge(std::uint64_t object, std::uint64_t other, int other_origin, std::uint64_t bytes);
  // The time that this PE needs besides its objects, and its speed. Call it last, before advance().
  base::Status begin(double background_s, double speed = 1);

  // --- Rounds. kInvalidArgument says what is wrong with the message.

  base::Status on_state(int from_pe, std::uint64_t round, double time_s, double speed);
  base::Status on_proposal(int from_pe, std::uint64_t round, TransferProposal proposal);
  // Takes all steps that are possible now, and returns the messages to send. kInvalidArgument: a proposal does not fit. REQUIRES: begun.
  base::Result<std::vector<PairMessage>> advance();
  bool is_over() const { return has_begun_ && round_ == num_rounds_; }

  // --- REQUIRES: is_over().

  // The objects that this PE has taken from other PEs, in the order of the PEs' numbers. The origins must be told.
  std::vector<Arrivals> arrivals() const;
  std::uint64_t num_arrivals() const;
  // PE `by_pe` says that it has taken this object of this PE. kInvalidArgument: it is not away, or was taken before.
  base::Status take(int by_pe, std::uint64_t object);
  // The objects of this PE that are away, and that no PE has taken yet.
  std::uint64_t num_untaken() const { return away_.size(); }

  // The times of this PE before the first round and now.
  double time_before_s() const { return time_before_s_; }
  double time_s() const { return time_s_; }

 private:
  struct Owned {
    GivenObject description;
    bool can_move = true;
    std::vector<GivenEdge> edges;
  };

  static base::Status invalid(std::string text) {
    return {base::StatusCode::kInvalidArgument, std::move(text)};
  }
  base::Status check_round(int from_pe, std::uint64_t round) const;
  base::Status check_given(const GivenObject& given) const;
  PeState own_state() const { return {pe_, time_s_, speed_}; }
  std::optional<int> partner() const { return strategy_.partner(pe_, static_cast<int>(round_), num_pes_); }
  // The message of this round, when all is known for it. Returns whether the round is over.
  base::Result<bool> finish_round(const PeState& partner, std::vector<PairMessage>& to_send);
  std::vector<OwnObject> knowledge() const;
  TransferProposal give(const PeState& partner);
  base::Status accept(TransferProposal proposal);
  base::Status add_edge_to(Owned& owned, const GivenEdge& edge);
  void next_round();

  const DistributedStrategy& strategy_;
  const int pe_;
  const int num_pes_;
  const std::uint64_t num_objects_;
  const std::uint64_t num_rounds_;

  std::vector<Owned> owned_;
  std::unordered_map<std::uint64_t, std::size_t> positions_;  // in owned_
  std::uint64_t edge_bytes_ = 0;                              // of owned_
  // Objects whose origin is this PE and that it does not own.
  std::unordered_set<std::uint64_t> away_;
  double speed_ = 1;
  double time_s_ = 0;
  double time_before_s_ = 0;

  bool has_begun_ = false;
  std::uint64_t round_ = 0;
  bool has_told_ = false;                    // its state, in this round
  std::map<std::uint64_t, PeState> states_;  // of partners, by round
  std::map<std::uint64_t, TransferProposal> proposals_;
};

}  // namespace weft::balance
