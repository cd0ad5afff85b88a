// LocalRound: a PE's state of periodic load balancing of one collection. periodic_rounds.cpp describes the protocol.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "balance/strategy.h"
#include "models/chare/elements/feature.h"
#include "models/chare/periodic/round.h"

namespace weft::chare {

struct LocalRound final : FeatureState {
  // --- The plan that this PE carries out
  bool has_plan = false;
  std::uint64_t round = 0;
  std::unordered_map<std::uint64_t, int> planned;  // elements that are still to move, and where to
  std::uint64_t num_moved = 0;
  std::uint64_t bytes_moved = 0;

  // --- On the PE that decides
  std::uint64_t num_rounds = 0;                       // that have begun
  std::chrono::steady_clock::time_point rests_until;  // no round begins before
  std::unique_ptr<Round> deciding;                    // null between two rounds
  std::unique_ptr<balance::Strategy> strategy;
};

}  // namespace weft::chare
