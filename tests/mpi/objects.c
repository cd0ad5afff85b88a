/* Groups, attributes, error handlers and info objects of communicators. Prints one line on rank 0 if all is right. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "expect.h"

static int rank, size;

static void check_groups(void) {
  MPI_Group world, reversed, one, none;
  int result, count;
  int range[1][3];
  EXPECT(MPI_Comm_group(MPI_COMM_WORLD, &world) == MPI_SUCCESS);
  EXPECT(MPI_Group_size(world, &count) == MPI_SUCCESS && count == size);
  EXPECT(MPI_Group_rank(world, &count) == MPI_SUCCESS && count == rank);
  range[0][0] = size - 1, range[0][1] = 0, range[0][2] = -1;
  EXPECT(MPI_Group_range_incl(world, 1, range, &reversed) == MPI_SUCCESS);
  EXPECT(MPI_Group_rank(reversed, &count) == MPI_SUCCESS && count == size - 1 - rank);
  EXPECT(MPI_Group_compare(world, reversed, &result) == MPI_SUCCESS);
  EXPECT(result == (size == 1 ? MPI_IDENT : MPI_SIMILAR));
  EXPECT(MPI_Group_translate_ranks(world, 1, &rank, reversed, &count) == MPI_SUCCESS &&
         count == size - 1 - rank);
  EXPECT(MPI_Group_difference(world, reversed, &none) == MPI_SUCCESS && none == MPI_GROUP_EMPTY);
  EXPECT(MPI_Comm_group(MPI_COMM_SELF, &one) == MPI_SUCCESS);
  EXPECT(MPI_Group_translate_ranks(one, 1, (int[]){0}, world, &count) == MPI_SUCCESS && count == rank);
  EXPECT(MPI_Group_free(&world) == MPI_SUCCESS && world == MPI_GROUP_NULL);
  EXPECT(MPI_Group_free(&reversed) == MPI_SUCCESS && MPI_Group_free(&one) == MPI_SUCCESS);
}

/* Attributes: the extra state counts the calls. */
struct Calls {
  int copied, deleted;
};

static int copy_value(MPI_Comm comm, int key, void* state, void* value, void* result, int* flag) {
  EXPECT(comm == MPI_COMM_WORLD && key != MPI_KEYVAL_INVALID);
  ((struct Calls*)state)->copied++;
  *(void**)result = (char*)value + 1;
  *flag = 1;
  return MPI_SUCCESS;
}

static int delete_value(MPI_Comm comm, int key, void* value, void* state) {
  EXPECT(comm != MPI_COMM_NULL && key != MPI_KEYVAL_INVALID && value != NULL);
  ((struct Calls*)state)->deleted++;
  return MPI_SUCCESS;
}

static void check_attributes(void) {
  static char text[4];
  struct Calls calls = {0, 0};
  void* value = NULL;
  int key, kept, flag;
  MPI_Comm copy;
  EXPECT(MPI_Comm_create_keyval(copy_value, delete_value, &key, &calls) == MPI_SUCCESS);
  EXPECT(MPI_Comm_get_attr(MPI_COMM_WORLD, key, &value, &flag) == MPI_SUCCESS && flag == 0);
  EXPECT(MPI_Comm_set_attr(MPI_COMM_WORLD, key, text) == MPI_SUCCESS);
  EXPECT(MPI_Comm_dup(MPI_COMM_WORLD, &copy) == MPI_SUCCESS && calls.copied == 1);
  EXPECT(MPI_Comm_get_attr(copy, key, &value, &flag) == MPI_SUCCESS && flag == 1 && value == text + 1);
  EXPECT(MPI_Comm_free(&copy) == MPI_SUCCESS && calls.deleted == 1);
  EXPECT(MPI_Comm_set_attr(MPI_COMM_WORLD, key, text + 2) == MPI_SUCCESS && calls.deleted == 2);
  kept = key;
  EXPECT(MPI_Comm_free_keyval(&key) == MPI_SUCCESS && key == MPI_KEYVAL_INVALID && calls.deleted == 2);
  EXPECT(MPI_Comm_delete_attr(MPI_COMM_WORLD, kept) == MPI_SUCCESS &&
         calls.deleted == 3); /* before `calls` goes */
}

