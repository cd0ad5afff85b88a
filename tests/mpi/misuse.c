/* Wrong arguments are errors with a class, and change nothing: null pointers, handles that were freed, counts that overflow. The errors
 * of several requests belong to the communicator of the first that failed. */
#include <mpi.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"

static int rank, size;

static void check_null_requests(void) {
  int flag, index, count, places[2];
  MPI_Request request = MPI_REQUEST_NULL;
  EXPECT(class_of(MPI_Wait(NULL, MPI_STATUS_IGNORE)) == MPI_ERR_ARG);
  EXPECT(class_of(MPI_Test(NULL, &flag, MPI_STATUS_IGNORE)) == MPI_ERR_ARG);
  EXPECT(class_of(MPI_Test(&request, NULL, MPI_STATUS_IGNORE)) == MPI_ERR_ARG);
  EXPECT(class_of(MPI_Waitall(2, NULL, MPI_STATUSES_IGNORE)) == MPI_ERR_ARG);
  EXPECT(class_of(MPI_Waitall(-1, &request, MPI_STATUSES_IGNORE)) == MPI_ERR_COUNT);
  EXPECT(MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
  EXPECT(class_of(MPI_Testall(1, &request, NULL, MPI_STATUSES_IGNORE)) == MPI_ERR_ARG);
  EXPECT(class_of(MPI_Waitany(1, &request, NULL, MPI_STATUS_IGNORE)) == MPI_ERR_ARG);
  EXPECT(class_of(MPI_Testany(1, &request, &index, NULL, MPI_STATUS_IGNORE)) == MPI_ERR_ARG);
  EXPECT(class_of(MPI_Waitsome(1, &request, NULL, places, MPI_STATUSES_IGNORE)) == MPI_ERR_ARG);
  EXPECT(class_of(MPI_Waitsome(1, &request, &count, NULL, MPI_STATUSES_IGNORE)) == MPI_ERR_ARG);
  EXPECT(class_of(MPI_Testsome(1, &request, NULL, places, MPI_STATUSES_IGNORE)) == MPI_ERR_ARG);
  EXPECT(class_of(MPI_Request_get_status(request, NULL, MPI_STATUS_IGNORE)) == MPI_ERR_ARG);
  EXPECT(class_of(MPI_Start(NULL)) == MPI_ERR_ARG && class_of(MPI_Start(&request)) == MPI_ERR_REQUEST);
  EXPECT(class_of(MPI_Startall(1, NULL)) == MPI_ERR_ARG);
  EXPECT(class_of(MPI_Cancel(NULL)) == MPI_ERR_ARG && class_of(MPI_Request_free(NULL)) == MPI_ERR_ARG);
}

static void check_null_results(void) {
  int flag, value = 0;
  MPI_Message message = MPI_MESSAGE_NO_PROC;
  EXPECT(class_of(MPI_Isend(&value, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, NULL)) == MPI_ERR_ARG);
  EXPECT(class_of(MPI_Ibsend(&value, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, NULL)) == MPI_ERR_ARG);
  EXPECT(class_of(MPI_Irecv(&value, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, NULL)) == MPI_ERR_ARG);
  EXPECT(class_of(MPI_Ibarrier(MPI_COMM_WORLD, NULL)) == MPI_ERR_ARG);
  EXPECT(class_of(MPI_Grequest_start(NULL, NULL, NULL, NULL, NULL)) == MPI_ERR_ARG);
  EXPECT(class_of(MPI_Iprobe(rank, 1, MPI_COMM_WORLD, NULL, MPI_STATUS_IGNORE)) == MPI_ERR_ARG);
  EXPECT(class_of(MPI_Mprobe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, NULL, MPI_STATUS_IGNORE)) == MPI_ERR_ARG);
  EXPECT(class_of(MPI_Improbe(rank, 1, MPI_COMM_WORLD, &flag, NULL, MPI_STATUS_IGNORE)) == MPI_ERR_ARG);
  EXPECT(class_of(MPI_Mrecv(&value, 1, MPI_INT, NULL, MPI_STATUS_IGNORE)) == MPI_ERR_ARG);
  EXPECT(class_of(MPI_Imrecv(&value, 1, MPI_INT, &message, NULL)) == MPI_ERR_ARG && message == MPI_MESSAGE_NO_PROC);
  EXPECT(class_of(MPI_Comm_free(NULL)) == MPI_ERR_ARG && class_of(MPI_Comm_disconnect(NULL)) == MPI_ERR_ARG);
  EXPECT(class_of(MPI_Session_finalize(NULL)) == MPI_ERR_ARG);
  EXPECT(class_of(MPI_Buffer_attach(NULL, 100)) == MPI_ERR_BUFFER);
  EXPECT(class_of(MPI_Buffer_detach(NULL, NULL)) == MPI_ERR_ARG);
  EXPECT(class_of(MPI_Dims_create(4, 2, NULL)) == MPI_ERR_ARG);
}

