// Shows the copies of the program to those who look for loaded code: the unwinder of C++ exceptions, profilers, debuggers'
// libraries. The system's loader does not know the copies.
#pragma once

#include <vector>

#include "program/program.h"
#include "slots/rank_state.h"
#include "slots/slots.h"

namespace weft::mpi_host {

struct ShownCopies {
  const Program* program = nullptr;
  const Slots* slots = nullptr;
  // By rank. The rank has a copy here if its state is not null.
  const std::vector<RankState*>* states = nullptr;
};

// From now on, dl_iterate_phdr() and _dl_find_object() know the copies. Once, before a rank runs.
void show_copies_to_unwinders(const ShownCopies& copies);

}  // namespace weft::mpi_host
