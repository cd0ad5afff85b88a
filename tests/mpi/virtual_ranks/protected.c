// Ranks whose state is protected, in a job that loses processes: protected STEPS LOSS...
//
// The n-th LOSS belongs to the job that has begun again n times: "1@4" kills PE 1 in step 4, "1#4" kills it while the others protect in step
// 4, "1!" kills it as it begins. Rank 0 prints the bits of the results and how often the job has begun again.
//
// protected until PES: rank 0 prints a line, and the steps go on until there are so many PEs.
// protected refused: ranks have what cannot be protected.
// protected large: ranks exchange large messages, and PE 0 is lost once.
// protected late: PE 1 computes when PE 0 is lost, and puts large data into windows of PE 2, which has stopped.
// protected waiting FILE: PE 0 is lost, and PE 1 computes until there is that file. Ends when there are two PEs.
#define _GNU_SOURCE
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft_mpi.h>

#include "../expect.h"

enum { kNumbers = 2000, kStepsOfProtection = 3, kLarge = 1 << 18 };

// PEs that do not compute have begun again long before, if they may.
static const double kLateAfterS = 1.5;

static int rank, size;
static int num_losses;
static char** losses;
static double* numbers;   // on the heap
static int num_calls;     // counts what the program does, also in vain
static int num_arrivals;  // other than by moves

static void die_if_lost(int recoveries, char where, int step) {
  if (recoveries >= num_losses) return;
  char* end = NULL;
  const long pe = strtol(losses[recoveries], &end, 10);
  if (pe != Weft_pe() || *end != where) return;
  if (where == '!' || atoi(end + 1) == step) kill(getpid(), SIGKILL);
}

static void on_move(int event, void* data) {
  EXPECT(data == &num_arrivals);
  num_arrivals += event == WEFT_MPI_ARRIVED ? 1 : -1;
}

static double next_number(int i, int step, double from_left) {
  return numbers[i] * 0.75 + (double)rand() / RAND_MAX + from_left / (i + 1) + step;
}

static void advance(MPI_Comm ring, MPI_Datatype every_second, int step) {
  static double from_left[kNumbers];
  MPI_Status status;
  MPI_Sendrecv(numbers, 1, every_second, (rank + 1) % size, step, from_left, 1, every_second,
               (rank + size - 1) % size, step, ring, &status);
  for (int i = 0; i < kNumbers; ++i) numbers[i] = next_number(i, step, from_left[i]);
}

// Does not depend on where ranks are: the order of the operands of a sum would.
static unsigned long long bits_of_all(void) {
  unsigned long long mine = 0, all = 0;
  for (int i = 0; i < kNumbers; ++i) {
    unsigned long long bits = 0;
    memcpy(&bits, &numbers[i], sizeof bits);
    mine = mine * 31 + bits;
  }
  mine *= (unsigned long long)rank + 1;
  MPI_Allreduce(&mine, &all, 1, MPI_UINT64_T, MPI_BXOR, MPI_COMM_WORLD);
  return all;
}

