/* Windows: each flavor, attributes, accesses, epochs, errors. Run on 1 and more ranks. */
#include <string.h>

#include "../expect.h"

static int rank, size;

/* "host" memory of the program, or memory of the window. */
static MPI_Win make_window(int flavor, int** memory, int count) {
  MPI_Win win;
  switch (flavor) {
    case MPI_WIN_FLAVOR_CREATE:
      *memory = calloc((size_t)count, sizeof(int));
      EXPECT(MPI_Win_create(*memory, count * (int)sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win) ==
             MPI_SUCCESS);
      break;
    case MPI_WIN_FLAVOR_ALLOCATE:
      EXPECT(MPI_Win_allocate(count * (int)sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, memory, &win) ==
             MPI_SUCCESS);
      break;
    default:
      EXPECT(MPI_Win_allocate_shared(count * (int)sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, memory,
                                     &win) == MPI_SUCCESS);
      break;
  }
  return win;
}

static void free_window(MPI_Win* win, int flavor, int* memory) {
  EXPECT(MPI_Win_free(win) == MPI_SUCCESS && *win == MPI_WIN_NULL);
  if (flavor == MPI_WIN_FLAVOR_CREATE) free(memory);
}

static void check_attributes(MPI_Win win, int flavor, void* base, MPI_Aint bytes) {
  void* value = NULL;
  int flag = 0;
  EXPECT(MPI_Win_get_attr(win, MPI_WIN_BASE, &value, &flag) == MPI_SUCCESS && flag && value == base);
  EXPECT(MPI_Win_get_attr(win, MPI_WIN_SIZE, &value, &flag) == MPI_SUCCESS && flag && *(MPI_Aint*)value == bytes);
  EXPECT(MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &value, &flag) == MPI_SUCCESS && flag);
  EXPECT(*(int*)value == (int)sizeof(int));
  EXPECT(MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &value, &flag) == MPI_SUCCESS && flag && *(int*)value == flavor);
  EXPECT(MPI_Win_get_attr(win, MPI_WIN_MODEL, &value, &flag) == MPI_SUCCESS && flag && *(int*)value == MPI_WIN_UNIFIED);
}

static int num_deleted;
static int count_deleted(MPI_Win win, int key, void* value, void* state) {
  (void)win, (void)key, (void)value, (void)state;
  ++num_deleted;
  return MPI_SUCCESS;
}

static void check_objects(MPI_Win win) {
  char name[MPI_MAX_OBJECT_NAME];
  int length = -1, key, flag = 0, result;
  void* value = NULL;
  MPI_Group group, world;
  MPI_Info info;
  EXPECT(MPI_Win_get_name(win, name, &length) == MPI_SUCCESS && length == 0);
  EXPECT(MPI_Win_set_name(win, "grid") == MPI_SUCCESS);
  EXPECT(MPI_Win_get_name(win, name, &length) == MPI_SUCCESS && length == 4 && strcmp(name, "grid") == 0);
  EXPECT(MPI_Win_get_group(win, &group) == MPI_SUCCESS);
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  EXPECT(MPI_Group_compare(group, world, &result) == MPI_SUCCESS && result == MPI_IDENT);
  MPI_Group_free(&group);
  MPI_Group_free(&world);
  EXPECT(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, count_deleted, &key, NULL) == MPI_SUCCESS);
  EXPECT(MPI_Win_set_attr(win, key, name) == MPI_SUCCESS);
  EXPECT(MPI_Win_get_attr(win, key, &value, &flag) == MPI_SUCCESS && flag && value == name);
  MPI_Win_free_keyval(&key);
  EXPECT(MPI_Win_get_info(win, &info) == MPI_SUCCESS);
  EXPECT(MPI_Info_set(info, "same_size", "true") == MPI_SUCCESS && MPI_Win_set_info(win, info) == MPI_SUCCESS);
  MPI_Info_free(&info);
}

/* All kinds of accesses in fences. Each rank works on its right neighbour, whose window it alone changes. The barriers
 * keep the next accesses back while a rank looks at its memory. */
