/* Small programs of MPI that wait long for something that comes. They run one after the other; the first rank says behind
   which of them the watch for hangs has looked, and how often. The argument is the number of microseconds of a wait, or accept_nobody. */
#define _DEFAULT_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kLarge = 4 << 20 };

static int rank, size;
static useconds_t wait_us;

static void late(void) {
  if (rank == 1) usleep(wait_us);
}

static void late_barrier(void) {
  late();
  MPI_Barrier(MPI_COMM_WORLD);
}

static void late_send(void) {
  int value = 0;
  late();
  if (rank == 1) MPI_Send(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
  if (rank == 0) MPI_Recv(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void late_receive(void) {
  char* const data = calloc(kLarge, 1);
  late();
  if (rank == 0) MPI_Send(data, kLarge, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
  if (rank == 1) MPI_Recv(data, kLarge, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  free(data);
}

static void late_synchronous(void) {
  int value = 0;
  late();
  if (rank == 0) MPI_Ssend(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
  if (rank == 1) MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void late_any_source(void) {
  int value = 0;
  late();
  if (rank == 1) MPI_Send(&value, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
  if (rank == 0) MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void late_probe(void) {
  int value = 0;
  late();
  if (rank == 1) MPI_Send(&value, 1, MPI_INT, 0, 4, MPI_COMM_WORLD);
  if (rank == 0) {
    MPI_Probe(1, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(&value, 1, MPI_INT, 1, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

static void late_allreduce(void) {
  int value = 1;
  MPI_Request request;
  MPI_Iallreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
  late();
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void late_broadcast(void) {
  int value = 1;
  late();
  MPI_Bcast(&value, 1, MPI_INT, 1, MPI_COMM_WORLD);
}

static void late_alltoall(void) {
  int values[16] = {0}, others[16];
  late();
  MPI_Alltoall(values, 1, MPI_INT, others, 1, MPI_INT, MPI_COMM_WORLD);
}

static void late_persistent(void) {
  int value = 0;
  MPI_Request request;
  if (rank == 0) MPI_Recv_init(&value, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, &request);
  if (rank == 1) MPI_Send_init(&value, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, &request);
  if (rank > 1) return;
  late();
  MPI_Start(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Request_free(&request);
}

static void late_partition(void) {
  static int values[8];
  MPI_Request request;
  if (rank == 0) MPI_Precv_init(values, 2, 4, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  if (rank == 1) MPI_Psend_init(values, 2, 4, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  if (rank > 1) return;
  MPI_Start(&request);
  if (rank == 1) MPI_Pready(0, request);
  late();
  if (rank == 1) MPI_Pready(1, request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Request_free(&request);
}

static void late_duplicate(void) {
  MPI_Comm mine;
  late();
  MPI_Comm_dup(MPI_COMM_WORLD, &mine);
  MPI_Comm_free(&mine);
}

static void late_intercommunicator(void) {
  MPI_Comm half, between;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  late();
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 0, &between);
  MPI_Barrier(between);
  MPI_Comm_free(&between);
  MPI_Comm_free(&half);
}

static void late_fence(void) {
  static int word;
  MPI_Win window;
  MPI_Win_create(&word, sizeof word, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Win_fence(0, window);
  late();
  MPI_Win_fence(0, window);
  MPI_Win_free(&window);
}

static void lock_held_long(void) {
  static int word;
  int value = 0;
  MPI_Win window;
  MPI_Win_create(&word, sizeof word, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  if (rank == 1) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, window);
    MPI_Get(&value, 1, MPI_INT, 1, 0, 1, MPI_INT, window);
    MPI_Win_flush(1, window);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  late();
  if (rank == 0) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, window);
    MPI_Get(&value, 1, MPI_INT, 1, 0, 1, MPI_INT, window);
  }
  if (rank < 2) MPI_Win_unlock(1, window);
  MPI_Win_free(&window);
}

static void late_file(void) {
  MPI_File file;
  late();
  MPI_File_open(MPI_COMM_WORLD, "file", MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                MPI_INFO_NULL, &file);
  late();
  MPI_File_write_at_all(file, rank * (MPI_Offset)sizeof rank, &rank, 1, MPI_INT, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
}

/* The thread is there since before MPI_Init. */
static pthread_barrier_t thread_begins, thread_ends;

static void* send_late(void* unused) {
  int value = 0;
  for (int i = 0; i < 2; ++i) {
    pthread_barrier_wait(&thread_begins);
    usleep(wait_us);
    if (rank == 0 && i == 0) MPI_Send(&value, 1, MPI_INT, 0, 8, MPI_COMM_SELF);
    if (rank == 1 && i == 1) MPI_Send(&value, 1, MPI_INT, 0, 8, MPI_COMM_WORLD);
    pthread_barrier_wait(&thread_ends);
  }
  return unused;
}

static void thread_sends_to_own_rank(void) {
  int value = 0;
  pthread_barrier_wait(&thread_begins);
  if (rank == 0) MPI_Recv(&value, 1, MPI_INT, 0, 8, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  pthread_barrier_wait(&thread_ends);
}

static void thread_sends_to_other_rank(void) {
  int value = 0;
  pthread_barrier_wait(&thread_begins);
  if (rank == 0) MPI_Recv(&value, 1, MPI_INT, 1, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 1) MPI_Recv(&value, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 0) MPI_Send(&value, 1, MPI_INT, 1, 9, MPI_COMM_WORLD);
  pthread_barrier_wait(&thread_ends);
}

/* Another job may connect at any time. */
static void accept_nobody(void) {
  char port[MPI_MAX_PORT_NAME] = "";
  MPI_Comm other;
  if (rank == 0) MPI_Open_port(MPI_INFO_NULL, port);
  MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other);
}

static unsigned long long looks_of_watch(void) {
  static MPI_T_pvar_session session = MPI_T_PVAR_SESSION_NULL;
  static MPI_T_pvar_handle handle;
  int index, count, provided;
  unsigned long long looks = 0;
  if (session == MPI_T_PVAR_SESSION_NULL) {
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&session);
    MPI_T_pvar_get_index("weft_hang_looks", MPI_T_PVAR_CLASS_COUNTER, &index);
    MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count);
  }
  MPI_T_pvar_read(session, handle, &looks);
  return looks;
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(void);
  } programs[] = {
      {"late_barrier", &late_barrier},
      {"late_send", &late_send},
      {"late_receive", &late_receive},
      {"late_synchronous", &late_synchronous},
      {"late_any_source", &late_any_source},
      {"late_probe", &late_probe},
      {"late_allreduce", &late_allreduce},
      {"late_broadcast", &late_broadcast},
      {"late_alltoall", &late_alltoall},
      {"late_persistent", &late_persistent},
      {"late_partition", &late_partition},
      {"late_duplicate", &late_duplicate},
      {"late_intercommunicator", &late_intercommunicator},
      {"late_fence", &late_fence},
      {"lock_held_long", &lock_held_long},
      {"late_file", &late_file},
      {"thread_sends_to_own_rank", &thread_sends_to_own_rank},
      {"thread_sends_to_other_rank", &thread_sends_to_other_rank},
  };
  int provided;
  pthread_t thread;
  wait_us = argc > 1 ? (useconds_t)atoi(argv[1]) : 0;
  pthread_barrier_init(&thread_begins, NULL, 2);
  pthread_barrier_init(&thread_ends, NULL, 2);
  pthread_create(&thread, NULL, &send_late, NULL);
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc > 1 && strcmp(argv[1], "accept_nobody") == 0) accept_nobody();
  for (size_t i = 0; i < sizeof programs / sizeof programs[0]; ++i) {
    const unsigned long long before = looks_of_watch();
    programs[i].run();
    if (rank == 0) printf("%s %llu\n", programs[i].name, looks_of_watch() - before);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  pthread_join(thread, NULL);
  MPI_Finalize();
  return 0;
}
