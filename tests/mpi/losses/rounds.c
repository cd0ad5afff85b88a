/* Collectives of all kinds, while ranks are lost one after the other, from both ends and in the middle of calls. After each error the living
 * revoke, shrink, and go on with the rounds that they agree on. argv[1]: in how many rounds a rank is lost, from the front and the back in turn. */
#include "lost.h"

enum { kLarge = 1 << 17 };
static double out[4 * kLarge], in[4 * kLarge];

static int collective(int round, MPI_Comm comm) {
  const int count = round % 2 == 0 ? 1 : kLarge / 4;
  int own, living;
  MPI_Request request;
  MPI_Comm_rank(comm, &own);
  MPI_Comm_size(comm, &living);
  switch (round % 8) {
    case 0: return MPI_Barrier(comm);
    case 1: return MPI_Allreduce(out, in, count, MPI_DOUBLE, MPI_SUM, comm);
    case 2: return MPI_Bcast(in, count, MPI_DOUBLE, living - 1, comm);
    case 3: return MPI_Bcast(in, kLarge, MPI_DOUBLE, 0, comm);
    case 4: return MPI_Allgather(out, count, MPI_DOUBLE, in, count, MPI_DOUBLE, comm);
    case 5: return MPI_Alltoall(out, count / living, MPI_DOUBLE, in, count / living, MPI_DOUBLE, comm);
    case 6: return MPI_Reduce(out, in, kLarge, MPI_DOUBLE, MPI_SUM, 0, comm);
    default: break;
  }
  {
    const int code = MPI_Iallreduce(out, in, kLarge, MPI_DOUBLE, MPI_SUM, comm, &request);
    return code != MPI_SUCCESS ? code : MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
}

int main(int argc, char** argv) {
  const int num_losses = atoi(argv[1]);
  const int kRounds = 48;
  MPI_Comm comm, left;
  int round = 0, losses = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  while (round < kRounds) {
    int code, is_good, i;
    for (i = 0; i < num_losses; ++i) {
      const int victim = i % 2 == 0 ? i / 2 : size - 1 - i / 2;
      die_if(rank == victim && round == 3 + 7 * i);
    }
    code = class_of(collective(round, comm));
    EXPECT(code == MPI_SUCCESS || code == MPIX_ERR_PROC_FAILED || code == MPIX_ERR_REVOKED);
    if (code == MPIX_ERR_PROC_FAILED) EXPECT(MPIX_Comm_revoke(comm) == MPI_SUCCESS);
    is_good = code == MPI_SUCCESS;
    /* In rounds where one may be lost, the living find out together. */
    MPIX_Comm_failure_ack(comm);
    code = class_of(MPIX_Comm_agree(comm, &is_good));
    EXPECT(code == MPI_SUCCESS || code == MPIX_ERR_PROC_FAILED);
    if (is_good && code == MPI_SUCCESS) {
      ++round;
      continue;
    }
    EXPECT(MPIX_Comm_shrink(comm, &left) == MPI_SUCCESS);
    MPI_Comm_free(&comm);
    comm = left;
    ++losses;
    /* A round in which ranks were lost counts: else they would be lost again. */
    ++round;
  }
  {
    int living;
    MPI_Comm_size(comm, &living);
    EXPECT(living == size - num_losses && losses >= (num_losses > 0));
  }
  expect_living(comm, size - num_losses);
  MPI_Comm_free(&comm);
  MPI_Finalize();
  printf("rank %d is done\n", rank);
  return 0;
}
