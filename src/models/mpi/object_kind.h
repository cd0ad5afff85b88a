// What handles of the program refer to.
#pragma once

#include <cstdint>

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
  kFreed,  // of memory that holds no object any more, as long as nothing else is there
};

}  // namespace weft::mpi
