// What the C and C++ libraries keep for the process and may point into the memory of a rank, which a move takes away.
//
// Threads: the PE's.
#pragma once

#include <string>

#include "slots/slots.h"

namespace weft::mpi_host {

// What of the process refers to the rank's slot, and what the program can do; empty if nothing does that Weft can see.
std::string what_refers_to(const Slots& slots, int rank);

}  // namespace weft::mpi_host
