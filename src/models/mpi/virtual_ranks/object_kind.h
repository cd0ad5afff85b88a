// ObjectKind: the kinds of objects that handles of the program refer to.
#pragma once

#include <cstddef>
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
  kStream,
  kStreamRequest,
  kWindow,
  kFreed,  // of memory that holds no object any more, as long as nothing else is there
};

inline constexpr std::size_t kNumObjectKinds = static_cast<std::size_t>(ObjectKind::kFreed) + 1;

}  // namespace weft::mpi
