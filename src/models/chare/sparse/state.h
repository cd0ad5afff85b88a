// SparseState: the state of one sparse array on a PE, see sparse_arrays.h. Threads: one PE's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "weft/runtime/message.h"

#include "models/chare/elements/feature.h"
#include "models/chare/sparse/messages.h"

namespace weft::chare {

// The number of a set is part of the number of a gather, see SparseArrays::gather_of_set().
inline constexpr int kGatherBits = 40;
// The state of one sparse array on a PE.
struct SparseState final : FeatureState {
  // --- The latest set
  std::uint32_t set = 0;
  std::uint64_t num_elements = 0;
  // An element of the set was removed here, or its created() had not ended when it was counted.
  bool is_incomplete = false;
  // The latest first set of the elements that have come to this PE, or that it has inserted elsewhere.
  std::uint32_t latest_first_set = 0;

  bool has_newcomers() const { return latest_first_set > set; }

  // --- As the home of elements
  std::uint64_t num_at_home = 0;
  std::uint32_t counted = 0;  // the set for which num_at_home was reported last
  // Messages for elements that do not exist, by index; until the first set.
  std::unordered_map<std::uint64_t, std::vector<runtime::MessagePtr>> waiting;
  std::size_t waiting_bytes = 0;

  // --- Insertions and removals that are not over
  std::unordered_map<std::uint64_t, SparseMessage> being_made;      // whose created() has not ended, by index
  std::uint64_t num_begun = 0;                                      // by this PE
  std::unordered_map<std::uint64_t, std::vector<Ticket>> removals;  // of elements of this PE, by index
  std::uint32_t settling = 0;  // the round that waits until there are none; 0: none waits
  bool removed_since_counted = false;

  // --- On the PE that has made the array: the round of counting that is under way
  struct Round {
    std::uint32_t number = 0;
    bool is_running = false;
    int num_answers = 0;
    std::uint64_t num_elements = 0;
    std::vector<Ticket> callers;
    std::vector<Ticket> later;  // callers that have come since it began
  };
  Round round;
};

}  // namespace weft::chare
