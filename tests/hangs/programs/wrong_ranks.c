/* Small programs of MPI that hang: the first argument is the name of one. */
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

/* --- Three ranks and more */

static void circle_of_synchronous_sends(void) {
  int value = 0;
  MPI_Ssend(&value, 1, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD);
  MPI_Recv(&value, 1, MPI_INT, (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void barrier_without_last(void) {
  int value = 0;
  if (rank + 1 < size) MPI_Barrier(MPI_COMM_WORLD);
  if (rank + 1 == size) MPI_Recv(&value, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* A receive of any message takes the one that another receive needs. */
static void stolen_message(void) {
  int value = 0;
  if (rank > 0) MPI_Send(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    for (int i = 1; i < size; ++i)
      MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

/* The first rank gives work to the others and does not tell the last one that there is no more. */
static void workers_without_end(void) {
  int value = 0;
  if (rank == 0) {
    for (int i = 1; i < size; ++i) MPI_Send(&value, 1, MPI_INT, i, 1, MPI_COMM_WORLD);
    for (int i = 1; i + 1 < size; ++i) MPI_Send(&value, 1, MPI_INT, i, 2, MPI_COMM_WORLD);
    return;
  }
  MPI_Status status;
  do {
    MPI_Recv(&value, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
  } while (status.MPI_TAG == 1);
}

static void exchange_with_wrong_neighbour(void) {
  int value = 0;
  const int right = (rank + 1) % size;
  MPI_Sendrecv(&value, 1, MPI_INT, right, 0, &value, 1, MPI_INT, right, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* --- Requests */

static void persistent_not_started(void) {
  int value = 0;
  MPI_Request request;
  if (rank == 0) MPI_Recv_init(&value, 1, MPI_INT, 1, 4, MPI_COMM_WORLD, &request);
  if (rank == 1) MPI_Send_init(&value, 1, MPI_INT, 0, 4, MPI_COMM_WORLD, &request);
  if (rank == 0) MPI_Start(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE); /* of a request that is not active: at once */
  MPI_Request_free(&request);
}

static void partition_not_ready(void) {
  static int values[8];
  MPI_Request request;
  if (rank == 0) MPI_Precv_init(values, 2, 4, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  if (rank == 1) MPI_Psend_init(values, 2, 4, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  MPI_Start(&request);
  if (rank == 1) MPI_Pready(0, request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Request_free(&request);
}

static void partitioned_alone(void) {
  static int values[8];
  MPI_Request request;
  if (rank == 1) return;
  MPI_Precv_init(values, 2, 4, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  MPI_Start(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void wait_for_any(void) {
  int values[2] = {0, 0}, which = 0;
  MPI_Request requests[2];
  if (rank == 1) MPI_Send(values, 1, MPI_INT, 0, 9, MPI_COMM_WORLD);
  if (rank == 1) return;
  MPI_Irecv(&values[0], 1, MPI_INT, 1, 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(&values[1], 1, MPI_INT, 1, 2, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitany(2, requests, &which, MPI_STATUS_IGNORE);
}

static void matched_probe(void) {
  MPI_Message message;
  int value = 0;
  if (rank == 1) MPI_Send(&value, 1, MPI_INT, 0, 6, MPI_COMM_WORLD);
  if (rank == 0) MPI_Mprobe(1, 5, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
}

/* --- Collective operations */

static void other_order_of_communicators(void) {
  MPI_Comm first, second;
  MPI_Comm_dup(MPI_COMM_WORLD, &first);
  MPI_Comm_dup(MPI_COMM_WORLD, &second);
  MPI_Comm_set_name(first, "first");
  MPI_Comm_set_name(second, "second");
  MPI_Barrier(rank == 0 ? first : second);
  MPI_Barrier(rank == 0 ? second : first);
}

static void nonblocking_barrier_of_some(void) {
  MPI_Request request;
  if (rank == 1) return;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void reduce_to_other_roots(void) {
  int value = 1, sum = 0;
  MPI_Reduce(&value, &sum, 1, MPI_INT, MPI_SUM, rank, MPI_COMM_WORLD);
}

static void allgather_of_some(void) {
  int value = 1, values[8];
  if (rank == 0) MPI_Allgather(&value, 1, MPI_INT, values, 1, MPI_INT, MPI_COMM_WORLD);
  if (rank == 1) MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void duplicate_of_some(void) {
  MPI_Comm mine;
  if (rank == 0) MPI_Comm_dup(MPI_COMM_WORLD, &mine);
}

static void split_of_some(void) {
  MPI_Comm mine;
  if (rank == 0) MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &mine);
}

/* A group of a communicator waits for a group of which one rank does not come. */
static void create_of_some(void) {
  MPI_Group group;
  MPI_Comm mine;
  MPI_Comm_group(MPI_COMM_WORLD, &group);
  if (rank == 1) MPI_Comm_create_group(MPI_COMM_WORLD, group, 7, &mine);
}

static void barrier_or_receive(void) {
  int value = 0;
  if (rank == 0) {
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Send(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
  } else {
    MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

/* --- Intercommunicators */

static MPI_Comm between_halves(void) {
  MPI_Comm half, between;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 0, &between);
  MPI_Comm_set_name(between, "between");
  return between;
}

static void intercommunicator_receive(void) {
  int value = 0;
  const MPI_Comm between = between_halves();
  if (rank == 0) MPI_Recv(&value, 1, MPI_INT, 0, 2, between, MPI_STATUS_IGNORE);
}

static void intercommunicator_barrier(void) {
  const MPI_Comm between = between_halves();
  if (rank == 0) MPI_Barrier(between);
}

/* --- Windows */

static MPI_Win make_window(void) {
  static int word;
  MPI_Win window;
  MPI_Win_create(&word, sizeof word, sizeof word, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Win_set_name(window, "words");
  return window;
}

static void fence_of_some(void) {
  const MPI_Win window = make_window();
  if (rank == 0) MPI_Win_fence(0, window);
}

static void start_without_post(void) {
  MPI_Group group;
  const int other = 1;
  const MPI_Win window = make_window();
  MPI_Comm_group(MPI_COMM_WORLD, &group);
  MPI_Group_incl(group, 1, &other, &group);
  if (rank != 0) return;
  int value = 1;
  MPI_Win_start(group, 0, window);
  MPI_Put(&value, 1, MPI_INT, 1, 0, 1, MPI_INT, window);
  MPI_Win_complete(window);
}

static void wait_without_complete(void) {
  MPI_Group group;
  const int other = 1;
  const MPI_Win window = make_window();
  MPI_Comm_group(MPI_COMM_WORLD, &group);
  MPI_Group_incl(group, 1, &other, &group);
  if (rank != 0) return;
  MPI_Win_post(group, 0, window);
  MPI_Win_wait(window);
}

static void lock(MPI_Win window, int target) { MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window); }

/* Each rank holds the lock that the other one wants next. */
static void locks_in_other_orders(void) {
  const MPI_Win window = make_window();
  lock(window, rank);
  MPI_Barrier(MPI_COMM_WORLD);
  lock(window, (rank + 1) % size);
}

static void lock_kept_by_receiver(void) {
  int value = 0;
  const MPI_Win window = make_window();
  if (rank == 1) lock(window, 0);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) lock(window, 0);
  if (rank == 1) MPI_Recv(&value, 1, MPI_INT, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void lock_of_all_kept(void) {
  const MPI_Win window = make_window();
  if (rank == 1) MPI_Win_lock_all(0, window);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) lock(window, 0);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void lock_not_released(void) {
  MPI_Win window = make_window();
  if (rank == 1) lock(window, 1);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) MPI_Win_lock_all(0, window);
}

/* A right one, of one thread for each rank: those of right_ranks.c have more. */
static void lock_released_late(void) {
  MPI_Win window = make_window();
  if (rank == 1) lock(window, 1);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) lock(window, 1);
  /* It answers the questions of the watch meanwhile. */
  for (int i = 0; rank == 1 && i < 1300; ++i) {
    int has_come;
    MPI_Iprobe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &has_come, MPI_STATUS_IGNORE);
    usleep(1000);
  }
  MPI_Win_unlock(1, window);
  MPI_Win_free(&window);
}

static void window_freed_by_some(void) {
  MPI_Win window = make_window();
  if (rank == 0) MPI_Win_free(&window);
}

/* --- Files */

static void file_opened_by_some(void) {
  MPI_File file;
  if (rank == 0) MPI_File_open(MPI_COMM_WORLD, "file", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
}

static void file_written_by_some(void) {
  MPI_File file;
  MPI_File_open(MPI_COMM_WORLD, "file", MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                MPI_INFO_NULL, &file);
  if (rank == 0) MPI_File_write_at_all(file, 0, &rank, 1, MPI_INT, MPI_STATUS_IGNORE);
  if (rank == 0) MPI_File_close(&file);
}

static void file_in_order_of_some(void) {
  MPI_File file;
  MPI_File_open(MPI_COMM_WORLD, "file", MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                MPI_INFO_NULL, &file);
  if (rank == 1) MPI_File_write_ordered(file, &rank, 1, MPI_INT, MPI_STATUS_IGNORE);
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
      {"circle_of_synchronous_sends", &circle_of_synchronous_sends},
      {"barrier_without_last", &barrier_without_last},
      {"stolen_message", &stolen_message},
      {"workers_without_end", &workers_without_end},
      {"exchange_with_wrong_neighbour", &exchange_with_wrong_neighbour},
      {"persistent_not_started", &persistent_not_started},
      {"partition_not_ready", &partition_not_ready},
      {"partitioned_alone", &partitioned_alone},
      {"wait_for_any", &wait_for_any},
      {"matched_probe", &matched_probe},
      {"other_order_of_communicators", &other_order_of_communicators},
      {"nonblocking_barrier_of_some", &nonblocking_barrier_of_some},
      {"reduce_to_other_roots", &reduce_to_other_roots},
      {"allgather_of_some", &allgather_of_some},
      {"duplicate_of_some", &duplicate_of_some},
      {"split_of_some", &split_of_some},
      {"create_of_some", &create_of_some},
      {"barrier_or_receive", &barrier_or_receive},
      {"intercommunicator_receive", &intercommunicator_receive},
      {"intercommunicator_barrier", &intercommunicator_barrier},
      {"fence_of_some", &fence_of_some},
      {"start_without_post", &start_without_post},
      {"wait_without_complete", &wait_without_complete},
      {"locks_in_other_orders", &locks_in_other_orders},
      {"lock_kept_by_receiver", &lock_kept_by_receiver},
      {"lock_of_all_kept", &lock_of_all_kept},
      {"lock_not_released", &lock_not_released},
      {"lock_released_late", &lock_released_late},
      {"window_freed_by_some", &window_freed_by_some},
      {"file_opened_by_some", &file_opened_by_some},
      {"file_written_by_some", &file_written_by_some},
      {"file_in_order_of_some", &file_in_order_of_some},
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
