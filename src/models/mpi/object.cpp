#include "models/mpi/object.h"

#include <memory>

#include "models/mpi/attributes.h"

namespace weft::mpi {

Object::Object(ObjectKind kind) : kind_(kind) {}
// A handle that the program uses after it has freed the object is found out while its memory is not in use again. Volatile: a plain
// store into an object that ends would be left out.
Object::~Object() { *const_cast<volatile ObjectKind*>(&kind_) = ObjectKind::kFreed; }

Attributes& Object::attributes() {
  if (attributes_ == nullptr) attributes_ = std::make_unique<Attributes>();
  return *attributes_;
}

}  // namespace weft::mpi
