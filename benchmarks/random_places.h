// Random numbers, and random places of a table that lies in the chares of an array: the same on each machine.
#pragma once

#include <cstdint>

namespace weft::benchmarks {

// Number `place` of a random sequence (splitmix64). Any PE can tell any of them.
constexpr std::uint64_t random_number(std::uint64_t place) {
  std::uint64_t mixed = (place + 1) * 0x9E3779B97F4A7C15U;
  mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9U;
  mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EBU;
  return mixed ^ mixed >> 31;
}

// A word of a chare.
struct Place {
  std::uint32_t chare = 0;
  std::uint32_t word = 0;
};

// The places that one PE draws from `chares` chares with `words` words each.
class RandomPlaces {
 public:
  RandomPlaces(int pe, std::uint64_t chares, std::uint64_t words)
      : drawn_(static_cast<std::uint64_t>(pe) << 40), chares_(chares), words_(words) {}

  Place next() {
    const std::uint64_t random = random_number(drawn_++);
    return {static_cast<std::uint32_t>((random >> 32) * chares_ >> 32),
            static_cast<std::uint32_t>((random & 0xFFFFFFFFU) * words_ >> 32)};
  }

 private:
  std::uint64_t drawn_;
  std::uint64_t chares_;
  std::uint64_t words_;
};

}  // namespace weft::benchmarks
