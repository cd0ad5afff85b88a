#include "models/mpi/datatype/datatype.h"

#include <utility>

namespace weft::mpi {

Recipe::Recipe(int combiner_of_call, CallForm form_of_call)
    : combiner(combiner_of_call), form(form_of_call) {}

Datatype::Datatype(Shape shape, Recipe recipe)
    : Object(ObjectKind::kDatatype),
      shape_(std::move(shape)),
      handle_(reinterpret_cast<MPI_Datatype>(static_cast<Object*>(this))),
      recipe_(std::move(recipe)) {
  store_bounds();
}

Datatype::Datatype(Shape shape, MPI_Datatype constant, const char* name)
    : Object(ObjectKind::kDatatype),
      shape_(std::move(shape)),
      handle_(constant),
      recipe_(MPI_COMBINER_NAMED),
      name_(name) {
  store_bounds();
  commit();
}

void Datatype::store_bounds() {
  const Bounds& bounds = shape_.bounds;
  size_ = shape_.signature->size;
  lower_bound_ = static_cast<MPI_Count>(bounds.lower());
  extent_ = static_cast<MPI_Count>(bounds.extent());
  true_lower_bound_ = static_cast<MPI_Count>(bounds.true_lower());
  true_extent_ = static_cast<MPI_Count>(bounds.true_upper() - bounds.true_lower());
  const Layout& layout = *shape_.layout;
  contiguous_ = layout.kind == Layout::Kind::kRun && layout.start == 0 && layout.size == extent_;
}

std::optional<MPI_Count> Datatype::dense_offset(MPI_Count count) const {
  const Layout& layout = *shape_.layout;
  if (size_ == 0 || count == 0) return 0;
  if (layout.kind != Layout::Kind::kRun || (count != 1 && layout.size != extent_)) return std::nullopt;
  return layout.start;
}

std::optional<MPI_Count> Datatype::packed_size(MPI_Count count) const {
  const Wide size = Wide{count} * size_;
  if (count < 0 || !fits_count(size)) return std::nullopt;
  return static_cast<MPI_Count>(size);
}

}  // namespace weft::mpi
