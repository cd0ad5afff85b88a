/* A call that makes a session or a communicator uses the error handler that it is given for its own errors too. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "expect.h"

static int num_calls, last_class, was_null;
static void on_session(MPI_Session* session, int* code, ...) {
  ++num_calls, last_class = class_of(*code), was_null = *session == MPI_SESSION_NULL;
}
static void on_communicator(MPI_Comm* comm, int* code, ...) {
  ++num_calls, last_class = class_of(*code), was_null = *comm == MPI_COMM_NULL;
}

int main(int argc, char** argv) {
  MPI_Session session = MPI_SESSION_NULL, other = MPI_SESSION_NULL;
  MPI_Errhandler for_session, for_communicator;
  MPI_Info freed, hints;
  MPI_Group world;
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Session_create_errhandler(on_session, &for_session);
  MPI_Comm_create_errhandler(on_communicator, &for_communicator);
  if (argc > 1 && strcmp(argv[1], "no-start") == 0) { /* the environment lets MPI not start */
    const int code = MPI_Session_init(MPI_INFO_NULL, for_session, &session);
    EXPECT(code != MPI_SUCCESS && num_calls == 1 && was_null && last_class == class_of(code));
    EXPECT(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session) != MPI_SUCCESS);
    EXPECT(session == MPI_SESSION_NULL && num_calls == 1);
    printf("the start fails: as expected\n");
    return 0;
  }
  MPI_Info_create(&hints);
  MPI_Info_create(&freed);
  MPI_Info stale = freed;
  MPI_Info_free(&freed);
  EXPECT(class_of(MPI_Session_init(stale, MPI_ERRORS_RETURN, &session)) == MPI_ERR_INFO && num_calls == 0);
  EXPECT(class_of(MPI_Session_init(stale, for_session, &session)) == MPI_ERR_INFO);
  EXPECT(num_calls == 1 && last_class == MPI_ERR_INFO && was_null);
  MPI_Info_set(hints, "thread_level", "MPI_THREAD_FANCY");
  EXPECT(class_of(MPI_Session_init(hints, MPI_ERRORS_RETURN, &session)) == MPI_ERR_INFO_VALUE);
  EXPECT(session == MPI_SESSION_NULL);
  MPI_Info_set(hints, "thread_level", "MPI_THREAD_MULTIPLE");
  EXPECT(MPI_Session_init(hints, for_session, &session) == MPI_SUCCESS);
  EXPECT(num_calls == 1 && session != MPI_SESSION_NULL);
  MPI_Group_from_session_pset(session, "mpi://WORLD", &world);
  EXPECT(class_of(MPI_Comm_create_from_group(world, "a", stale, MPI_ERRORS_RETURN, &comm)) == MPI_ERR_INFO);
  EXPECT(class_of(MPI_Comm_create_from_group(world, "a", stale, for_communicator, &comm)) == MPI_ERR_INFO);
  EXPECT(num_calls == 2 && last_class == MPI_ERR_INFO && was_null && comm == MPI_COMM_NULL);
  EXPECT(class_of(MPI_Intercomm_create_from_groups(world, -1, world, 0, "a", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm)) ==
         MPI_ERR_RANK);
  EXPECT(class_of(MPI_Intercomm_create_from_groups(world, -1, world, 0, "a", MPI_INFO_NULL, for_communicator, &comm)) ==
         MPI_ERR_RANK);
  EXPECT(num_calls == 3 && last_class == MPI_ERR_RANK && was_null);
  MPI_Group_free(&world);
  /* A handler of another kind of object is an error, which goes where it did before: here to the end of the job. */
  if (argc > 1 && strcmp(argv[1], "other-kind") == 0) MPI_Session_init(MPI_INFO_NULL, for_communicator, &other);
  MPI_Info_free(&hints);
  MPI_Errhandler_free(&for_session);
  MPI_Errhandler_free(&for_communicator);
  MPI_Session_finalize(&session);
  printf("handlers that calls are given: as expected\n");
  return 0;
}
