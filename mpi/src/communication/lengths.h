// How many elements the arrays of collective calls have. 0 for arrays that are not significant here, and for a communicator
// that is not valid: the call itself reports that.
#pragma once

#include "weft/mpi/mpi.h"

namespace weft::mpi {

// The ranks to which this one sends, or from which it receives: the other group of an intercommunicator.
int peers(MPI_Comm comm);
int peers_if_sent(const void* sendbuf, MPI_Comm comm);
int peers_at_root(int root, MPI_Comm comm);
// The ranks of the own group.
int members(MPI_Comm comm);
// Neighbours in the topology of the communicator.
int sources(MPI_Comm comm);
int destinations(MPI_Comm comm);

}  // namespace weft::mpi
