/* Partitioned messages: numbers of partitions that differ, order, early arrival, datatypes, errors. Run on 1 and more ranks. */
#include <string.h>

#include "expect.h"

static int rank, size, left, right;

static void make_pair(int send_partitions, int send_count, int receive_partitions, int receive_count,
                      int* sent, int* received, MPI_Request pair[2]) {
  EXPECT(MPI_Psend_init(sent, send_partitions, send_count, MPI_INT, right, 7, MPI_COMM_WORLD, MPI_INFO_NULL,
                        &pair[0]) == MPI_SUCCESS);
  EXPECT(MPI_Precv_init(received, receive_partitions, receive_count, MPI_INT, left, 7, MPI_COMM_WORLD,
                        MPI_INFO_NULL, &pair[1]) == MPI_SUCCESS);
}
static void free_pair(MPI_Request pair[2]) {
  int i;
  for (i = 0; i < 2; ++i) EXPECT(MPI_Request_free(&pair[i]) == MPI_SUCCESS && pair[i] == MPI_REQUEST_NULL);
}
static int has_arrived(MPI_Request request, int partition) {
  int flag = -1;
  EXPECT(MPI_Parrived(request, partition, &flag) == MPI_SUCCESS);
  return flag;
}
static void await_arrival(MPI_Request request, int partition) {
  while (!has_arrived(request, partition)) continue;
}
/* The partitions in an order that visits each once. */
static void make_all_ready(MPI_Request request, int partitions) {
  int i, step = partitions % 7 == 0 ? 5 : 7;
  if (partitions % 5 == 0 && partitions % 7 == 0) step = 1;
  for (i = 0; i < partitions; ++i) EXPECT(MPI_Pready(i * step % partitions, request) == MPI_SUCCESS);
}

/* All elements of several starts, with partitions of different sizes at both ends. */
static void exchange(int send_partitions, int send_count, int receive_partitions, int receive_count) {
  const int count = send_partitions * send_count;
  int* const sent = malloc((size_t)count * sizeof(int) + 1);
  int* const received = malloc((size_t)count * sizeof(int) + 1);
  int i, round, elements = -1;
  MPI_Request pair[2];
  MPI_Status statuses[2];
  EXPECT(count == receive_partitions * receive_count);
  make_pair(send_partitions, send_count, receive_partitions, receive_count, sent, received, pair);
  for (round = 0; round < 3; ++round) {
    for (i = 0; i < count; ++i) sent[i] = rank * 1000 + round + i, received[i] = -1;
    EXPECT(MPI_Startall(2, pair) == MPI_SUCCESS);
    make_all_ready(pair[0], send_partitions);
    EXPECT(MPI_Waitall(2, pair, statuses) == MPI_SUCCESS);
    EXPECT(statuses[1].MPI_SOURCE == left && statuses[1].MPI_TAG == 7);
    EXPECT(MPI_Get_count(&statuses[1], MPI_INT, &elements) == MPI_SUCCESS && elements == count);
    for (i = 0; i < count; ++i) EXPECT(received[i] == left * 1000 + round + i);
    for (i = 0; i < receive_partitions; ++i) EXPECT(has_arrived(pair[1], i)); /* the request is not active */
  }
  free_pair(pair);
  free(sent), free(received);
}

