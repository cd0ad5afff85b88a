// The objects of MPI that one of several ranks of a process has made and that move with it. Their addresses are the handles of the
// program, so they lie in memory of the rank, which has the same addresses in every process.
//
// Threads: the PE's.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "models/mpi/virtual_ranks/object_kind.h"

namespace weft::mpi {

class Object;

class RankObjects {
 public:
  // Whether objects of that kind can move. Requests and their kin cannot: a rank does not move while it has any.
  static bool can_move(ObjectKind kind);

  void add(Object& object) { numbers_.emplace(&object, next_++); }
  void remove(Object& object) { numbers_.erase(&object); }
  // In the order in which they were made: a datatype comes behind those that it is made of.
  std::vector<Object*> in_order() const;

 private:
  std::unordered_map<Object*, std::uint64_t> numbers_;
  std::uint64_t next_ = 0;
};

}  // namespace weft::mpi