static void check_null_arrays(void) {
  const int values[2] = {1, 1};
  const MPI_Aint places[2] = {0, 8};
  const MPI_Count counts[2] = {1, 1};
  int combiner, integers[8], position = 0, number = 1;
  MPI_Aint addresses[8];
  MPI_Datatype type = MPI_DATATYPE_NULL, parts[8], types[2];
  types[0] = types[1] = MPI_INT;
  EXPECT(class_of(MPI_Type_indexed(2, NULL, values, MPI_INT, &type)) == MPI_ERR_ARG);
  EXPECT(class_of(MPI_Type_indexed_c(2, counts, NULL, MPI_INT, &type)) == MPI_ERR_ARG);
  EXPECT(class_of(MPI_Type_create_hindexed(2, values, NULL, MPI_INT, &type)) == MPI_ERR_ARG);
  EXPECT(class_of(MPI_Type_create_indexed_block(2, 1, NULL, MPI_INT, &type)) == MPI_ERR_ARG);
  EXPECT(class_of(MPI_Type_create_struct(2, values, places, NULL, &type)) == MPI_ERR_ARG);
  EXPECT(class_of(MPI_Type_create_struct(2, NULL, places, types, &type)) == MPI_ERR_ARG);
  EXPECT(class_of(MPI_Type_create_subarray(2, values, NULL, values, MPI_ORDER_C, MPI_INT, &type)) == MPI_ERR_ARG);
  EXPECT(class_of(MPI_Type_create_darray(1, 0, 2, values, values, NULL, values, MPI_ORDER_C, MPI_INT, &type)) ==
         MPI_ERR_ARG);
  EXPECT(type == MPI_DATATYPE_NULL);
  EXPECT(MPI_Type_create_struct(2, values, places, types, &type) == MPI_SUCCESS);
  MPI_Type_get_envelope(type, &integers[0], &integers[1], &integers[2], &combiner);
  EXPECT(class_of(MPI_Type_get_contents(type, 8, 8, 8, NULL, addresses, parts)) == MPI_ERR_ARG);
  EXPECT(class_of(MPI_Type_get_contents(type, 8, 8, 8, integers, addresses, NULL)) == MPI_ERR_ARG);
  MPI_Type_free(&type);
  EXPECT(class_of(MPI_Pack(NULL, 1, MPI_INT, integers, 8, &position, MPI_COMM_WORLD)) == MPI_ERR_BUFFER);
  EXPECT(class_of(MPI_Pack(&number, 1, MPI_INT, NULL, 8, &position, MPI_COMM_WORLD)) == MPI_ERR_BUFFER);
  EXPECT(class_of(MPI_Unpack(NULL, 8, &position, &number, 1, MPI_INT, MPI_COMM_WORLD)) == MPI_ERR_BUFFER);
  addresses[0] = 0;
  EXPECT(class_of(MPI_Pack_external("external32", &number, 1, MPI_INT, NULL, 8, addresses)) == MPI_ERR_BUFFER);
  EXPECT(class_of(MPI_Reduce_local(NULL, &number, 1, MPI_INT, MPI_SUM)) == MPI_ERR_BUFFER);
  EXPECT(position == 0);
}

