/* Spawns itself, and checks messages and collectives between the two jobs. Arguments: what to do; the spawned processes get "child". */
#define _GNU_SOURCE
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "../expect.h"

enum { kLarge = 3000000 };

static int rank, size;

/* Each process of a job sends to each of the other one. */
static void exchange(MPI_Comm inter) {
  int rank, remote_size, flag = -1;
  MPI_Status status;
  MPI_Comm_rank(inter, &rank);
  MPI_Comm_remote_size(inter, &remote_size);
  for (int to = 0; to < remote_size; ++to) {
    const int value[2] = {100 * rank + to, to};
    MPI_Send(value, 2, MPI_INT, to, 3, inter);
  }
  for (int i = 0; i < remote_size; ++i) {
    int value[2] = {-1, -1};
    MPI_Probe(MPI_ANY_SOURCE, 3, inter, &status);
    MPI_Recv(value, 2, MPI_INT, status.MPI_SOURCE, 3, inter, &status);
    EXPECT(value[0] == 100 * status.MPI_SOURCE + rank && value[1] == rank);
  }
  /* Messages of other tags come from processes that are further. */
  MPI_Iprobe(MPI_ANY_SOURCE, 3, inter, &flag, MPI_STATUS_IGNORE);
  EXPECT(flag == 0);
}

/* Rank 0 of the parents and the last child. */
static void send_large(MPI_Comm inter, int is_child) {
  int remote_size;
  MPI_Comm_remote_size(inter, &remote_size);
  char* bytes = malloc(kLarge);
  MPI_Datatype every_second;
  MPI_Type_vector(kLarge / 2, 1, 2, MPI_CHAR, &every_second);
  MPI_Type_commit(&every_second);
  if (!is_child && rank == 0) {
    for (int i = 0; i < kLarge; ++i) bytes[i] = (char)(i % 101);
    MPI_Request request;
    MPI_Issend(bytes, kLarge, MPI_CHAR, remote_size - 1, 1, inter, &request);
    int done = 1;
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    EXPECT(!done);
    MPI_Send(&done, 1, MPI_INT, remote_size - 1, 2, inter); /* overtakes no message of its tag */
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    memset(bytes, 0, kLarge);
    MPI_Recv(bytes, 1, every_second, remote_size - 1, 4, inter, MPI_STATUS_IGNORE);
    for (int i = 0; i < kLarge; ++i) EXPECT(bytes[i] == (i % 2 == 0 ? (char)(i % 101) : 0));
    MPI_Status status;
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    EXPECT(class_of(MPI_Recv(bytes, 10, MPI_CHAR, remote_size - 1, 5, inter, &status)) == MPI_ERR_TRUNCATE);
  } else if (is_child && rank == size - 1) {
    int done;
    MPI_Recv(&done, 1, MPI_INT, 0, 2, inter, MPI_STATUS_IGNORE);
    MPI_Recv(bytes, kLarge, MPI_CHAR, 0, 1, inter, MPI_STATUS_IGNORE);
    for (int i = 0; i < kLarge; ++i) EXPECT(bytes[i] == (char)(i % 101));
    MPI_Send(bytes, 1, every_second, 0, 4, inter);
    MPI_Send(bytes, 1000, MPI_CHAR, 0, 5, inter);
  }
  MPI_Type_free(&every_second);
  free(bytes);
}

/* The ranks 0 of both jobs, with other partitions at both ends. */
static void exchange_partitions(MPI_Comm inter) {
  enum { kPartitions = 6, kCount = 2000 };
  static int sent[kPartitions * kCount], received[kPartitions * kCount];
  MPI_Request pair[2];
  if (rank != 0) return;
  MPI_Psend_init(sent, kPartitions, kCount, MPI_INT, 0, 7, inter, MPI_INFO_NULL, &pair[0]);
  MPI_Precv_init(received, 4, kPartitions * kCount / 4, MPI_INT, 0, 7, inter, MPI_INFO_NULL, &pair[1]);
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < kPartitions * kCount; ++i) sent[i] = round + i, received[i] = -1;
    MPI_Startall(2, pair);
    for (int i = kPartitions - 1; i >= 0; --i) MPI_Pready(i, pair[0]);
    MPI_Waitall(2, pair, MPI_STATUSES_IGNORE);
    for (int i = 0; i < kPartitions * kCount; ++i) EXPECT(received[i] == round + i);
  }
  MPI_Request_free(&pair[0]);
  MPI_Request_free(&pair[1]);
}

