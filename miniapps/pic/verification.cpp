#include "verification.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "fmt/format.h"

namespace pic {
namespace {

bool is_id(const Problem& problem, double id) {
  return id >= 1 && id <= static_cast<double>(problem.particles) && id == std::floor(id);
}

std::uint64_t hash_of_particle(const Fields& fields, std::size_t i) {
  std::uint64_t hash = hash_of(std::bit_cast<std::uint64_t>(fields[kId][i]), 0);
  for (std::size_t field = kX; field <= kVy; ++field) {
    hash = hash_of(hash ^ std::bit_cast<std::uint64_t>(fields[field][i]), 0);
  }
  return hash;
}

}  // namespace

Found& Found::operator+=(const Found& other) {
  count += other.count;
  id_sum += other.id_sum;
  misplaced += other.misplaced;
  if (first_misplaced == 0 || (other.first_misplaced != 0 && other.first_misplaced < first_misplaced)) {
    first_misplaced = other.first_misplaced;
  }
  checksum += other.checksum;
  return *this;
}

Found examine(const Problem& problem, const Fields& fields, std::int64_t steps) {
  const Start start(problem);
  Found found;
  for (std::size_t i = 0; i < fields[kX].size(); ++i) {
    const bool is_known = is_id(problem, fields[kId][i]);
    const std::int64_t id = is_known ? static_cast<std::int64_t>(fields[kId][i]) : 1;
    Found one{1, id, 0, 0, hash_of_particle(fields, i)};
    // False for what is no number, too.
    const bool is_right = is_known && std::abs(fields[kX][i] - start.x_after(id, steps)) <= kEpsilon &&
                          std::abs(fields[kY][i] - start.y_after(id, steps)) <= kEpsilon;
    if (!is_right) {
      one.misplaced = 1;
      one.first_misplaced = id;
    }
    found += one;
  }
  return found;
}

Verdict judge(const Problem& problem, const Found& total) {
  const std::int64_t n = problem.particles;
  std::vector<std::string> faults;
  if (total.count != n) faults.push_back(fmt::format("there are {} particles instead of {}", total.count, n));
  if (total.id_sum != n * (n + 1) / 2) {
    faults.push_back(fmt::format("the sum of the ids is {} instead of {}", total.id_sum, n * (n + 1) / 2));
  }
  if (total.misplaced != 0) {
    faults.push_back(fmt::format("{} particles are not where they must be; the one with the least id is {}",
                                 total.misplaced, total.first_misplaced));
  }
  if (!faults.empty()) return {false, fmt::format("{}", fmt::join(faults, "; "))};
  return {true, fmt::format("all {} particles are where they must be, and none is lost or doubled", n)};
}

}  // namespace pic
