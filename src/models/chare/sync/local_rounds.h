// LocalRounds: a PE's state of a step of load balancing that all PEs decide together. See sync/rounds.cpp.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "balance/distributed_decision.h"
#include "models/chare/sync/step.h"

namespace weft::chare {

// The amount of data that one element has sent to another one. Travels as its bytes, in the order of receivers, then of senders.
struct TalkedTo {
  std::uint64_t to = 0;
  std::uint64_t from = 0;
  std::uint64_t bytes = 0;
};
static_assert(std::is_trivially_copyable_v<TalkedTo> && sizeof(TalkedTo) == 24);

struct LocalRounds {
  LocalRounds(const balance::DistributedStrategy& strategy, int pe, int num_pes, std::uint64_t num_elements)
      : decision(strategy, pe, num_pes, num_elements) {}

  balance::DistributedDecision decision;

  // --- The elements of this PE that wait, and what they have sent
  std::vector<ReportedLoad> loads;
  std::vector<TalkedTo> sent;

  // --- From the beginning of the step until the first round
  bool has_begun = false;
  std::vector<TalkedTo> sent_away;                // to elements of other PEs
  std::unordered_map<std::uint64_t, int> places;  // of these elements; -1: not known yet
  std::uint64_t num_unknown = 0;                  // of these places
  // Messages from elements of other PEs to those of this PE.
  struct Heard {
    TalkedTo talked;
    int from_pe = 0;
  };
  std::vector<Heard> heard;

  // --- Rounds
  bool has_rounds = false;
  bool ignores_background = false;
  double speed = 1;  // of this PE
  Pace pace;
  std::chrono::steady_clock::time_point began;
  double decision_s = 0;
  // Objects of this PE that others have taken before its own last round was over.
  std::map<int, std::vector<std::uint64_t>> taken_early;
};

}  // namespace weft::chare
