// Bounds: where a datatype begins and ends in memory, with the rules of MPI 5.0, section 5.1.6: markers that MPI_Type_create_resized
// and the array constructors set override the data's bounds, and without markers the extent is rounded up to the alignment.
#pragma once

#include "models/mpi/datatype/checked.h"

namespace weft::mpi {

class Bounds {
 public:
  // No data and no markers.
  Bounds() = default;
  static Bounds of_data(MPI_Count size, int alignment);

  bool has_data() const { return has_data_; }
  Wide true_lower() const { return true_lower_; }
  Wide true_upper() const { return true_upper_; }
  Wide lower() const { return marked_ ? marked_lower_ : true_lower_; }
  Wide upper() const;
  Wide extent() const { return upper() - lower(); }

  // The union with a part at a displacement.
  void add(const Bounds& part, Wide displacement);
  // `count` times the same, `stride` bytes apart.
  Bounds repeated(Wide count, Wide stride) const;
  // The same data with new markers.
  Bounds resized(Wide lower, Wide extent) const;

  // All bounds and extents fit 64 bits.
  bool fits() const;

 private:
  bool has_data_ = false;
  bool marked_ = false;
  int alignment_ = 1;
  Wide true_lower_ = 0;
  Wide true_upper_ = 0;
  Wide marked_lower_ = 0;
  Wide marked_upper_ = 0;
};

}  // namespace weft::mpi
