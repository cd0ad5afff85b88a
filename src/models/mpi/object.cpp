#include "models/mpi/object.h"

#include <memory>

#include "models/mpi/attributes.h"

namespace weft::mpi {

Object::Object(ObjectKind kind) : kind_(kind) {}
Object::~Object() = default;

Attributes& Object::attributes() {
  if (attributes_ == nullptr) attributes_ = std::make_unique<Attributes>();
  return *attributes_;
}

}  // namespace weft::mpi
