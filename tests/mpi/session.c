/* A program without MPI_Init: a session, a group, a communicator. */
#include <mpi.h>

#include <stdio.h>

int main(void) {
  MPI_Session session;
  MPI_Group group;
  MPI_Comm comm;
  int rank, size, left = -1;
  for (int round = 0; round < 2; ++round) {
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "tests/mpi/session.c", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Group_free(&group);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 0, &left, 1, MPI_INT, (rank + size - 1) % size, 0, comm,
                 MPI_STATUS_IGNORE);
    if (left != (rank + size - 1) % size) return 3;
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
  }
  if (rank == 0) printf("%d processes in mpi://WORLD\n", size);
  return 0;
}
