// Counts and displacements between their small and their large form.
#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <vector>

#include "weft/mpi/mpi.h"

#include "models/mpi/objects/addresses.h"

namespace weft::mpi {

// A copy of an array whose elements have the larger type.
template <class Large, class Small>
class Widened {
 public:
  // data() is null if `values` is no address: an argument that is not significant here, or a wrong one. A length below 0 counts as 0.
  Widened(const Small* values, int length) {
    if (!is_address(values)) return;
    const auto size = static_cast<std::size_t>(length < 0 ? 0 : length);
    if (size > few_.size()) many_.resize(size);
    data_ = size > few_.size() ? many_.data() : few_.data();
    for (std::size_t at = 0; at < size; ++at) data_[at] = values[at];
  }
  Widened(const Widened&) = delete;
  Widened& operator=(const Widened&) = delete;

  const Large* data() const { return data_; }

 private:
  std::array<Large, 32> few_;  // most arrays have an element for each rank
  std::vector<Large> many_;
  Large* data_ = nullptr;
};

// A result that does not fit becomes MPI_UNDEFINED, as the standard says.
template <class Small, class Large>
Small narrowed(Large value) {
  const bool fits = value <= std::numeric_limits<Small>::max() && value >= std::numeric_limits<Small>::min();
  return fits ? static_cast<Small>(value) : static_cast<Small>(MPI_UNDEFINED);
}

}  // namespace weft::mpi
