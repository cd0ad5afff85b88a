// Ranks that move with objects of MPI: datatypes, communicators and all else that has a handle. Each is made once and used after each
// move. Prints "rank R: F failures".
#include <mpi.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft_mpi.h>

static int failures = 0;
static int rank, size;

static void check(int condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "rank %d on PE %d: %s\n", rank, Weft_pe(), what);
  ++failures;
}

/* --- Datatypes */

typedef struct {
  double value;
  int counts[3];
} Item;

static MPI_Datatype column, block, item, sub, shared, reserved, real;

static void make_types(void) {
  MPI_Datatype plain, parts[2] = {MPI_DOUBLE, MPI_INT};
  const int lengths[2] = {1, 3}, sizes[2] = {6, 5}, subsizes[2] = {2, 3}, starts[2] = {1, 2}, places[3] = {4, 0, 9};
  const MPI_Aint displacements[2] = {offsetof(Item, value), offsetof(Item, counts)};
  const MPI_Count large_places[2] = {7, 1};
  MPI_Type_vector(6, 1, 5, MPI_INT, &column);
  MPI_Type_create_struct(2, lengths, displacements, parts, &plain);
  MPI_Type_create_resized(plain, 0, sizeof(Item), &item);
  MPI_Type_free(&plain); /* still part of `item` */
  MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_C, MPI_INT, &sub);
  MPI_Type_create_indexed_block(3, 2, places, MPI_INT, &block);
  MPI_Type_create_indexed_block_c(2, 1, large_places, item, &shared);
  MPI_Type_dup(shared, &reserved); /* is not committed */
  MPI_Type_create_f90_real(12, MPI_UNDEFINED, &real);
  MPI_Type_commit(&column);
  MPI_Type_commit(&item);
  MPI_Type_commit(&sub);
  MPI_Type_commit(&block);
  MPI_Type_commit(&shared);
  MPI_Type_set_name(column, "a column");
  MPI_Type_set_name(MPI_FLOAT, "a short real");
}

/* Sends `type` of `out` to the next rank in `comm`, and compares what has come with the numbers of the rank before. */
static void exchange(MPI_Comm comm, MPI_Datatype type, int num_ints, const char* what) {
  int here, there, out[64], in[64], expected[64], packed_bytes = 0, position = 0;
  char packed[512], packed_expected[512];
  MPI_Comm_rank(comm, &here);
  MPI_Comm_size(comm, &there);
  const int next = (here + 1) % there, before = (here + there - 1) % there;
  for (int i = 0; i < 64; ++i) {
    out[i] = 100 * here + i;
    in[i] = -1;
    expected[i] = 100 * before + i;
  }
  check(MPI_Sendrecv(out, 1, type, next, 3, in, 1, type, before, 3, comm, MPI_STATUS_IGNORE) == MPI_SUCCESS, what);
  MPI_Pack(in, 1, type, packed, sizeof packed, &packed_bytes, comm);
  check(packed_bytes == num_ints * (int)sizeof(int), what);
  MPI_Pack(expected, 1, type, packed_expected, sizeof packed_expected, &position, comm);
  check(position == packed_bytes && memcmp(packed, packed_expected, (size_t)position) == 0, what);
}