static int run_until(int num_pes) {
  if (rank == 0) printf("begun\n");
  fflush(stdout);
  int recoveries = 0, rounds = 0;
  while (Weft_num_pes() != num_pes) {
    EXPECT(Weft_protect(&recoveries) == MPI_SUCCESS);
    ++rounds;
    int all = 0;
    MPI_Allreduce(&rounds, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    EXPECT(all == size * rounds);
  }
  if (rank == 0) printf("recoveries %d\npes %d\n", recoveries, Weft_num_pes());
  MPI_Finalize();
  return 0;
}

static int refuse(void) {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int recoveries = -1, value = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  if (rank == 1) MPI_Irecv(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &request);
  EXPECT(class_of(Weft_protect(&recoveries)) == MPI_ERR_OTHER && recoveries == 0);
  if (rank == 1) MPI_Send(&rank, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  EXPECT(value == (rank == 1 ? 1 : 0));
  if (rank == 0) MPI_Send(&rank, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
  EXPECT(class_of(Weft_protect(NULL)) == MPI_ERR_OTHER);
  if (rank == 1) MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  EXPECT(Weft_protect(&recoveries) == MPI_SUCCESS && recoveries == 0);
  if (rank == 0) printf("refused\n");
  MPI_Finalize();
  return 0;
}

static int exchange_large(void) {
  double* const mine = malloc(kLarge * sizeof *mine);
  double* const from_left = malloc(kLarge * sizeof *from_left);
  const int left = (rank + size - 1) % size, right = (rank + 1) % size;
  int recoveries = 0;
  for (int step = 0; step < 4; ++step) {
    if (step == 2) EXPECT(Weft_protect(&recoveries) == MPI_SUCCESS);
    if (step == 3 && recoveries == 0 && Weft_pe() == 0) kill(getpid(), SIGKILL);
    for (int i = 0; i < kLarge; ++i) mine[i] = rank + step + 0.5 * i;
    MPI_Sendrecv(mine, kLarge, MPI_DOUBLE, right, step, from_left, kLarge, MPI_DOUBLE, left, step,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < kLarge; ++i) EXPECT(from_left[i] == left + step + 0.5 * i);
  }
  if (rank == 0) printf("recoveries %d\n", recoveries);
  free(mine);
  free(from_left);
  MPI_Finalize();
  return 0;
}

static void compute(double seconds) {
  const double end = MPI_Wtime() + seconds;
  while (MPI_Wtime() < end) {
  }
}

// Whether the process runs a new program, with the same number and addresses.
static int has_begun_again(int process) {
  char path[64], environment[1 << 16];
  snprintf(path, sizeof path, "/proc/%d/environ", process);
  FILE* const file = fopen(path, "r");
  EXPECT(file != NULL);
  const size_t length = fread(environment, 1, sizeof environment, file);
  fclose(file);
  return memmem(environment, length, "WEFT_INCARNATION=", strlen("WEFT_INCARNATION=")) != NULL;
}

// One rank for each of three PEs.
static int put_late(void) {
  double* const mine = malloc(kLarge * sizeof *mine);
  double* const theirs = malloc(kLarge * sizeof *theirs);
  int recoveries = 0;
  MPI_Win window;
  for (int i = 0; i < kLarge; ++i) {
    mine[i] = -1;
    theirs[i] = i;
  }
  EXPECT(Weft_protect(&recoveries) == MPI_SUCCESS);
  MPI_Win_create(theirs, (MPI_Aint)kLarge * (MPI_Aint)sizeof *theirs, sizeof *theirs, MPI_INFO_NULL,
                 MPI_COMM_WORLD, &window);
  MPI_Win_lock_all(0, window);
  int process = (int)getpid();
  MPI_Bcast(&process, 1, MPI_INT, 2, MPI_COMM_WORLD);
  for (int round = 0; round < 2 && recoveries == 0; ++round) {
    if (round == 1 && rank == 0) kill(getpid(), SIGKILL);
    if (round == 1 && rank == 1) compute(kLateAfterS);
    if (rank == 1) {
      EXPECT(!has_begun_again(process));
      MPI_Put(mine, kLarge, MPI_DOUBLE, 2, 0, kLarge, MPI_DOUBLE, window);
      MPI_Win_flush(2, window);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  for (int i = 0; i < kLarge; ++i) EXPECT(theirs[i] == i);
  MPI_Win_unlock_all(window);
  MPI_Win_free(&window);
  if (rank == 0) printf("recoveries %d\n", recoveries);
  free(mine);
  free(theirs);
  MPI_Finalize();
  return 0;
}

static int wait_for(const char* file) {
  int recoveries = 0;
  EXPECT(Weft_protect(&recoveries) == MPI_SUCCESS);
  if (recoveries == 0) {
    fprintf(stderr, "PE %d is process %d\n", Weft_pe(), (int)getpid());
    MPI_Barrier(MPI_COMM_WORLD);
    if (Weft_pe() == 0) kill(getpid(), SIGKILL);
    if (Weft_pe() == 1)
      while (access(file, F_OK) != 0) compute(0.01);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  return run_until(2);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (strcmp(argv[1], "until") == 0) return run_until(atoi(argv[2]));
  if (strcmp(argv[1], "refused") == 0) return refuse();
  if (strcmp(argv[1], "large") == 0) return exchange_large();
  if (strcmp(argv[1], "late") == 0) return put_late();
  if (strcmp(argv[1], "waiting") == 0) return wait_for(argv[2]);
  const int num_steps = atoi(argv[1]);
  losses = argv + 2;
  num_losses = argc - 2;
  if (getenv("WEFT_INCARNATION") == NULL) die_if_lost(0, '!', 0);  // this time nothing is protected
  MPI_Comm ring;
  MPI_Datatype every_second;
  MPI_Comm_dup(MPI_COMM_WORLD, &ring);
  MPI_Comm_set_name(ring, "the ring");
  MPI_Type_vector(kNumbers / 2, 1, 2, MPI_DOUBLE, &every_second);
  MPI_Type_commit(&every_second);
  Weft_register_move_function(on_move, &num_arrivals);
  srand((unsigned)rank);
  numbers = malloc(kNumbers * sizeof *numbers);
  for (int i = 0; i < kNumbers; ++i) numbers[i] = rank + i;
  int recoveries = 0;
  for (int step = 0; step < num_steps; ++step) {
    die_if_lost(recoveries, '@', step);
    advance(ring, every_second, step);
    ++num_calls;
    if (step == 1 && size > Weft_num_pes())
      EXPECT(Weft_migrate((Weft_pe() + 1) % Weft_num_pes()) == MPI_SUCCESS);
    if (step % kStepsOfProtection != kStepsOfProtection - 1) continue;
    die_if_lost(recoveries, '#', step);
    const int before = recoveries;
    EXPECT(Weft_protect(&recoveries) == MPI_SUCCESS);
    EXPECT(recoveries >= before && num_calls == step + 1);
    char name[MPI_MAX_OBJECT_NAME];
    int length = 0;
    MPI_Comm_get_name(ring, name, &length);
    EXPECT(strcmp(name, "the ring") == 0);
  }
  const unsigned long long bits = bits_of_all();
  EXPECT(num_arrivals <= recoveries);
  if (rank == 0)
    printf("bits %016llx\nrecoveries %d\narrivals %d\npes %d\n", bits, recoveries, num_arrivals,
           Weft_num_pes());
  free(numbers);
  MPI_Type_free(&every_second);
  MPI_Comm_free(&ring);
  MPI_Finalize();
  return 0;
}
