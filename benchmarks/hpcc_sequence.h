// The random numbers of the HPC Challenge's RandomAccess: the powers of x modulo x^63 + x^2 + x + 1 over GF(2).
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace weft::benchmarks {

constexpr std::uint64_t next_hpcc_random(std::uint64_t random) {
  constexpr std::uint64_t kPolynomial = 7;
  return random << 1 ^ ((random >> 63) != 0 ? kPolynomial : 0);
}

// The number of the sequence at `place`, in the steps of a power by squaring.
constexpr std::uint64_t hpcc_random_at(std::uint64_t place) {
  std::array<std::uint64_t, 64> squares{};  // x^2, x^4, ... of each bit of a number
  std::uint64_t power = 1;
  for (std::uint64_t& square : squares) {
    square = power;
    power = next_hpcc_random(next_hpcc_random(power));
  }
  std::uint64_t random = 1;
  for (int bit = 63 - std::countl_zero(place | 1); bit >= 0; --bit) {
    std::uint64_t squared = 0;
    for (std::size_t i = 0; i < squares.size(); ++i) {
      if ((random >> i & 1) != 0) squared ^= squares[i];
    }
    random = (place >> bit & 1) != 0 ? next_hpcc_random(squared) : squared;
  }
  return random;
}

}  // namespace weft::benchmarks
