#include "models/mpi/topology/dimensions.h"

#include <algorithm>
#include <climits>
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

// In increasing order. The smallest divisor of what is left is a prime.
std::vector<int> primes_of(int number, const std::vector<int>& divisors) {
  std::vector<int> primes;
  for (const int divisor : divisors) {
    for (; divisor > 1 && number % divisor == 0; number /= divisor) primes.push_back(divisor);
  }
  return primes;
}

// base^exponent, or some number above `most` if that is larger than `most`.
long long power_up_to(int base, std::size_t exponent, int most) {
  long long power = 1;
  for (std::size_t i = 0; i < exponent && power <= most; ++i) power *= base;
  return power;
}

// Divides a number into `count` factors as close to one another as possible, see dimensions.h. `count` is 2 or more, and below the number
// of primes.
//
// The smallest factor is tried from the largest possible one down. What is left is divided into factors that are not smaller: in
// increasing order, each from the largest possible one down. Each solution bounds the largest factor of those that are tried after it,
// which must be better. So of equal differences the first one found is the one that is wanted. The bound never grows: what has been
// divided in vain once need not be tried again.
class BalancedFactors {
 public:
  BalancedFactors(int number, std::size_t count, const std::vector<int>& divisors)
      : divisors_(divisors),
        tried_(count),
        failed_from_(divisors.size() * count, INT_MAX),
        difference_(number) {
    for (auto smallest = last_with(count, number); smallest >= 0; --smallest) {
      const int factor = divisors_[static_cast<std::size_t>(smallest)];
      limit_ =
          static_cast<int>(std::min<long long>(static_cast<long long>(factor) + difference_ - 1, number));
      // A smaller one would leave even more to the others, and give them a lower limit.
      if (power_up_to(limit_, count - 1, number) < number / factor) break;
      tried_[0] = factor;
      divide(number / factor, 1, factor);
    }
  }

  // In increasing order.
  const std::vector<int>& best() const { return best_; }

 private:
  // The place of the largest divisor whose power with that exponent is not above `number`.
  std::ptrdiff_t last_with(std::size_t exponent, int number) const {
    const auto above = std::partition_point(divisors_.begin(), divisors_.end(), [&](int divisor) {
      return divisor <= number && power_up_to(divisor, exponent, number) <= number;
    });
    return above - divisors_.begin() - 1;
  }

  // Divides `number` into the factors from `place` on, which are at least `least` and at most limit_. Each solution is kept, and lowers
  // limit_.
  void divide(int number, std::size_t place, int least) {
    const std::size_t left = tried_.size() - place;
    if (left == 1) {
      if (number >= least && number <= limit_) keep(number);
      return;
    }
    int& failed_from = failed_from_[place_of(number) * tried_.size() + left];
    if (least >= failed_from) return;
    for (auto at = last_with(left, number); at >= 0; --at) {
      const int factor = divisors_[static_cast<std::size_t>(at)];
      if (factor < least || power_up_to(limit_, left - 1, number) < number / factor) break;
      if (number % factor != 0) continue;
      tried_[place] = factor;
      divide(number / factor, place + 1, factor);
    }
    failed_from = least;
  }

  void keep(int largest) {
    tried_.back() = largest;
    best_ = tried_;
    difference_ = largest - tried_.front();
    limit_ = largest - 1;
  }

  std::size_t place_of(int divisor) const {
    return static_cast<std::size_t>(std::lower_bound(divisors_.begin(), divisors_.end(), divisor) -
                                    divisors_.begin());
  }

  const std::vector<int>& divisors_;
  std::vector<int> tried_;
  std::vector<int> best_;
  // For each divisor and number of factors: with this least factor, and with larger ones, there is no solution below limit_.
  std::vector<int> failed_from_;
  int difference_;  // of the largest and the smallest factor of best_
  int limit_ = 0;   // the largest factor that a better solution can have
};

// As dimensions.h says, in decreasing order.
std::vector<int> balanced_factors(int number, std::size_t count) {
  if (count == 1) return {number};
  const std::vector<int> divisors = divisors_of(number);
  std::vector<int> factors = primes_of(number, divisors);
  if (factors.size() > count) factors = BalancedFactors(number, count, divisors).best();
  factors.insert(factors.begin(), count - factors.size(), 1);
  std::reverse(factors.begin(), factors.end());
  return factors;
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
  const std::vector<int> factors = balanced_factors(rest, free);
  std::size_t next = 0;
  for (int& dimension : dimensions)
    if (dimension == 0) dimension = factors[next++];
  return {};
}

}  // namespace weft::mpi
