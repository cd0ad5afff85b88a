#include "lengths.h"

#include "entry.h"

namespace weft::mpi {

namespace {

bool is_valid(MPI_Comm comm) { return error_scope(comm) != nullptr; }

bool is_intercommunicator(MPI_Comm comm) {
  int flag = 0;
  return MPI_Comm_test_inter(comm, &flag) == MPI_SUCCESS && flag != 0;
}

int rank_in(MPI_Comm comm) {
  int rank = 0;
  return MPI_Comm_rank(comm, &rank) == MPI_SUCCESS ? rank : 0;
}

// The number of neighbours in one direction.
int neighbours(MPI_Comm comm, bool incoming) {
  if (!is_valid(comm)) return 0;
  int kind = MPI_UNDEFINED;
  int count = 0;
  int other = 0;
  int weighted = 0;
  int code = MPI_Topo_test(comm, &kind);
  if (code != MPI_SUCCESS) return 0;
  if (kind == MPI_CART) {
    code = MPI_Cartdim_get(comm, &count);
    count *= 2;
  } else if (kind == MPI_GRAPH) {
    code = MPI_Graph_neighbors_count(comm, rank_in(comm), &count);
  } else if (kind == MPI_DIST_GRAPH && incoming) {
    code = MPI_Dist_graph_neighbors_count(comm, &count, &other, &weighted);
  } else if (kind == MPI_DIST_GRAPH) {
    code = MPI_Dist_graph_neighbors_count(comm, &other, &count, &weighted);
  }
  return code == MPI_SUCCESS ? count : 0;
}

}  // namespace

int members(MPI_Comm comm) {
  int size = 0;
  return is_valid(comm) && MPI_Comm_size(comm, &size) == MPI_SUCCESS ? size : 0;
}

int peers(MPI_Comm comm) {
  if (!is_valid(comm)) return 0;
  if (!is_intercommunicator(comm)) return members(comm);
  int size = 0;
  return MPI_Comm_remote_size(comm, &size) == MPI_SUCCESS ? size : 0;
}

int peers_if_sent(const void* sendbuf, MPI_Comm comm) { return sendbuf == MPI_IN_PLACE ? 0 : peers(comm); }

int peers_at_root(int root, MPI_Comm comm) {
  if (!is_valid(comm) || root == MPI_PROC_NULL) return 0;
  if (root == MPI_ROOT) return peers(comm);
  return !is_intercommunicator(comm) && rank_in(comm) == root ? members(comm) : 0;
}

int sources(MPI_Comm comm) { return neighbours(comm, true); }
int destinations(MPI_Comm comm) { return neighbours(comm, false); }

}  // namespace weft::mpi
