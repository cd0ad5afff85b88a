/* MPI_IN_PLACE and the other constants that are no addresses, where the standard does not allow them, and buffers of a collective that
 * overlap: the caller gets MPI_ERR_BUFFER or MPI_ERR_ARG at once, and nothing is sent. */
#include <mpi.h>
#include <stdio.h>

#include "expect.h"

enum { kMostRanks = 16 };

static int rank, size;
static MPI_Comm comm;
static int a[kMostRanks], b[2 * kMostRanks], ones[kMostRanks], places[kMostRanks], byte_places[kMostRanks];
static MPI_Datatype types[kMostRanks];

static int is_refused(int code) {
  const int found = class_of(code);
  return found == MPI_ERR_BUFFER || found == MPI_ERR_ARG;
}

/* Compilers know the constants, and warn of them as of arrays without room. */
static void* hidden(void* sentinel) {
  void* volatile kept = sentinel;
  return kept;
}

/* The three forms of a collective on `comm`. */
#define REFUSED(Name, Iname, ...)                                                                    \
  do {                                                                                               \
    MPI_Request request_ = MPI_REQUEST_NULL;                                                         \
    EXPECT(is_refused(MPI_##Name(__VA_ARGS__, comm)));                                               \
    EXPECT(is_refused(MPI_I##Iname(__VA_ARGS__, comm, &request_)) && request_ == MPI_REQUEST_NULL);  \
    EXPECT(is_refused(MPI_##Name##_init(__VA_ARGS__, comm, MPI_INFO_NULL, &request_)));              \
    EXPECT(request_ == MPI_REQUEST_NULL);                                                            \
  } while (0)

static void check_receive_buffers(void* wrong) {
  REFUSED(Bcast, bcast, wrong, 1, MPI_INT, 0);
  REFUSED(Allgather, allgather, a, 1, MPI_INT, wrong, 1, MPI_INT);
  REFUSED(Allgatherv, allgatherv, a, 1, MPI_INT, wrong, ones, places, MPI_INT);
  REFUSED(Alltoall, alltoall, a, 1, MPI_INT, wrong, 1, MPI_INT);
  REFUSED(Alltoallv, alltoallv, a, ones, places, MPI_INT, wrong, ones, places, MPI_INT);
  REFUSED(Alltoallw, alltoallw, a, ones, byte_places, types, wrong, ones, byte_places, types);
  REFUSED(Allreduce, allreduce, a, wrong, 1, MPI_INT, MPI_SUM);
  REFUSED(Reduce_scatter, reduce_scatter, a, wrong, ones, MPI_INT, MPI_SUM);
  REFUSED(Reduce_scatter_block, reduce_scatter_block, a, wrong, 1, MPI_INT, MPI_SUM);
  REFUSED(Scan, scan, a, wrong, 1, MPI_INT, MPI_SUM);
  if (rank > 0) REFUSED(Exscan, exscan, a, wrong, 1, MPI_INT, MPI_SUM); /* rank 0 gets nothing */
  if (rank == 0) {
    REFUSED(Reduce, reduce, a, wrong, 1, MPI_INT, MPI_SUM, 0);
    REFUSED(Gather, gather, a, 1, MPI_INT, wrong, 1, MPI_INT, 0);
    REFUSED(Gatherv, gatherv, a, 1, MPI_INT, wrong, ones, places, MPI_INT, 0);
    REFUSED(Scatter, scatter, wrong, 1, MPI_INT, b, 1, MPI_INT, 0);
    REFUSED(Scatterv, scatterv, wrong, ones, places, MPI_INT, b, 1, MPI_INT, 0);
  } else {
    REFUSED(Reduce, reduce, wrong, b, 1, MPI_INT, MPI_SUM, 0);
    REFUSED(Gather, gather, wrong, 1, MPI_INT, b, 1, MPI_INT, 0);
    REFUSED(Gatherv, gatherv, wrong, 1, MPI_INT, b, ones, places, MPI_INT, 0);
    REFUSED(Scatter, scatter, a, 1, MPI_INT, wrong, 1, MPI_INT, 0);
    REFUSED(Scatterv, scatterv, a, ones, places, MPI_INT, wrong, 1, MPI_INT, 0);
  }
}

/* MPI_IN_PLACE is allowed there; other constants are not. */
static void check_send_buffers(void* wrong) {
  REFUSED(Allgather, allgather, wrong, 1, MPI_INT, b, 1, MPI_INT);
  REFUSED(Alltoall, alltoall, wrong, 1, MPI_INT, b, 1, MPI_INT);
  REFUSED(Allreduce, allreduce, wrong, b, 1, MPI_INT, MPI_SUM);
  REFUSED(Scan, scan, wrong, b, 1, MPI_INT, MPI_SUM);
  REFUSED(Reduce, reduce, wrong, b, 1, MPI_INT, MPI_SUM, 0);
}

static void check_arrays(void* wrong) {
  int* const array = wrong;
  REFUSED(Allgatherv, allgatherv, a, 1, MPI_INT, b, array, places, MPI_INT);
  REFUSED(Allgatherv, allgatherv, a, 1, MPI_INT, b, ones, array, MPI_INT);
  REFUSED(Alltoallv, alltoallv, a, array, places, MPI_INT, b, ones, places, MPI_INT);
  REFUSED(Alltoallw, alltoallw, a, ones, byte_places, wrong, b, ones, byte_places, types);
  REFUSED(Reduce_scatter, reduce_scatter, a, b, array, MPI_INT, MPI_SUM);
  if (rank == 0) REFUSED(Gatherv, gatherv, a, 1, MPI_INT, b, NULL, NULL, MPI_INT, 0);
}

static void check_neighbours(void* wrong) {
  const MPI_Comm before = comm;
  const int periodic = 1;
  const MPI_Aint distances[2] = {0, 4};
  MPI_Cart_create(before, 1, &size, &periodic, 0, &comm);
  REFUSED(Neighbor_allgather, neighbor_allgather, wrong, 1, MPI_INT, b, 1, MPI_INT);
  REFUSED(Neighbor_allgather, neighbor_allgather, a, 1, MPI_INT, wrong, 1, MPI_INT);
  REFUSED(Neighbor_allgatherv, neighbor_allgatherv, a, 1, MPI_INT, wrong, ones, places, MPI_INT);
  REFUSED(Neighbor_alltoall, neighbor_alltoall, wrong, 1, MPI_INT, b, 1, MPI_INT);
  REFUSED(Neighbor_alltoallv, neighbor_alltoallv, a, ones, places, MPI_INT, wrong, ones, places, MPI_INT);
  REFUSED(Neighbor_alltoallw, neighbor_alltoallw, a, ones, distances, types, wrong, ones, distances, types);
  REFUSED(Neighbor_allgather, neighbor_allgather, b, 1, MPI_INT, b, 1, MPI_INT);
  REFUSED(Neighbor_alltoall, neighbor_alltoall, b, 1, MPI_INT, b, 1, MPI_INT);
  MPI_Comm_free(&comm);
  comm = before;
}

/* No buffer of two groups may be MPI_IN_PLACE. */
static void check_two_groups(void) {
  const MPI_Comm before = comm;
  MPI_Comm half;
  if (size < 2) return;
  MPI_Comm_split(before, rank % 2, rank, &half);
  MPI_Intercomm_create(half, 0, before, 1 - rank % 2, 5, &comm);
  REFUSED(Allreduce, allreduce, MPI_IN_PLACE, b, 1, MPI_INT, MPI_SUM);
  REFUSED(Allgather, allgather, MPI_IN_PLACE, 1, MPI_INT, b, 1, MPI_INT);
  REFUSED(Alltoall, alltoall, MPI_IN_PLACE, 1, MPI_INT, b, 1, MPI_INT);
  REFUSED(Reduce_scatter_block, reduce_scatter_block, MPI_IN_PLACE, b, 1, MPI_INT, MPI_SUM);
  MPI_Comm_free(&comm);
  MPI_Comm_free(&half);
  comm = before;
}

static void check_sends(void* wrong, MPI_Datatype type) {
  MPI_Request request = MPI_REQUEST_NULL;
  EXPECT(is_refused(MPI_Send(wrong, 1, type, rank, 0, comm)));
  EXPECT(is_refused(MPI_Ssend(wrong, 1, type, rank, 0, comm)));
  EXPECT(is_refused(MPI_Rsend(wrong, 1, type, rank, 0, comm)));
  EXPECT(is_refused(MPI_Bsend(wrong, 1, type, rank, 0, comm)));
  EXPECT(is_refused(MPI_Isend(wrong, 1, type, rank, 0, comm, &request)));
  EXPECT(is_refused(MPI_Issend(wrong, 1, type, rank, 0, comm, &request)));
  EXPECT(is_refused(MPI_Irsend(wrong, 1, type, rank, 0, comm, &request)));
  EXPECT(is_refused(MPI_Ibsend(wrong, 1, type, rank, 0, comm, &request)));
  EXPECT(is_refused(MPI_Send_init(wrong, 1, type, rank, 0, comm, &request)));
  EXPECT(is_refused(MPI_Ssend_init(wrong, 1, type, rank, 0, comm, &request)));
  EXPECT(is_refused(MPI_Rsend_init(wrong, 1, type, rank, 0, comm, &request)));
  EXPECT(is_refused(MPI_Bsend_init(wrong, 1, type, rank, 0, comm, &request)));
  EXPECT(request == MPI_REQUEST_NULL);
}

static void check_receives(void* wrong, MPI_Datatype type) {
  MPI_Request request = MPI_REQUEST_NULL;
  EXPECT(is_refused(MPI_Recv(wrong, 1, type, rank, 0, comm, MPI_STATUS_IGNORE)));
  EXPECT(is_refused(MPI_Irecv(wrong, 1, type, rank, 0, comm, &request)));
  EXPECT(is_refused(MPI_Recv_init(wrong, 1, type, rank, 0, comm, &request)));
  EXPECT(is_refused(MPI_Sendrecv(wrong, 1, type, rank, 0, b, 1, MPI_INT, rank, 0, comm, MPI_STATUS_IGNORE)));
  EXPECT(is_refused(MPI_Sendrecv(a, 1, MPI_INT, rank, 0, wrong, 1, type, rank, 0, comm, MPI_STATUS_IGNORE)));
  EXPECT(is_refused(MPI_Isendrecv(a, 1, MPI_INT, rank, 0, wrong, 1, type, rank, 0, comm, &request)));
  EXPECT(is_refused(MPI_Sendrecv_replace(wrong, 1, type, rank, 0, rank, 0, comm, MPI_STATUS_IGNORE)));
  EXPECT(is_refused(MPI_Isendrecv_replace(wrong, 1, type, rank, 0, rank, 0, comm, &request)));
  EXPECT(request == MPI_REQUEST_NULL);
}

/* A refused receive leaves the message that a probe has taken. */
static void check_probed_messages(void* wrong) {
  MPI_Message message;
  MPI_Request request, receive = MPI_REQUEST_NULL;
  MPI_Isend(a, 1, MPI_INT, rank, 3, comm, &request);
  MPI_Mprobe(rank, 3, comm, &message, MPI_STATUS_IGNORE);
  EXPECT(is_refused(MPI_Mrecv(wrong, 1, MPI_INT, &message, MPI_STATUS_IGNORE)));
  EXPECT(is_refused(MPI_Imrecv(wrong, 1, MPI_INT, &message, &receive)) && receive == MPI_REQUEST_NULL);
  EXPECT(MPI_Mrecv(b, 1, MPI_INT, &message, MPI_STATUS_IGNORE) == MPI_SUCCESS && b[0] == a[0]);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void check_local_calls(void* wrong) {
  int position = 0;
  MPI_Aint far_position = 0;
  EXPECT(is_refused(MPI_Pack(wrong, 1, MPI_INT, b, 64, &position, comm)));
  EXPECT(is_refused(MPI_Pack(a, 1, MPI_INT, wrong, 64, &position, comm)));
  EXPECT(is_refused(MPI_Unpack(wrong, 4, &position, b, 1, MPI_INT, comm)));
  EXPECT(is_refused(MPI_Unpack(a, 4, &position, wrong, 1, MPI_INT, comm)));
  EXPECT(is_refused(MPI_Pack_external("external32", wrong, 1, MPI_INT, b, 64, &far_position)));
  EXPECT(is_refused(MPI_Pack_external("external32", a, 1, MPI_INT, wrong, 64, &far_position)));
  EXPECT(is_refused(MPI_Unpack_external("external32", wrong, 4, &far_position, b, 1, MPI_INT)));
  EXPECT(is_refused(MPI_Unpack_external("external32", a, 4, &far_position, wrong, 1, MPI_INT)));
  EXPECT(is_refused(MPI_Reduce_local(wrong, b, 1, MPI_INT, MPI_SUM)));
  EXPECT(is_refused(MPI_Reduce_local(a, wrong, 1, MPI_INT, MPI_SUM)));
  EXPECT(position == 0 && far_position == 0);
}

static int delete_nothing(MPI_Comm on, int key, void* value, void* state) {
  (void)on, (void)key, (void)value, (void)state;
  return MPI_SUCCESS;
}

static void check_others(void) {
  int* const numbers = hidden(MPI_IN_PLACE);
  int* const unweighted = hidden(MPI_UNWEIGHTED);
  int key = MPI_KEYVAL_INVALID;
  MPI_Group group, part = MPI_GROUP_NULL;
  MPI_Comm graph = MPI_COMM_NULL;
  MPI_Comm_group(comm, &group);
  EXPECT(is_refused(MPI_Buffer_attach(MPI_IN_PLACE, 100)));
  EXPECT(is_refused(MPI_Comm_rank(comm, numbers)));
  EXPECT(is_refused(MPI_Group_incl(group, 1, numbers, &part)) && part == MPI_GROUP_NULL);
  EXPECT(is_refused(MPI_Waitall(1, hidden(MPI_IN_PLACE), MPI_STATUSES_IGNORE)));
  EXPECT(is_refused(MPI_Dist_graph_create_adjacent(comm, 1, unweighted, MPI_UNWEIGHTED, 1, &rank, MPI_UNWEIGHTED,
                                                   MPI_INFO_NULL, 0, &graph)));
  EXPECT(is_refused(MPI_Dist_graph_create_adjacent(comm, 1, &rank, MPI_WEIGHTS_EMPTY, 1, &rank, MPI_UNWEIGHTED,
                                                   MPI_INFO_NULL, 0, &graph)));
  EXPECT(graph == MPI_COMM_NULL);
  EXPECT(class_of(MPI_Free_mem(MPI_IN_PLACE)) == MPI_ERR_BASE);
  EXPECT(is_refused(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, (MPI_Comm_delete_attr_function*)1, &key, NULL)));
  EXPECT(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, delete_nothing, &key, NULL) == MPI_SUCCESS);
  MPI_Comm_free_keyval(&key);
  MPI_Group_free(&group);
}

static void check_overlapping_buffers(void) {
  REFUSED(Allreduce, allreduce, b, b, 2, MPI_INT, MPI_SUM);
  REFUSED(Allreduce, allreduce, b, b + 1, 2, MPI_INT, MPI_SUM);
  REFUSED(Allgather, allgather, b + rank, 1, MPI_INT, b, 1, MPI_INT);
  REFUSED(Allgatherv, allgatherv, b + rank, 1, MPI_INT, b, ones, places, MPI_INT);
  REFUSED(Alltoall, alltoall, b, 1, MPI_INT, b, 1, MPI_INT);
  REFUSED(Alltoallv, alltoallv, b, ones, places, MPI_INT, b, ones, places, MPI_INT);
  REFUSED(Reduce_scatter_block, reduce_scatter_block, b, b, 1, MPI_INT, MPI_SUM);
  REFUSED(Scan, scan, b, b, 1, MPI_INT, MPI_SUM);
  if (rank > 0) REFUSED(Exscan, exscan, b, b, 1, MPI_INT, MPI_SUM);
  if (rank == 0) {
    REFUSED(Reduce, reduce, b, b, 1, MPI_INT, MPI_SUM, 0);
    REFUSED(Gather, gather, b, 1, MPI_INT, b, 1, MPI_INT, 0);
    REFUSED(Scatter, scatter, b, 1, MPI_INT, b, 1, MPI_INT, 0);
  }
  EXPECT(is_refused(MPI_Reduce_local(b, b, 1, MPI_INT, MPI_SUM)));
  EXPECT(MPI_Allreduce(b, b + 2, 2, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS); /* next to one another */
}

int main(int argc, char** argv) {
  void* const wrong[] = {MPI_IN_PLACE, MPI_BUFFER_AUTOMATIC, MPI_UNWEIGHTED, MPI_WEIGHTS_EMPTY};
  MPI_Datatype gaps;
  int i;
  MPI_Init(&argc, &argv);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  EXPECT(size <= kMostRanks);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Type_vector(2, 1, 2, MPI_INT, &gaps);
  MPI_Type_commit(&gaps);
  for (i = 0; i < kMostRanks; ++i) ones[i] = 1, places[i] = i, byte_places[i] = 4 * i, types[i] = MPI_INT, a[i] = 10 + rank;
  for (i = 0; i < 4; ++i) {
    check_receive_buffers(wrong[i]);
    if (i > 0) check_send_buffers(wrong[i]);
    check_arrays(wrong[i]);
    check_neighbours(wrong[i]);
    check_sends(wrong[i], MPI_INT);
    check_sends(wrong[i], gaps);
    check_receives(wrong[i], MPI_INT);
    check_receives(wrong[i], gaps);
    check_probed_messages(wrong[i]);
    check_local_calls(wrong[i]);
  }
  check_two_groups();
  check_others();
  check_overlapping_buffers();
  MPI_Type_free(&gaps);
  MPI_Comm_free(&comm);
  if (rank == 0) printf("sentinels on %d ranks: as expected\n", size);
  return MPI_Finalize();
}
