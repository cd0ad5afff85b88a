// The reserved part of MPI_Status: what a receive has got.
#pragma once

#include <cstdint>

#include "weft/mpi/mpi.h"

namespace weft::mpi {

// MPI_internal[0] and [1] are the low and the high half of the number of bytes; [2] says whether the operation was cancelled.
inline std::int64_t status_bytes(const MPI_Status& status) {
  const auto low = static_cast<std::uint32_t>(status.MPI_internal[0]);
  const auto high = static_cast<std::uint32_t>(status.MPI_internal[1]);
  return static_cast<std::int64_t>(std::uint64_t{high} << 32 | low);
}

inline void set_status_bytes(MPI_Status& status, std::int64_t size_bytes) {
  status.MPI_internal[0] = static_cast<int>(static_cast<std::uint32_t>(size_bytes));
  status.MPI_internal[1] =
      static_cast<int>(static_cast<std::uint32_t>(static_cast<std::uint64_t>(size_bytes) >> 32));
}

inline bool status_is_cancelled(const MPI_Status& status) { return status.MPI_internal[2] != 0; }
inline void set_status_cancelled(MPI_Status& status, bool cancelled) {
  status.MPI_internal[2] = cancelled ? 1 : 0;
}

// The status of an operation that has nothing to report: from any source, any tag, no bytes.
inline void set_status_empty(MPI_Status& status) {
  status.MPI_SOURCE = MPI_ANY_SOURCE;
  status.MPI_TAG = MPI_ANY_TAG;
  status.MPI_ERROR = MPI_SUCCESS;
  set_status_bytes(status, 0);
  set_status_cancelled(status, false);
}

}  // namespace weft::mpi
