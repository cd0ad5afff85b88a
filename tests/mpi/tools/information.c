/* The tool information interface, as a tool uses it: before, while and after MPI runs. Run on 1 and more ranks. */
#include <stdbool.h>
#include <string.h>

#include "../expect.h"

enum { kText = 256 };

/* The setting, through a handle. */
static int read_setting(const char* name, char* value) {
  MPI_T_cvar_handle handle;
  int index, count = 0, code;
  EXPECT(MPI_T_cvar_get_index(name, &index) == MPI_SUCCESS);
  EXPECT(MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) == MPI_SUCCESS && count >= kText);
  code = MPI_T_cvar_read(handle, value);
  EXPECT(MPI_T_cvar_handle_free(&handle) == MPI_SUCCESS && handle == MPI_T_CVAR_HANDLE_NULL);
  return code;
}
static int write_setting(const char* name, const char* value) {
  MPI_T_cvar_handle handle;
  int index, count, code;
  EXPECT(MPI_T_cvar_get_index(name, &index) == MPI_SUCCESS);
  EXPECT(MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) == MPI_SUCCESS);
  code = MPI_T_cvar_write(handle, value);
  EXPECT(MPI_T_cvar_handle_free(&handle) == MPI_SUCCESS);
  return code;
}

/* With "list" as the argument of the program, prints the names: a Python test compares them with the options of `weft run`. */
static void check_control_variables(bool prints) {
  int number = 0, i;
  EXPECT(MPI_T_cvar_get_num(&number) == MPI_SUCCESS && number > 0);
  for (i = 0; i < number; ++i) {
    char name[kText], text[kText], start[4];
    int name_length = kText, text_length = kText, start_length = 4, none = 0;
    int verbosity, bind, scope, index = -1;
    MPI_Datatype type;
    MPI_T_enum enumeration;
    EXPECT(MPI_T_cvar_get_info(i, name, &name_length, &verbosity, &type, &enumeration, text, &text_length,
                               &bind, &scope) == MPI_SUCCESS);
    EXPECT(name_length == (int)strlen(name) + 1 && text_length == (int)strlen(text) + 1 && text_length > 1);
    EXPECT(verbosity == MPI_T_VERBOSITY_USER_BASIC && bind == MPI_T_BIND_NO_OBJECT && type == MPI_CHAR);
    EXPECT(enumeration == MPI_T_ENUM_NULL && scope >= MPI_T_SCOPE_CONSTANT && scope <= MPI_T_SCOPE_ALL_EQ);
    EXPECT(MPI_T_cvar_get_index(name, &index) == MPI_SUCCESS && index == i);
    /* Any result may be left out; a short array gets the start of the text, and none its length. */
    EXPECT(MPI_T_cvar_get_info(i, start, &start_length, NULL, NULL, NULL, NULL, &none, NULL, NULL) ==
           MPI_SUCCESS);
    EXPECT(start_length == 4 && strncmp(start, name, 3) == 0 && start[3] == '\0' && none == text_length);
    if (prints) puts(name);
  }
  EXPECT(MPI_T_cvar_get_info(number, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL) ==
         MPI_T_ERR_INVALID_INDEX);
  EXPECT(MPI_T_cvar_get_index("WEFT_NO_SUCH_SETTING", &i) == MPI_T_ERR_INVALID_NAME);
}

static void check_settings_before_start(void) {
  char value[4096];
  EXPECT(write_setting("WEFT_STATS", "0") == MPI_SUCCESS);
  EXPECT(strcmp(getenv("WEFT_STATS"), "0") == 0);
  EXPECT(read_setting("WEFT_STATS", value) == MPI_SUCCESS && strcmp(value, "0") == 0);
  EXPECT(write_setting("WEFT_STATS", "") == MPI_SUCCESS && getenv("WEFT_STATS") == NULL);
  EXPECT(read_setting("WEFT_STATS", value) == MPI_SUCCESS && strcmp(value, "") == 0);
  memset(value, 'x', sizeof value);
  EXPECT(write_setting("WEFT_STATS", value) == MPI_T_ERR_INVALID);
  EXPECT(write_setting("WEFT_MPI_RANKS", "4") == MPI_T_ERR_CVAR_SET_NEVER);
}

static unsigned long long read_variable(MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
  unsigned long long value = 99;
  EXPECT(MPI_T_pvar_read(session, handle, &value) == MPI_SUCCESS);
  return value;
}