/* A partition of the receiver arrives as soon as those of the sender that it needs are ready. */
static void check_early_arrival(void) {
  int sent[12], received[12], i;
  MPI_Request pair[2];
  for (i = 0; i < 12; ++i) sent[i] = rank + i, received[i] = -1;
  make_pair(6, 2, 4, 3, sent, received, pair);
  EXPECT(MPI_Startall(2, pair) == MPI_SUCCESS);
  for (i = 0; i < 4; ++i) EXPECT(!has_arrived(pair[1], i));
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT(MPI_Pready_range(3, 4, pair[0]) == MPI_SUCCESS); /* elements 6 to 9: partition 2 */
  await_arrival(pair[1], 2);
  EXPECT(received[6] == left + 6 && received[8] == left + 8);
  EXPECT(!has_arrived(pair[1], 0) && !has_arrived(pair[1], 1) && !has_arrived(pair[1], 3));
  MPI_Barrier(MPI_COMM_WORLD);
  {
    const int rest[] = {5, 0, 1, 2};
    EXPECT(MPI_Pready_list(4, rest, pair[0]) == MPI_SUCCESS);
  }
  EXPECT(MPI_Waitall(2, pair, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
  for (i = 0; i < 12; ++i) EXPECT(received[i] == left + i);
  free_pair(pair);
}

/* Elements with gaps at both ends; the partitions of one end are not whole elements of the other. */
static void check_gaps(int partitions) {
  enum { kElements = 24 };
  int* const sent = calloc(kElements * 6, sizeof(int));
  int* const received = calloc(kElements * 8, sizeof(int));
  MPI_Datatype two_of_six, four_of_eight, resized;
  MPI_Request pair[2];
  int i, round;
  MPI_Type_contiguous(2, MPI_INT, &resized);
  MPI_Type_create_resized(resized, 0, 6 * sizeof(int), &two_of_six);
  MPI_Type_commit(&two_of_six);
  MPI_Type_free(&resized);
  MPI_Type_contiguous(4, MPI_INT, &resized);
  MPI_Type_create_resized(resized, 0, 8 * sizeof(int), &four_of_eight);
  MPI_Type_commit(&four_of_eight);
  MPI_Type_free(&resized);
  EXPECT(MPI_Psend_init(sent, partitions, kElements / partitions, two_of_six, right, 1, MPI_COMM_WORLD,
                        MPI_INFO_NULL, &pair[0]) == MPI_SUCCESS);
  EXPECT(MPI_Precv_init(received, 4, kElements / 8, four_of_eight, left, 1, MPI_COMM_WORLD, MPI_INFO_NULL,
                        &pair[1]) == MPI_SUCCESS);
  MPI_Type_free(&two_of_six);
  MPI_Type_free(&four_of_eight);
  for (round = 0; round < 2; ++round) {
    for (i = 0; i < kElements * 2; ++i) sent[i / 2 * 6 + i % 2] = rank + i + round;
    EXPECT(MPI_Startall(2, pair) == MPI_SUCCESS);
    make_all_ready(pair[0], partitions);
    EXPECT(MPI_Waitall(2, pair, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
    for (i = 0; i < kElements * 2; ++i) EXPECT(received[i / 4 * 8 + i % 4] == left + i + round);
    for (i = 0; i < kElements / 2; ++i) EXPECT(received[i * 8 + 4] == 0 && received[i * 8 + 7] == 0);
  }
  free_pair(pair);
  free(sent), free(received);
}

/* Requests of one tag belong together in the order in which they were made, also if some are freed without a start. */
static void check_order(void) {
  int sent[3] = {10 * rank, 10 * rank + 1, 10 * rank + 2}, received[3] = {-1, -1, -1}, i;
  MPI_Request sends[3], receives[3], unused[2];
  for (i = 0; i < 3; ++i) {
    if (i == 1) make_pair(4, 1, 4, 1, sent, received, unused);
    MPI_Psend_init(&sent[i], 1, 1, MPI_INT, right, 7, MPI_COMM_WORLD, MPI_INFO_NULL, &sends[i]);
    MPI_Precv_init(&received[i], 1, 1, MPI_INT, left, 7, MPI_COMM_WORLD, MPI_INFO_NULL, &receives[i]);
    if (i == 1) free_pair(unused);
  }
  EXPECT(MPI_Startall(3, receives) == MPI_SUCCESS);
  for (i = 2; i >= 0; --i) {
    MPI_Start(&sends[i]);
    EXPECT(MPI_Pready(0, sends[i]) == MPI_SUCCESS);
  }
  EXPECT(MPI_Waitall(3, sends, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
  EXPECT(MPI_Waitall(3, receives, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
  for (i = 0; i < 3; ++i) EXPECT(received[i] == 10 * left + i);
  for (i = 0; i < 3; ++i) MPI_Request_free(&sends[i]), MPI_Request_free(&receives[i]);
}

/* Other messages of the same tag, and of any tag, do not meet them. */
static void check_other_messages(void) {
  int sent[2] = {rank, rank + 1}, received[2] = {-1, -1}, plain = rank + 5, other = -1;
  MPI_Request pair[2], receive;
  make_pair(2, 1, 2, 1, sent, received, pair);
  MPI_Irecv(&other, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &receive);
  EXPECT(MPI_Startall(2, pair) == MPI_SUCCESS);
  make_all_ready(pair[0], 2);
  EXPECT(MPI_Waitall(2, pair, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
  MPI_Send(&plain, 1, MPI_INT, right, 7, MPI_COMM_WORLD);
  EXPECT(MPI_Wait(&receive, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  EXPECT(other == left + 5 && received[1] == left + 1);
  free_pair(pair);
}

static void check_no_process(void) {
  MPI_Request pair[2];
  MPI_Status status;
  int value = 3, round;
  MPI_Psend_init(&value, 2, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &pair[0]);
  MPI_Precv_init(&value, 2, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &pair[1]);
  for (round = 0; round < 2; ++round) {
    EXPECT(MPI_Startall(2, pair) == MPI_SUCCESS);
    EXPECT(MPI_Pready(1, pair[0]) == MPI_SUCCESS && has_arrived(pair[1], 1));
    EXPECT(MPI_Wait(&pair[0], MPI_STATUS_IGNORE) == MPI_SUCCESS &&
           MPI_Wait(&pair[1], &status) == MPI_SUCCESS);
    EXPECT(status.MPI_SOURCE == MPI_PROC_NULL);
  }
  free_pair(pair);
}

static void check_errors(void) {
  int values[4] = {0}, received[4] = {0}, flag;
  const int twice[] = {2, 2};
  MPI_Request pair[2], plain, none = MPI_REQUEST_NULL;
  EXPECT(class_of(MPI_Psend_init(values, -1, 1, MPI_INT, right, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &plain)) ==
         MPI_ERR_ARG);
  EXPECT(class_of(MPI_Psend_init(values, 2, -1, MPI_INT, right, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &plain)) ==
         MPI_ERR_COUNT);
  EXPECT(class_of(MPI_Psend_init(values, 4, INT64_MAX / 2, MPI_INT, right, 0, MPI_COMM_WORLD, MPI_INFO_NULL,
                                 &plain)) == MPI_ERR_COUNT);
  EXPECT(class_of(MPI_Psend_init(NULL, 2, 1, MPI_INT, right, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &plain)) ==
         MPI_ERR_BUFFER);
  EXPECT(class_of(MPI_Precv_init(values, 2, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_INFO_NULL,
                                 &plain)) == MPI_ERR_RANK);
  EXPECT(class_of(MPI_Precv_init(values, 2, 1, MPI_INT, left, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_INFO_NULL,
                                 &plain)) == MPI_ERR_TAG);
  make_pair(4, 1, 4, 1, values, received, pair);
  EXPECT(class_of(MPI_Pready(0, pair[0])) == MPI_ERR_REQUEST); /* not started */
  EXPECT(class_of(MPI_Pready(0, none)) == MPI_ERR_REQUEST);
  EXPECT(MPI_Startall(2, pair) == MPI_SUCCESS);
  EXPECT(class_of(MPI_Start(&pair[0])) == MPI_ERR_REQUEST);
  EXPECT(class_of(MPI_Pready(4, pair[0])) == MPI_ERR_ARG && class_of(MPI_Pready(-1, pair[0])) == MPI_ERR_ARG);
  EXPECT(class_of(MPI_Pready(0, pair[1])) == MPI_ERR_REQUEST);
  EXPECT(class_of(MPI_Pready_range(2, 4, pair[0])) == MPI_ERR_ARG);
  EXPECT(class_of(MPI_Pready_range(2, 1, pair[0])) == MPI_ERR_ARG);
  EXPECT(class_of(MPI_Parrived(pair[0], 0, &flag)) == MPI_ERR_REQUEST);
  EXPECT(class_of(MPI_Parrived(pair[1], 4, &flag)) == MPI_ERR_ARG);
  EXPECT(MPI_Pready_range(0, 1, pair[0]) == MPI_SUCCESS);
  EXPECT(class_of(MPI_Pready(1, pair[0])) == MPI_ERR_ARG); /* ready already */
  EXPECT(class_of(MPI_Pready_list(2, twice, pair[0])) == MPI_ERR_ARG);
  EXPECT(MPI_Pready(3, pair[0]) == MPI_SUCCESS);
  EXPECT(MPI_Waitall(2, pair, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
  free_pair(pair);
}

static void check_too_small(void) {
  int sent[8] = {1, 2, 3, 4, 5, 6, 7, 8}, received[8] = {0};
  MPI_Request pair[2];
  make_pair(4, 2, 2, 2, sent, received, pair);
  EXPECT(MPI_Startall(2, pair) == MPI_SUCCESS);
  make_all_ready(pair[0], 4);
  EXPECT(MPI_Wait(&pair[0], MPI_STATUS_IGNORE) == MPI_SUCCESS);
  EXPECT(class_of(MPI_Wait(&pair[1], MPI_STATUS_IGNORE)) == MPI_ERR_TRUNCATE);
  EXPECT(received[3] == 4 && received[4] == 0);
  free_pair(pair);
}

int main(void) {
  static const int shapes[][4] = {{1, 8, 1, 8},          {8, 1, 1, 8},         {1, 8, 8, 1},
                                  {3, 4, 2, 6},          {6, 5, 15, 2},        {35, 2, 14, 5},
                                  {0, 5, 3, 0},          {4, 0, 4, 0},         {1000, 3, 2, 1500},
                                  {8, 65536, 4, 131072}, {2, 50000, 100, 1000}};
  size_t i;
  MPI_Init(NULL, NULL);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  left = (rank + size - 1) % size;
  right = (rank + 1) % size;
  for (i = 0; i < sizeof shapes / sizeof shapes[0]; ++i)
    exchange(shapes[i][0], shapes[i][1], shapes[i][2], shapes[i][3]);
  check_early_arrival();
  check_gaps(1);
  check_gaps(3);
  check_gaps(24);
  check_order();
  check_other_messages();
  check_no_process();
  check_errors();
  check_too_small();
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("partitioned messages of %d ranks: as expected\n", size);
  return MPI_Finalize();
}
