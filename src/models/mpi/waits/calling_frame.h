// The call of MPI in which the thread waits, for reports: read from its stack, so that calls need not store their names.
//
// Threads: any; of the calling one.
#pragma once

#include <string>

namespace weft::mpi {

// "MPI_Recv (program+0x1234)", or with the name of the function if the program exports it; empty if no call of MPI is on the stack.
std::string calling_frame();

}  // namespace weft::mpi
