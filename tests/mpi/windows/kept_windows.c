/* A program that does not free its windows ends well. */
#include "../expect.h"

int main(void) {
  static int word;
  int *memory, rank, size, one = 1;
  MPI_Win created, allocated, dynamic;
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  EXPECT(MPI_Win_create(&word, sizeof word, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &created) == MPI_SUCCESS);
  EXPECT(MPI_Win_allocate(sizeof word, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &allocated) == MPI_SUCCESS);
  EXPECT(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &dynamic) == MPI_SUCCESS);
  EXPECT(MPI_Win_fence(0, created) == MPI_SUCCESS);
  EXPECT(MPI_Accumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, created) == MPI_SUCCESS);
  EXPECT(MPI_Win_fence(0, created) == MPI_SUCCESS);
  EXPECT(rank != 0 || word == size);
  if (rank == 0) printf("kept windows of %d ranks: as expected\n", size);
  return MPI_Finalize();
}