/* A key that is freed while attributes have it is a key until the last of them is gone. */
static void check_freed_keys(void) {
  static char text[4];
  struct Calls calls = {0, 0};
  void* value = NULL;
  int key, kept, copy_of_kept, flag;
  MPI_Comm copy;
  EXPECT(MPI_Comm_create_keyval(copy_value, delete_value, &key, &calls) == MPI_SUCCESS);
  EXPECT(MPI_Comm_set_attr(MPI_COMM_WORLD, key, text) == MPI_SUCCESS);
  kept = copy_of_kept = key;
  EXPECT(MPI_Comm_free_keyval(&key) == MPI_SUCCESS);
  EXPECT(MPI_Comm_get_attr(MPI_COMM_WORLD, kept, &value, &flag) == MPI_SUCCESS && flag == 1 && value == text);
  EXPECT(MPI_Comm_dup(MPI_COMM_WORLD, &copy) == MPI_SUCCESS && calls.copied == 1);
  EXPECT(MPI_Comm_delete_attr(MPI_COMM_WORLD, kept) == MPI_SUCCESS && calls.deleted == 1);
  EXPECT(MPI_Comm_get_attr(copy, kept, &value, &flag) == MPI_SUCCESS && flag == 1 && value == text + 1);
  EXPECT(MPI_Comm_free_keyval(&copy_of_kept) == MPI_SUCCESS && copy_of_kept == MPI_KEYVAL_INVALID);
  EXPECT(MPI_Comm_set_attr(copy, kept, text + 2) == MPI_SUCCESS && calls.deleted == 2);
  EXPECT(MPI_Comm_free(&copy) == MPI_SUCCESS && calls.deleted == 3);
  EXPECT(MPI_Comm_get_attr(MPI_COMM_WORLD, kept, &value, &flag) == MPI_ERR_KEYVAL);
  EXPECT(MPI_Comm_free_keyval(&kept) == MPI_ERR_KEYVAL);
}

/* A delete function may free the key of the attribute that it deletes. */
static int free_own_key(MPI_Datatype type, int key, void* value, void* state) {
  (void)type, (void)value;
  ++*(int*)state;
  return MPI_Type_free_keyval(&key);
}

static void check_freed_keys_of_datatypes(void) {
  MPI_Datatype type, copy;
  int key, kept, deleted = 0;
  EXPECT(MPI_Type_dup(MPI_INT, &type) == MPI_SUCCESS);
  EXPECT(MPI_Type_create_keyval(MPI_TYPE_DUP_FN, free_own_key, &key, &deleted) == MPI_SUCCESS);
  EXPECT(MPI_Type_set_attr(type, key, NULL) == MPI_SUCCESS && MPI_Type_dup(type, &copy) == MPI_SUCCESS);
  kept = key;
  EXPECT(MPI_Type_free_keyval(&key) == MPI_SUCCESS);
  EXPECT(MPI_Type_delete_attr(type, kept) == MPI_SUCCESS && deleted == 1);
  EXPECT(MPI_Type_delete_attr(type, kept) == MPI_ERR_ARG); /* there is none any more */
  EXPECT(MPI_Type_free(&copy) == MPI_SUCCESS && deleted == 2);
  EXPECT(MPI_Type_delete_attr(type, kept) == MPI_ERR_KEYVAL);
  EXPECT(MPI_Type_free(&type) == MPI_SUCCESS);
}

static void check_predefined_attributes(void) {
  int *value = NULL, flag = 0, error_class;
  EXPECT(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &flag) == MPI_SUCCESS && flag &&
         *value >= 32767);
  EXPECT(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &value, &flag) == MPI_SUCCESS && flag &&
         *value == size);
  EXPECT(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &value, &flag) == MPI_SUCCESS && flag);
  EXPECT(MPI_Add_error_class(&error_class) == MPI_SUCCESS && *value == error_class);
  EXPECT(MPI_Comm_set_attr(MPI_COMM_WORLD, MPI_TAG_UB, NULL) == MPI_ERR_KEYVAL);
}

/* Error handlers. */
static MPI_Comm failed_comm = MPI_COMM_NULL;
static int failed_code = MPI_SUCCESS;

static void remember(MPI_Comm* comm, int* code, ...) {
  failed_comm = *comm;
  failed_code = *code;
}

