#include "models/mpi/objects/addresses.h"

#include "base/format.h"

namespace weft::mpi {

namespace {

const char* sentinel_name(const void* pointer) {
  if (pointer == MPI_IN_PLACE) return "MPI_IN_PLACE";
  if (pointer == MPI_BUFFER_AUTOMATIC) return "MPI_BUFFER_AUTOMATIC";
  if (pointer == MPI_UNWEIGHTED) return "MPI_UNWEIGHTED";
  return pointer == MPI_WEIGHTS_EMPTY ? "MPI_WEIGHTS_EMPTY" : nullptr;
}

}  // namespace

std::string describe_sentinel(const void* pointer) {
  if (pointer == nullptr) return "a null pointer";
  if (const char* const name = sentinel_name(pointer))
    return base::format("{}, which is not allowed here", name);
  return base::format("the number {}, which is no address", reinterpret_cast<std::uintptr_t>(pointer));
}

}  // namespace weft::mpi
