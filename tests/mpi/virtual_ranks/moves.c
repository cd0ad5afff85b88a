// Ranks that move: their variables, their stack, their memory and their messages go with them.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft_mpi.h>

static int failures = 0;
static int rank, size;
static int* numbers;  // 0, 1, 2, ... times the rank
static const char* text;
static int events[4];

static void check(int condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "rank %d on PE %d: %s\n", rank, Weft_pe(), what);
  ++failures;
}

enum { kNumbers = 300000 };

static void check_memory(const int* on_stack, int round) {
  for (int i = 0; i < kNumbers; ++i) {
    if (numbers[i] == i * rank) continue;
    check(0, "a number on the heap is wrong");
    break;
  }
  check(*on_stack == 1000 * rank + round, "a variable on the stack is wrong");
  char expected[40];
  snprintf(expected, sizeof expected, "the text of rank %d", rank);
  check(strcmp(text, expected) == 0, "a text is wrong");
  check(strcmp(getenv("OWN"), expected) == 0 && getenv("PATH") != NULL, "the environment is wrong");
  char* const grown = malloc(100 * (size_t)(round + 1));  // the heap still works
  memset(grown, round, 100 * (size_t)(round + 1));
  free(grown);
}

static void check_messages(int round) {
  int sum = 0, expected = size * (size - 1) / 2;
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  check(sum == expected, "a sum is wrong");
  const int to = (rank + 1 + round) % size, from = (rank + 2 * size - 1 - round % size) % size;
  static double out[20000], in[20000];  // small ones and large ones
  const int counts[] = {1, 100, 20000};
  for (int i = 0; i < 3; ++i) {
    for (int k = 0; k < counts[i]; ++k) out[k] = rank + k;
    MPI_Status status;
    MPI_Sendrecv(out, counts[i], MPI_DOUBLE, to, round, in, counts[i], MPI_DOUBLE, from, round, MPI_COMM_WORLD, &status);
    check(in[0] == from && in[counts[i] - 1] == from + counts[i] - 1, "a message is wrong");
  }
  // Communicators and datatypes of the program live between moves.
  MPI_Comm half;
  MPI_Datatype pair;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Type_vector(2, 1, 3, MPI_INT, &pair);
  MPI_Type_commit(&pair);
  int half_size = 0;
  MPI_Comm_size(half, &half_size);
  check(half_size == (size + (rank % 2 == 0 ? 1 : 0)) / 2, "a communicator is wrong");
  MPI_Barrier(half);
  MPI_Type_free(&pair);
  MPI_Comm_free(&half);
}

static void on_move(int event, void* data) {
  check(data == &events, "a move function gets something else");
  ++events[event];
  char* const block = malloc(10);
  free(block);
}


// Frames with a stack protector, if the compiler makes them so.
__attribute__((noinline)) static void move_from_depth(int depth, int pe) {
  char frame[200];
  memset(frame, depth, sizeof frame);
  if (depth == 0) {
    Weft_migrate(pe);
  } else {
    move_from_depth(depth - 1, pe);
  }
  for (size_t i = 0; i < sizeof frame; ++i) {
    if (frame[i] != depth) {
      check(0, "a frame of the stack is wrong");
      break;
    }
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int num_rounds = argc > 1 ? atoi(argv[1]) : 5;
  const int num_pes = Weft_num_pes(), first_pe = Weft_pe();
  numbers = malloc(kNumbers * sizeof *numbers);
  for (int i = 0; i < kNumbers; ++i) numbers[i] = i * rank;
  char own[40];
  snprintf(own, sizeof own, "the text of rank %d", rank);
  text = strdup(own);
  setenv("OWN", own, 1);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_name(MPI_COMM_WORLD, "the world");
  check(Weft_register_move_function(&on_move, &events) == MPI_SUCCESS, "a function cannot be registered");
  int num_moves = 0;
  for (int round = 0; round < num_rounds; ++round) {
    int on_stack = 1000 * rank + round;
    // All ranks take turns, but one of each PE stays in even rounds.
    const int before = Weft_pe();
    const int pe = round % 2 == 0 && rank < num_pes ? rank : (first_pe + round + rank) % num_pes;
    int ranks_there = 0, everywhere = 0;
    for (int i = 0; i < num_pes; ++i) {
      const int mine = pe == i;
      MPI_Allreduce(&mine, &ranks_there, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
      everywhere += ranks_there != 0;
    }
    if (everywhere == num_pes) {
      move_from_depth(round % 5, pe);
      check(Weft_pe() == pe, "a rank is elsewhere");
      num_moves += pe != before;
    }
    check_memory(&on_stack, round);
    check_messages(round);
  }
  check(events[WEFT_MPI_LEAVES] == num_moves && events[WEFT_MPI_ARRIVED] == num_moves, "a move function was not called");
  char name[MPI_MAX_OBJECT_NAME];
  int length = 0;
  MPI_Comm_get_name(MPI_COMM_WORLD, name, &length);
  check(strcmp(name, "the world") == 0, "the name of MPI_COMM_WORLD is lost");
  int moves_of_all = 0;
  MPI_Reduce(&num_moves, &moves_of_all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%d moves\n", moves_of_all);
  printf("rank %d: %d failures\n", rank, failures);
  MPI_Finalize();
  return failures;
}
