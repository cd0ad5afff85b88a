/* Buffered sends on communicators of a session take the session's buffer, also on those that are made of such a communicator or group. */
#include <mpi.h>
#include <stdio.h>

#include "expect.h"

enum { kInts = 5000 };
static int numbers[kInts], got[kInts];
static char buffer[4 * kInts + MPI_BSEND_OVERHEAD];

static void exchange(MPI_Comm comm) {
  int rank, size;
  MPI_Request request;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  MPI_Irecv(got, kInts, MPI_INT, (rank + size - 1) % size, 3, comm, &request);
  EXPECT(MPI_Bsend(numbers, kInts, MPI_INT, (rank + 1) % size, 3, comm) == MPI_SUCCESS);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(void) {
  MPI_Session session;
  MPI_Group world, reversed;
  MPI_Comm comm, copy, half, from_group;
  void* address = NULL;
  int rank, size, bytes = 0, class = 0, range[1][3];
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
  MPI_Group_from_session_pset(session, "mpi://WORLD", &world);
  MPI_Comm_create_from_group(world, "buffers", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  MPI_Error_class(MPI_Bsend(numbers, kInts, MPI_INT, rank, 3, comm), &class);
  EXPECT(class == MPI_ERR_BUFFER);
  EXPECT(MPI_Session_attach_buffer(session, buffer, sizeof buffer) == MPI_SUCCESS);
  exchange(comm);
  MPI_Session_flush_buffer(session);
  MPI_Comm_dup(comm, &copy);
  exchange(copy);
  MPI_Session_flush_buffer(session);
  MPI_Comm_split(copy, rank % 2, 0, &half);
  exchange(half);
  MPI_Session_flush_buffer(session);
  range[0][0] = size - 1, range[0][1] = 0, range[0][2] = -1;
  MPI_Group_range_incl(world, 1, range, &reversed);
  MPI_Comm_create_from_group(reversed, "reversed", MPI_INFO_NULL, MPI_ERRORS_RETURN, &from_group);
  exchange(from_group);
  EXPECT(MPI_Session_detach_buffer(session, &address, &bytes) == MPI_SUCCESS);
  EXPECT(address == buffer && bytes == (int)sizeof buffer);
  MPI_Error_class(MPI_Bsend(numbers, kInts, MPI_INT, rank, 3, from_group), &class);
  EXPECT(class == MPI_ERR_BUFFER);
  MPI_Group_free(&world);
  MPI_Group_free(&reversed);
  MPI_Comm_free(&from_group);
  MPI_Comm_free(&half);
  MPI_Comm_free(&copy);
  MPI_Comm_free(&comm);
  MPI_Session_finalize(&session);
  if (rank == 0) printf("buffers of sessions on %d ranks: as expected\n", size);
  return 0;
}
