/* In check mode (WEFT_CHECK=1) processes that pass different operators, roots or reductions all get an error, and later calls are right. */
#include <mpi.h>
#include <stdio.h>

#include "expect.h"

static void add(void* in, void* inout, int* count, MPI_Datatype* type) {
  int i;
  (void)type;
  for (i = 0; i < *count; ++i) ((int*)inout)[i] += ((int*)in)[i];
}

int main(int argc, char** argv) {
  int rank, size, mine = 1, result = 0, part = 0, round;
  int many[16] = {0}, counts[16];
  MPI_Op differs, own, commutes;
  MPI_Request request;
  MPI_Comm comm;
  MPI_Init(&argc, &argv);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  EXPECT(size >= 2 && size <= 16);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  for (round = 0; round < 16; ++round) counts[round] = 1;
  MPI_Op_create(add, 0, &own);
  MPI_Op_create(add, 1, &commutes);
  differs = rank == size - 1 ? MPI_MAX : MPI_SUM;
  for (round = 0; round < 3; ++round) {
    EXPECT(class_of(MPI_Allreduce(&mine, &result, 1, MPI_INT, differs, comm)) == MPI_ERR_NOT_SAME);
    EXPECT(class_of(MPI_Reduce(&mine, &result, 1, MPI_INT, differs, 0, comm)) == MPI_ERR_NOT_SAME);
    EXPECT(class_of(MPI_Reduce(&mine, &result, 1, MPI_INT, MPI_SUM, rank == 0, comm)) == MPI_ERR_NOT_SAME);
    EXPECT(class_of(MPI_Scan(&mine, &result, 1, MPI_INT, differs, comm)) == MPI_ERR_NOT_SAME);
    EXPECT(class_of(MPI_Exscan(&mine, &result, 1, MPI_INT, differs, comm)) == MPI_ERR_NOT_SAME);
    EXPECT(class_of(MPI_Reduce_scatter(many, &part, counts, MPI_INT, differs, comm)) == MPI_ERR_NOT_SAME);
    EXPECT(class_of(MPI_Reduce_scatter_block(many, &part, 1, MPI_INT, differs, comm)) == MPI_ERR_NOT_SAME);
    EXPECT(class_of(MPI_Allreduce(&mine, &result, 1, MPI_INT, rank == 1 ? own : commutes, comm)) == MPI_ERR_NOT_SAME);
    if (rank == 0)
      EXPECT(class_of(MPI_Scan(&mine, &result, 1, MPI_INT, MPI_SUM, comm)) == MPI_ERR_NOT_SAME);
    else
      EXPECT(class_of(MPI_Allreduce(&mine, &result, 1, MPI_INT, MPI_SUM, comm)) == MPI_ERR_NOT_SAME);
    EXPECT(MPI_Iallreduce(&mine, &result, 1, MPI_INT, differs, comm, &request) == MPI_SUCCESS);
    EXPECT(class_of(MPI_Wait(&request, MPI_STATUS_IGNORE)) == MPI_ERR_NOT_SAME);
    EXPECT(MPI_Allreduce(&mine, &result, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS && result == size);
    EXPECT(MPI_Allreduce(&mine, &result, 1, MPI_INT, own, comm) == MPI_SUCCESS && result == size);
  }
  MPI_Allreduce_init(&mine, &result, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &request);
  for (round = 0; round < 2; ++round) {
    result = 0;
    MPI_Start(&request);
    EXPECT(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS && result == size);
  }
  MPI_Request_free(&request);
  if (argc > 1) MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL);
  if (argc > 1) MPI_Allreduce(&mine, &result, 1, MPI_INT, differs, comm);
  MPI_Op_free(&own);
  MPI_Op_free(&commutes);
  MPI_Comm_free(&comm);
  if (rank == 0) printf("operators on %d ranks: as expected\n", size);
  return MPI_Finalize();
}
