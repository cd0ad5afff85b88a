/* Messages between the threads of all processes, at the same time. */
#include "threads.h"

#include <string.h>

enum { ROUNDS = 200, LARGE = 1 << 18, WINDOW = 16 };

static MPI_Comm own_comms[MOST_THREADS];

static void pass_around(MPI_Comm comm, int tag, int* sent, int count) {
  int* const received = malloc(sizeof(int) * (size_t)count);
  MPI_Status status;
  MPI_Request request;
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  for (int i = 0; i < count; ++i) sent[i] = tag * 1000003 + rank * 101 + i;
  memset(received, 0xff, sizeof(int) * (size_t)count);
  MPI_Isend(sent, count, MPI_INT, right, tag, comm, &request);
  MPI_Recv(received, count, MPI_INT, left, tag, comm, &status);
  EXPECT(status.MPI_SOURCE == left && status.MPI_TAG == tag);
  for (int i = 0; i < count; ++i) EXPECT(received[i] == tag * 1000003 + left * 101 + i);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  free(received);
}

/* Communicators of the threads' own. */
static void own_communicators(int thread) {
  int* const sent = malloc(sizeof(int) * LARGE);
  for (int round = 0; round < ROUNDS; ++round) pass_around(own_comms[thread], round, sent, 1 + round % 3);
  for (int round = 0; round < 4; ++round) pass_around(own_comms[thread], round, sent, LARGE >> (2 * round));
  free(sent);
}

/* One communicator, whose messages differ by their tags alone. */
static void own_tags(int thread) {
  int* const sent = malloc(sizeof(int) * LARGE);
  for (int round = 0; round < ROUNDS; ++round)
    pass_around(MPI_COMM_WORLD, thread * ROUNDS + round, sent, 1 + round % 5);
  pass_around(MPI_COMM_WORLD, 100000 + thread, sent, LARGE);
  free(sent);
}

/* The threads of process 0 receive from any process with any tag. Each message is received once. */
static int num_received[1 << 14];
static pthread_mutex_t received_mutex = PTHREAD_MUTEX_INITIALIZER;

static void note_received(int number) {
  pthread_mutex_lock(&received_mutex);
  ++num_received[number];
  pthread_mutex_unlock(&received_mutex);
}