static void check_error_handlers(void) {
  MPI_Comm comm, copy;
  MPI_Errhandler handler, found;
  int value = 0;
  EXPECT(MPI_Comm_dup(MPI_COMM_SELF, &comm) == MPI_SUCCESS);
  EXPECT(MPI_Comm_create_errhandler(remember, &handler) == MPI_SUCCESS);
  EXPECT(MPI_Comm_set_errhandler(comm, handler) == MPI_SUCCESS);
  EXPECT(MPI_Errhandler_free(&handler) == MPI_SUCCESS && handler == MPI_ERRHANDLER_NULL);
  EXPECT(MPI_Send(&value, 1, MPI_INT, 7, 0, comm) == MPI_ERR_RANK);
  EXPECT(failed_comm == comm && failed_code == MPI_ERR_RANK);
  EXPECT(MPI_Comm_dup(comm, &copy) == MPI_SUCCESS); /* with its handler */
  EXPECT(MPI_Comm_call_errhandler(copy, MPI_ERR_OTHER) == MPI_SUCCESS);
  EXPECT(failed_comm == copy && failed_code == MPI_ERR_OTHER);
  EXPECT(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN) == MPI_SUCCESS);
  EXPECT(MPI_Comm_get_errhandler(comm, &found) == MPI_SUCCESS && found == MPI_ERRORS_RETURN);
  EXPECT(MPI_Send(&value, -1, MPI_INT, 0, 0, comm) == MPI_ERR_COUNT);
  EXPECT(MPI_Send(&value, 1, MPI_DATATYPE_NULL, 0, 0, comm) == MPI_ERR_TYPE);
  EXPECT(MPI_Comm_free(&copy) == MPI_SUCCESS && MPI_Comm_free(&comm) == MPI_SUCCESS && comm == MPI_COMM_NULL);
}

static void check_numbers(void) {
  MPI_Comm comm;
  EXPECT(MPI_Comm_dup(MPI_COMM_WORLD, &comm) == MPI_SUCCESS);
  EXPECT(MPI_Comm_fromint(MPI_Comm_toint(comm)) == comm);
  EXPECT(MPI_Comm_free(&comm) == MPI_SUCCESS);
}

/* The kinds of memory that programs may pass, from a communicator, a window and a session. */
static void check_memory_kinds(void) {
  MPI_Info infos[3];
  MPI_Session session;
  MPI_Win win;
  int i;
  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_SELF, &win);
  EXPECT(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session) == MPI_SUCCESS);
  EXPECT(MPI_Comm_get_info(MPI_COMM_WORLD, &infos[0]) == MPI_SUCCESS);
  EXPECT(MPI_Comm_set_info(MPI_COMM_WORLD, infos[0]) == MPI_SUCCESS);
  EXPECT(MPI_Win_get_info(win, &infos[1]) == MPI_SUCCESS);
  EXPECT(MPI_Session_get_info(session, &infos[2]) == MPI_SUCCESS);
  for (i = 0; i < 3; ++i) {
    char value[100];
    int length = sizeof value, flag = 0;
    EXPECT(MPI_Info_get_string(infos[i], "mpi_memory_alloc_kinds", &length, value, &flag) == MPI_SUCCESS &&
           flag);
    EXPECT(strcmp(value, "mpi,system") == 0 || strcmp(value, "mpi,system,cuda") == 0);
    MPI_Info_free(&infos[i]);
  }
  MPI_Win_free(&win);
  MPI_Session_finalize(&session);
}

/* Runs when MPI_Finalize deletes the attributes of MPI_COMM_SELF. */
static int at_the_end(MPI_Comm comm, int key, void* value, void* state) {
  (void)key, (void)value, (void)state;
  int finalized = 1;
  EXPECT(comm == MPI_COMM_SELF && MPI_Finalized(&finalized) == MPI_SUCCESS && !finalized);
  if (rank == 0) printf("objects of %d ranks: as expected\n", size);
  return MPI_SUCCESS;
}

int main(int argc, char** argv) {
  int key;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  check_groups();
  check_attributes();
  check_freed_keys();
  check_freed_keys_of_datatypes();
  check_predefined_attributes();
  check_error_handlers();
  check_numbers();
  check_memory_kinds();
  EXPECT(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_the_end, &key, NULL) == MPI_SUCCESS);
  EXPECT(MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL) == MPI_SUCCESS);
  return MPI_Finalize();
}
