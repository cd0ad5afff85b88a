/* Rank 0 revokes a communicator, in which the others wait. "revoker": it is lost at once then. */
#include "lost.h"

enum { kCount = 1 << 20 };
static int out[kCount], in[kCount];

int main(int argc, char** argv) {
  const int is_lost = strcmp(argv[argc - 1], "revoker") == 0;
  MPI_Request requests[3];
  MPI_Status status;
  MPI_Comm comm, left;
  int flag = -1, byte = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (rank == 0) {
    /* All others are in their collective, or will be. */
    MPI_Recv(&byte, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EXPECT(MPIX_Comm_revoke(comm) == MPI_SUCCESS);
    die_if(is_lost);
  } else {
    MPI_Irecv(in, kCount, MPI_INT, (rank + size - 1) % size, 1, comm, &requests[0]);
    MPI_Irecv(in, 1, MPI_INT, MPI_ANY_SOURCE, 2, comm, &requests[1]);
    /* No receive matches it. */
    MPI_Isend(out, kCount, MPI_INT, (rank + 1) % size, 3, comm, &requests[2]);
    if (rank == size - 1) MPI_Send(&byte, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    EXPECT(class_of(MPI_Bcast(in, kCount, MPI_INT, 0, comm)) == MPIX_ERR_REVOKED);
    EXPECT(class_of(MPI_Wait(&requests[0], &status)) == MPIX_ERR_REVOKED);
    EXPECT(class_of(MPI_Wait(&requests[1], &status)) == MPIX_ERR_REVOKED);
    EXPECT(class_of(MPI_Wait(&requests[2], &status)) == MPIX_ERR_REVOKED);
  }
  EXPECT(MPIX_Comm_is_revoked(comm, &flag) == MPI_SUCCESS && flag == 1);
  EXPECT(class_of(MPI_Send(&byte, 1, MPI_INT, size - 1, 1, comm)) == MPIX_ERR_REVOKED);
  EXPECT(class_of(MPI_Recv(&byte, 1, MPI_INT, MPI_ANY_SOURCE, 1, comm, &status)) == MPIX_ERR_REVOKED);
  EXPECT(class_of(MPI_Iprobe(MPI_ANY_SOURCE, 1, comm, &flag, &status)) == MPIX_ERR_REVOKED);
  EXPECT(class_of(MPI_Barrier(comm)) == MPIX_ERR_REVOKED);
  EXPECT(class_of(MPI_Comm_dup(comm, &left)) == MPIX_ERR_REVOKED && left == MPI_COMM_NULL);
  EXPECT(MPIX_Comm_shrink(comm, &left) == MPI_SUCCESS);
  /* The revocation can come before the loss of its rank is known. */
  if (is_lost) {
    MPI_Comm again;
    MPI_Comm_set_errhandler(left, MPI_ERRORS_RETURN);
    while (class_of(MPI_Barrier(left)) != MPI_SUCCESS) {
      EXPECT(MPIX_Comm_shrink(left, &again) == MPI_SUCCESS);
      MPI_Comm_free(&left);
      left = again;
    }
  }
  expect_living(left, size - is_lost);
  EXPECT(MPIX_Comm_is_revoked(MPI_COMM_WORLD, &flag) == MPI_SUCCESS && flag == 0);
  MPI_Comm_free(&left);
  MPI_Comm_free(&comm);
  MPI_Finalize();
  printf("rank %d is done\n", rank);
  return 0;
}