static void wildcards(int thread) {
  if (rank != 0 || size == 1) {
    for (int i = 0; i < ROUNDS; ++i) {
      const int number = (rank * num_threads + thread) * ROUNDS + i;
      MPI_Send(&number, 1, MPI_INT, 0, number, MPI_COMM_WORLD);
    }
  }
  if (rank != 0) return;
  const int senders = size == 1 ? 1 : size - 1;
  for (int i = 0; i < senders * ROUNDS; ++i) {
    int number = -1;
    MPI_Status status;
    if (thread % 2 == 0) {
      MPI_Recv(&number, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    } else { /* a probe takes the message: no other thread receives it */
      MPI_Message message;
      MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &message, &status);
      MPI_Mrecv(&number, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
    }
    EXPECT(status.MPI_TAG == number);
    note_received(number);
  }
}

static void check_wildcards(void) {
  for (int sender = size == 1 ? 0 : 1; rank == 0 && sender < size; ++sender) {
    for (int i = 0; i < num_threads * ROUNDS; ++i) EXPECT(num_received[sender * num_threads * ROUNDS + i] == 1);
  }
}

/* Half of the threads wait for messages that the others send, in the same process. */
static void to_itself(int thread) {
  for (int round = 0; round < ROUNDS; ++round) {
    int value = -1;
    const int tag = (thread / 2) * ROUNDS + round;
    if (thread % 2 == 0) {
      MPI_Recv(&value, 1, MPI_INT, rank, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      EXPECT(value == tag);
      MPI_Ssend(&tag, 1, MPI_INT, 0, tag, MPI_COMM_SELF);
    } else {
      MPI_Send(&tag, 1, MPI_INT, rank, tag, MPI_COMM_WORLD);
      MPI_Recv(&value, 1, MPI_INT, 0, tag, MPI_COMM_SELF, MPI_STATUS_IGNORE);
      EXPECT(value == tag);
    }
  }
}

/* Requests that one thread starts and another one completes. */
static MPI_Request handed[MOST_THREADS][2];
static int handed_values[MOST_THREADS][2];

static void handed_requests(int thread) {
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  for (int round = 0; round < ROUNDS; ++round) {
    int* const values = handed_values[thread];
    values[0] = -1;
    values[1] = thread * ROUNDS + round;
    MPI_Irecv(&values[0], 1, MPI_INT, left, thread, MPI_COMM_WORLD, &handed[thread][0]);
    MPI_Isend(&values[1], 1, MPI_INT, right, thread, MPI_COMM_WORLD, &handed[thread][1]);
    pthread_barrier_wait(&all_threads);
    const int other = (thread + 1) % num_threads;
    MPI_Waitall(2, handed[other], MPI_STATUSES_IGNORE);
    EXPECT(handed_values[other][0] == other * ROUNDS + round);
    pthread_barrier_wait(&all_threads);
  }
}

/* The calls that complete some of several requests. */
static void some_of_several(int thread) {
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  for (int round = 0; round < ROUNDS / 4; ++round) {
    MPI_Request sends[WINDOW], receives[WINDOW];
    int sent[WINDOW], received[WINDOW], places[WINDOW], done = 0;
    for (int i = 0; i < WINDOW; ++i) {
      MPI_Irecv(&received[i], 1, MPI_INT, left, i, own_comms[thread], &receives[i]);
      sent[i] = round * WINDOW + i;
    }
    for (int i = 0; i < WINDOW; ++i)
      MPI_Isend(&sent[i], 1, MPI_INT, right, i, own_comms[thread], &sends[i]);
    while (done < WINDOW) {
      int flag = 0, place = -1, count = 0;
      switch ((thread + round) % 4) {
        case 0:
          MPI_Waitany(WINDOW, receives, &place, MPI_STATUS_IGNORE);
          EXPECT(place != MPI_UNDEFINED);
          ++done;
          break;
        case 1:
          MPI_Testany(WINDOW, receives, &place, &flag, MPI_STATUS_IGNORE);
          done += flag;
          break;
        case 2:
          MPI_Waitsome(WINDOW, receives, &count, places, MPI_STATUSES_IGNORE);
          done += count;
          break;
        default:
          MPI_Testsome(WINDOW, receives, &count, places, MPI_STATUSES_IGNORE);
          done += count;
      }
    }
    for (int i = 0; i < WINDOW; ++i) EXPECT(received[i] == round * WINDOW + i);
    MPI_Waitall(WINDOW, sends, MPI_STATUSES_IGNORE);
  }
}

/* One thread waits for long, while the others probe and receive what comes meanwhile. */
static void beside_a_long_wait(int thread) {
  int value = -1, flag = 0;
  if (thread == 0) {
    MPI_Recv(&value, 1, MPI_INT, rank, 1, own_comms[0], MPI_STATUS_IGNORE);
    EXPECT(value == 77);
    return;
  }
  for (int round = 0; round < ROUNDS; ++round) {
    MPI_Status status;
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
    MPI_Send(&round, 1, MPI_INT, right, 2, own_comms[thread]);
    for (flag = 0; flag == 0;) MPI_Iprobe(left, 2, own_comms[thread], &flag, &status);
    MPI_Recv(&value, 1, MPI_INT, left, 2, own_comms[thread], &status);
    EXPECT(value == round);
  }
  if (thread != 1) return;
  value = 77;
  MPI_Send(&value, 1, MPI_INT, rank, 1, own_comms[0]);
}

int main(int argc, char** argv) {
  start_with_threads(&argc, &argv);
  for (int i = 0; i < num_threads; ++i) MPI_Comm_dup(MPI_COMM_WORLD, &own_comms[i]);
  in_threads(own_communicators);
  in_threads(own_tags);
  MPI_Barrier(MPI_COMM_WORLD);
  in_threads(wildcards);
  check_wildcards();
  MPI_Barrier(MPI_COMM_WORLD);
  in_threads(to_itself);
  in_threads(handed_requests);
  in_threads(some_of_several);
  in_threads(beside_a_long_wait);
  for (int i = 0; i < num_threads; ++i) MPI_Comm_free(&own_comms[i]);
  MPI_Finalize();
  if (rank == 0) printf("messages of threads: as expected\n");
  return 0;
}
