/* A forked child of a rank calls MPI, or ends as programs and mpi4py do, whose exit functions finalize MPI. The job of its parent
   does not notice. */
#define _POSIX_C_SOURCE 200809L

#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int is_child = 0;

static void finalize_at_exit(void) {
  int finalized;
  MPI_Finalized(&finalized);
  if (is_child && !finalized) _exit(90);
  if (is_child || !finalized) MPI_Finalize(); /* a child of a program that does not ask */
}

/* What the child's waitpid() gives. */
static int fork_child(const char* how) {
  int status = 0;
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    is_child = 1;
    if (strcmp(how, "abort") == 0) MPI_Abort(MPI_COMM_WORLD, 7);
    if (strcmp(how, "call") == 0) MPI_Barrier(MPI_COMM_WORLD);
    return -1;
  }
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static int with_session(const char* how) {
  MPI_Session session;
  MPI_Group group;
  MPI_Comm comm;
  int rank, sum, code = 0;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
  MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
  MPI_Comm_create_from_group(group, "forks", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
  MPI_Comm_rank(comm, &rank);
  if (strcmp(how, "open") == 0) code = fork_child(how);
  if (code == -1) {
    MPI_Session_finalize(&session);
    exit(7);
  }
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
  MPI_Comm_free(&comm);
  MPI_Group_free(&group);
  MPI_Session_finalize(&session);
  if (strcmp(how, "closed") == 0) code = fork_child(how);
  if (code == -1) exit(7);
  printf("sum %d, child %d\n", sum, code);
  return 0;
}

int main(int argc, char** argv) {
  int rank, sum;
  const char* const how = argc > 1 ? argv[1] : "exit";
  if (strcmp(how, "open") == 0 || strcmp(how, "closed") == 0) return with_session(how);
  MPI_Init(&argc, &argv);
  atexit(finalize_at_exit);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Barrier(MPI_COMM_WORLD);
  const int code = fork_child(how);
  if (code == -1) {
    if (strcmp(how, "return") == 0) return 7;
    exit(7);
  }
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  printf("sum %d, child %d\n", sum, code);
  return 0;
}
