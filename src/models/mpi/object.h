// What a handle of the program refers to.
//
// A handle is the address of an Object, unless it is one of the predefined numbers of mpi.h. Each object is counted: the
// handle holds one reference, and operations in flight hold others. So an object that the program has freed lives on while
// it is in use.
#pragma once

#include <memory>

#include "models/mpi/counted.h"
#include "models/mpi/object_kind.h"

namespace weft::mpi {

class Attributes;
class VirtualRank;

class Object : public Counted {
 public:
  ObjectKind kind() const { return kind_; }

  // What the program has attached to a communicator, datatype or window. Made when it is needed.
  Attributes& attributes();
  bool has_attributes() const { return attributes_ != nullptr; }

 protected:
  explicit Object(ObjectKind kind);
  ~Object() override;

 private:
  ObjectKind kind_;
  VirtualRank* const maker_;  // counts it
  std::unique_ptr<Attributes> attributes_;
};

}  // namespace weft::mpi
