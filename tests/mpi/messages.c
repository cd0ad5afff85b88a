/* Sends of all modes between neighbours in a ring, in sizes from nothing to large, and what the receives report. */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                   \
  do {                                                                                     \
    if (!(condition)) {                                                                    \
      fprintf(stderr, "%s:%d: rank %d: %s is not true\n", __FILE__, __LINE__, rank, #condition); \
      MPI_Abort(MPI_COMM_WORLD, 3);                                                        \
    }                                                                                      \
  } while (0)

static int rank, size;

static void fill(char* bytes, size_t count, int seed) {
  for (size_t i = 0; i < count; ++i) bytes[i] = (char)(i * 7 + (size_t)seed);
}

static int is_filled(const char* bytes, size_t count, int seed) {
  for (size_t i = 0; i < count; ++i) {
    if (bytes[i] != (char)(i * 7 + (size_t)seed)) return 0;
  }
  return 1;
}

static void ring(int count) {
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  char* out = malloc((size_t)count + 1);
  char* in = malloc((size_t)count + 1);
  for (int mode = 0; mode < 4; ++mode) {
    MPI_Request requests[2];
    MPI_Status statuses[2];
    int received = -1;
    fill(out, (size_t)count, rank + mode);
    memset(in, 0, (size_t)count + 1);
    in[count] = 'x';
    MPI_Irecv(in, count, MPI_CHAR, left, mode, MPI_COMM_WORLD, &requests[0]);
    {
      MPI_Comm barrier;
      MPI_Comm_dup(MPI_COMM_WORLD, &barrier);
      MPI_Comm_free(&barrier);
    }
    if (mode == 0) MPI_Isend(out, count, MPI_CHAR, right, mode, MPI_COMM_WORLD, &requests[1]);
    if (mode == 1) MPI_Issend(out, count, MPI_CHAR, right, mode, MPI_COMM_WORLD, &requests[1]);
    if (mode == 2) MPI_Irsend(out, count, MPI_CHAR, right, mode, MPI_COMM_WORLD, &requests[1]);
    if (mode == 3) MPI_Ibsend(out, count, MPI_CHAR, right, mode, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, statuses);
    CHECK(requests[0] == MPI_REQUEST_NULL && requests[1] == MPI_REQUEST_NULL);
    CHECK(statuses[0].MPI_SOURCE == left && statuses[0].MPI_TAG == mode);
    MPI_Get_count(&statuses[0], MPI_CHAR, &received);
    CHECK(received == count);
    CHECK(is_filled(in, (size_t)count, left + mode));
    CHECK(in[count] == 'x');
  }
  free(out);
  free(in);
}

static void truncated(int count) {
  if (size < 2 || rank > 1) return;
  char* bytes = calloc(1, (size_t)count + 1);
  if (rank == 0) {
    fill(bytes, (size_t)count, 5);
    MPI_Send(bytes, count, MPI_CHAR, 1, 9, MPI_COMM_WORLD);
  } else {
    int class;
    bytes[count / 2] = 'x';
    const int code = MPI_Recv(bytes, count / 2, MPI_CHAR, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Error_class(code, &class);
    CHECK(class == MPI_ERR_TRUNCATE);
    CHECK(bytes[count / 2] == 'x');
  }
  free(bytes);
}

static void probes(void) {
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  int value = rank, flag = 0, got = -1, count;
  MPI_Message message;
  MPI_Status status;
  MPI_Request request;
  MPI_Isend(&value, 1, MPI_INT, right, 21, MPI_COMM_WORLD, &request);
  MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
  CHECK(status.MPI_SOURCE == left && status.MPI_TAG == 21);
  MPI_Mprobe(left, 21, MPI_COMM_WORLD, &message, &status);
  MPI_Get_count(&status, MPI_INT, &count);
  CHECK(count == 1);
  MPI_Iprobe(left, 21, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
  CHECK(!flag);
  MPI_Mrecv(&got, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
  CHECK(message == MPI_MESSAGE_NULL && got == left);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void persistent(void) {
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  int out = 0, in = 0;
  MPI_Request requests[2];
  MPI_Send_init(&out, 1, MPI_INT, right, 31, MPI_COMM_WORLD, &requests[0]);
  MPI_Recv_init(&in, 1, MPI_INT, left, 31, MPI_COMM_WORLD, &requests[1]);
  for (int round = 0; round < 50; ++round) {
    out = rank * 100 + round;
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    CHECK(in == left * 100 + round);
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
}

static void communicators(void) {
  MPI_Comm copy, half, merged, inter;
  int result, half_rank, half_size, sum_rank, value, got = -1;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Comm_compare(MPI_COMM_WORLD, copy, &result);
  CHECK(result == MPI_CONGRUENT);
  MPI_Comm_split(copy, rank % 2, -rank, &half);
  MPI_Comm_rank(half, &half_rank);
  MPI_Comm_size(half, &half_size);
  CHECK(half_size == (size + 1 - rank % 2) / 2);
  CHECK(half_rank == half_size - 1 - rank / 2);
  value = rank;
  MPI_Sendrecv(&value, 1, MPI_INT, (half_rank + 1) % half_size, 3, &got, 1, MPI_INT,
               (half_rank + half_size - 1) % half_size, 3, half, MPI_STATUS_IGNORE);
  CHECK(got % 2 == rank % 2);
  if (size > 1) {
    int remote, flag;
    MPI_Intercomm_create(half, 0, copy, rank % 2 == 0 ? (size - 1) / 2 * 2 + 1 - (size % 2 ? 2 : 0) : (size - 1) / 2 * 2,
                         7, &inter);
    MPI_Comm_test_inter(inter, &flag);
    MPI_Comm_remote_size(inter, &remote);
    CHECK(flag && remote + half_size == size);
    MPI_Intercomm_merge(inter, rank % 2, &merged);
    MPI_Comm_rank(merged, &sum_rank);
    MPI_Comm_size(merged, &result);
    CHECK(result == size && (rank % 2 == 0) == (sum_rank < (size + 1) / 2));
    MPI_Comm_free(&merged);
    MPI_Comm_free(&inter);
  }
  MPI_Comm_free(&half);
  MPI_Comm_free(&copy);
  CHECK(copy == MPI_COMM_NULL);
}

/* Small sends are complete at once: what a program may do with their requests, and more of them than the way to the receiver holds. */
static void small_sends(void) {
  enum { kSends = 6, kBurst = 3000 };
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  MPI_Request requests[kSends + 1], *burst = malloc(kBurst * sizeof(MPI_Request));
  MPI_Status status, statuses[kSends];
  long *values = malloc(kBurst * sizeof(long)), value = 0;
  int index, flag, cancelled, count, indices[kSends];
  for (int i = 0; i < kSends; ++i) {
    values[i] = 100 * rank + i;
    MPI_Isend(&values[i], 1, MPI_LONG, right, i, MPI_COMM_WORLD, &requests[i]);
  }
  for (int i = 0; i < kSends; ++i) {
    MPI_Recv(&value, 1, MPI_LONG, left, i, MPI_COMM_WORLD, &status);
    CHECK(value == 100 * left + i);
  }
  MPI_Request_free(&requests[0]);
  CHECK(requests[0] == MPI_REQUEST_NULL);
  MPI_Waitany(kSends, requests, &index, &status);
  CHECK(index > 0 && requests[index] == MPI_REQUEST_NULL);
  MPI_Request_get_status(requests[index == 1 ? 2 : 1], &flag, &status);
  CHECK(flag && requests[index == 1 ? 2 : 1] != MPI_REQUEST_NULL);
  count = 0;
  for (int done = 0; done < kSends - 2; done += count) {
    MPI_Testsome(kSends, requests, &count, indices, statuses);
    CHECK(count >= 0 && count <= kSends - 2 - done);
  }
  MPI_Testsome(kSends, requests, &count, indices, statuses);
  CHECK(count == MPI_UNDEFINED);
  MPI_Isend(&value, 1, MPI_LONG, right, 7, MPI_COMM_WORLD, &requests[0]);
  requests[1] = MPI_REQUEST_NULL;
  MPI_Recv(&value, 1, MPI_LONG, left, 7, MPI_COMM_WORLD, &status);
  MPI_Cancel(&requests[0]);
  MPI_Wait(&requests[0], &status);
  MPI_Test_cancelled(&status, &cancelled);
  CHECK(!cancelled && requests[0] == MPI_REQUEST_NULL);
  for (int i = 0; i < kBurst; ++i) {
    values[i] = 1000000 * rank + i;
    MPI_Isend(&values[i], 1, MPI_LONG, right, 8, MPI_COMM_WORLD, &burst[i]);
  }
  for (int i = 0; i < kBurst; ++i) {
    MPI_Recv(&value, 1, MPI_LONG, left, 8, MPI_COMM_WORLD, &status);
    CHECK(value == 1000000 * left + i);
  }
  MPI_Waitall(kBurst, burst, MPI_STATUSES_IGNORE);
  free(burst);
  free(values);
}

int main(int argc, char** argv) {
  const int counts[] = {0, 1, 200, 4096, 5000, 70000, 3000000};
  char* buffer = malloc(8000000);
  int detached = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Buffer_attach(buffer, 8000000);
  for (size_t i = 0; i < sizeof counts / sizeof counts[0]; ++i) {
    ring(counts[i]);
    if (counts[i] > 1) truncated(counts[i]);
  }
  MPI_Buffer_detach(&buffer, &detached);
  CHECK(detached == 8000000);
  probes();
  persistent();
  small_sends();
  communicators();
  free(buffer);
  MPI_Finalize();
  if (rank == 0) printf("messages of %d ranks: as expected\n", size);
  return 0;
}
