/* For the programs of this folder: runs a function in several threads at the same time. */
#ifndef WEFT_TESTS_MPI_THREADS_H
#define WEFT_TESTS_MPI_THREADS_H

#define _XOPEN_SOURCE 700
#include <pthread.h>

#include "../expect.h"

#define MOST_THREADS 8

static int rank, size, num_threads = 4;
static pthread_barrier_t all_threads;

typedef void (*thread_function)(int thread);
struct thread_start {
  thread_function function;
  int thread;
};

static inline void* thread_main(void* start) {
  const struct thread_start* const mine = start;
  mine->function(mine->thread);
  return NULL;
}

/* Calls function(0) to function(num_threads - 1), each in a thread of its own. */
static inline void in_threads(thread_function function) {
  pthread_t threads[MOST_THREADS];
  struct thread_start starts[MOST_THREADS];
  EXPECT(pthread_barrier_init(&all_threads, NULL, (unsigned)num_threads) == 0);
  for (int i = 0; i < num_threads; ++i) {
    starts[i] = (struct thread_start){function, i};
    EXPECT(pthread_create(&threads[i], NULL, thread_main, &starts[i]) == 0);
  }
  for (int i = 0; i < num_threads; ++i) EXPECT(pthread_join(threads[i], NULL) == 0);
  pthread_barrier_destroy(&all_threads);
}

static inline void start_with_threads(int* argc, char*** argv) {
  int level = -1;
  EXPECT(MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &level) == MPI_SUCCESS);
  EXPECT(level == MPI_THREAD_MULTIPLE);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
}

#endif
