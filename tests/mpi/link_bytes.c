/* Repeats a collective, and prints on the last process of MPI_COMM_WORLD what its network device has received
 * and sent meanwhile. Arguments: the collective, bytes of a process, how often, the root. "interleaved_":
 * neighbours in the communicator are on different hosts, if each of two hosts has half of the processes. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int count, root, size, rank;
static double *given, *got;
static MPI_Comm comm;

static long counted(const char* name) {
  char path[100];
  long number = -1;
  FILE* file;
  snprintf(path, sizeof path, "/sys/class/net/eth0/statistics/%s", name);
  file = fopen(path, "r");
  if (file == NULL || fscanf(file, "%ld", &number) != 1) MPI_Abort(MPI_COMM_WORLD, 1);
  fclose(file);
  return number;
}

static void expect(double value, double expected) {
  if (value == expected) return;
  fprintf(stderr, "rank %d: %g, not %g\n", rank, value, expected);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void once(const char* what) {
  const double sum = size * (size + 1) / 2.0;
  int i;
  for (i = 0; i < count; ++i) given[i] = rank + 1;
  if (strcmp(what, "broadcast") == 0) {
    MPI_Bcast(given, count, MPI_DOUBLE, root, comm);
    expect(given[count - 1], root + 1);
  } else if (strcmp(what, "reduce") == 0) {
    MPI_Reduce(given, got, count, MPI_DOUBLE, MPI_SUM, root, comm);
    if (rank == root) expect(got[count - 1], sum);
  } else if (strcmp(what, "allreduce") == 0) {
    MPI_Allreduce(given, got, count, MPI_DOUBLE, MPI_SUM, comm);
    expect(got[count - 1], sum);
  } else {
    MPI_Allgather(given, count, MPI_DOUBLE, got, count, MPI_DOUBLE, comm);
    for (i = 0; i < size; ++i) expect(got[i * count], i + 1);
  }
}

int main(int argc, char** argv) {
  const char* what;
  int i, repeats, world_rank, key;
  long received, sent;
  MPI_Init(&argc, &argv);
  if (argc != 5) MPI_Abort(MPI_COMM_WORLD, 1);
  what = argv[1];
  count = atoi(argv[2]) / (int)sizeof(double);
  repeats = atoi(argv[3]);
  root = atoi(argv[4]);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  key = world_rank;
  if (strncmp(what, "interleaved_", 12) == 0) {
    what += 12;
    key = world_rank % (size / 2) * 2 + world_rank / (size / 2);
  }
  MPI_Comm_split(MPI_COMM_WORLD, 0, key, &comm);
  MPI_Comm_rank(comm, &rank);
  given = malloc((size_t)count * sizeof(double));
  got = malloc((size_t)count * sizeof(double) * (size_t)size);
  once(what); /* connections */
  MPI_Barrier(comm);
  received = counted("rx_bytes");
  sent = counted("tx_bytes");
  MPI_Barrier(comm); /* so that none begins earlier */
  for (i = 0; i < repeats; ++i) once(what);
  MPI_Barrier(comm);
  received = counted("rx_bytes") - received;
  sent = counted("tx_bytes") - sent;
  if (world_rank == size - 1) printf("%ld %ld\n", received, sent);
  MPI_Comm_free(&comm);
  free(given);
  free(got);
  MPI_Finalize();
  return 0;
}
