// Limits of global memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::rma {

// More than the address space of a process.
inline constexpr std::size_t kMostSegmentBytes = std::size_t{1} << 48;
// The most dimensions of a strided copy.
inline constexpr std::size_t kMostDimensions = 8;
// The most bytes that the CPU copies in one go. It takes less than a millisecond; larger copies are made in parts, and the PE takes its turns in
// between.
inline constexpr std::uint64_t kAtOnceBytes = std::uint64_t{4} << 20;

}  // namespace weft::rma
