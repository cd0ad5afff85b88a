/* Small-count forms whose arrays of counts and displacements are copied for the large-count form. */
#include <mpi.h>
#include <stdio.h>

#include "expect.h"

enum { kMost = 8 };
static int rank, size;
/* What is not significant on a rank may be any address. */
static int* volatile anything = (int*)8; /* volatile: the compiler does not follow it */

static void check_roots(void) {
  const int root = size - 1;
  int counts[kMost], displacements[kMost], all[kMost * kMost], mine[kMost];
  int i, total = 0, place = 0;
  for (i = 0; i < size; ++i) counts[i] = i + 1, displacements[i] = total, total += i + 1;
  for (i = 0; i <= rank; ++i) mine[i] = 100 * rank + i;
  MPI_Gatherv(mine, rank + 1, MPI_INT, all, rank == root ? counts : anything,
              rank == root ? displacements : anything, MPI_INT, root, MPI_COMM_WORLD);
  for (i = 0; rank == root && i < total; ++i) {
    if (i == displacements[place] + counts[place]) ++place;
    EXPECT(all[i] == 100 * place + i - displacements[place]);
  }
  for (i = 0; i <= rank; ++i) mine[i] = -1;
  MPI_Scatterv(all, rank == root ? counts : anything, rank == root ? displacements : anything, MPI_INT, mine, rank + 1,
               MPI_INT, root, MPI_COMM_WORLD);
  for (i = 0; i <= rank; ++i) EXPECT(mine[i] == 100 * rank + i);
}

static void check_all(void) {
  int counts[kMost], displacements[kMost], out[kMost], in[kMost], i;
  MPI_Request request;
  for (i = 0; i < size; ++i) counts[i] = 1, displacements[i] = size - 1 - i, out[size - 1 - i] = 10 * rank + i;
  MPI_Ialltoallv(out, counts, displacements, MPI_INT, in, counts, displacements, MPI_INT, MPI_COMM_WORLD, &request);
  for (i = 0; i < size; ++i) counts[i] = 99, displacements[i] = 99; /* the call has copies */
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (i = 0; i < size; ++i) EXPECT(in[size - 1 - i] == 10 * i + rank);
  for (i = 0; i < size; ++i) counts[i] = 1, displacements[i] = i;
  MPI_Alltoallv(MPI_IN_PLACE, anything, anything, MPI_INT, in, counts, displacements, MPI_INT, MPI_COMM_WORLD);
}

static void check_types(void) {
  const int lengths[3] = {1, 2, 1}, places[3] = {0, 4, 8};
  MPI_Datatype type;
  int elements = 0, bytes = 0, position = 0, in[9] = {0, 1, 2, 3, 4, 5, 6, 7, 8}, packed[4] = {0};
  MPI_Aint lower = 1, extent = 0;
  MPI_Type_indexed(3, lengths, places, MPI_INT, &type);
  MPI_Type_commit(&type);
  EXPECT(MPI_Type_size(type, &bytes) == MPI_SUCCESS && bytes == 16);
  EXPECT(MPI_Type_get_extent(type, &lower, &extent) == MPI_SUCCESS && lower == 0 && extent == 36);
  EXPECT(MPI_Pack(in, 1, type, packed, sizeof(packed), &position, MPI_COMM_SELF) == MPI_SUCCESS && position == 16);
  EXPECT(packed[0] == 0 && packed[1] == 4 && packed[2] == 5 && packed[3] == 8);
  MPI_Status status;
  MPI_Sendrecv(in, 1, type, 0, 0, packed, 4, MPI_INT, 0, 0, MPI_COMM_SELF, &status);
  EXPECT(MPI_Get_count(&status, MPI_INT, &elements) == MPI_SUCCESS && elements == 4);
  MPI_Type_free(&type);
  /* 2^31 ints: the size does not fit into an int. */
  MPI_Type_contiguous(2147483647, MPI_INT, &type);
  EXPECT(MPI_Type_size(type, &bytes) == MPI_SUCCESS && bytes == MPI_UNDEFINED);
  MPI_Type_free(&type);
}

/* Functions of MPI-1 that other libraries of the standard ABI export, too. */
static void check_removed(void) {
  int lengths[1] = {2}, values[3] = {1, 2, 3}, packed[2] = {0, 0};
  MPI_Aint displacements[1], base, extent = 0, lower = 0, upper = 0;
  MPI_Datatype types[1] = {MPI_INT}, type, column;
  MPI_Errhandler handler;
  EXPECT(MPI_Address(values, &base) == MPI_SUCCESS && MPI_Address(values + 1, displacements) == MPI_SUCCESS);
  displacements[0] -= base;
  EXPECT(MPI_Type_struct(1, lengths, displacements, types, &type) == MPI_SUCCESS);
  EXPECT(MPI_Type_extent(type, &extent) == MPI_SUCCESS && extent == 8);
  EXPECT(MPI_Type_lb(type, &lower) == MPI_SUCCESS && lower == 4);
  EXPECT(MPI_Type_ub(type, &upper) == MPI_SUCCESS && upper == 12);
  MPI_Type_free(&type);
  EXPECT(MPI_Type_hindexed(1, lengths, displacements, MPI_INT, &type) == MPI_SUCCESS);
  MPI_Type_commit(&type);
  MPI_Sendrecv(values, 1, type, 0, 0, packed, 2, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  EXPECT(packed[0] == 2 && packed[1] == 3);
  EXPECT(MPI_Type_hvector(2, 1, 8, MPI_INT, &column) == MPI_SUCCESS);
  MPI_Type_commit(&column);
  MPI_Sendrecv(values, 1, column, 0, 0, packed, 2, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  EXPECT(packed[0] == 1 && packed[1] == 3);
  MPI_Type_free(&type);
  MPI_Type_free(&column);
  EXPECT(MPI_Errhandler_get(MPI_COMM_WORLD, &handler) == MPI_SUCCESS && handler == MPI_ERRORS_ARE_FATAL);
  EXPECT(MPI_Errhandler_set(MPI_COMM_SELF, handler) == MPI_SUCCESS);
}

static void check_neighbours(void) {
  const int extents[1] = {size}, periodic[1] = {1}, counts[2] = {1, 1}, places[2] = {1, 0};
  MPI_Comm ring;
  int in[2];
  MPI_Cart_create(MPI_COMM_WORLD, 1, extents, periodic, 0, &ring);
  MPI_Neighbor_allgatherv(&rank, 1, MPI_INT, in, counts, places, MPI_INT, ring);
  EXPECT(in[1] == (rank + size - 1) % size && in[0] == (rank + 1) % size);
  MPI_Comm_free(&ring);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  EXPECT(size <= kMost);
  check_roots();
  check_all();
  check_types();
  check_removed();
  check_neighbours();
  if (rank == 0) printf("small forms on %d ranks: as expected\n", size);
  return MPI_Finalize();
}
