/* The thread levels that programs get. The argument: 0 to 3 for the level to ask for, or -1 for MPI_Init. With a second argument, another
 * thread opens a session before, or "later", which has the level MPI_THREAD_MULTIPLE without a hint. */
#include "threads.h"

static const char* name_of(int level) {
  switch (level) {
    case MPI_THREAD_SINGLE:
      return "single";
    case MPI_THREAD_FUNNELED:
      return "funneled";
    case MPI_THREAD_SERIALIZED:
      return "serialized";
    default:
      return level == MPI_THREAD_MULTIPLE ? "multiple" : "none";
  }
}

static void* ask_in_thread(void* unused) {
  int is_main = -1, is_initialized = -1, is_finalized = -1;
  (void)unused;
  EXPECT(MPI_Is_thread_main(&is_main) == MPI_SUCCESS && is_main == 0);
  EXPECT(MPI_Initialized(&is_initialized) == MPI_SUCCESS && is_initialized == 1);
  EXPECT(MPI_Finalized(&is_finalized) == MPI_SUCCESS && is_finalized == 0);
  return NULL;
}

static pthread_barrier_t both;

/* Ends by pthread_cancel() outside of MPI, after it has received. */
static void* be_cancelled(void* unused) {
  int value = -1;
  (void)unused;
  MPI_Recv(&value, 1, MPI_INT, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  pthread_barrier_wait(&both);
  for (;;) pthread_testcancel();
  return NULL;
}

static void cancel_a_thread(void) {
  pthread_t thread;
  int value = 3;
  pthread_barrier_init(&both, NULL, 2);
  EXPECT(pthread_create(&thread, NULL, be_cancelled, NULL) == 0);
  MPI_Send(&value, 1, MPI_INT, 0, 1, MPI_COMM_SELF);
  pthread_barrier_wait(&both);
  EXPECT(pthread_cancel(thread) == 0);
  EXPECT(pthread_join(thread, NULL) == 0);
}

/* Its message goes before it waits, and no other thread calls MPI in between. */
static void* send_and_wait(void* unused) {
  int value = 9;
  (void)unused;
  MPI_Sendrecv(&value, 1, MPI_INT, 0, 9, &value, 1, MPI_INT, 0, 10, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  EXPECT(value == 10);
  return NULL;
}

/* MPI_Finalize while another thread waits in MPI is an error, and has no effect. */
static void finalize_beside_a_wait(void) {
  pthread_t thread;
  int value = -1;
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  EXPECT(pthread_create(&thread, NULL, send_and_wait, NULL) == 0);
  MPI_Recv(&value, 1, MPI_INT, 0, 9, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  EXPECT(class_of(MPI_Finalize()) == MPI_ERR_OTHER);
  value = 10;
  MPI_Send(&value, 1, MPI_INT, 0, 10, MPI_COMM_SELF);
  EXPECT(pthread_join(thread, NULL) == 0);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

static MPI_Session session;
static void* open_session(void* unused) {
  (void)unused;
  EXPECT(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session) == MPI_SUCCESS);
  return NULL;
}
static void open_session_in_thread(void) {
  pthread_t opener;
  EXPECT(pthread_create(&opener, NULL, open_session, NULL) == 0);
  EXPECT(pthread_join(opener, NULL) == 0);
}

int main(int argc, char** argv) {
  static const int kLevels[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED,
                                MPI_THREAD_MULTIPLE};
  int level = -1, queried = -1, is_main = 0;
  const int wanted = atoi(argv[1]), has_session = argc > 2, opens_later = has_session && argv[2][0] == 'l';
  if (has_session && !opens_later) open_session_in_thread();
  if (wanted < 0) {
    MPI_Init(&argc, &argv);
  } else {
    EXPECT(MPI_Init_thread(&argc, &argv, kLevels[wanted], &level) == MPI_SUCCESS);
  }
  EXPECT(MPI_Query_thread(&queried) == MPI_SUCCESS && (wanted < 0 || queried == level));
  if (opens_later) { /* a library does so: the level rises */
    EXPECT(queried == MPI_THREAD_SERIALIZED);
    open_session_in_thread();
    EXPECT(MPI_Query_thread(&queried) == MPI_SUCCESS);
  }
  EXPECT(MPI_Is_thread_main(&is_main) == MPI_SUCCESS && is_main == 1);
  pthread_t thread;
  EXPECT(pthread_create(&thread, NULL, ask_in_thread, NULL) == 0);
  EXPECT(pthread_join(thread, NULL) == 0);
  if (queried == MPI_THREAD_MULTIPLE) {
    cancel_a_thread();
    finalize_beside_a_wait();
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Finalize();
  if (has_session) EXPECT(MPI_Session_finalize(&session) == MPI_SUCCESS);
  if (rank == 0) printf("%s\n", name_of(queried));
  return 0;
}