static void check_types(void) {
  int length = 0, integers, addresses, datatypes, combiner;
  char name[MPI_MAX_OBJECT_NAME];
  MPI_Datatype again, contents[2];
  exchange(MPI_COMM_WORLD, column, 6, "a vector");
  exchange(MPI_COMM_WORLD, sub, 6, "a subarray");
  exchange(MPI_COMM_WORLD, block, 6, "indexed blocks");
  Item out[8], in[8];
  memset(in, 0, sizeof in);
  for (int i = 0; i < 8; ++i) out[i] = (Item){.value = rank + i, .counts = {i, rank, 7}};
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  MPI_Sendrecv(out, 1, shared, next, 4, in, 1, shared, before, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  check(in[7].value == before + 7 && in[7].counts[1] == before && in[1].value == before + 1 && in[0].value == 0,
        "a datatype of datatypes");
  MPI_Type_get_name(column, name, &length);
  check(strcmp(name, "a column") == 0, "the name of a datatype");
  MPI_Type_get_name(MPI_FLOAT, name, &length);
  check(strcmp(name, "a short real") == 0, "the name of a predefined datatype");
  MPI_Type_create_f90_real(12, MPI_UNDEFINED, &again);
  check(again == real, "a datatype on request");
  MPI_Type_get_envelope(item, &integers, &addresses, &datatypes, &combiner);
  check(combiner == MPI_COMBINER_RESIZED && addresses == 2 && datatypes == 1, "an envelope");
  MPI_Aint bounds[2];
  MPI_Type_get_contents(item, 0, 2, 1, NULL, bounds, contents);
  check(bounds[1] == (MPI_Aint)sizeof(Item), "contents");
  MPI_Type_get_envelope(contents[0], &integers, &addresses, &datatypes, &combiner);
  check(combiner == MPI_COMBINER_STRUCT && integers == 3 && datatypes == 2, "a datatype that was freed and is in use");
  MPI_Type_free(&contents[0]);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  check(MPI_Send(out, 1, reserved, 0, 0, MPI_COMM_SELF) != MPI_SUCCESS, "a datatype that is not committed");
}

/* --- Communicators */

static MPI_Comm half, copy, grid, edges, between, duplicate_with_hints;
static MPI_Group some;
static MPI_Op composed;
static MPI_Info notes;
static MPI_Errhandler handler;
static int handler_calls, copies, removals, communicator_key, type_key, value, error_class;
static int fortran_column, fortran_half;

static void on_error(MPI_Comm* comm, int* code, ...) {
  (void)comm;
  (void)code;
  ++handler_calls;
}
static int on_copy(MPI_Comm comm, int key, void* state, void* in, void* out, int* flag) {
  (void)comm;
  (void)key;
  check(state == &value, "the state of a key");
  *(void**)out = in;
  *flag = 1;
  ++copies;
  return MPI_SUCCESS;
}
static int on_remove(MPI_Comm comm, int key, void* in, void* state) {
  (void)comm;
  (void)key;
  (void)in;
  (void)state;
  ++removals;
  return MPI_SUCCESS;
}
/* x -> a x + b: associative, not commutative. */
static void compose(void* in, void* inout, int* length, MPI_Datatype* type) {
  const long* const left = in;
  long* const right = inout;
  (void)type;
  for (int i = 0; i + 1 < *length; i += 2) {
    right[i + 1] = (left[i + 1] * right[i] + right[i + 1]) % 10007;
    right[i] = left[i] * right[i] % 10007;
  }
}

static void make_others(void) {
  const int dimensions[2] = {size, 1}, periodic[2] = {1, 0};
  int sources[1] = {(rank + size - 1) % size}, destinations[1] = {(rank + 1) % size}, ranks[2] = {size - 1, 0};
  MPI_Group all;
  MPI_Comm_create_errhandler(&on_error, &handler);
  MPI_Comm_create_keyval(&on_copy, &on_remove, &communicator_key, &value);
  MPI_Type_create_keyval(MPI_TYPE_DUP_FN, MPI_TYPE_NULL_DELETE_FN, &type_key, NULL);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
  MPI_Comm_set_errhandler(half, handler);
  MPI_Comm_set_name(half, "a half");
  MPI_Comm_set_attr(half, communicator_key, &value);
  MPI_Comm_set_attr(MPI_COMM_WORLD, communicator_key, &failures);
  MPI_Type_set_attr(column, type_key, &copies);
  MPI_Type_set_attr(MPI_INT, type_key, &removals);
  MPI_Comm_dup(half, &copy);
  MPI_Cart_create(MPI_COMM_WORLD, 2, dimensions, periodic, 0, &grid);
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, sources, MPI_UNWEIGHTED, 1, destinations, MPI_UNWEIGHTED,
                                 MPI_INFO_NULL, 0, &edges);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, size - 1 - (size - 1 + rank + 1) % 2, 5, &between);
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_incl(all, size > 1 ? 2 : 1, ranks, &some);
  MPI_Group_free(&all);
  MPI_Op_create(&compose, 0, &composed);
  MPI_Info_create(&notes);
  MPI_Info_set(notes, "colour", "blue");
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, notes, &duplicate_with_hints);
  MPI_Add_error_class(&error_class);
  MPI_Add_error_string(error_class, "an error of the program");
  fortran_column = MPI_Type_toint(column);
  fortran_half = MPI_Comm_toint(half);
  copies = 0;
}

