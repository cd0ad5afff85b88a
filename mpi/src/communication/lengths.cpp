#include "communication/lengths.h"

#include "communication/communication.h"
#include "models/mpi/communicators/communicator.h"
#include "models/mpi/topology/topology.h"

namespace weft::mpi {

int members(MPI_Comm comm) {
  const Communicator* const communicator = communicator_of(comm);
  return communicator == nullptr ? 0 : communicator->size();
}

int peers(MPI_Comm comm) {
  const Communicator* const communicator = communicator_of(comm);
  return communicator == nullptr ? 0 : communicator->num_peers();
}

int peers_if_sent(const void* sendbuf, MPI_Comm comm) { return sendbuf == MPI_IN_PLACE ? 0 : peers(comm); }

int peers_at_root(int root, MPI_Comm comm) {
  const Communicator* const communicator = communicator_of(comm);
  if (communicator == nullptr) return 0;
  const bool is_root = communicator->is_inter() ? root == MPI_ROOT : root == communicator->rank();
  return is_root ? communicator->num_peers() : 0;
}

int sources(MPI_Comm comm) {
  const Communicator* const communicator = communicator_of(comm);
  if (communicator == nullptr || communicator->topology == nullptr) return 0;
  return static_cast<int>(communicator->topology->sources(communicator->rank()).size());
}

int destinations(MPI_Comm comm) {
  const Communicator* const communicator = communicator_of(comm);
  if (communicator == nullptr || communicator->topology == nullptr) return 0;
  return static_cast<int>(communicator->topology->destinations(communicator->rank()).size());
}

}  // namespace weft::mpi
