/* Rank argv[1] is lost. Messages from it and to it fail; messages among the living do not; all calls of <mpi-ext.h>. */
#include "lost.h"

static void messages(MPI_Comm comm, int victim) {
  static char large[1 << 20];
  const int next = (rank + 1) % size == victim ? (rank + 2) % size : (rank + 1) % size;
  const int previous = (rank + size - 1) % size == victim ? (rank + size - 2) % size : (rank + size - 1) % size;
  int number = rank, got = -1, flag = 7;
  char byte;
  MPI_Request request;
  MPI_Status status;
  EXPECT(class_of(MPI_Recv(&byte, 1, MPI_CHAR, victim, 3, comm, MPI_STATUS_IGNORE)) == MPIX_ERR_PROC_FAILED);
  EXPECT(class_of(MPI_Send(&byte, 1, MPI_CHAR, victim, 3, comm)) == MPIX_ERR_PROC_FAILED);
  EXPECT(class_of(MPI_Send(large, sizeof large, MPI_CHAR, victim, 3, comm)) == MPIX_ERR_PROC_FAILED);
  EXPECT(class_of(MPI_Ssend(&byte, 1, MPI_CHAR, victim, 3, comm)) == MPIX_ERR_PROC_FAILED);
  EXPECT(class_of(MPI_Probe(victim, 3, comm, &status)) == MPIX_ERR_PROC_FAILED);
  EXPECT(class_of(MPI_Iprobe(victim, 3, comm, &flag, &status)) == MPIX_ERR_PROC_FAILED);
  MPI_Irecv(&byte, 1, MPI_CHAR, victim, 3, comm, &request);
  EXPECT(class_of(MPI_Wait(&request, &status)) == MPIX_ERR_PROC_FAILED && request == MPI_REQUEST_NULL);
  MPI_Recv_init(&byte, 1, MPI_CHAR, victim, 3, comm, &request);
  MPI_Start(&request);
  EXPECT(class_of(MPI_Wait(&request, &status)) == MPIX_ERR_PROC_FAILED);
  MPI_Request_free(&request);
  EXPECT(MPI_Sendrecv(&number, 1, MPI_INT, next, 4, &got, 1, MPI_INT, previous, 4, comm, &status) == MPI_SUCCESS);
  EXPECT(got == previous && status.MPI_SOURCE == previous);
}

static void any_source(MPI_Comm comm, int victim) {
  const int first = victim == 0 ? 1 : 0;
  char byte = 1;
  int flag = 9, acked = -1;
  MPI_Request request;
  MPI_Status status;
  EXPECT(class_of(MPI_Recv(&byte, 1, MPI_CHAR, MPI_ANY_SOURCE, 5, comm, &status)) == MPIX_ERR_PROC_FAILED);
  EXPECT(class_of(MPI_Probe(MPI_ANY_SOURCE, 5, comm, &status)) == MPIX_ERR_PROC_FAILED);
  MPI_Irecv(&byte, 1, MPI_CHAR, MPI_ANY_SOURCE, 6, comm, &request);
  EXPECT(class_of(MPI_Wait(&request, &status)) == MPIX_ERR_PROC_FAILED_PENDING && request != MPI_REQUEST_NULL);
  EXPECT(class_of(MPI_Test(&request, &flag, &status)) == MPIX_ERR_PROC_FAILED_PENDING && flag == 0);
  EXPECT(MPIX_Comm_ack_failed(comm, 1, &acked) == MPI_SUCCESS && acked == 1);
  EXPECT(MPI_Test(&request, &flag, &status) == MPI_SUCCESS && flag == 0);
  if (rank == first) {
    char token;
    int i;
    for (i = 0; i < size; ++i)
      if (i != victim && i != rank) EXPECT(MPI_Recv(&token, 1, MPI_CHAR, i, 7, comm, &status) == MPI_SUCCESS);
    for (i = 0; i < size; ++i)
      if (i != victim) EXPECT(MPI_Send(&byte, 1, MPI_CHAR, i, 6, comm) == MPI_SUCCESS);
  } else {
    /* All have seen that their receives are pending before the first message comes. */
    EXPECT(MPI_Send(&rank, 1, MPI_CHAR, first, 7, comm) == MPI_SUCCESS);
  }
  EXPECT(MPI_Wait(&request, &status) == MPI_SUCCESS && status.MPI_SOURCE == first);
}

static void agreements(MPI_Comm comm, MPI_Comm other, int victim) {
  MPI_Comm left, later;
  MPI_Group group;
  MPI_Request request;
  int flag = rank == (victim + 1) % size ? 5 : 13, place = -1, zero = 0, world_rank = -1;
  MPI_Group world;
  /* Nobody has acknowledged in `other`. */
  EXPECT(class_of(MPIX_Comm_agree(other, &flag)) == MPIX_ERR_PROC_FAILED && flag == 5);
  EXPECT(MPIX_Comm_failure_ack(other) == MPI_SUCCESS);
  EXPECT(MPIX_Comm_failure_get_acked(other, &group) == MPI_SUCCESS);
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_translate_ranks(group, 1, &zero, world, &world_rank);
  EXPECT(world_rank == victim);
  MPI_Group_free(&group);
  MPI_Group_free(&world);
  flag = rank == (victim + 1) % size ? ~4 : ~0;
  EXPECT(MPIX_Comm_iagree(other, &flag, &request) == MPI_SUCCESS);
  EXPECT(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS && flag == ~4);
  EXPECT(MPIX_Comm_shrink(comm, &left) == MPI_SUCCESS);
  expect_living(left, size - 1);
  MPI_Comm_rank(left, &place);
  EXPECT(place == rank - (rank > victim));
  EXPECT(MPIX_Comm_ishrink(left, &later, &request) == MPI_SUCCESS);
  EXPECT(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  expect_living(later, size - 1);
  MPI_Comm_free(&later);
  MPI_Comm_free(&left);
}

int main(int argc, char** argv) {
  const int victim = atoi(argv[argc - 1]);
  int *survives, flag = 0, length;
  char text[MPI_MAX_ERROR_STRING];
  MPI_Comm comm, other;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPIX_FT, &survives, &flag);
  EXPECT(flag && *survives == 1);
  MPI_Error_string(MPIX_ERR_REVOKED, text, &length);
  EXPECT(strstr(text, "MPIX_ERR_REVOKED") != NULL);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(other, MPI_ERRORS_RETURN);
  EXPECT(MPIX_Comm_agree(comm, &flag) == MPI_SUCCESS);
  MPI_Barrier(comm);
  die_if(rank == victim);
  EXPECT(class_of(MPI_Barrier(comm)) == MPIX_ERR_PROC_FAILED);
  EXPECT(num_lost(comm) == 1 && num_lost(MPI_COMM_SELF) == 0);
  messages(comm, victim);
  any_source(comm, victim);
  agreements(comm, other, victim);
  MPI_Comm_free(&other);
  MPI_Comm_free(&comm);
  MPI_Finalize();
  printf("rank %d is done\n", rank);
  return 0;
}