/* Sums the values of all variables of the class, each through a handle in `session`. */
static unsigned long long sum_of_class(MPI_T_pvar_session session, int wanted) {
  unsigned long long sum = 0;
  int number = 0, i;
  EXPECT(MPI_T_pvar_get_num(&number) == MPI_SUCCESS && number > 0);
  for (i = 0; i < number; ++i) {
    char name[kText];
    int length = kText, class, bind, readonly, continuous, atomic, index = -1, count = 0;
    MPI_Datatype type;
    MPI_T_pvar_handle handle;
    EXPECT(MPI_T_pvar_get_info(i, name, &length, NULL, &class, &type, NULL, NULL, NULL, &bind, &readonly,
                               &continuous, &atomic) == MPI_SUCCESS);
    EXPECT(type == MPI_UNSIGNED_LONG_LONG && bind == MPI_T_BIND_NO_OBJECT && readonly && continuous &&
           !atomic);
    EXPECT(MPI_T_pvar_get_index(name, class, &index) == MPI_SUCCESS && index == i);
    EXPECT(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_TIMER, &index) == MPI_T_ERR_INVALID_NAME);
    EXPECT(MPI_T_pvar_handle_alloc(session, i, NULL, &handle, &count) == MPI_SUCCESS && count == 1);
    if (class == wanted) sum += read_variable(session, handle);
    EXPECT(MPI_T_pvar_start(session, handle) == MPI_T_ERR_PVAR_NO_STARTSTOP);
    EXPECT(MPI_T_pvar_stop(session, handle) == MPI_T_ERR_PVAR_NO_STARTSTOP);
    EXPECT(MPI_T_pvar_write(session, handle, &sum) == MPI_T_ERR_PVAR_NO_WRITE);
    EXPECT(MPI_T_pvar_reset(session, handle) == MPI_T_ERR_PVAR_NO_WRITE);
    EXPECT(MPI_T_pvar_readreset(session, handle, &sum) == MPI_T_ERR_PVAR_NO_WRITE);
    EXPECT(MPI_T_pvar_handle_free(session, &handle) == MPI_SUCCESS && handle == MPI_T_PVAR_HANDLE_NULL);
  }
  EXPECT(MPI_T_pvar_get_info(number, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
                             NULL) == MPI_T_ERR_INVALID_INDEX);
  return sum;
}

static MPI_T_pvar_handle handle_of(MPI_T_pvar_session session, const char* name, int class) {
  MPI_T_pvar_handle handle;
  int index, count;
  EXPECT(MPI_T_pvar_get_index(name, class, &index) == MPI_SUCCESS);
  EXPECT(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count) == MPI_SUCCESS);
  return handle;
}