static void check_attribute(MPI_Comm comm, void* expected) {
  void* found = NULL;
  int flag = 0;
  MPI_Comm_get_attr(comm, communicator_key, &found, &flag);
  check(flag && found == expected, "an attribute of a communicator");
}

static void check_communicators(int round) {
  int result = 0, half_rank = 0, half_size = 0, length = 0, sum = 0, remote = 0;
  char name[MPI_MAX_OBJECT_NAME];
  MPI_Comm_rank(half, &half_rank);
  MPI_Comm_size(half, &half_size);
  check(half_size == (size + (rank % 2 == 0)) / 2 && half_rank == half_size - 1 - rank / 2, "a half");
  exchange(half, column, 6, "messages in a half");
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, half);
  int sum_of_half = 0;
  for (int i = rank % 2; i < size; i += 2) sum_of_half += i;
  check(sum == sum_of_half, "a sum over a half");
  MPI_Comm_get_name(half, name, &length);
  check(strcmp(name, "a half") == 0, "the name of a communicator");
  check_attribute(half, &value);
  check_attribute(copy, &value);
  check_attribute(MPI_COMM_WORLD, &failures);
  MPI_Comm_compare(half, copy, &result);
  check(result == MPI_CONGRUENT, "a duplicate");
  handler_calls = 0;
  MPI_Send(&rank, 1, MPI_INT, half_size, 0, half); /* no such rank */
  check(handler_calls == 1, "an error handler");
  int coordinates[2] = {-1, -1}, up = -1, down = -1;
  MPI_Cart_coords(grid, rank, 2, coordinates);
  MPI_Cart_shift(grid, 0, 1, &up, &down);
  check(coordinates[0] == rank && down == (rank + 1) % size, "a grid");
  int from = -1;
  MPI_Neighbor_allgather(&rank, 1, MPI_INT, &from, 1, MPI_INT, edges);
  check(from == (rank + size - 1) % size, "a graph");
  MPI_Comm_remote_size(between, &remote);
  check(remote == size - half_size, "an intercommunicator");
  int mine = rank, theirs = -1;
  MPI_Allreduce(&mine, &theirs, 1, MPI_INT, MPI_SUM, between);
  int expected = 0;
  for (int i = 0; i < size; ++i) expected += i % 2 != rank % 2 ? i : 0;
  check(theirs == expected, "a sum over an intercommunicator");
  MPI_Info hints;
  char text[16] = "";
  int flag = 0;
  MPI_Comm_get_info(duplicate_with_hints, &hints);
  int text_length = sizeof text;
  MPI_Info_get_string(hints, "colour", &text_length, text, &flag);
  check(flag && strcmp(text, "blue") == 0, "hints");
  MPI_Info_free(&hints);
  /* New ones must not share messages with those of before. */
  MPI_Comm fresh;
  MPI_Comm_dup(copy, &fresh);
  check(copies == 1, "a copy function");
  copies = 0;
  MPI_Request requests[2];
  int received[2] = {-1, -1}, sent[2] = {round, 1000 + round};
  const int next = (half_rank + 1) % half_size, before = (half_rank + half_size - 1) % half_size;
  MPI_Irecv(&received[0], 1, MPI_INT, before, 1, fresh, &requests[0]);
  MPI_Irecv(&received[1], 1, MPI_INT, before, 1, copy, &requests[1]);
  MPI_Send(&sent[1], 1, MPI_INT, next, 1, copy);
  MPI_Send(&sent[0], 1, MPI_INT, next, 1, fresh);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  check(received[0] == round && received[1] == 1000 + round, "two communicators share their messages");
  removals = 0;
  MPI_Comm_free(&fresh);
  check(removals == 1, "a delete function");
}

