/* Small programs of MPI that hang, and some that only wait: the first argument is the name of one. */
#define _DEFAULT_SOURCE
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kLarge = 1 << 20 };

static int rank, size;

static void forgotten_send(void) {
  int value = 0;
  if (rank == 0) MPI_Recv(&value, 1, MPI_INT, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void crossed_receives(void) {
  int value = 0;
  MPI_Recv(&value, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Send(&value, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD);
}

static void crossed_large_sends(void) {
  char* const data = calloc(kLarge, 1);
  MPI_Send(data, kLarge, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD);
  MPI_Recv(data, kLarge, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  free(data);
}

static void wrong_tag(void) {
  int value = 0;
  if (rank == 1) MPI_Send(&value, 1, MPI_INT, 0, 8, MPI_COMM_WORLD);
  if (rank == 0) MPI_Recv(&value, 1, MPI_INT, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void wrong_communicator(void) {
  int value = 0;
  MPI_Comm mine;
  MPI_Comm_dup(MPI_COMM_WORLD, &mine);
  MPI_Comm_set_name(mine, "mine");
  if (rank == 1) MPI_Send(&value, 1, MPI_INT, 0, 7, MPI_COMM_WORLD);
  if (rank == 0) MPI_Recv(&value, 1, MPI_INT, 1, 7, mine, MPI_STATUS_IGNORE);
}

static void synchronous_send(void) {
  int value = 0;
  if (rank == 0) MPI_Ssend(&value, 1, MPI_INT, 1, 3, MPI_COMM_WORLD);
}

static void barrier_of_some(void) {
  int value = 0;
  if (rank == 0) MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void broadcast_without_root(void) {
  int value = 0;
  if (rank == 1) MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (rank == 0) MPI_Recv(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void forgotten_nonblocking(void) {
  int values[2] = {0, 0};
  MPI_Request requests[2];
  if (rank != 0) return;
  MPI_Irecv(&values[0], 1, MPI_INT, 1, 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(&values[1], 1, MPI_INT, 1, 2, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void probe_for_nothing(void) {
  if (rank == 0) MPI_Probe(1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void ring(void) {
  int value = 0;
  MPI_Recv(&value, 1, MPI_INT, (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Send(&value, 1, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD);
}

/* A right program: one rank is late for everything. */
static void late(void) {
  int value = 0;
  MPI_Request request;
  for (int i = 0; i < 2; ++i) {
    if (rank == 1) usleep(1000 * 1000);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) usleep(500 * 1000);
    if (rank == 1) MPI_Send(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    if (rank == 0) MPI_Recv(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Iallreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    if (rank == 1) usleep(500 * 1000);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
}

/* Another job may connect at any time. */
static void accept_nobody(void) {
  char port[MPI_MAX_PORT_NAME] = "";
  MPI_Comm other;
  if (rank == 0) MPI_Open_port(MPI_INFO_NULL, port);
  MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other);
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(void);
  } programs[] = {
      {"forgotten_send", &forgotten_send},
      {"crossed_receives", &crossed_receives},
      {"crossed_large_sends", &crossed_large_sends},
      {"wrong_tag", &wrong_tag},
      {"wrong_communicator", &wrong_communicator},
      {"synchronous_send", &synchronous_send},
      {"barrier_of_some", &barrier_of_some},
      {"broadcast_without_root", &broadcast_without_root},
      {"forgotten_nonblocking", &forgotten_nonblocking},
      {"probe_for_nothing", &probe_for_nothing},
      {"ring", &ring},
      {"late", &late},
      {"accept_nobody", &accept_nobody},
  };
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (size_t i = 0; i < sizeof programs / sizeof programs[0]; ++i) {
    if (argc > 1 && strcmp(argv[1], programs[i].name) == 0) programs[i].run();
  }
  MPI_Finalize();
  return 0;
}
