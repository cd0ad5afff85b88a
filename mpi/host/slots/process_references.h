// References that the C and C++ libraries keep for the process and that may point into the memory of a rank, which a move takes away.
//
// Threads: the PE's.
#pragma once

#include <string>

#include "slots/slots.h"

namespace weft::mpi_host {

// A sentence: which thing of the process refers to the rank's slot, and what the program can do. Empty if Weft sees none.
std::string what_refers_to(const Slots& slots, int rank);

}  // namespace weft::mpi_host
