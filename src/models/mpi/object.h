// What a handle of the program refers to.
//
// A handle is the address of an Object, unless it is one of the predefined numbers of mpi.h. Each object is counted: the
// handle holds one reference, and operations in flight hold others. So an object that the program has freed lives on while
// it is in use.
#pragma once

#include <cstdint>
#include <string>

#include "models/mpi/counted.h"

namespace weft::mpi {

enum class ObjectKind : std::uint8_t {
  kCommunicator,
  kDatatype,
  kErrorHandler,
  kFile,
  kGroup,
  kInfo,
  kMessage,
  kOperation,
  kRequest,
  kSession,
  kWindow,
};

class Object : public Counted {
 public:
  ObjectKind kind() const { return kind_; }

 protected:
  explicit Object(ObjectKind kind) : kind_(kind) {}

 private:
  const ObjectKind kind_;
};

}  // namespace weft::mpi
