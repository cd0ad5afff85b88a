// Collectives in place, on memory of any kind.
//
// A broadcast sends the memory itself down the tree, from device to device. Reductions work on host memory: a rank copies its
// elements there, all ranks merge, and the result is copied back.
#pragma once

#include "weft/memory/buffer.h"
#include "weft/pgas/element_combine.h"
#include "weft/runtime/future.h"

#include "models/pgas/team/team_state.h"

namespace weft::pgas {

// `values` has its place.
runtime::Future<> start_buffer_broadcast(TeamState& team, const memory::Buffer& values, std::uint64_t type,
                                         int root);
// To all ranks if root < 0.
runtime::Future<> start_buffer_reduce(TeamState& team, const memory::Buffer& values,
                                      const ElementCombine& combine, runtime::Reducer reducer, int root);

}  // namespace weft::pgas
