// Packs and unpacks the bytes of a layout. A range of the packed bytes can be copied alone, so that a long message is packed piece by
// piece; finding where a range begins costs a binary search for each level of the layout.
#pragma once

#include <cstddef>
#include <cstdint>

#include "models/mpi/datatype/layout.h"

namespace weft::mpi {

// `count` elements of a layout, `extent` bytes apart, beginning at an address. The address can be null: displacements of a datatype
// can be absolute addresses (MPI_BOTTOM).
struct Elements {
  const Layout* layout;
  MPI_Count count;
  MPI_Count extent;
  std::uintptr_t address;
};

// Copies the packed bytes [first, last) of the elements to `packed`. REQUIRES: 0 <= first <= last <= count * layout size.
void pack_elements(const Elements& elements, MPI_Count first, MPI_Count last, std::byte* packed);
// Copies `packed` to the place of the packed bytes [first, last) of the elements.
void unpack_elements(const Elements& elements, MPI_Count first, MPI_Count last, const std::byte* packed);

}  // namespace weft::mpi