static void check_collectives(MPI_Comm all) {
  int all_rank, all_size;
  MPI_Comm_rank(all, &all_rank);
  MPI_Comm_size(all, &all_size);
  static const int counts[] = {1, 1000, 300000};
  for (int c = 0; c < 3; ++c) {
    const int count = counts[c];
    int* mine = malloc(sizeof(int) * (size_t)count);
    int* sums = malloc(sizeof(int) * (size_t)count);
    int* gathered = malloc(sizeof(int) * (size_t)(count * all_size));
    for (int i = 0; i < count; ++i) mine[i] = all_rank + i;
    MPI_Allreduce(mine, sums, count, MPI_INT, MPI_SUM, all);
    for (int i = 0; i < count; ++i) EXPECT(sums[i] == all_size * (all_size - 1) / 2 + all_size * i);
    MPI_Allgather(mine, count, MPI_INT, gathered, count, MPI_INT, all);
    for (int i = 0; i < count * all_size; ++i) EXPECT(gathered[i] == i / count + i % count);
    MPI_Bcast(mine, count, MPI_INT, all_size - 1, all);
    EXPECT(mine[count - 1] == all_size - 1 + count - 1);
    MPI_Request request;
    MPI_Iallreduce(MPI_IN_PLACE, mine, count, MPI_INT, MPI_MAX, all, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT(mine[0] == all_size - 1);
    free(mine);
    free(sums);
    free(gathered);
  }
  int before = 0;
  MPI_Exscan(&all_rank, &before, 1, MPI_INT, MPI_SUM, all);
  EXPECT(all_rank == 0 || before == all_rank * (all_rank - 1) / 2);
}

/* Communicators that are made from one of both jobs. */
static void check_merged(MPI_Comm inter, int is_child) {
  MPI_Comm all, copy, half, pair, group_comm, across;
  MPI_Group group;
  int all_rank, all_size, result, half_size;
  MPI_Intercomm_merge(inter, is_child, &all);
  MPI_Comm_rank(all, &all_rank);
  MPI_Comm_size(all, &all_size);
  EXPECT(is_child == (all_rank >= all_size - (is_child ? size : all_size - size)));
  check_collectives(all);
  MPI_Comm_dup(all, &copy);
  MPI_Comm_compare(all, copy, &result);
  EXPECT(result == MPI_CONGRUENT);
  MPI_Comm_split(copy, all_rank % 2, 0, &half);
  check_collectives(half);
  MPI_Comm_size(half, &half_size);
  EXPECT(half_size == (all_size + 1 - all_rank % 2) / 2);
  MPI_Comm_group(all, &group);
  MPI_Comm_create(all, group, &group_comm);
  MPI_Comm_compare(all, group_comm, &result);
  EXPECT(result == MPI_CONGRUENT);
  MPI_Barrier(group_comm);
  /* Each half has processes of both jobs. */
  MPI_Intercomm_create(half, 0, copy, 1 - all_rank % 2, 9, &across);
  int sum = -1;
  MPI_Allreduce(&all_rank, &sum, 1, MPI_INT, MPI_SUM, across);
  int expected = 0;
  for (int i = 1 - all_rank % 2; i < all_size; i += 2) expected += i;
  EXPECT(sum == expected);
  MPI_Intercomm_merge(across, all_rank % 2, &pair);
  check_collectives(pair);
  /* Windows and files need processes of one job. */
  MPI_Win win;
  int memory = 0;
  MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN);
  EXPECT(class_of(MPI_Win_create(&memory, sizeof memory, 1, MPI_INFO_NULL, all, &win)) == MPI_ERR_COMM);
  MPI_File file;
  EXPECT(class_of(MPI_File_open(all, "no_file", MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file)) ==
         MPI_ERR_COMM);
  MPI_Group_free(&group);
  MPI_Comm_free(&pair);
  MPI_Comm_free(&across);
  MPI_Comm_free(&group_comm);
  MPI_Comm_free(&half);
  MPI_Comm_free(&copy);
  MPI_Comm_disconnect(&all);
}

static void check_all(MPI_Comm inter, int is_child) {
  exchange(inter);
  send_large(inter, is_child);
  exchange_partitions(inter);
  MPI_Barrier(inter);
  int value = is_child ? rank : 1000 + rank, sum = -1, remote_size;
  MPI_Comm_remote_size(inter, &remote_size);
  MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, inter);
  EXPECT(sum == remote_size * (remote_size - 1) / 2 + (is_child ? 1000 * remote_size : 0));
  check_merged(inter, is_child);
}

static void spawn(char* program, char* what, MPI_Comm* inter) {
  char* words[] = {"child", what, NULL};
  char** argvs[] = {words, words};
  char* programs[] = {program, program};
  int numbers[] = {1, 2}, codes[3] = {-1, -1, -1};
  MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
  MPI_Comm_spawn_multiple(2, programs, argvs, numbers, infos, size - 1, MPI_COMM_WORLD, inter, codes);
  for (int i = 0; i < 3; ++i) EXPECT(codes[i] == MPI_SUCCESS);
}

