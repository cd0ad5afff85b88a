// Bounds: where a datatype begins and ends in memory, with the rules of MPI 5.0, section 5.1.6. Markers that MPI_Type_create_resized
// and the array constructors set override other bounds. Without markers the bounds are those of the parts, and the extent of a struct is
// rounded up to the alignment of its members. Other constructors do not round, as in other libraries, so that an hvector with an
// odd stride keeps the extent that its arguments say.
#pragma once

#include "models/mpi/datatype/checked.h"

namespace weft::mpi {

class Bounds {
 public:
  // No data and no markers.
  Bounds() = default;
  static Bounds of_data(MPI_Count size, int alignment);

  Wide true_lower() const { return true_lower_; }
  Wide true_upper() const { return true_upper_; }
  Wide lower() const { return marked_ ? marked_lower_ : lower_; }
  Wide upper() const { return marked_ ? marked_upper_ : upper_; }
  Wide extent() const { return upper() - lower(); }

  // The union with a part at a displacement.
  void add(const Bounds& part, Wide displacement);
  // `count` times the same, `stride` bytes apart.
  Bounds repeated(Wide count, Wide stride) const;
  // The extent of a struct with these members.
  Bounds padded() const;
  // A copy of these bounds with new markers; the data stays where it is.
  Bounds resized(Wide lower, Wide extent) const;

  // All bounds and extents fit 64 bits.
  bool fits() const;

 private:
  bool has_data_ = false;
  bool marked_ = false;
  int alignment_ = 1;
  Wide true_lower_ = 0;
  Wide true_upper_ = 0;
  Wide lower_ = 0;  // without markers
  Wide upper_ = 0;
  Wide marked_lower_ = 0;
  Wide marked_upper_ = 0;
};

}  // namespace weft::mpi
