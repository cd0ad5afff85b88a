/* Each rank says where it is. Usage: places [KIB]: with KIB it uses that much of its stack, too. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft_mpi.h>

static int use_stack(int kib) {
  volatile char space[1024];
  memset((char *)space, kib, sizeof space);
  return kib == 0 ? 0 : use_stack(kib - 1) + (space[0] == (char)kib ? 0 : 1);
}

int main(int argc, char **argv) {
  int rank, size, sum, failures;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  failures = use_stack(argc > 1 ? atoi(argv[1]) : 0);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (sum != size * (size - 1) / 2) ++failures;
  printf("rank %d of %d on PE %d of %s\n", rank, size, Weft_pe(), argv[0]);
  MPI_Finalize();
  return failures;
}
