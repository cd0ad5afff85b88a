// The futures of one PE that other PEs know: those that they may set, and those of which elements that have moved have copies.
//
// A copy of a future in the state of an element that moves is a *mirror* on the new PE: it can be awaited there. It has a
// *link* at the PE that the element has left. The mirror asks for the value at once; the link answers exactly once, when its
// future is set, and is then gone. A link holds a share of its future, so the value exists until the mirror has asked for it. A
// mirror whose last holder goes before the value has come releases its link. A PE has one mirror of a future. An element that
// comes back to a PE that still knows the future gets that one, and its link is released, so that chains of links do not grow
// with the number of moves. The order of the three messages (want, release, copy) does not matter: a link that is gone ignores
// what comes for it, and a mirror that has its value ignores a second one.
//
// Numbers from peers are checked: a number that no link has does nothing, and a link serves one PE. Threads: one PE's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weft/runtime/future.h"

#include "runtime/owned_work.h"

namespace weft::runtime {

class FutureTable {
 public:
  explicit FutureTable(Messenger& messenger);
  ~FutureTable();
  FutureTable(const FutureTable&) = delete;
  FutureTable& operator=(const FutureTable&) = delete;

  // The table that was made for `messenger`.
  static FutureTable& of(Messenger& messenger);

  // --- Futures that others may set
  // Enters `state`, of which the table then holds a share. Returns its number, by which other PEs name it.
  std::uint64_t enter(FutureState* state);
  // Null if the future was set and has no holder on this PE any more.
  FutureState* find(std::uint64_t id) const;
  // Releases the table's share, if it has one.
  void forget(std::uint64_t id);
  // Releases all shares.
  void clear();

  // --- What has set futures, for the error of a set too many
  // Describes what a language has packed about the part of a program that set a future from PE `pe`.
  using DescribeSetter = std::string (*)(Messenger& messenger, std::uint32_t pe, std::string_view setter);
  static void describe_setters_by(DescribeSetter describe) { describe_setter_ = describe; }
  // Remembers which part of a program has set the future with that number. The table keeps the last ones.
  void remember_setter(std::uint64_t id, std::uint32_t pe, std::string_view setter);

  // --- Links: copies on other PEs
  // Makes a link to `state`, of which it holds a share. Returns its number.
  std::uint64_t link(FutureState& state);
  // `state` is ready, and the table keeps something for it: sends its outcome to all copies that have asked for it.
  void end_wait(FutureState& state);
  // Tells the PE of the link, in a later turn, that no copy needs it. All links of a PE that are released in a turn are one
  // message: thousands of elements that hold one future may arrive together.
  void release_link(FutureAddress link);
  std::size_t num_links() const { return links_.size(); }

  // --- Waiters that give up
  // Takes `work` out of the waiters of `state`, if it is one. The first call notes the places of all waiters; the cost of further calls
  // does not depend on their number.
  void forget_waiter(FutureState& state, Work* work);
  // `work` has become a waiter behind `previous`. REQUIRES: the table keeps the places of this state.
  void note_place(FutureState& state, Work* work, Work* previous);

  // --- Mirrors: copies on this PE
  // Null if there is none.
  FutureState* find_mirror(FutureAddress future) const;
  // See bind_future().
  void bind(FutureState& state, const FutureHandle& handle, bool other_type);
  // The link of a mirror; no id for one that came with its value, and for other states.
  FutureAddress link_of(const FutureState& state) const;
  // The mirror is being destroyed.
  void remove_mirror(FutureState& state);
  std::size_t num_mirrors() const { return mirrors_.size(); }

 private:
  // The links of a future are a list: thousands of elements that have copies of one future may leave one after the other.
  struct Link {
    std::uint64_t id = 0;
    FutureState* state = nullptr;         // a share
    std::optional<std::uint32_t> reader;  // the PE that has asked for the value
    Link* previous = nullptr;
    Link* next = nullptr;
  };
  struct Mirror {
    FutureState* state = nullptr;  // no share
    FutureAddress link;
  };
  struct Hash {
    std::size_t operator()(const FutureAddress& address) const {
      return std::hash<std::uint64_t>()((address.id * 0x9e3779b97f4a7c15) ^ address.pe);
    }
  };

