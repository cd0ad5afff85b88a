// The portable data representation "external32": big-endian, IEEE formats, sizes that the standard fixes (MPI 5.0, section 15.5.2).
#pragma once

#include <cstddef>
#include <optional>

#include "models/mpi/datatype/datatype.h"

namespace weft::mpi {

// The bytes of `count` elements; nothing if the number does not fit 64 bits.
std::optional<MPI_Count> external32_size(const Datatype& type, MPI_Count count);

// REQUIRES: external32_size(type, count) bytes at `packed`. Errors: MPI_ERR_CONVERSION if a C long or a wide character does not fit
// the 4 or 2 bytes that "external32" has for it.
Error pack_external32(const Datatype& type, const void* buffer, MPI_Count count, std::byte* packed);
void unpack_external32(const Datatype& type, void* buffer, MPI_Count count, const std::byte* packed);

// Convert values that follow one another on both sides. False if one of them does not fit; all are written then too.
bool write_external32(const BasicType& type, MPI_Count number, const std::byte* native, std::byte* external);
void read_external32(const BasicType& type, MPI_Count number, const std::byte* external, std::byte* native);
// The error of a value that does not fit: MPI_ERR_CONVERSION.
Error not_in_external32(const BasicType& type);

}  // namespace weft::mpi
