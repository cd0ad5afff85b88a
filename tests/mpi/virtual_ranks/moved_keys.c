// Ranks that move while an attribute has a key that the program has freed, and that make communicators of groups between the moves.
// Prints "rank R: F failures".
#include <mpi.h>
#include <stdio.h>
#include <weft_mpi.h>

static int copies, removals, failures;

static int on_copy(MPI_Comm comm, int key, void* state, void* in, void* out, int* flag) {
  (void)comm;
  (void)key;
  (void)state;
  *(void**)out = in;
  *flag = 1;
  ++copies;
  return MPI_SUCCESS;
}

static int on_remove(MPI_Comm comm, int key, void* value, void* state) {
  (void)comm;
  (void)key;
  (void)value;
  (void)state;
  ++removals;
  return MPI_SUCCESS;
}

static void check_group(MPI_Comm parent, int rank) {
  MPI_Group all, pair;
  MPI_Comm made;
  int range[1][3] = {{0, 1, 1}}, sum = 0;
  MPI_Comm_group(parent, &all);
  MPI_Group_range_incl(all, 1, range, &pair);
  if (rank < 2) {
    MPI_Comm_create_group(parent, pair, 5, &made);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, made);
    failures += sum != 1;
    MPI_Comm_free(&made);
  }
  MPI_Group_free(&pair);
  MPI_Group_free(&all);
}

int main(int argc, char** argv) {
  MPI_Comm first, second;
  int rank, key, flag = 0;
  void* value = NULL;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_dup(MPI_COMM_WORLD, &first);
  MPI_Comm_create_keyval(&on_copy, &on_remove, &key, NULL);
  const int number = key;
  MPI_Comm_set_attr(first, key, &failures);
  MPI_Comm_free_keyval(&key);
  for (int round = 1; round <= 4; ++round) {
    check_group(first, rank);
    failures += Weft_migrate((Weft_pe() + 1) % Weft_num_pes()) != MPI_SUCCESS;
    MPI_Comm_dup(first, &second);
    MPI_Comm_get_attr(second, number, &value, &flag);
    failures += copies != round || !flag || value != &failures;
    MPI_Comm_free(&second);
    failures += removals != round;
  }
  MPI_Comm_delete_attr(first, number);
  failures += removals != 5;
  MPI_Comm_free(&first);
  failures += removals != 5;
  printf("rank %d: %d failures\n", rank, failures);
  MPI_Finalize();
  return failures;
}