static void check_others(void) {
  int group_size = 0, place = -2, flag = 0, code_class = 0, length = 0;
  char text[MPI_MAX_ERROR_STRING];
  MPI_Group_size(some, &group_size);
  MPI_Group_rank(some, &place);
  check(group_size == (size > 1 ? 2 : 1) && (rank != size - 1 || place == 0), "a group");
  long line[2] = {rank + 2, rank}, result[2], expected[2] = {1, 0};
  for (int i = 0; i < size; ++i) {
    const long step[2] = {i + 2, i};
    long next[2] = {step[0], step[1]};
    int two = 2;
    compose(expected, next, &two, NULL);
    memcpy(expected, next, sizeof expected);
  }
  MPI_Allreduce(line, result, 2, MPI_LONG, composed, MPI_COMM_WORLD);
  check(result[0] == expected[0] && result[1] == expected[1], "an operator");
  char colour[16];
  length = sizeof colour;
  MPI_Info_get_string(notes, "colour", &length, colour, &flag);
  check(flag && strcmp(colour, "blue") == 0, "an info object");
  MPI_Error_string(error_class, text, &length);
  MPI_Error_class(error_class, &code_class);
  check(strcmp(text, "an error of the program") == 0 && code_class == error_class, "an error class");
  check(MPI_Type_fromint(fortran_column) == column && MPI_Comm_fromint(fortran_half) == half, "handles as integers");
  void* found = NULL;
  MPI_Type_get_attr(column, type_key, &found, &flag);
  check(flag && found == &copies, "an attribute of a datatype");
  MPI_Type_get_attr(MPI_INT, type_key, &found, &flag);
  check(flag && found == &removals, "an attribute of a predefined datatype");
}

static void free_all(void) {
  MPI_Type_free(&column);
  MPI_Type_free(&block);
  MPI_Type_free(&item);
  MPI_Type_free(&sub);
  MPI_Type_free(&shared);
  MPI_Type_free(&reserved);
  removals = 0;
  MPI_Comm_free(&half);
  MPI_Comm_free(&copy);
  check(removals == 2, "delete functions at the end");
  MPI_Comm_free(&grid);
  MPI_Comm_free(&edges);
  MPI_Comm_free(&between);
  MPI_Comm_free(&duplicate_with_hints);
  MPI_Group_free(&some);
  MPI_Op_free(&composed);
  MPI_Info_free(&notes);
  MPI_Errhandler_free(&handler);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int num_pes = Weft_num_pes();
  make_types();
  make_others();
  for (int round = 0; round < 6; ++round) {
    check_types();
    check_communicators(round);
    check_others();
    /* In odd rounds one rank of each PE stays. */
    const int pe = round % 2 == 1 && rank < num_pes ? Weft_pe() : (Weft_pe() + 1) % num_pes;
    int ranks_there[64] = {0};
    ranks_there[pe] = 1;
    MPI_Allreduce(MPI_IN_PLACE, ranks_there, num_pes, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    int is_possible = 1;
    for (int i = 0; i < num_pes; ++i) is_possible = is_possible && ranks_there[i] != 0;
    if (is_possible) check(Weft_migrate(pe) == MPI_SUCCESS && Weft_pe() == pe, "a move");
  }
  free_all();
  printf("rank %d: %d failures\n", rank, failures);
  MPI_Finalize();
  return failures;
}
