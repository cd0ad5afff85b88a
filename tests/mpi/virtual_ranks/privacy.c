/* Each rank has its own globals, statics, arguments, options, environment, random numbers and words of a text.
 *
 * Usage: privacy -a -b VALUE -c REST... Prints a line per rank; a rank that sees another's state says which, and returns 1. */
#define _GNU_SOURCE
#include <getopt.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int global = 7;
static int file_static;
static int zeroed[1000];
static int *pointer_to_global = &global;

static int failures = 0;

static void check(int condition, const char *what, int rank) {
  if (condition) return;
  fprintf(stderr, "rank %d: %s is another rank's\n", rank, what);
  ++failures;
}

static int next_in_function(void) {
  static int count = 100;
  return ++count;
}

static void check_variables(int rank) {
  check(global == 7 && file_static == 0 && zeroed[999] == 0, "the begin of a variable", rank);
  global = rank;
  file_static = 2 * rank;
  zeroed[999] = 3 * rank;
  check(next_in_function() == 101, "a function's static", rank);
  MPI_Barrier(MPI_COMM_WORLD);
  check(global == rank, "a global", rank);
  check(*pointer_to_global == rank, "a pointer's target", rank);
  check(file_static == 2 * rank, "a static", rank);
  check(zeroed[999] == 3 * rank, "an array", rank);
  check(next_in_function() == 102, "a function's static", rank);
}

/* The ranks switch between all options. */
static void check_options(int argc, char **argv, int rank) {
  static const struct option names[] = {{"long", required_argument, NULL, 'l'}, {NULL, 0, NULL, 0}};
  char found[64] = "";
  int option;
  check(optind == 1 && opterr == 1, "optind at the begin", rank);
  opterr = 0;
  while ((option = getopt_long(argc, argv, "ab:cd", names, NULL)) != -1) {
    char text[16];
    snprintf(text, sizeof text, "%c%s", option, optarg == NULL ? "" : optarg);
    strcat(found, text);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  check(strcmp(found, "acbvaluedlname?") == 0, found, rank);
  check(optopt == 'z', "optopt", rank);
  check(argc - optind == 2 && strcmp(argv[optind], "one") == 0 && strcmp(argv[optind + 1], "two") == 0,
        "the order of arguments", rank);
  MPI_Barrier(MPI_COMM_WORLD);
  argv[optind][0] = (char)('A' + rank);
  MPI_Barrier(MPI_COMM_WORLD);
  check(argv[optind][0] == (char)('A' + rank), "an argument", rank);
}

static int is_in_environ(const char *text) {
  for (char **entry = environ; *entry != NULL; ++entry) {
    if (strcmp(*entry, text) == 0) return 1;
  }
  return 0;
}

static void check_environment(int rank) {
  char text[32];
  snprintf(text, sizeof text, "%d", rank);
  setenv("RANK_OF_TEST", text, 1);
  if (rank % 2 == 0) unsetenv("SET_FOR_TEST");
  MPI_Barrier(MPI_COMM_WORLD);
  check(strcmp(getenv("RANK_OF_TEST"), text) == 0, "a variable of the environment", rank);
  check((getenv("SET_FOR_TEST") == NULL) == (rank % 2 == 0), "the end of a variable of the environment", rank);
  snprintf(text, sizeof text, "RANK_OF_TEST=%d", rank);
  check(is_in_environ(text), "environ", rank);
  snprintf(text, sizeof text, "test \"$RANK_OF_TEST\" = %d", rank);
  check(system(text) == 0, "the environment of a command", rank);
}

static void check_sequences(int rank) {
  char text[] = "a b c";
  unsigned first;
  srand((unsigned)rank + 1);
  first = (unsigned)rand();
  srand48(rank);
  check(strcmp(strtok(text, " "), "a") == 0, "strtok's first word", rank);
  MPI_Barrier(MPI_COMM_WORLD);
  {
    const int second = rand();
    const double fraction = drand48();
    srand((unsigned)rank + 1);
    check((unsigned)rand() == first && rand() == second, "the sequence of rand()", rank);
    srand48(rank);
    check(drand48() == fraction, "the sequence of drand48()", rank);
  }
  check(strcmp(strtok(NULL, " "), "b") == 0, "strtok's text", rank);
  {
    /* X' = rank X + 1; nrand48() returns the upper 31 of 48 bits. */
    unsigned short parameters[7] = {0, 0, 0, 0, 0, 0, 1}, position[3] = {0, 0, 1};
    parameters[3] = (unsigned short)rank;
    lcong48(parameters);
    MPI_Barrier(MPI_COMM_WORLD);
    check(nrand48(position) == (long)rank << 15 && position[2] == rank, "lcong48() and nrand48()", rank);
    position[0] = 0;
    position[1] = 0;
    position[2] = 1;
    check(jrand48(position) == (long)rank << 16, "lcong48() and jrand48()", rank);
    position[0] = 0;
    position[1] = 0;
    position[2] = 1;
    check(erand48(position) == (rank * 4294967296.0 + 1) / 281474976710656.0, "lcong48() and erand48()", rank);
  }
}

int main(int argc, char **argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check_variables(rank);
  check_options(argc, argv, rank);
  check_environment(rank);
  check_sequences(rank);
  printf("rank %d of %d: %d failures\n", rank, size, failures);
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