static void check_performance_variables(void) {
  MPI_T_pvar_session session, other;
  MPI_T_pvar_handle unexpected, posted;
  MPI_Request receive;
  unsigned long long messages, bytes;
  int rank, size, value = 5;
  static char block[100000];
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  EXPECT(MPI_T_pvar_session_create(&session) == MPI_SUCCESS &&
         MPI_T_pvar_session_create(&other) == MPI_SUCCESS);
  messages = sum_of_class(session, MPI_T_PVAR_CLASS_COUNTER);
  bytes = sum_of_class(session, MPI_T_PVAR_CLASS_AGGREGATE);
  MPI_Sendrecv_replace(block, sizeof block, MPI_CHAR, (rank + 1) % size, 0, (rank + size - 1) % size, 0,
                       MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (size > 1) {
    EXPECT(sum_of_class(session, MPI_T_PVAR_CLASS_COUNTER) > messages);
    EXPECT(sum_of_class(session, MPI_T_PVAR_CLASS_AGGREGATE) >= bytes + sizeof block);
  }
  unexpected = handle_of(session, "weft_unexpected_messages", MPI_T_PVAR_CLASS_LEVEL);
  posted = handle_of(session, "weft_posted_receives", MPI_T_PVAR_CLASS_LEVEL);
  messages = read_variable(session, posted);
  MPI_Irecv(&value, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &receive);
  EXPECT(read_variable(session, posted) == messages + 1);
  MPI_Send(&value, 1, MPI_INT, 0, 1, MPI_COMM_SELF);
  MPI_Wait(&receive, MPI_STATUS_IGNORE);
  messages = read_variable(session, unexpected);
  MPI_Send(&value, 1, MPI_INT, 0, 2, MPI_COMM_SELF);
  EXPECT(read_variable(session, unexpected) == messages + 1);
  MPI_Recv(&value, 1, MPI_INT, 0, 2, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  EXPECT(read_variable(session, unexpected) == messages);
  /* A handle belongs to its session. */
  EXPECT(MPI_T_pvar_read(other, posted, &messages) == MPI_T_ERR_INVALID_HANDLE);
  EXPECT(MPI_T_pvar_read(MPI_T_PVAR_SESSION_NULL, posted, &messages) == MPI_T_ERR_INVALID_SESSION);
  EXPECT(MPI_T_pvar_read(session, MPI_T_PVAR_ALL_HANDLES, &messages) == MPI_T_ERR_INVALID_HANDLE);
  EXPECT(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES) == MPI_SUCCESS);
  EXPECT(MPI_T_pvar_stop(session, MPI_T_PVAR_ALL_HANDLES) == MPI_SUCCESS);
  EXPECT(MPI_T_pvar_session_free(&session) == MPI_SUCCESS && session == MPI_T_PVAR_SESSION_NULL);
  EXPECT(MPI_T_pvar_session_free(&session) == MPI_T_ERR_INVALID_SESSION);
  EXPECT(MPI_T_pvar_session_free(&other) == MPI_SUCCESS);
}

static void check_categories(void) {
  int number = 0, i, num_control = 0, num_performance = 0, all_control, all_performance, stamp = -1;
  EXPECT(MPI_T_category_get_num(&number) == MPI_SUCCESS && MPI_T_category_changed(&stamp) == MPI_SUCCESS &&
         stamp >= 0);
  for (i = 0; i < number; ++i) {
    char name[kText];
    int length = kText, controls, performances, categories, events, index = -1, indices[64];
    EXPECT(MPI_T_category_get_info(i, name, &length, NULL, NULL, &controls, &performances, &categories) ==
           MPI_SUCCESS);
    EXPECT(MPI_T_category_get_index(name, &index) == MPI_SUCCESS && index == i && categories == 0);
    EXPECT(MPI_T_category_get_num_events(i, &events) == MPI_SUCCESS && events == 0);
    EXPECT(controls <= 64 && MPI_T_category_get_cvars(i, controls, indices) == MPI_SUCCESS);
    for (index = 0; index < controls; ++index) EXPECT(indices[index] == num_control + index);
    EXPECT(performances <= 64 && MPI_T_category_get_pvars(i, performances, indices) == MPI_SUCCESS);
    for (index = 0; index < performances; ++index) EXPECT(indices[index] == num_performance + index);
    EXPECT(MPI_T_category_get_categories(i, 0, NULL) == MPI_SUCCESS);
    EXPECT(MPI_T_category_get_events(i, 0, NULL) == MPI_SUCCESS);
    num_control += controls, num_performance += performances;
  }
  MPI_T_cvar_get_num(&all_control);
  MPI_T_pvar_get_num(&all_performance);
  EXPECT(num_control == all_control && num_performance == all_performance);
  EXPECT(MPI_T_category_get_cvars(number, 0, NULL) == MPI_T_ERR_INVALID_INDEX);
  EXPECT(MPI_T_category_get_index("weft_nothing", &i) == MPI_T_ERR_INVALID_NAME);
}

static void check_events(void) {
  int number = -1;
  MPI_Count time;
  EXPECT(MPI_T_event_get_num(&number) == MPI_SUCCESS && number == 0);
  number = -1;
  EXPECT(MPI_T_source_get_num(&number) == MPI_SUCCESS && number == 0);
  EXPECT(MPI_T_source_get_timestamp(0, &time) == MPI_T_ERR_INVALID_INDEX);
  EXPECT(MPI_T_event_get_index("any", &number) == MPI_T_ERR_INVALID_NAME);
}

static void check_not_initialized(void) {
  int number;
  EXPECT(MPI_T_cvar_get_num(&number) == MPI_T_ERR_NOT_INITIALIZED);
  EXPECT(MPI_T_finalize() == MPI_T_ERR_NOT_INITIALIZED);
}

int main(int argc, char** argv) {
  char text[MPI_MAX_ERROR_STRING], value[4096];
  int provided = -1, rank, size, length = 0;
  const bool prints = argc > 1 && strcmp(argv[1], "list") == 0;
  check_not_initialized();
  EXPECT(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS && provided == MPI_THREAD_SINGLE);
  EXPECT(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS);
  EXPECT(MPI_T_finalize() == MPI_SUCCESS); /* the other one holds */
  check_control_variables(prints);
  check_settings_before_start();
  check_categories();
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  EXPECT(write_setting("WEFT_CHECK", "1") == MPI_T_ERR_CVAR_SET_NOT_NOW);
  EXPECT(read_setting("WEFT_CHECK", value) == MPI_SUCCESS);
  check_performance_variables();
  check_categories();
  check_events();
  EXPECT(MPI_Error_string(MPI_T_ERR_INVALID_INDEX, text, &length) == MPI_SUCCESS && length > 0);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0 && !prints) printf("tool information of %d ranks: as expected\n", size);
  MPI_Finalize();
  check_control_variables(false);
  EXPECT(write_setting("WEFT_CHECK", "1") == MPI_T_ERR_CVAR_SET_NOT_NOW);
  {
    MPI_T_pvar_session session;
    EXPECT(MPI_T_pvar_session_create(&session) == MPI_SUCCESS);
    EXPECT(sum_of_class(session, MPI_T_PVAR_CLASS_LEVEL) == 0);
  }
  EXPECT(MPI_T_finalize() == MPI_SUCCESS);
  check_not_initialized();
  return 0;
}