/* What cannot be spawned. */
static void spawn_in_vain(char* program) {
  char* true_words[] = {NULL};
  MPI_Comm inter;
  MPI_Info info;
  int code = MPI_SUCCESS;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  EXPECT(class_of(MPI_Comm_spawn("/no/such/program", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD,
                                 &inter, &code)) == MPI_ERR_SPAWN);
  EXPECT(code == MPI_ERR_SPAWN && inter == MPI_COMM_NULL);
  /* They end without MPI. */
  EXPECT(class_of(MPI_Comm_spawn("true", true_words, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter,
                                 MPI_ERRCODES_IGNORE)) == MPI_ERR_SPAWN);
  EXPECT(class_of(MPI_Comm_spawn("false", true_words, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter,
                                 MPI_ERRCODES_IGNORE)) == MPI_ERR_SPAWN);
  MPI_Info_create(&info);
  MPI_Info_set(info, "host", "no-such-host");
  EXPECT(class_of(MPI_Comm_spawn(program, MPI_ARGV_NULL, 1, info, 0, MPI_COMM_WORLD, &inter,
                                 MPI_ERRCODES_IGNORE)) == MPI_ERR_SPAWN);
  MPI_Info_free(&info);
  EXPECT(class_of(MPI_Comm_spawn(program, MPI_ARGV_NULL, 0, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter,
                                 MPI_ERRCODES_IGNORE)) == MPI_ERR_ARG);
}

/* What the processes that a merged communicator spawns do with it. */
static void meet_merged(MPI_Comm inter, int is_child) {
  MPI_Comm all;
  exchange(inter);
  MPI_Intercomm_merge(inter, is_child, &all);
  check_collectives(all);
  MPI_Comm_free(&all);
  MPI_Comm_disconnect(&inter);
}

/* The processes of two jobs spawn a third one. Its root is in the spawned job. */
static void spawn_together(char* program, MPI_Comm inter, int is_child) {
  char* words[] = {"child", "meet", NULL};
  MPI_Comm all, third;
  int all_size;
  MPI_Intercomm_merge(inter, is_child, &all);
  MPI_Comm_size(all, &all_size);
  MPI_Comm_spawn(program, words, 2, MPI_INFO_NULL, all_size - 1, all, &third, MPI_ERRCODES_IGNORE);
  meet_merged(third, 0);
  MPI_Comm_disconnect(&all);
}

static void check_hints(char* program) {
  char* words[] = {"child", "hints", NULL};
  char folder[512];
  MPI_Comm inter;
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "wdir", "/");
  MPI_Info_set(info, "env", "WEFT_TEST_A=1\nWEFT_TEST_B=two words");
  MPI_Comm_spawn(program, words, 1, info, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
  MPI_Info_free(&info);
  MPI_Bcast(folder, sizeof folder, MPI_CHAR, 0, inter);
  EXPECT(strcmp(folder, "/ 1 two words") == 0);
  MPI_Comm_disconnect(&inter);
}

static void be_child(char* program, const char* what, MPI_Comm parent) {
  MPI_Comm same;
  int *app_number, flag, remote_size;
  MPI_Comm_remote_size(parent, &remote_size);
  MPI_Comm_get_parent(&same);
  EXPECT(same == parent);
  if (strcmp(what, "meet") == 0) return meet_merged(parent, 1);
  if (strcmp(what, "leave") == 0) return; /* without MPI_Comm_disconnect */
  if (strcmp(what, "hints") == 0) {
    char text[512];
    EXPECT(getcwd(text, sizeof text) != NULL);
    snprintf(text + strlen(text), 400, " %s %s", getenv("WEFT_TEST_A"), getenv("WEFT_TEST_B"));
    MPI_Bcast(text, sizeof text, MPI_CHAR, MPI_ROOT, parent);
  } else {
    EXPECT(size == 3);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &app_number, &flag);
    EXPECT(flag && *app_number == (rank > 0));
    if (strcmp(what, "together") == 0) spawn_together(program, parent, 1);
    if (strcmp(what, "die") == 0 && rank == 2) raise(SIGKILL);
    if (strcmp(what, "abort") == 0 && rank == 1) MPI_Abort(MPI_COMM_WORLD, 7);
    if (strcmp(what, "stay") != 0 && strcmp(what, "together") != 0) check_all(parent, 1);
  }
  MPI_Comm_disconnect(&parent);
  while (strcmp(what, "stay") == 0) pause();
  MPI_Comm_get_parent(&same);
  EXPECT(parent == MPI_COMM_NULL && same == MPI_COMM_NULL);
}

int main(int argc, char* argv[]) {
  MPI_Comm parent, inter;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_get_parent(&parent);
  if (parent != MPI_COMM_NULL) {
    EXPECT(argc == 3 && strcmp(argv[1], "child") == 0);
    be_child(argv[0], argv[2], parent);
  } else if (strcmp(argv[1], "in vain") == 0) {
    spawn_in_vain(argv[0]);
  } else if (strcmp(argv[1], "hints") == 0) {
    check_hints(argv[0]);
  } else {
    spawn(argv[0], argv[1], &inter);
    if (strcmp(argv[1], "leave") == 0) MPI_Ssend(&rank, 1, MPI_INT, 0, 0, inter);
    if (strcmp(argv[1], "together") == 0) {
      spawn_together(argv[0], inter, 0);
    } else if (strcmp(argv[1], "stay") != 0) {
      check_all(inter, 0);
    }
    MPI_Comm_disconnect(&inter);
  }
  if (parent == MPI_COMM_NULL && rank == 0) printf("%s: as expected\n", argv[1]);
  MPI_Finalize();
  return 0;
}
