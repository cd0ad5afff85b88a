// Views of the memory that tests/support/device_memory.h makes.
#pragma once

#include "models/mpi/collective/typed_view.h"
#include "models/mpi/datatype/describing/constructors.h"
#include "models/mpi/datatype/predefined.h"
#include "models/mpi/p2p/data_view.h"
#include "tests/support/device_memory.h"

namespace weft::mpi {

constexpr memory::Place kHostPlace{memory::Kind::kHost, 0};
constexpr memory::Place kDevicePlace{memory::Kind::kEmulated, 0};

inline DataView view_of_memory(testing::TestMemory& memory) {
  DataView view = DataView::of_bytes(memory.buffer().data, memory.buffer().size_bytes);
  view.place = memory.buffer().place;
  return view;
}

// Blocks of 3 bytes, 5 bytes apart.
inline Ref<Datatype> blocks_of_three(MPI_Count blocks) {
  static const PredefinedTypes types;
  Ref<Datatype> made;
  const Error error = make_vector({.count = blocks, .blocklength = 3, .stride = 5}, *types.find(MPI_CHAR),
                                  CallForm::kLarge, &made);
  EXPECT_TRUE(error.ok()) << error.text;
  return made;
}

inline DataView view_of_elements(testing::TestMemory& memory, Datatype& type, MPI_Count count) {
  DataView view = typed_view(type, memory.buffer().data, count);
  view.place = memory.buffer().place;
  return view;
}

}  // namespace weft::mpi
