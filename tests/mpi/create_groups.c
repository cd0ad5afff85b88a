/* Random groups that overlap make communicators of one parent with one tag. Each member gets its group's communicator, whatever the
 * others do meanwhile. Half of the groups are of a parent whose ranks are in reverse order. */
#include <mpi.h>
#include <stdio.h>

#include "expect.h"

enum { kRounds = 300, kMostRanks = 64, kTag = 3 };

static unsigned state = 12345;
static int below(int limit) {
  state = state * 1103515245u + 12345u;
  return (int)((state >> 16) % (unsigned)limit);
}

/* The same on all ranks: the first `*count` entries of `ranks` are the group. */
static void choose_group(int size, int* ranks, int* count) {
  int i;
  for (i = 0; i < size; ++i) ranks[i] = i;
  for (i = size - 1; i > 0; --i) {
    const int other = below(i + 1), kept = ranks[i];
    ranks[i] = ranks[other];
    ranks[other] = kept;
  }
  *count = 1 + below(size);
}

/* `me`: this process's rank in `parent`. Members come late in another order each time. */
static void make_and_use(MPI_Comm parent, MPI_Group all, int me, const int* ranks, int count, int delay) {
  MPI_Group group;
  MPI_Comm comm;
  int i, flag, place = -1, found, values[kMostRanks];
  for (i = 0; i < count; ++i)
    if (ranks[i] == me) place = i;
  if (place < 0) return;
  for (i = 0; i < (me * delay) % 50; ++i) MPI_Iprobe(MPI_ANY_SOURCE, kTag, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
  MPI_Group_incl(all, count, ranks, &group);
  EXPECT(MPI_Comm_create_group(parent, group, kTag, &comm) == MPI_SUCCESS);
  EXPECT(MPI_Comm_size(comm, &found) == MPI_SUCCESS && found == count);
  EXPECT(MPI_Comm_rank(comm, &found) == MPI_SUCCESS && found == place);
  EXPECT(MPI_Allgather(&me, 1, MPI_INT, values, 1, MPI_INT, comm) == MPI_SUCCESS);
  for (i = 0; i < count; ++i) EXPECT(values[i] == ranks[i]);
  MPI_Comm_free(&comm);
  MPI_Group_free(&group);
}

int main(int argc, char** argv) {
  MPI_Comm parents[2];
  MPI_Group groups[2];
  int rank, size, round, i, me[2], ranks[kMostRanks], count;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  EXPECT(size <= kMostRanks);
  parents[0] = MPI_COMM_WORLD;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &parents[1]);
  for (i = 0; i < 2; ++i) {
    MPI_Comm_rank(parents[i], &me[i]);
    MPI_Comm_group(parents[i], &groups[i]);
  }
  for (round = 0; round < kRounds; ++round) {
    const int which = below(2), delay = below(50);
    choose_group(size, ranks, &count);
    make_and_use(parents[which], groups[which], me[which], ranks, count, delay);
  }
  for (i = 0; i < 2; ++i) MPI_Group_free(&groups[i]);
  MPI_Comm_free(&parents[1]);
  if (rank == 0) printf("overlapping groups of %d ranks: as expected\n", size);
  return MPI_Finalize();
}
