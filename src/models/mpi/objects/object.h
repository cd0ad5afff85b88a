// Object: the thing that a handle of the program refers to.
//
// A handle is the address of an Object, unless it is one of the predefined numbers of mpi.h. Each object is counted: the
// handle holds one reference, and operations in flight hold others. So an object that the program has freed lives on while
// it is in use.
#pragma once

#include <cstddef>
#include <memory>

#include "models/mpi/objects/counted.h"
#include "models/mpi/virtual_ranks/object_kind.h"

namespace weft::mpi {

class Attributes;
class VirtualRank;

class Object : public Counted {
 public:
  // An object of a virtual rank lies in memory of the rank: a handle is an address, and must mean the same when the rank has moved.
  static void* operator new(std::size_t size_bytes);
  static void operator delete(void* place) noexcept;
  // Not noexcept: the compiler would check for null.
  static void* operator new(std::size_t /*size_bytes*/, void* place) { return place; }
  static void operator delete(void* /*object*/, void* /*place*/) noexcept {}

  ObjectKind kind() const { return kind_; }

  // The attributes that the program has attached to a communicator, datatype or window. Made when they are needed.
  Attributes& attributes();
  bool has_attributes() const { return attributes_ != nullptr; }
  // The attributes go without a call of their keys' functions.
  void drop_attributes();
  // Ends the object and keeps its memory, in which the same object is made again when its rank has moved. Its references stay valid.
  void end_in_place() { this->~Object(); }

 protected:
  explicit Object(ObjectKind kind);
  ~Object() override;

  // The virtual rank that counts it; null in a process with one rank.
  VirtualRank* maker() const { return maker_; }
  // For objects that are kept to be used again: kFreed meanwhile.
  void set_kind(ObjectKind kind) { kind_ = kind; }

 private:
  ObjectKind kind_;
  VirtualRank* const maker_;  // counts it
  std::unique_ptr<Attributes> attributes_;
};

}  // namespace weft::mpi
