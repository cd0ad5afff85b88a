#include "models/mpi/object.h"

#include <memory>

#include "models/mpi/attributes.h"
#include "models/mpi/virtual_ranks/virtual_rank.h"

namespace weft::mpi {

Object::Object(ObjectKind kind) : kind_(kind), maker_(VirtualRank::current()) {
  if (maker_ != nullptr) [[unlikely]]
    maker_->count_object(kind, 1);
}

// A handle that the program uses after it has freed the object is found out while its memory is not in use again. Volatile: a plain
// store into an object that ends would be left out.
Object::~Object() {
  if (maker_ != nullptr) [[unlikely]]
    maker_->count_object(kind_, -1);
  *const_cast<volatile ObjectKind*>(&kind_) = ObjectKind::kFreed;
}

Attributes& Object::attributes() {
  if (attributes_ == nullptr) attributes_ = std::make_unique<Attributes>();
  return *attributes_;
}

}  // namespace weft::mpi
