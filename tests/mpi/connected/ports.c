/* Jobs of several launches that connect. Arguments: serve NAME TIMES | call NAME [die|fork] | refuse | join DESCRIPTOR |
 * beside DESCRIPTOR SIGNAL. */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "../expect.h"

static int rank, size;

static void ring(MPI_Comm inter) {
  MPI_Comm all;
  int all_rank, all_size, left = -1;
  MPI_Intercomm_merge(inter, 0, &all);
  MPI_Comm_rank(all, &all_rank);
  MPI_Comm_size(all, &all_size);
  MPI_Sendrecv(&all_rank, 1, MPI_INT, (all_rank + 1) % all_size, 0, &left, 1, MPI_INT,
               (all_rank + all_size - 1) % all_size, 0, all, MPI_STATUS_IGNORE);
  EXPECT(left == (all_rank + all_size - 1) % all_size);
  MPI_Comm_free(&all);
}

static void serve(const char* name, int times) {
  char port[MPI_MAX_PORT_NAME];
  MPI_Comm inter;
  int code = MPI_SUCCESS;
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  if (rank == 0) {
    EXPECT(class_of(MPI_Lookup_name(name, MPI_INFO_NULL, port)) == MPI_ERR_NAME);
    MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Publish_name(name, MPI_INFO_NULL, port);
    EXPECT(class_of(MPI_Publish_name(name, MPI_INFO_NULL, port)) == MPI_ERR_SERVICE);
    printf("serving\n");
    fflush(stdout);
  }
  for (int i = 0; i < times; ++i) {
    MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
    ring(inter);
    int flag = 0;
    MPI_Bcast(&flag, 1, MPI_INT, 0, inter);
    MPI_Comm_disconnect(&inter);
  }
  if (rank == 0) {
    MPI_Unpublish_name(name, MPI_INFO_NULL, port);
    EXPECT(class_of(MPI_Lookup_name(name, MPI_INFO_NULL, port + 1)) == MPI_ERR_NAME);
    MPI_Close_port(port);
    code = MPI_Close_port(port);
    EXPECT(class_of(code) == MPI_ERR_PORT);
  }
}

/* A process that outlives its parent. */
static void leave_child(void) {
  if (fork() != 0) return;
  for (int fd = 0; fd < 3; ++fd) close(fd);
  alarm(60);
  pause();
  _exit(1);
}

static void call(const char* name, const char* end) {
  char port[MPI_MAX_PORT_NAME] = "";
  MPI_Comm inter;
  if (rank == 0) MPI_Lookup_name(name, MPI_INFO_NULL, port);
  MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
  ring(inter);
  if (end != NULL && rank == size - 1) {
    if (strcmp(end, "fork") == 0) leave_child();
    raise(SIGKILL);
  }
  if (end != NULL)
    MPI_Recv(port, 1, MPI_CHAR, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* until the job is ended */
  int flag = 1;
  MPI_Bcast(&flag, 1, MPI_INT, rank == 0 ? MPI_ROOT : MPI_PROC_NULL, inter);
  MPI_Comm_disconnect(&inter);
}

static void refuse(void) {
  MPI_Comm inter;
  char port[MPI_MAX_PORT_NAME] = "";
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  EXPECT(class_of(MPI_Comm_connect("nonsense", MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter)) == MPI_ERR_PORT);
  EXPECT(class_of(MPI_Comm_connect("weft-port:1:2:0:3", MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter)) ==
         MPI_ERR_PORT);
  EXPECT(class_of(MPI_Comm_accept("weft-port:1:2:0:3", MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter)) ==
         MPI_ERR_PORT);
  /* The process that would accept is among those that call. */
  if (rank == 0) MPI_Open_port(MPI_INFO_NULL, port);
  EXPECT(class_of(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter)) == MPI_ERR_PORT);
  if (rank == 0) MPI_Close_port(port);
}

static void join(const char* descriptor) {
  MPI_Comm inter;
  MPI_Comm_join(atoi(descriptor), &inter);
  int mine = (int)getpid(), theirs = 0, remote_size;
  MPI_Comm_remote_size(inter, &remote_size);
  EXPECT(remote_size == 1);
  MPI_Sendrecv(&mine, 1, MPI_INT, 0, 0, &theirs, 1, MPI_INT, 0, 0, inter, MPI_STATUS_IGNORE);
  EXPECT(theirs != 0 && theirs != mine);
  MPI_Comm_disconnect(&inter);
}

/* Calls MPI when it is told, while the main thread waits in MPI_Comm_join. */
static void* call_when_told(void* descriptor) {
  const int signal = *(const int*)descriptor;
  char byte = 0;
  int number = -1;
  EXPECT(read(signal, &byte, 1) == 1);
  EXPECT(MPI_Comm_rank(MPI_COMM_WORLD, &number) == MPI_SUCCESS && number == 0);
  EXPECT(write(signal, &byte, 1) == 1);
  return NULL;
}
static void join_beside_calls(int descriptor, int signal) {
  pthread_t thread;
  MPI_Comm inter;
  EXPECT(pthread_create(&thread, NULL, call_when_told, &signal) == 0);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  EXPECT(class_of(MPI_Comm_join(descriptor, &inter)) == MPI_ERR_OTHER && inter == MPI_COMM_NULL);
  EXPECT(pthread_join(thread, NULL) == 0);
}

int main(int argc, char* argv[]) {
  int level = -1;
  EXPECT(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level) == MPI_SUCCESS && level == MPI_THREAD_MULTIPLE);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (strcmp(argv[1], "serve") == 0) {
    serve(argv[2], atoi(argv[3]));
  } else if (strcmp(argv[1], "call") == 0) {
    call(argv[2], argc > 3 ? argv[3] : NULL);
  } else if (strcmp(argv[1], "refuse") == 0) {
    refuse();
  } else if (strcmp(argv[1], "beside") == 0) {
    join_beside_calls(atoi(argv[2]), atoi(argv[3]));
  } else {
    join(argv[2]);
  }
  if (rank == 0) printf("%s: as expected\n", argv[1]);
  MPI_Finalize();
  return 0;
}
