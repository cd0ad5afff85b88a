// MPI around parallel regions of OpenMP. The argument says where ranks wait: "outside" of regions, "inside" one of two threads, inside
// one of "one" thread whose loop is under way, or on "another" thread than the rank's.
#include <mpi.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

static const char* where = "outside";
static int rank, size, failures;

static int is(const char* place) { return strcmp(where, place) == 0; }

// What the rank before has sent.
static int from_the_left(int number) {
  int received = -1;
  MPI_Sendrecv(&number, 1, MPI_INT, (rank + 1) % size, 1, &received, 1, MPI_INT, (rank + size - 1) % size, 1,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return received;
}

static void two_threads(int round) {
  long sum = 0;
  int received = -1, num_threads = 0, others = 0;
  if (is("outside")) received = from_the_left(rank + round);
#pragma omp parallel num_threads(2) reduction(+ : sum)
  {
#pragma omp master
    {
      if (is("inside")) received = from_the_left(rank + round);
      num_threads = omp_get_num_threads();
    }
    if (is("another") && omp_get_thread_num() == 1) MPI_Barrier(MPI_COMM_WORLD);
#pragma omp barrier
#pragma omp for schedule(dynamic, 7)
    for (int i = 0; i < 1000; ++i) sum += i;
#pragma omp atomic
    others += omp_get_thread_num() != 0;
  }
  failures += sum != 499500 || num_threads != 2 || others != 1 || received != (rank + size - 1) % size + round;
}

// The iterations of all ranks take turns: each finds its own loop again.
static void one_thread(int round) {
  int count = 0;
#pragma omp parallel num_threads(1)
  {
#pragma omp for schedule(dynamic, 1)
    for (int i = 0; i < 5; ++i) {
      count += i;
      failures += from_the_left(10 * rank + i) != 10 * ((rank + size - 1) % size) + i;
      failures += omp_get_level() != 1 || omp_get_num_threads() != 1;
    }
    if (round % 2 == 0) failures += from_the_left(rank) != (rank + size - 1) % size;
  }
  failures += count != 10 || omp_get_level() != 0;
}

int main(int argc, char** argv) {
  int level = 0;
  if (argc > 1) where = argv[1];
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int round = 0; round < 10; ++round) {
    if (is("one")) {
      one_thread(round);
    } else {
      two_threads(round);
    }
  }
  printf("rank %d: %d failures\n", rank, failures);
  MPI_Finalize();
  return failures;
}
