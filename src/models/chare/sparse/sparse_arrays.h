// Sparse arrays: elements are inserted and removed one by one, from any PE, while others move.
//
// The home of an index decides whether its element exists. An insertion goes to the home, which gives the element its place and
// the number of a move; an element that is removed moves home, as far as the directories are concerned. So one counter per index
// orders insertions, moves and removals, and messages find the element, or its home, as they find an element that moves.
//
// done_inserting() counts the elements. The elements counted by one call are a *set*; sets are numbered from 1. Reductions are
// numbered anew in each set, and the results of a call to all elements are gathered over a set. An element belongs to all sets
// from ChareBase::set_ on. Each PE knows whether elements of the latest set have gone from it, and refuses to gather results then.
// See docs/decisions/sparse-arrays.md.
//
// Threads: one PE's thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "weft/chare/chares.h"
#include "weft/runtime/future.h"

#include "models/chare/elements/feature.h"
#include "models/chare/sparse/state.h"

namespace weft::chare {

struct SparseMessage;

class SparseArrays final : public Feature, public ElementSets {
 public:
  SparseArrays(Chares& chares, FeatureTable& table)
      : Feature(table),
        chares_(chares),
        handler_(table.add_handlers<&SparseArrays::on_message>(*this)),
        removal_handler_(table.add_handlers<&SparseArrays::on_remove>(*this)) {}

  // See Chares.
  runtime::Future<> insert(Collection& collection, std::uint64_t index, int pe,
                           const ConstructorInfo& constructor, std::span<const std::byte> arguments);
  runtime::Future<> remove(Collection& collection, std::uint64_t index);
  void remove_self(ChareBase& chare);
  runtime::Future<> done_inserting(Collection& collection);

  void on_message(runtime::MessagePtr message);
  // It is addressed to an element, as a call.
  void on_remove(runtime::MessagePtr message);
  // How many elements the latest set has; 0 if there is none.
  std::uint64_t num_counted(const Collection& collection) const;
  // Whether its removal has been asked for.
  bool is_to_be_removed(const ChareBase& chare) const;
  // --- For checkpoints
  // Whether the elements of this PE are those of the latest set, which exists.
  bool is_counted(const Collection& collection) const;
  // The elements of this PE were made from a checkpoint, at home and in the set kFirstSet, which has `num_elements` on all PEs.
  static constexpr std::uint32_t kFirstSet = 1;
  void restored(Collection& collection, std::uint64_t num_elements);

  // --- Feature. An element that is to be removed goes when it could move.
  std::vector<runtime::MessagePtr> collection_ended(Collection& target, FeatureStates& states,
                                                    const std::string& why) override;
  void close(Collection& target) override;
  bool continue_move(ChareBase& chare) override { return remove_when_idle(chare); }
  void left(Collection& from, const ChareBase& chare) override;
  bool arrived(ChareBase& chare, Pup& p, int from_pe) override;

  // --- ElementSets
  void is_made(ChareBase& chare) override;
  void not_made(ChareBase& chare, const std::exception_ptr& with_place) override;
  void has_no_element(Collection& target, EntryHeader header, runtime::MessagePtr message) override;
  std::uint32_t latest_set(const Collection& collection) const override;
  std::uint64_t gather_of_set(Collection& collection, std::uint64_t gather) override;
  bool serves_gather(Collection& target, const EntryHeader& header, runtime::Message& message) override;
  void keep_those_of_set(Collection& target, std::vector<ChareBase*>& chares) override;
  base::Status expect_open(Collection& collection, std::uint32_t set) override;

 private:
  // An operation of this PE that is not over.
  struct Begun {
    std::uint64_t collection = 0;
    bool is_settled = true;  // whether done_inserting() waits for it
    std::optional<runtime::Future<>> done;
    std::string what;  // for an error that nothing awaits
  };

  SparseState& state(Collection& collection) const;
  // Null if this PE has nothing to do with the array yet, and for another collection.
  const SparseState* find_state(const Collection& collection) const;
  // Belongs to the sets that this PE knows, and takes part in their reductions.
  void joins_sets(ChareBase& chare);
  // The end of an insertion.
  void is_inserted(const ChareBase& chare, const SparseMessage& insertion);
  // Removes the element if that was asked for and nothing of it is suspended. Returns false if it has to do nothing more with the
  // element, which is still there then.
  bool remove_when_idle(ChareBase& chare);
  int home_of(const Collection& collection, std::uint64_t index) const;
  void expect_sparse(Collection& collection, const char* operation) const;
  Ticket begin(Collection& collection, Begun begun);
  // The operation was not sent.
  void forget(Collection& collection, const Ticket& ticket);
  bool fits(const Collection& target, const SparseMessage& message) const;
  void fail_unfit(const Collection& target, const runtime::Message& message);
  void send(int pe, const SparseMessage& message, std::span<const std::byte> rest = {});
  runtime::MessagePtr message_of(const SparseMessage& message, std::span<const std::byte> rest) const;
  // `outcome`: a message of which the outcome is sent to the PEs of the tickets; `rest` is its packed exception.
  void reply(const std::vector<Ticket>& tickets, const SparseMessage& outcome,
             std::span<const std::byte> rest = {});
  void on_reply(const SparseMessage& message, Pup& rest);
  // For a collection that has been destroyed.
  void refuse(const Collection& target, const SparseMessage& message, std::span<const std::byte> rest);

  // An element that belongs to sets from `set` on has come to this PE, or was inserted by it.
  void note_first_set(Collection& collection, std::uint32_t set);
  void on_insert(Collection& target, SparseMessage& message, std::span<const std::byte> arguments);
  void construct(Collection& target, const SparseMessage& message, std::span<const std::byte> arguments);
  // The element could not be made: its home forgets it and tells the caller.
  void no_element(Collection& target, const SparseMessage& insertion, const std::exception_ptr& error);
  void on_removed(Collection& target, const SparseMessage& message, std::span<const std::byte> rest);
  void remove_here(ChareBase& chare, const Ticket& ticket);
  void release_waiting(Collection& target, std::uint64_t index);

  // --- Sets, in sparse/sets.cpp

  void on_ask(Collection& target, const SparseMessage& message);
  void begin_round(Collection& target);
  void end_round(Collection& target, const SparseMessage& outcome);
  void settle_if_quiet(Collection& target);
  void on_settled(Collection& target, const SparseMessage& message);
  void on_count(Collection& target, const SparseMessage& message);
  void on_counted(Collection& target, const SparseMessage& message);
  void on_set(Collection& target, const SparseMessage& message);
  void on_set_known(Collection& target, const SparseMessage& message);
  // A message to all PEs.
  void send_to_all(const SparseMessage& message);

  Chares& chares_;
  runtime::HandlerId handler_;
  runtime::HandlerId removal_handler_;
  std::unordered_map<std::uint64_t, Begun> begun_;
  std::uint64_t next_ticket_ = 1;
};

}  // namespace weft::chare