  struct Setter {
    std::uint64_t id = 0;  // of the future; 0: none
    std::uint32_t pe = 0;
    std::string packed;
  };

  using WaiterPlaces =
      std::unordered_map<const Work*, Work*>;  // which waiter is before which; null before the first

  void on_set(MessagePtr message);
  // Ends the job: a message has set a future too often.
  [[gnu::cold]] void fail_set(std::uint32_t pe, std::uint64_t id, const FutureState* state);
  void on_want(MessagePtr message);
  void on_release(MessagePtr message);
  void on_copy(MessagePtr message);
  void answer(FutureState& state);
  void forget_places(FutureState& state);
  void send_outcome(FutureState& state, std::uint32_t to_pe);
  // Makes `state` the mirror of state.remote(). Asks for its value if it has a link.
  void add_mirror(FutureState& state, FutureAddress link);
  void send_releases();
  // Releases the link's share.
  void drop_link(std::uint64_t id);

  Messenger& messenger_;
  std::unordered_map<std::uint64_t, FutureState*> states_;
  std::uint64_t next_ = 1;
  std::unordered_map<std::uint64_t, Link> links_;     // its nodes stay where they are
  std::unordered_map<FutureState*, Link*> links_of_;  // the first one of each future
  std::uint64_t next_link_ = 1;
  std::unordered_map<const FutureState*, WaiterPlaces> places_of_;  // of futures that many wait for
  std::unordered_map<FutureAddress, Mirror, Hash> mirrors_;
  // By PE: links whose release is still to be sent.
  std::unordered_map<std::uint32_t, std::vector<std::uint64_t>> releases_;
  OwnedWork<&FutureTable::send_releases> release_work_{*this};
  std::vector<Setter> setters_;  // by number, modulo its size; made when it is first needed
  static inline DescribeSetter describe_setter_ = nullptr;
};

// While it exists, an element is packed for a move on this thread: copies of futures in its state can be awaited where they arrive.
//
// Thread-local, and not a part of Pup, because types pack themselves at several depths and in two languages. One future has
// one link for each move, however many copies of it the state has and however often it is packed.
class MovingFutures {
 public:
  MovingFutures() : outer_(std::exchange(active_, this)) {}
  ~MovingFutures() { active_ = outer_; }
  MovingFutures(const MovingFutures&) = delete;
  MovingFutures& operator=(const MovingFutures&) = delete;

  // Null if no element is being packed.
  static MovingFutures* active() { return active_; }

  // The number of the link to `state`, which is made on first use.
  std::uint64_t link_of(FutureState& state) {
    const auto [at, is_new] = known_.try_emplace(&state, 0);
    if (is_new) links_.push_back(at->second = FutureTable::of(state.messenger()).link(state));
    return at->second;
  }
  // While it exists, the value of that future is being packed.
  class Outcome {
   public:
    explicit Outcome(FutureState& state) : moving_(active_) {
      if (moving_ != nullptr) moving_->outcomes_.push_back(&state);
    }
    ~Outcome() {
      if (moving_ != nullptr) moving_->outcomes_.pop_back();
    }
    Outcome(const Outcome&) = delete;
    Outcome& operator=(const Outcome&) = delete;

   private:
    MovingFutures* moving_;
  };
  // Whether the value of a ready future may travel where its copy is packed now. Otherwise it is asked for later: values of
  // futures may hold futures, and also themselves.
  bool takes_outcome(const FutureState& state) const {
    return outcomes_.size() < kMostNested && std::ranges::find(outcomes_, &state) == outcomes_.end();
  }

  // All links that were made, in their order.
  const std::vector<std::uint64_t>& links() const { return links_; }

 private:
  static constexpr std::size_t kMostNested = 16;

  static inline thread_local MovingFutures* active_ = nullptr;
  MovingFutures* outer_;
  std::unordered_map<FutureState*, std::uint64_t> known_;
  std::vector<std::uint64_t> links_;
  std::vector<const FutureState*> outcomes_;
};

}  // namespace weft::runtime
