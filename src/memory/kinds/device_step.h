// Transfers that devices order among themselves: what one step of them does on a stream, and what a reduction does. KindBackend
// queues them; no CPU takes part when they run.
//
// Words are 32 bits of device memory. A word only ever grows, cyclically, and has one writer at a time.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>

#include "weft/memory/element_type.h"

namespace weft::memory {

// The devices that one step may signal, wait for, or combine.
inline constexpr std::size_t kMaxStepPeers = 16;

// A short list inside a step, which the device gets as it is.
template <class T, std::size_t most = kMaxStepPeers>
struct StepList {
  std::uint32_t size = 0;
  std::array<T, most> items{};

  // REQUIRES: fewer than `most` items.
  void add(const T& item) {
    assert(size < most);
    items[size++] = item;
  }
  const T* begin() const { return items.data(); }
  const T* end() const { return items.data() + size; }
};

// A word and its value in step number n: n + offset, modulo 2^32.
struct StepWord {
  std::uint32_t* word = nullptr;
  std::uint32_t offset = 0;
};

enum class Combination : std::uint32_t { kSum, kMin, kMax, kProduct };

// out[i] = sources[0][i] op sources[1][i] op ..., from left to right, so that the bits are the same wherever it runs. Float16 and
// bfloat16 are combined as float32 and rounded once, to nearest even. Integers wrap. A NaN in a minimum or maximum is the result,
// whatever its bits. `out` may be one of the sources; else it overlaps none. `also` is null, or gets the same as `out`. Bytes (kByte)
// are not combined.
struct DeviceReduction {
  StepList<const std::byte*> sources;  // each aligned to its elements
  std::byte* out = nullptr;
  std::byte* also = nullptr;
  std::size_t num_elements = 0;
  ElementType type = ElementType::kFloat64;
  Combination combination = Combination::kSum;
};

// Which addresses of a step are those of the first of several places, one behind the other. Step n uses place n % num_places.
enum StepRing : std::uint32_t { kRingOfTargets = 1, kRingOfSources = 2, kRingOfContributions = 4 };

// What one step does, in this order:
//   1. waits until each word of `before` has been reached,
//   2. copies size_bytes from `from` to `to`,
//   3. writes the words of `signals`: a device that has seen one sees all that the stream has written before,
//   4. waits until each word of `after` has been reached,
//   5. does `reduction`, if that has elements,
//   6. raises *count by 1.
// n, the step's number, is *count at its begin; without a count it is 0. Counts are in memory of the stream's device, and steps
// with one count are on one stream, or ordered by events. A step that a graph has captured thus has the next number at each launch.
struct DeviceStep {
  std::uint32_t* count = nullptr;
  StepList<StepWord> before;
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  std::size_t size_bytes = 0;
  StepList<StepWord> signals;
  StepList<StepWord> after;
  DeviceReduction reduction;
  // With kRingOfTargets `to`, with kRingOfSources `from`, with kRingOfContributions each source of the reduction: the
  // address of place 0. num_places is a power of 2, so the places follow one another when counts wrap.
  std::uint32_t rings = 0;
  std::uint32_t num_places = 1;
  std::size_t place_bytes = 0;

  std::size_t place_of(std::uint32_t number, StepRing ring) const {
    return (rings & ring) != 0 ? (number & (num_places - 1)) * place_bytes : 0;
  }
  // How much memory begins at an address of which each place has `used_bytes` used.
  std::size_t extent_of(std::size_t used_bytes, StepRing ring) const {
    return (rings & ring) != 0 ? (num_places - 1) * place_bytes + used_bytes : used_bytes;
  }
};

// Whether a word has been reached: it is fewer than 2^31 steps past the value, so a word may pass 2^32.
constexpr bool has_reached(std::uint32_t word, std::uint32_t value) {
  return static_cast<std::int32_t>(word - value) >= 0;
}

}  // namespace weft::memory