static void check_accesses(MPI_Win win, const int* memory) {
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  int values[4] = {10 * rank + 1, 2, 3, 4}, got[4] = {0, 0, 0, 0}, one = 5, old = -1, compare = 8;
  MPI_Datatype every_second;
  EXPECT(MPI_Win_fence(MPI_MODE_NOPRECEDE, win) == MPI_SUCCESS);
  EXPECT(MPI_Put(values, 4, MPI_INT, right, 2, 4, MPI_INT, win) == MPI_SUCCESS);
  EXPECT(MPI_Win_fence(0, win) == MPI_SUCCESS);
  EXPECT(memory[2] == 10 * left + 1 && memory[3] == 2 && memory[5] == 4);
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT(MPI_Get(got, 4, MPI_INT, right, 2, 4, MPI_INT, win) == MPI_SUCCESS);
  EXPECT(MPI_Win_fence(0, win) == MPI_SUCCESS);
  EXPECT(got[0] == 10 * rank + 1 && got[3] == 4);
  MPI_Type_vector(2, 1, 2, MPI_INT, &every_second);
  MPI_Type_commit(&every_second);
  EXPECT(MPI_Accumulate(values + 1, 2, MPI_INT, right, 3, 1, every_second, MPI_SUM, win) == MPI_SUCCESS);
  EXPECT(MPI_Win_fence(0, win) == MPI_SUCCESS);
  EXPECT(memory[3] == 4 && memory[4] == 3 && memory[5] == 7);
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT(MPI_Get_accumulate(values, 1, every_second, got, 1, every_second, right, 3, 1, every_second, MPI_REPLACE,
                            win) == MPI_SUCCESS);
  EXPECT(MPI_Win_fence(0, win) == MPI_SUCCESS);
  EXPECT(got[0] == 4 && got[1] == 2 && got[2] == 7);
  EXPECT(memory[3] == 10 * left + 1 && memory[4] == 3 && memory[5] == 3);
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT(MPI_Get_accumulate(NULL, 0, MPI_DATATYPE_NULL, got, 2, MPI_INT, right, 4, 2, MPI_INT, MPI_NO_OP, win) ==
         MPI_SUCCESS);
  EXPECT(MPI_Win_fence(0, win) == MPI_SUCCESS);
  EXPECT(got[0] == 3 && got[1] == 3);
  EXPECT(MPI_Fetch_and_op(&one, &old, MPI_INT, right, 5, MPI_SUM, win) == MPI_SUCCESS);
  EXPECT(MPI_Win_fence(0, win) == MPI_SUCCESS);
  EXPECT(old == 3 && memory[5] == 8);
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT(MPI_Compare_and_swap(&one, &compare, &old, MPI_INT, right, 5, win) == MPI_SUCCESS);
  EXPECT(MPI_Win_fence(0, win) == MPI_SUCCESS);
  EXPECT(old == 8 && memory[5] == 5);
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT(MPI_Compare_and_swap(&one, &compare, &old, MPI_INT, right, 4, win) == MPI_SUCCESS);
  EXPECT(MPI_Win_fence(MPI_MODE_NOSUCCEED, win) == MPI_SUCCESS);
  EXPECT(old == 3 && memory[4] == 3);
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT(MPI_Put(values, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win) == MPI_SUCCESS);
  MPI_Type_free(&every_second);
}

