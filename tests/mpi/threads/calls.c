/* Collectives, windows, objects and functions of the program, in several threads at the same time. */
#include "threads.h"

#include <string.h>

enum { ROUNDS = 50, COUNT = 3000 };

static MPI_Comm own_comms[MOST_THREADS];
static MPI_Win own_windows[MOST_THREADS];
static MPI_Win shared_window;
static int* own_memory[MOST_THREADS];
static long counter;

/* --- Collectives on communicators of the threads' own */

static void add(void* in, void* inout, int* count, MPI_Datatype* type) {
  int bytes = 0;
  MPI_Type_size(*type, &bytes); /* takes the lock of the library */
  EXPECT(bytes == (int)sizeof(int));
  for (int i = 0; i < *count; ++i) ((int*)inout)[i] += ((int*)in)[i];
}

static void collectives(int thread) {
  const MPI_Comm comm = own_comms[thread];
  int* const in = malloc(sizeof(int) * COUNT);
  int* const out = malloc(sizeof(int) * COUNT);
  int sum = size * (size - 1) / 2;
  MPI_Op op;
  MPI_Op_create(add, 1, &op);
  for (int round = 0; round < ROUNDS; ++round) {
    const int root = round % size;
    int value = rank == root ? round * 8 + thread : -1, total = -1;
    MPI_Bcast(&value, 1, MPI_INT, root, comm);
    EXPECT(value == round * 8 + thread);
    MPI_Allreduce(&rank, &total, 1, MPI_INT, MPI_SUM, comm);
    EXPECT(total == sum);
    MPI_Barrier(comm);
    for (int i = 0; i < COUNT; ++i) in[i] = rank + i * thread;
    MPI_Allreduce(in, out, COUNT, MPI_INT, op, comm);
    for (int i = 0; i < COUNT; ++i) EXPECT(out[i] == sum + size * i * thread);
    MPI_Request request;
    MPI_Iallreduce(in, out, COUNT, MPI_INT, MPI_MAX, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < COUNT; ++i) EXPECT(out[i] == size - 1 + i * thread);
  }
  MPI_Op_free(&op);
  free(in);
  free(out);
}

/* Communicators are made of those of the threads, at the same time and in any order. */
static void duplicates(int thread) {
  for (int round = 0; round < ROUNDS / 5; ++round) {
    MPI_Comm copy, part;
    int total = -1;
    MPI_Comm_dup(own_comms[thread], &copy);
    MPI_Comm_split(copy, rank % 2, rank, &part);
    MPI_Allreduce(&thread, &total, 1, MPI_INT, MPI_SUM, copy);
    EXPECT(total == size * thread);
    MPI_Barrier(part);
    MPI_Comm_free(&part);
    MPI_Comm_free(&copy);
  }
}

/* --- Windows */

static void windows(int thread) {
  const int right = (rank + 1) % size;
  const long one = 1;
  long before = -1;
  for (int round = 0; round < ROUNDS; ++round) {
    const int value = round * 100 + thread;
    int back = -1;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, 0, own_windows[thread]);
    MPI_Put(&value, 1, MPI_INT, right, 0, 1, MPI_INT, own_windows[thread]);
    MPI_Win_flush(right, own_windows[thread]);
    MPI_Get(&back, 1, MPI_INT, right, 0, 1, MPI_INT, own_windows[thread]);
    MPI_Win_unlock(right, own_windows[thread]);
    EXPECT(back == value);
    MPI_Fetch_and_op(&one, &before, MPI_LONG, 0, 0, MPI_SUM, shared_window);
    MPI_Win_flush(0, shared_window);
    EXPECT(before >= 0 && before < (long)size * num_threads * ROUNDS);
  }
}

