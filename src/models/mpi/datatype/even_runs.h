// The bytes of elements as runs that a device can copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace weft::mpi {

// `count` runs of `size_bytes`, `stride` bytes from one to the next. They follow one another in the packed bytes.
struct EvenRuns {
  std::uintptr_t address = 0;
  std::size_t size_bytes = 0;
  std::size_t count = 0;
  std::ptrdiff_t stride = 0;
};

using RunVisitor = std::function<void(const EvenRuns&)>;

}  // namespace weft::mpi
