// The check of the result: where each particle must be follows from its id. pic_verification.py is the same in Python.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "problem.h"

namespace pic {

// The largest distance between a particle and its place, in each dimension.
inline constexpr double kEpsilon = 1e-6;

// What a block, or all blocks, hold. `checksum` is a hash of every bit of positions, velocities and ids.
struct Found {
  std::int64_t count = 0;
  std::int64_t id_sum = 0;
  std::int64_t misplaced = 0;
  std::int64_t first_misplaced = 0;  // the least id of them, 0 if there is none
  std::uint64_t checksum = 0;

  Found& operator+=(const Found& other);
};

// What one block holds after that many steps.
Found examine(const Problem& problem, const Fields& fields, std::int64_t steps);

// Whether the result is right, in one sentence.
struct Verdict {
  bool correct = false;
  std::string text;
};

// Judges what all blocks hold together.
Verdict judge(const Problem& problem, const Found& total);

}  // namespace pic