/* Thread 0 of process 0 waits for a lock of process 1, which process 1 gives back after a message of thread 1. */
static void lock_beside_a_message(int thread) {
  const MPI_Win window = own_windows[0];
  int value = 0;
  for (int round = 0; round < ROUNDS && rank == 1 && thread == 0; ++round) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
    MPI_Send(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
    MPI_Recv(&value, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Win_unlock(0, window);
    MPI_Recv(&value, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* the lock may come back at once */
  }
  for (int round = 0; round < ROUNDS && rank == 0; ++round) {
    if (thread == 0) MPI_Recv(&value, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    pthread_barrier_wait(&all_threads);
    if (thread == 0) {
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
      MPI_Win_unlock(0, window);
      MPI_Send(&value, 1, MPI_INT, 1, 3, MPI_COMM_WORLD);
    } else if (thread == 1) {
      for (volatile int i = 0; i < 1000 * round; ++i) continue; /* usually, thread 0 waits by then */
      MPI_Send(&value, 1, MPI_INT, 1, 2, MPI_COMM_WORLD);
    }
  }
}

static void use_windows(void) {
  for (int i = 0; i < num_threads; ++i)
    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &own_memory[i], &own_windows[i]);
  MPI_Win_create(&counter, sizeof(counter), sizeof(counter), MPI_INFO_NULL, MPI_COMM_WORLD, &shared_window);
  MPI_Win_lock_all(0, shared_window);
  in_threads(windows);
  MPI_Win_unlock_all(shared_window);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) EXPECT(counter == (long)size * num_threads * ROUNDS);
  if (size > 1) in_threads(lock_beside_a_message);
  for (int i = 0; i < num_threads; ++i) MPI_Win_free(&own_windows[i]);
  MPI_Win_free(&shared_window);
}

/* --- Functions of the program that call MPI */

static int copy_value(MPI_Comm comm, int key, void* extra, void* value, void* copied, int* flag) {
  int number = -1;
  (void)key;
  (void)extra;
  EXPECT(MPI_Comm_rank(comm, &number) == MPI_SUCCESS && number == rank);
  *(void**)copied = value;
  *flag = 1;
  return MPI_SUCCESS;
}
/* Communicates: other threads get the lock of the library while it waits. */
static int delete_value(MPI_Comm comm, int key, void* value, void* extra) {
  int in = 5, out = -1;
  (void)comm;
  (void)key;
  (void)extra;
  const int tag = (int)(size_t)value;
  MPI_Sendrecv(&in, 1, MPI_INT, 0, tag, &out, 1, MPI_INT, 0, tag, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  EXPECT(out == 5);
  return MPI_SUCCESS;
}

static int num_errors[MOST_THREADS];
static MPI_Comm failing[MOST_THREADS];
static void on_error(MPI_Comm* comm, int* code, ...) {
  int class_of_code = -1;
  MPI_Error_class(*code, &class_of_code);
  EXPECT(class_of_code == MPI_ERR_RANK);
  for (int i = 0; i < num_threads; ++i) num_errors[i] += failing[i] == *comm;
}

static void functions(int thread) {
  int key = MPI_KEYVAL_INVALID;
  MPI_Errhandler handler;
  MPI_Comm_create_keyval(copy_value, delete_value, &key, NULL);
  MPI_Comm_create_errhandler(on_error, &handler);
  for (int round = 0; round < ROUNDS / 5; ++round) {
    MPI_Comm copy;
    void* value = NULL;
    int flag = 0;
    MPI_Comm_set_attr(own_comms[thread], key, (void*)(size_t)(1000 + thread));
    MPI_Comm_dup(own_comms[thread], &copy);
    MPI_Comm_get_attr(copy, key, &value, &flag);
    EXPECT(flag && (size_t)value == (size_t)(1000 + thread));
    failing[thread] = copy;
    MPI_Comm_set_errhandler(copy, handler);
    EXPECT(class_of(MPI_Send(&round, 1, MPI_INT, size + 5, 0, copy)) == MPI_ERR_RANK);
    MPI_Comm_free(&copy);
    MPI_Comm_delete_attr(own_comms[thread], key);
  }
  EXPECT(num_errors[thread] == ROUNDS / 5);
  MPI_Errhandler_free(&handler);
  MPI_Comm_free_keyval(&key);
}

/* --- Objects that need no communicator */

static void objects(int thread) {
  for (int round = 0; round < ROUNDS * 10; ++round) {
    MPI_Info info;
    MPI_Datatype type;
    MPI_Group group, some;
    char text[16];
    int length = sizeof text, flag = 0, bytes = 0, first = 0, class = 0;
    MPI_Info_create(&info);
    MPI_Info_set(info, "key", thread % 2 == 0 ? "even" : "odd");
    MPI_Info_get_string(info, "key", &length, text, &flag);
    EXPECT(flag && strcmp(text, thread % 2 == 0 ? "even" : "odd") == 0);
    MPI_Info_free(&info);
    MPI_Type_contiguous(3 + thread, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Type_size(type, &bytes);
    EXPECT(bytes == (3 + thread) * (int)sizeof(int));
    EXPECT(MPI_Type_fromint(MPI_Type_toint(type)) == type);
    MPI_Type_free(&type);
    MPI_Comm_group(MPI_COMM_WORLD, &group);
    MPI_Group_incl(group, 1, &first, &some);
    MPI_Group_free(&some);
    MPI_Group_free(&group);
    MPI_Add_error_class(&class);
    EXPECT(class > MPI_ERR_LASTCODE);
  }
}

/* --- Generalized requests: another thread completes what one waits for */

static MPI_Request general[MOST_THREADS];
static int query(void* state, MPI_Status* status) {
  (void)state;
  MPI_Status_set_elements(status, MPI_INT, 1);
  MPI_Status_set_cancelled(status, 0);
  status->MPI_SOURCE = 3;
  status->MPI_TAG = 4;
  return MPI_SUCCESS;
}
static int free_state(void* state) {
  (void)state;
  return MPI_SUCCESS;
}
static int cancel(void* state, int complete) {
  (void)state;
  (void)complete;
  return MPI_SUCCESS;
}

static void generalized(int thread) {
  for (int round = 0; round < ROUNDS; ++round) {
    MPI_Status status;
    if (thread % 2 == 0) MPI_Grequest_start(query, free_state, cancel, NULL, &general[thread]);
    pthread_barrier_wait(&all_threads);
    if (thread % 2 == 0) {
      MPI_Wait(&general[thread], &status);
      EXPECT(status.MPI_SOURCE == 3 && status.MPI_TAG == 4);
    } else {
      MPI_Grequest_complete(general[thread - 1]);
    }
    pthread_barrier_wait(&all_threads);
  }
}

/* --- Requests of one communicator, whose references all threads count. Rounds: so many that counts differ if they are not changed with
 * the lock held. */

static MPI_Comm common;
static void persistent(int thread) {
  int in = thread, out = -1, parts[2] = {thread, 1}, arrived[2];
  MPI_Request pair[2], partitioned[2];
  MPI_Recv_init(&out, 1, MPI_INT, rank, thread, common, &pair[0]);
  MPI_Send_init(&in, 1, MPI_INT, rank, thread, common, &pair[1]);
  MPI_Psend_init(parts, 2, 1, MPI_INT, rank, thread, common, MPI_INFO_NULL, &partitioned[0]);
  MPI_Precv_init(arrived, 2, 1, MPI_INT, rank, thread, common, MPI_INFO_NULL, &partitioned[1]);
  for (int round = 0; round < 40 * ROUNDS; ++round) {
    int flag = 0;
    MPI_Start(&pair[0]);
    MPI_Start(&pair[1]);
    MPI_Request_get_status(pair[0], &flag, MPI_STATUS_IGNORE);
    MPI_Waitall(2, pair, MPI_STATUSES_IGNORE);
    EXPECT(out == thread);
    MPI_Startall(2, partitioned);
    for (int i = 0; i < 2; ++i) MPI_Pready(i, partitioned[0]);
    for (int i = 0; i < 2; ++i) MPI_Parrived(partitioned[1], i, &flag);
    MPI_Waitall(2, partitioned, MPI_STATUSES_IGNORE);
    EXPECT(arrived[0] == thread && arrived[1] == 1);
  }
  for (int i = 0; i < 2; ++i) {
    MPI_Request_free(&pair[i]);
    MPI_Request_free(&partitioned[i]);
  }
}

static void check_persistent(void) {
  int result;
  MPI_Comm_dup(MPI_COMM_WORLD, &common);
  in_threads(persistent);
  EXPECT(MPI_Comm_compare(common, MPI_COMM_WORLD, &result) == MPI_SUCCESS && result == MPI_CONGRUENT);
  MPI_Barrier(common);
  MPI_Comm_free(&common);
}

int main(int argc, char** argv) {
  start_with_threads(&argc, &argv);
  for (int i = 0; i < num_threads; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &own_comms[i]);
  in_threads(collectives);
  in_threads(duplicates);
  use_windows();
  in_threads(functions);
  in_threads(objects);
  in_threads(generalized);
  check_persistent();
  for (int i = 0; i < num_threads; ++i) MPI_Comm_free(&own_comms[i]);
  MPI_Finalize();
  if (rank == 0) printf("calls of threads: as expected\n");
  return 0;
}
