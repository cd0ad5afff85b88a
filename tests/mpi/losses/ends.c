/* How a job with a lost rank ends. argv[1]: "unnoticed": no rank meets the loss before MPI_Finalize; "first": that of rank 0; "fatal": an
 * error handler ends the job; "late": a rank is lost when others are in MPI_Finalize; "two": two ranks are;
 * "revoked": no rank is lost, and one revokes MPI_COMM_WORLD. */
#include "lost.h"

int main(int argc, char** argv) {
  const char* const how = argv[1];
  MPI_Comm comm;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Barrier(comm);
  die_if(strcmp(how, "first") == 0 && rank == 0);
  die_if((strcmp(how, "unnoticed") == 0 || strcmp(how, "fatal") == 0) && rank == 1);
  if (strcmp(how, "fatal") == 0) MPI_Barrier(comm);
  if (strcmp(how, "revoked") == 0 && rank == 0) EXPECT(MPIX_Comm_revoke(MPI_COMM_WORLD) == MPI_SUCCESS);
  if (strcmp(how, "late") == 0 || strcmp(how, "two") == 0) {
    /* The others are in MPI_Finalize when their messages are here, or soon after. */
    char byte = 0;
    int i;
    if (rank == 1) {
      for (i = 2; i < size; ++i) MPI_Recv(&byte, 1, MPI_CHAR, i, 1, comm, MPI_STATUS_IGNORE);
      MPI_Send(&byte, 1, MPI_CHAR, 0, 1, comm);
      raise(SIGKILL);
    }
    if (rank == 0) {
      MPI_Recv(&byte, 1, MPI_CHAR, 1, 1, comm, MPI_STATUS_IGNORE);
      die_if(strcmp(how, "two") == 0);
    } else {
      MPI_Send(&byte, 1, MPI_CHAR, 1, 1, comm);
    }
  }
  MPI_Finalize();
  printf("rank %d is done\n", rank);
  return 0;
}
