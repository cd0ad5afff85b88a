#include "models/mpi/datatype/describing/assembly.h"

#include <utility>

namespace weft::mpi {

Error too_large_error() {
  return {MPI_ERR_VALUE_TOO_LARGE,
          "the size or the bounds of the new datatype do not fit 64 bits; give smaller counts, strides or "
          "displacements"};
}

Ref<Datatype> make_datatype(Shape shape, Recipe recipe) {
  return Ref<Datatype>::adopt(new Datatype(std::move(shape), std::move(recipe)));
}

bool repeat_shape(const Shape& shape, MPI_Count count, Wide stride, Shape* made) {
  const Bounds bounds = shape.bounds.repeated(count, stride);
  if (!fits_count(stride) || !bounds.fits() || !fits_count(Wide{count} * shape.signature->size)) return false;
  made->bounds = bounds;
  made->layout = repeat_layout(shape.layout, count, static_cast<MPI_Count>(stride));
  SignatureList signature;
  signature.add(shape.signature, count);
  made->signature = signature.finish();
  return true;
}

void Assembly::add_block(Wide displacement, MPI_Count length, const Datatype& type) {
  if (too_large_ || length == 0) return;
  const Shape& part = type.shape();
  bounds_.add(part.bounds.repeated(length, type.extent()), displacement);
  size_ += Wide{length} * type.size_bytes();
  too_large_ = !fits_count(displacement) || !bounds_.fits() || !fits_count(size_);
  if (too_large_) return;
  if (part.layout->kind == Layout::Kind::kRun &&
      part.layout->size == type.extent()) {  // no node for each block
    layout_.add_run(static_cast<MPI_Count>(displacement) + part.layout->start, length * part.layout->size);
  } else {
    layout_.add(static_cast<MPI_Count>(displacement), repeat_layout(part.layout, length, type.extent()));
  }
  signature_.add(part.signature, length);
}

Error Assembly::finish(Recipe recipe, Ref<Datatype>* made) {
  if (too_large_ || !bounds_.fits()) return too_large_error();
  *made = make_datatype({bounds_, layout_.finish(), signature_.finish()}, std::move(recipe));
  return {};
}

}  // namespace weft::mpi
