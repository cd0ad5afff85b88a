#include "models/mpi/datatype/predefined.h"

#include <utility>

namespace weft::mpi {

Shape basic_shape(const BasicType& type) {
  SignatureList signature;
  signature.add_basic(type, 1);
  return {Bounds::of_data(type.size, type.alignment), run_layout(type.size), signature.finish()};
}

Shape pair_shape(const BasicType& value, const BasicType& index) {
  const PairLayout pair = pair_layout(value, index);
  LayoutList layout;
  layout.add_run(0, value.size);
  layout.add_run(pair.index_offset, index.size);
  SignatureList signature;
  signature.add_basic(value, 1);
  signature.add_basic(index, 1);
  return {Bounds::of_data(pair.index_offset + index.size, pair.alignment).padded(), layout.finish(),
          signature.finish()};
}

PredefinedTypes::PredefinedTypes() {
  for_each_basic_type([this](const BasicType& type) { add_basic(type); });
  for_each_pair_type([this](const PairType& type) { add_pair(type); });
}

void PredefinedTypes::add_basic(const BasicType& type) {
  types_.at(static_cast<std::size_t>(predefined_number(type.handle))) =
      Ref<Datatype>::adopt(new Datatype(basic_shape(type), type.handle, type.name));
}

void PredefinedTypes::add_pair(const PairType& type) {
  Shape shape = pair_shape(*basic_type(type.value), *basic_type(type.index));
  types_.at(static_cast<std::size_t>(predefined_number(type.handle))) =
      Ref<Datatype>::adopt(new Datatype(std::move(shape), type.handle, type.name));
}

}  // namespace weft::mpi
