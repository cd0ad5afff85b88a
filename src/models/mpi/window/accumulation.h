// Accumulates: which predefined datatype a derived one consists of, and the combination of packed values with memory of a window.
//
// Threads: the PE's. Memory of windows is also used by other processes, which take the same AccumulateLock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "models/mpi/datatype/predefined.h"
#include "models/mpi/operation/reduction_operator.h"
#include "models/mpi/p2p/data_view.h"
#include "models/mpi/window/control.h"

namespace weft::mpi {

// The predefined datatype of which all elements of `type` consist; null if there are several. `types`: of the rank.
const Datatype* unit_of(const Datatype& type, const PredefinedTypes& types);

// Whether MPI_Compare_and_swap takes the datatype: integers of C, Fortran and several languages, logical values and bytes.
bool can_be_compared(const Datatype& type);

struct Accumulation {
  // The lock is given back after so many packed bytes: elements are atomic, not calls.
  static constexpr std::size_t kBytesPerLock = std::size_t{64} << 10;
  // All bytes of an access stay together.
  static constexpr std::uint32_t kAllBytes = UINT32_MAX;

  const ReductionOperator& operation;
  const Datatype& unit;
  // Bytes that the lock is not given back between, if the unit does not say that: the packed size of elements of several units.
  std::uint32_t whole_bytes = 0;
};
// Accumulation::whole_bytes for elements of `type` that are combined as `unit`: not 0 for bytes that consist of larger values.
std::uint32_t whole_bytes_of(const Datatype& type, const Datatype& unit);
// Accumulation::kBytesPerLock, or a whole element.
std::size_t part_bytes(const Accumulation& how);

// target = operand op target, for as many units as `target` has. `operand`: packed, or null for MPI_NO_OP. The values before go to
// `before`, packed, unless it is null. REQUIRES: host memory; a predefined operator that is defined for the unit.
// `control`: null for memory that this process alone changes.
void accumulate(const Accumulation& how, const std::byte* operand, const DataView& target, std::byte* before,
                WindowControl* control);

// Stores `desired` in the target if it holds the bytes of `compare`. The value before goes to `before`.
void compare_and_swap(const std::byte* compare, const std::byte* desired, const DataView& target,
                      std::byte* before, WindowControl* control);

}  // namespace weft::mpi
