// Assembly: puts a datatype together from blocks of other datatypes, and notices numbers that do not fit 64 bits before it computes
// with them.
#pragma once

#include <cstddef>

#include "models/mpi/datatype/datatype.h"

namespace weft::mpi {

class Assembly {
 public:
  void reserve(std::size_t blocks) { layout_.reserve(blocks); }
  // `length` elements of a datatype, at a distance of `displacement` bytes.
  void add_block(Wide displacement, MPI_Count length, const Datatype& type);
  // Rounds the extent up, for a struct.
  void pad() { bounds_ = bounds_.padded(); }
  // Makes the datatype. Call it once.
  Error finish(Recipe recipe, Ref<Datatype>* made);

 private:
  Bounds bounds_;
  Wide size_ = 0;
  bool too_large_ = false;
  LayoutList layout_;
  SignatureList signature_;
};

// `count` times a shape, `stride` bytes apart. False if a number does not fit 64 bits.
[[nodiscard]] bool repeat_shape(const Shape& shape, MPI_Count count, Wide stride, Shape* made);

Error too_large_error();

// A datatype with this shape.
Ref<Datatype> make_datatype(Shape shape, Recipe recipe);

}  // namespace weft::mpi
