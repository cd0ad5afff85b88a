// Which pointers of a program are addresses of memory: the one place that knows, for all calls.
//
// Null, MPI_IN_PLACE, MPI_BUFFER_AUTOMATIC, MPI_UNWEIGHTED and MPI_WEIGHTS_EMPTY are below 4096, as are all predefined handles. No
// process has memory there. A call that gives one of them a meaning looks for it first.
#pragma once

#include <cstdint>
#include <string>

#include "weft/mpi/mpi.h"

namespace weft::mpi {

// The standard keeps all numbers below for constants of mpi.h.
inline constexpr std::uintptr_t kFirstAddress = 0x1000;

inline bool is_address(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer) >= kFirstAddress;
}
// A constant of mpi.h that is no address. (Null is MPI_BOTTOM: with a datatype of absolute addresses it is a buffer.)
inline bool is_sentinel(const void* pointer) { return pointer != nullptr && !is_address(pointer); }

// Describes a pointer that is no address: "a null pointer", "MPI_IN_PLACE, which is not allowed here". REQUIRES: !is_address(pointer).
std::string describe_sentinel(const void* pointer);

}  // namespace weft::mpi