/* A handle is refused as long as nothing else is at its address. */
static void check_freed_handles(void) {
  int value = 0, flag;
  MPI_Request request, stale;
  MPI_Irecv(&value, 1, MPI_INT, rank, 77, MPI_COMM_WORLD, &request);
  stale = request;
  MPI_Cancel(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  EXPECT(class_of(MPI_Wait(&stale, MPI_STATUS_IGNORE)) == MPI_ERR_REQUEST);
  EXPECT(class_of(MPI_Test(&stale, &flag, MPI_STATUS_IGNORE)) == MPI_ERR_REQUEST);
}

static void check_large_counts(void) {
  const int degrees[2] = {INT_MAX, INT_MAX}, sources[2] = {0, 0}, numbers[1] = {0}, extents[1] = {1}, periods[1] = {0};
  int value = 0;
  MPI_Comm graph = MPI_COMM_NULL, line;
  EXPECT(class_of(MPI_Allgather_c(&value, 0, MPI_INT, &value, LLONG_MAX, MPI_INT, MPI_COMM_WORLD)) == MPI_ERR_COUNT);
  EXPECT(class_of(MPI_Dist_graph_create(MPI_COMM_WORLD, 2, sources, degrees, numbers, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                        &graph)) == MPI_ERR_ARG);
  EXPECT(graph == MPI_COMM_NULL);
  MPI_Cart_create(MPI_COMM_SELF, 1, extents, periods, 0, &line);
  EXPECT(class_of(MPI_Neighbor_allgather(MPI_IN_PLACE, 1, MPI_INT, &value, 1, MPI_INT, line)) == MPI_ERR_BUFFER);
  MPI_Comm_free(&line);
}

/* MPI_COMM_SELF, to which errors without a communicator belong, still ends the job here. */
static void check_error_of_several(MPI_Comm comm) {
  char bytes[2][64];
  int way, flag, index, count, places[2];
  for (way = 0; way < 5; ++way) {
    MPI_Request requests[2];
    MPI_Status statuses[2];
    int code = MPI_SUCCESS;
    memset(bytes, 0, sizeof bytes);
    MPI_Irecv(bytes[0], 10, MPI_CHAR, (rank + size - 1) % size, 1, comm, &requests[0]);
    MPI_Irecv(bytes[1], 64, MPI_CHAR, (rank + size - 1) % size, 2, comm, &requests[1]);
    MPI_Send(bytes[0], 50, MPI_CHAR, (rank + 1) % size, 1, comm);
    if (way < 2) MPI_Send(bytes[0], 50, MPI_CHAR, (rank + 1) % size, 2, comm);
    if (way == 0) code = MPI_Waitall(2, requests, statuses);
    if (way == 1) {
      for (flag = 0; !flag;) code = MPI_Testall(2, requests, &flag, statuses);
    }
    if (way == 2) code = MPI_Waitsome(2, requests, &count, places, statuses);
    if (way == 3) {
      for (count = 0; count == 0;) code = MPI_Testsome(2, requests, &count, places, statuses);
    }
    if (way == 2 || way == 3) EXPECT(count >= 1 && places[0] == 0);
    if (way == 4) code = MPI_Waitany(2, requests, &index, statuses);
    if (way == 4) EXPECT(index == 0);
    EXPECT(class_of(code) == (way == 4 ? MPI_ERR_TRUNCATE : MPI_ERR_IN_STATUS));
    if (way < 4) EXPECT(class_of(statuses[0].MPI_ERROR) == MPI_ERR_TRUNCATE);
    if (way < 2) EXPECT(statuses[1].MPI_ERROR == MPI_SUCCESS);
    if (way >= 2) {
      MPI_Send(bytes[0], 50, MPI_CHAR, (rank + 1) % size, 2, comm);
      EXPECT(MPI_Waitall(2, requests, statuses) == MPI_SUCCESS);
    }
    EXPECT(requests[0] == MPI_REQUEST_NULL && requests[1] == MPI_REQUEST_NULL);
    MPI_Barrier(comm);
  }
}

/* A large message to a receive without room. */
static void check_no_room(MPI_Comm comm) {
  enum { kBytes = 1 << 20 };
  char* bytes = calloc(1, kBytes);
  MPI_Request request;
  MPI_Status status;
  int count = -1;
  MPI_Isend(bytes, kBytes, MPI_CHAR, (rank + 1) % size, 4, comm, &request);
  EXPECT(class_of(MPI_Recv(NULL, 0, MPI_CHAR, (rank + size - 1) % size, 4, comm, &status)) == MPI_ERR_TRUNCATE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Get_count(&status, MPI_CHAR, &count);
  EXPECT(count == 0);
  free(bytes);
}

/* The root's own part does not fit. The call still returns after the others' parts have come, so that its buffer can be freed. */
static void check_truncated_gather(MPI_Comm comm) {
  enum { kInts = 100000 };
  int* mine = malloc(2 * kInts * sizeof(int));
  int* all = calloc((size_t)size, kInts * sizeof(int));
  int i, go = 0, code;
  for (i = 0; i < 2 * kInts; ++i) mine[i] = rank + 1;
  if (rank == 0) {
    for (i = 1; i < size; ++i) MPI_Send(&go, 1, MPI_INT, i, 6, comm);
    code = MPI_Gather(mine, 2 * kInts, MPI_INT, all, kInts, MPI_INT, 0, comm);
    EXPECT(class_of(code) == MPI_ERR_TRUNCATE);
    for (i = kInts; i < size * kInts; ++i) EXPECT(all[i] == i / kInts + 1);
  } else {
    MPI_Recv(&go, 1, MPI_INT, 0, 6, comm, MPI_STATUS_IGNORE);
    EXPECT(MPI_Gather(mine, kInts, MPI_INT, NULL, 0, MPI_INT, 0, comm) == MPI_SUCCESS);
  }
  free(all);
  free(mine);
}

/* One process gives another size. It gets the error, or the others do if it is the root, and all return. Those that get their data through a
   process with an error get one too. */
static void check_truncated_tree(MPI_Comm comm) {
  int numbers[8] = {0}, all[8 * 8], i, code;
  EXPECT(size <= 8);
  for (i = 0; i < size; ++i) {
    code = MPI_Bcast(numbers, rank == i ? 2 : 4, MPI_INT, 0, comm);
    if (rank == 0)
      EXPECT(code == MPI_SUCCESS);
    else if (i == 0 || rank == i)
      EXPECT(class_of(code) == MPI_ERR_TRUNCATE);
    else
      EXPECT(code == MPI_SUCCESS || class_of(code) == MPI_ERR_TRUNCATE);
    code = MPI_Allgather(numbers, rank == i ? 2 : 4, MPI_INT, all, rank == i ? 2 : 4, MPI_INT, comm);
    EXPECT(class_of(code) == MPI_ERR_TRUNCATE || (code == MPI_SUCCESS && (rank != i || size == 1)));
  }
  MPI_Barrier(comm);
}

/* Where there is no process, no elements of no datatype are a message. */
static void check_no_process(MPI_Comm comm) {
  int value = 0;
  MPI_Request request;
  MPI_Status status;
  MPI_Message message;
  EXPECT(MPI_Recv(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 1, comm, &status) == MPI_SUCCESS);
  EXPECT(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG);
  EXPECT(MPI_Irecv(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 1, comm, &request) == MPI_SUCCESS);
  EXPECT(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  EXPECT(MPI_Recv_init(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 1, comm, &request) == MPI_SUCCESS);
  EXPECT(MPI_Start(&request) == MPI_SUCCESS && MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  MPI_Request_free(&request);
  EXPECT(MPI_Send(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 1, comm) == MPI_SUCCESS);
  EXPECT(MPI_Isend(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 1, comm, &request) == MPI_SUCCESS);
  EXPECT(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  EXPECT(MPI_Sendrecv(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 1, NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 1, comm,
                      &status) == MPI_SUCCESS);
  EXPECT(MPI_Sendrecv_replace(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 1, MPI_PROC_NULL, 1, comm, &status) ==
         MPI_SUCCESS);
  MPI_Mprobe(MPI_PROC_NULL, 1, comm, &message, MPI_STATUS_IGNORE);
  EXPECT(MPI_Mrecv(NULL, 0, MPI_DATATYPE_NULL, &message, &status) == MPI_SUCCESS && message == MPI_MESSAGE_NULL);
  message = MPI_MESSAGE_NO_PROC;
  EXPECT(MPI_Imrecv(NULL, 0, MPI_DATATYPE_NULL, &message, &request) == MPI_SUCCESS);
  EXPECT(MPI_Wait(&request, &status) == MPI_SUCCESS && status.MPI_SOURCE == MPI_PROC_NULL);
  /* Elements need a datatype, and a process gets no message without one. */
  EXPECT(class_of(MPI_Recv(&value, 1, MPI_DATATYPE_NULL, MPI_PROC_NULL, 1, comm, &status)) == MPI_ERR_TYPE);
  EXPECT(class_of(MPI_Recv(NULL, 0, MPI_DATATYPE_NULL, rank, 1, comm, &status)) == MPI_ERR_TYPE);
}

static int refuse_copy(MPI_Comm from, int key, void* state, void* value, void* result, int* flag) {
  (void)from, (void)key, (void)state, (void)value, (void)result, (void)flag;
  return MPI_ERR_OTHER;
}

/* A call that fails to make a communicator leaves MPI_COMM_NULL. */
static void check_null_behind_errors(MPI_Comm comm) {
  const int extents[1] = {size + 1}, periods[1] = {0}, ends[1] = {1}, outside[1] = {size};
  int key;
  MPI_Comm made = MPI_COMM_SELF;
  EXPECT(class_of(MPI_Cart_create(comm, 1, extents, periods, 0, &made)) == MPI_ERR_TOPOLOGY && made == MPI_COMM_NULL);
  made = MPI_COMM_SELF;
  EXPECT(MPI_Graph_create(comm, 1, ends, outside, 0, &made) != MPI_SUCCESS && made == MPI_COMM_NULL);
  made = MPI_COMM_SELF;
  EXPECT(MPI_Dist_graph_create_adjacent(comm, 1, outside, MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made) !=
             MPI_SUCCESS &&
         made == MPI_COMM_NULL);
  made = MPI_COMM_SELF;
  EXPECT(class_of(MPI_Comm_split(comm, -1, 0, &made)) == MPI_ERR_ARG && made == MPI_COMM_NULL);
  made = MPI_COMM_SELF;
  EXPECT(class_of(MPI_Comm_create(comm, MPI_GROUP_NULL, &made)) == MPI_ERR_GROUP && made == MPI_COMM_NULL);
  made = MPI_COMM_SELF;
  MPI_Comm_create_keyval(refuse_copy, MPI_COMM_NULL_DELETE_FN, &key, NULL);
  MPI_Comm_set_attr(comm, key, NULL);
  EXPECT(class_of(MPI_Comm_dup(comm, &made)) == MPI_ERR_OTHER && made == MPI_COMM_NULL);
  MPI_Comm_delete_attr(comm, key);
  MPI_Comm_free_keyval(&key);
}

/* MPI 4.0: a duplicate has no hints of its parent. */
static void check_hints(MPI_Comm comm) {
  int count = -1;
  MPI_Info info, kept;
  MPI_Comm copies[2];
  MPI_Request request;
  int i;
  MPI_Info_create(&info);
  MPI_Info_set(info, "color", "red");
  MPI_Comm_set_info(comm, info);
  MPI_Comm_dup(comm, &copies[0]);
  MPI_Comm_idup_with_info(comm, MPI_INFO_NULL, &copies[1], &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (i = 0; i < 2; ++i) {
    MPI_Comm_get_info(copies[i], &kept);
    /* Only what the library says of itself: the kinds of memory that programs may pass. */
    EXPECT(MPI_Info_get_nkeys(kept, &count) == MPI_SUCCESS && count == 1);
    MPI_Info_free(&kept);
    MPI_Comm_free(&copies[i]);
  }
  MPI_Info_free(&info);
}

int main(int argc, char** argv) {
  MPI_Comm copy;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN);
  check_error_of_several(copy);
  check_no_room(copy);
  check_truncated_gather(copy);
  check_truncated_tree(copy);
  check_hints(copy);
  check_no_process(copy);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  check_null_requests();
  check_null_results();
  check_null_arrays();
  check_freed_handles();
  check_large_counts();
  check_null_behind_errors(copy);
  MPI_Comm_free(&copy);
  if (rank == 0) printf("misuse on %d ranks: as expected\n", size);
  return MPI_Finalize();
}
