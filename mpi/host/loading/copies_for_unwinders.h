// Shows the copies of the program to those who look for loaded code: the unwinder of C++ exceptions, profilers, debuggers'
// libraries. The system's loader does not know the copies.
#pragma once

#include <vector>

#include "program/program.h"
#include "slots/rank_state.h"
#include "slots/slots.h"

namespace weft::mpi_host {

// From now on, dl_iterate_phdr() and _dl_find_object() know the copies. Once, before a rank runs. `states` by rank: the rank
// has a copy here if its state is not null. All must stay.
void show_copies_to_unwinders(const Program& program, const Slots& slots,
                              const std::vector<RankState*>& states);

}  // namespace weft::mpi_host
