#include "models/mpi/topology/dimensions.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/format.h"

namespace weft::mpi {
namespace {

std::vector<int> divisors_of(int number) {
  std::vector<int> small;
  std::vector<int> large;
  for (int divisor = 1; divisor <= number / divisor; ++divisor) {
    if (number % divisor != 0) continue;
    small.push_back(divisor);
    if (divisor != number / divisor) large.push_back(number / divisor);
  }
  small.insert(small.end(), large.rbegin(), large.rend());
  return small;
}

// base^exponent >= number
bool reaches(int base, std::size_t exponent, int number) {
  long long power = 1;
  for (std::size_t i = 0; i < exponent && power < number; ++i) power *= base;
  return power >= number;
}

// Writes factors of `number` that do not increase and are at most `largest`, the first possible ones in the order of the factors.
bool factorize(int number, int largest, const std::vector<int>& divisors, std::span<int> factors) {
  if (factors.empty()) return number == 1;
  if (number == 1) {
    std::fill(factors.begin(), factors.end(), 1);
    return true;
  }
  for (const int divisor : divisors) {
    if (divisor > largest || divisor > number) return false;
    if (number % divisor != 0 || !reaches(divisor, factors.size(), number)) continue;
    factors[0] = divisor;
    if (factorize(number / divisor, divisor, divisors, factors.subspan(1))) return true;
  }
  return false;
}

}  // namespace

Error balance_dimensions(int nodes, std::span<int> dimensions) {
  if (nodes < 1) return {MPI_ERR_ARG, base::format("the grid has {} nodes; give 1 or more", nodes)};
  int rest = nodes;
  std::size_t free = 0;
  for (const int dimension : dimensions) {
    if (dimension < 0)
      return {MPI_ERR_DIMS, base::format("a dimension is {}; give 0 for one to be chosen", dimension)};
    if (dimension == 0) {
      ++free;
    } else if (rest % dimension != 0) {
      return {MPI_ERR_DIMS, base::format("the given dimensions do not divide {} nodes", nodes)};
    } else {
      rest /= dimension;
    }
  }
  if (free == 0) {
    if (rest == 1) return {};
    return {MPI_ERR_DIMS, base::format("the product of the given dimensions is not {} nodes", nodes)};
  }
  std::vector<int> factors(free);
  (void)factorize(rest, rest, divisors_of(rest), factors);  // rest, 1, 1, ... always works
  std::size_t next = 0;
  for (int& dimension : dimensions)
    if (dimension == 0) dimension = factors[next++];
  return {};
}

}  // namespace weft::mpi
