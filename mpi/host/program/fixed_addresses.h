// Equal addresses in all processes of a job. Memory of a rank has addresses of functions of this program and of all libraries, so a
// rank moves only between processes that have these at the same places.
#pragma once

#include <cstdint>

#include "program/program.h"

namespace weft::mpi_host {

// Starts this program again without random addresses, once, if the system allows it. Returns otherwise.
void restart_without_random_addresses(char** argv);

// Why ranks cannot move; null if they can.
const char* obstacle_to_fixed_addresses();

// A fingerprint of the places of all loaded libraries and of the main thread's variables, and of the content of the program. Equal
// for processes between which ranks can move. REQUIRES: the libraries of the program are loaded.
std::uint64_t fingerprint_of_addresses(const Program& program);

}  // namespace weft::mpi_host
