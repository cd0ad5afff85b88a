#include "models/mpi/datatype/bounds.h"

#include <algorithm>

namespace weft::mpi {
namespace {

// lower and upper become the union with [lower + displacement, upper + displacement).
void unite(bool is_first, Wide& lower, Wide& upper, Wide part_lower, Wide part_upper) {
  lower = is_first ? part_lower : std::min(lower, part_lower);
  upper = is_first ? part_upper : std::max(upper, part_upper);
}

}  // namespace

Bounds Bounds::of_data(MPI_Count size, int alignment) {
  Bounds made;
  made.has_data_ = size > 0;
  made.alignment_ = alignment;
  made.true_upper_ = size;
  made.upper_ = size;
  return made;
}

Bounds Bounds::padded() const {
  Bounds made = *this;
  const Wide size = upper_ - lower_;
  made.upper_ = lower_ + (size + alignment_ - 1) / alignment_ * alignment_;
  return made;
}

void Bounds::add(const Bounds& part, Wide displacement) {
  if (part.has_data_) {
    unite(!has_data_, true_lower_, true_upper_, part.true_lower_ + displacement,
          part.true_upper_ + displacement);
    unite(!has_data_, lower_, upper_, part.lower_ + displacement, part.upper_ + displacement);
    has_data_ = true;
    alignment_ = std::max(alignment_, part.alignment_);
  }
  if (part.marked_) {
    unite(!marked_, marked_lower_, marked_upper_, part.marked_lower_ + displacement,
          part.marked_upper_ + displacement);
    marked_ = true;
  }
}

Bounds Bounds::repeated(Wide count, Wide stride) const {
  Bounds made;
  if (count == 0) return made;
  made.add(*this, 0);
  made.add(*this, (count - 1) * stride);
  return made;
}

Bounds Bounds::resized(Wide lower, Wide extent) const {
  Bounds made = *this;
  made.marked_ = true;
  made.marked_lower_ = lower;
  made.marked_upper_ = lower + extent;
  return made;
}

bool Bounds::fits() const {
  return fits_count(true_lower_) && fits_count(true_upper_) && fits_count(true_upper_ - true_lower_) &&
         fits_count(lower()) && fits_count(upper()) && fits_count(extent());
}

}  // namespace weft::mpi