/* All ranks add to two words of rank 0, one of them a pair. */
static void check_locks(MPI_Win win, int* memory) {
  int i, one = 1, old = -1, sum = 0;
  struct {
    int value, at;
  } pair = {rank, 100 + rank}, largest = {0, 0};
  MPI_Barrier(MPI_COMM_WORLD);
  memory[0] = 0, memory[6] = -1, memory[7] = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  for (i = 0; i < 50; ++i) {
    EXPECT(MPI_Win_lock(i % 2 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, 0, 0, win) == MPI_SUCCESS);
    EXPECT(MPI_Fetch_and_op(&one, &old, MPI_INT, 0, 0, MPI_SUM, win) == MPI_SUCCESS);
    EXPECT(MPI_Win_flush(0, win) == MPI_SUCCESS && old >= i);
    EXPECT(MPI_Accumulate(&pair, 1, MPI_2INT, 0, 6, 1, MPI_2INT, MPI_MAXLOC, win) == MPI_SUCCESS);
    EXPECT(MPI_Win_unlock(0, win) == MPI_SUCCESS);
  }
  /* A word that is not changed atomically: the exclusive lock alone protects it. */
  for (i = 0; i < 20; ++i) {
    int word = -1;
    EXPECT(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win) == MPI_SUCCESS);
    EXPECT(MPI_Get(&word, 1, MPI_INT, 0, 1, 1, MPI_INT, win) == MPI_SUCCESS);
    EXPECT(MPI_Win_flush(0, win) == MPI_SUCCESS);
    ++word;
    EXPECT(MPI_Put(&word, 1, MPI_INT, 0, 1, 1, MPI_INT, win) == MPI_SUCCESS);
    EXPECT(MPI_Win_unlock(0, win) == MPI_SUCCESS);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT(MPI_Win_lock_all(0, win) == MPI_SUCCESS);
  EXPECT(MPI_Get(&sum, 1, MPI_INT, 0, 0, 1, MPI_INT, win) == MPI_SUCCESS);
  EXPECT(MPI_Get(&largest, 1, MPI_2INT, 0, 6, 1, MPI_2INT, win) == MPI_SUCCESS);
  EXPECT(MPI_Get(&old, 1, MPI_INT, 0, 1, 1, MPI_INT, win) == MPI_SUCCESS);
  EXPECT(MPI_Win_flush_local(0, win) == MPI_SUCCESS && MPI_Win_flush_local_all(win) == MPI_SUCCESS);
  EXPECT(MPI_Win_flush_all(win) == MPI_SUCCESS && MPI_Win_sync(win) == MPI_SUCCESS);
  EXPECT(MPI_Win_unlock_all(win) == MPI_SUCCESS);
  EXPECT(sum == 50 * size && largest.value == size - 1 && largest.at == 100 + size - 1);
  EXPECT(old == 20 * size);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void check_requests(MPI_Win win) {
  enum { kMany = 300 };
  static int values[kMany], got[kMany];
  MPI_Request requests[kMany];
  const int right = (rank + 1) % size;
  int i, two = 2, old = -1;
  EXPECT(MPI_Win_lock_all(MPI_MODE_NOCHECK, win) == MPI_SUCCESS);
  for (i = 0; i < kMany; ++i) values[i] = 1000 * rank + i;
  for (i = 0; i < kMany; ++i)
    EXPECT(MPI_Rput(values + i, 1, MPI_INT, right, 100 + i, 1, MPI_INT, win, requests + i) == MPI_SUCCESS);
  EXPECT(MPI_Waitall(kMany, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
  EXPECT(MPI_Win_flush(right, win) == MPI_SUCCESS);
  EXPECT(MPI_Rget(got, kMany, MPI_INT, right, 100, kMany, MPI_INT, win, requests) == MPI_SUCCESS);
  EXPECT(MPI_Wait(requests, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  EXPECT(memcmp(got, values, sizeof got) == 0);
  EXPECT(MPI_Raccumulate(&two, 1, MPI_INT, right, 100, 1, MPI_INT, MPI_SUM, win, requests) == MPI_SUCCESS);
  EXPECT(MPI_Rget_accumulate(&two, 1, MPI_INT, &old, 1, MPI_INT, right, 100, 1, MPI_INT, MPI_PROD, win,
                             requests + 1) == MPI_SUCCESS);
  EXPECT(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
  EXPECT(old == values[0] + 2);
  EXPECT(MPI_Rget(got, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win, requests) == MPI_SUCCESS);
  EXPECT(MPI_Wait(requests, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  EXPECT(MPI_Win_unlock_all(win) == MPI_SUCCESS);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* Even ranks expose their memory to the next rank, round after round. */
static void check_post_and_start(MPI_Win win, const int* memory) {
  MPI_Group world, peer;
  int round, flag = 0;
  const int is_target = rank % 2 == 0, other = is_target ? rank + 1 : rank - 1;
  if (other >= size) return;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, 1, &other, &peer);
  for (round = 0; round < 5; ++round) {
    if (is_target) {
      EXPECT(MPI_Win_post(peer, 0, win) == MPI_SUCCESS);
      if (round % 2 == 0) {
        EXPECT(MPI_Win_wait(win) == MPI_SUCCESS);
      } else {
        for (flag = 0; !flag;) EXPECT(MPI_Win_test(win, &flag) == MPI_SUCCESS);
      }
      EXPECT(memory[8] == 7 * round);
    } else {
      const int value = 7 * round;
      EXPECT(MPI_Win_start(peer, 0, win) == MPI_SUCCESS);
      EXPECT(MPI_Put(&value, 1, MPI_INT, other, 8, 1, MPI_INT, win) == MPI_SUCCESS);
      EXPECT(MPI_Win_complete(win) == MPI_SUCCESS);
    }
  }
  MPI_Group_free(&world);
  MPI_Group_free(&peer);
}

static void check_errors(MPI_Win win, int count) {
  int value = 0, old;
  MPI_Datatype pair;
  MPI_Win again = win;
  const int blocks[2] = {1, 1};
  const MPI_Aint places[2] = {0, 4};
  const MPI_Datatype types[2] = {MPI_INT, MPI_FLOAT};
  EXPECT(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN) == MPI_SUCCESS);
  EXPECT(class_of(MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, win)) == MPI_ERR_RMA_SYNC);
  EXPECT(class_of(MPI_Win_unlock(0, win)) == MPI_ERR_RMA_SYNC);
  EXPECT(class_of(MPI_Win_unlock_all(win)) == MPI_ERR_RMA_SYNC);
  EXPECT(class_of(MPI_Win_flush(0, win)) == MPI_ERR_RMA_SYNC);
  EXPECT(class_of(MPI_Win_complete(win)) == MPI_ERR_RMA_SYNC);
  EXPECT(class_of(MPI_Win_wait(win)) == MPI_ERR_RMA_SYNC);
  EXPECT(class_of(MPI_Win_lock(0, 0, 0, win)) == MPI_ERR_LOCKTYPE);
  EXPECT(class_of(MPI_Win_lock(MPI_LOCK_SHARED, size, 0, win)) == MPI_ERR_RANK);
  EXPECT(class_of(MPI_Win_fence(1, win)) == MPI_ERR_ASSERT);
  EXPECT(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win) == MPI_SUCCESS);
  EXPECT(class_of(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win)) == MPI_ERR_RMA_SYNC);
  EXPECT(class_of(MPI_Win_free(&again)) == MPI_ERR_RMA_SYNC);
  EXPECT(class_of(MPI_Put(&value, 1, MPI_INT, 0, count, 1, MPI_INT, win)) == MPI_ERR_RMA_RANGE);
  EXPECT(class_of(MPI_Put(&value, 1, MPI_INT, 0, -1, 1, MPI_INT, win)) == MPI_ERR_RMA_RANGE);
  EXPECT(class_of(MPI_Get(&value, 1, MPI_INT, 0, 0, 2, MPI_INT, win)) == MPI_ERR_TRUNCATE);
  EXPECT(class_of(MPI_Put(&value, -1, MPI_INT, 0, 0, 1, MPI_INT, win)) == MPI_ERR_COUNT);
  EXPECT(class_of(MPI_Put(&value, 1, MPI_INT, size, 0, 1, MPI_INT, win)) == MPI_ERR_RANK);
  EXPECT(class_of(MPI_Fetch_and_op(&value, &old, MPI_FLOAT, 0, 0, MPI_BAND, win)) == MPI_ERR_OP);
  MPI_Type_create_struct(2, blocks, places, types, &pair);
  MPI_Type_commit(&pair);
  EXPECT(class_of(MPI_Accumulate(places, 1, pair, 0, 0, 1, pair, MPI_SUM, win)) == MPI_ERR_TYPE);
  MPI_Type_free(&pair);
  EXPECT(MPI_Win_unlock(0, win) == MPI_SUCCESS);
  EXPECT(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN) == MPI_SUCCESS);
  EXPECT(class_of(MPI_Win_create(NULL, 4, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &again)) == MPI_ERR_BASE);
  EXPECT(class_of(MPI_Win_create(&value, -4, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &again)) == MPI_ERR_SIZE);
  EXPECT(class_of(MPI_Win_create(&value, 4, 0, MPI_INFO_NULL, MPI_COMM_WORLD, &again)) == MPI_ERR_DISP);
  EXPECT(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL) == MPI_SUCCESS);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* Memory of all ranks in one range, or apart; ranks without memory too. */
static void check_shared(void) {
  MPI_Win win;
  MPI_Aint bytes = -1;
  int unit, i, is_apart;
  double *mine, *other, *previous = NULL;
  for (is_apart = 0; is_apart < 2; ++is_apart) {
    MPI_Info info = MPI_INFO_NULL;
    const MPI_Aint own = rank % 3 == 1 ? 0 : (rank + 1) * (MPI_Aint)sizeof(double);
    if (is_apart) {
      MPI_Info_create(&info);
      MPI_Info_set(info, "alloc_shared_noncontig", "true");
    }
    EXPECT(MPI_Win_allocate_shared(own, sizeof(double), info, MPI_COMM_WORLD, &mine, &win) == MPI_SUCCESS);
    if (is_apart) MPI_Info_free(&info);
    EXPECT(MPI_Win_lock_all(0, win) == MPI_SUCCESS);
    for (i = 0; i < (int)(own / (MPI_Aint)sizeof(double)); ++i) mine[i] = 100 * rank + i;
    MPI_Win_sync(win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_sync(win);
    for (i = 0; i < size; ++i) {
      EXPECT(MPI_Win_shared_query(win, i, &bytes, &unit, &other) == MPI_SUCCESS && unit == (int)sizeof(double));
      EXPECT(bytes == (i % 3 == 1 ? 0 : (i + 1) * (MPI_Aint)sizeof(double)));
      if (bytes > 0) EXPECT(other[i] == 101 * i);
      if (i == 0) previous = other;
      if (i > 0 && !is_apart && bytes > 0) {
        EXPECT(other > previous);
        previous = other;
      }
    }
    EXPECT(MPI_Win_shared_query(win, MPI_PROC_NULL, &bytes, &unit, &other) == MPI_SUCCESS && other[0] == 0);
    EXPECT(MPI_Win_unlock_all(win) == MPI_SUCCESS);
    EXPECT(MPI_Win_free(&win) == MPI_SUCCESS);
  }
}

static void check_dynamic(void) {
  enum { kCount = 2000 };
  MPI_Win win;
  MPI_Aint mine, other;
  int* memory = calloc(kCount, sizeof(int));
  static int values[kCount], got[kCount];
  int i;
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  EXPECT(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win) == MPI_SUCCESS);
  EXPECT(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN) == MPI_SUCCESS);
  EXPECT(MPI_Win_attach(win, memory, kCount * sizeof(int)) == MPI_SUCCESS);
  EXPECT(class_of(MPI_Win_attach(win, memory + 1, sizeof(int))) == MPI_ERR_RMA_ATTACH);
  MPI_Get_address(memory, &mine);
  MPI_Sendrecv(&mine, 1, MPI_AINT, left, 0, &other, 1, MPI_AINT, right, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (i = 0; i < kCount; ++i) values[i] = rank + i;
  EXPECT(MPI_Win_fence(0, win) == MPI_SUCCESS);
  EXPECT(MPI_Put(values, kCount, MPI_INT, right, other, kCount, MPI_INT, win) == MPI_SUCCESS);
  EXPECT(MPI_Win_fence(0, win) == MPI_SUCCESS);
  for (i = 0; i < kCount; ++i) EXPECT(memory[i] == left + i);
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT(MPI_Get(got, kCount, MPI_INT, right, other, kCount, MPI_INT, win) == MPI_SUCCESS);
  EXPECT(MPI_Win_fence(0, win) == MPI_SUCCESS);
  EXPECT(MPI_Accumulate(values, 1, MPI_INT, right, MPI_Aint_add(other, 4), 1, MPI_INT, MPI_SUM, win) == MPI_SUCCESS);
  EXPECT(MPI_Win_fence(0, win) == MPI_SUCCESS);
  EXPECT(memcmp(got, values, sizeof got) == 0 && memory[1] == left + 1 + left);
  MPI_Barrier(MPI_COMM_WORLD);
  /* The target alone knows what is attached. */
  EXPECT(MPI_Put(values, 1, MPI_INT, right, MPI_Aint_add(other, kCount * sizeof(int)), 1, MPI_INT, win) ==
         MPI_SUCCESS);
  EXPECT(class_of(MPI_Win_fence(0, win)) == MPI_ERR_RMA_RANGE);
  EXPECT(MPI_Put(values, kCount, MPI_INT, right, MPI_Aint_add(other, 4), kCount, MPI_INT, win) == MPI_SUCCESS);
  EXPECT(class_of(MPI_Win_fence(0, win)) == MPI_ERR_RMA_RANGE);
  EXPECT(MPI_Win_detach(win, memory) == MPI_SUCCESS);
  EXPECT(class_of(MPI_Win_detach(win, memory)) == MPI_ERR_RMA_ATTACH);
  EXPECT(MPI_Win_free(&win) == MPI_SUCCESS);
  free(memory);
}

/* Argument: "unmapped" if no rank reaches memory of another one. */
int main(int argc, char* argv[]) {
  const int flavors[] = {MPI_WIN_FLAVOR_CREATE, MPI_WIN_FLAVOR_ALLOCATE, MPI_WIN_FLAVOR_SHARED};
  enum { kCount = 500 };
  const int is_unmapped = argc > 1 && strcmp(argv[1], "unmapped") == 0;
  int i;
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (i = 0; i < (is_unmapped ? 2 : 3); ++i) {
    int* memory = NULL;
    MPI_Win win = make_window(flavors[i], &memory, kCount);
    check_attributes(win, flavors[i], memory, kCount * (MPI_Aint)sizeof(int));
    check_objects(win);
    check_accesses(win, memory);
    check_locks(win, memory);
    check_requests(win);
    check_post_and_start(win, memory);
    check_errors(win, kCount);
    num_deleted = 0;
    free_window(&win, flavors[i], memory);
    EXPECT(num_deleted == 1);
  }
  if (is_unmapped) {
    int* memory;
    MPI_Win win;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    EXPECT(class_of(MPI_Win_allocate_shared(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win)) == MPI_ERR_RMA_SHARED);
  } else {
    check_shared();
  }
  check_dynamic();
  if (rank == 0) printf("windows of %d ranks: as expected\n", size);
  return MPI_Finalize();
}
