/* All functions of <mpi.h> that convert handles and statuses between C and Fortran: each handle goes through an MPI_Fint and is used
 * afterwards. */
#include <mpi.h>
#include <stdio.h>

#include "expect.h"

/* The Fortran form is the number of MPI_X_toint, and leads back to the handle. */
#define CHECK_HANDLE(Kind, handle)                                        \
  do {                                                                    \
    const MPI_Fint number_ = MPI_##Kind##_c2f(handle);                    \
    EXPECT(number_ == MPI_##Kind##_toint(handle));                        \
    EXPECT(MPI_##Kind##_f2c(number_) == (handle));                        \
    EXPECT(MPI_##Kind##_fromint(number_) == MPI_##Kind##_f2c(number_));   \
  } while (0)

static void check_predefined(void) {
  CHECK_HANDLE(Comm, MPI_COMM_WORLD);
  CHECK_HANDLE(Comm, MPI_COMM_SELF);
  CHECK_HANDLE(Comm, MPI_COMM_NULL);
  CHECK_HANDLE(Errhandler, MPI_ERRORS_RETURN);
  CHECK_HANDLE(Errhandler, MPI_ERRHANDLER_NULL);
  CHECK_HANDLE(File, MPI_FILE_NULL);
  CHECK_HANDLE(Group, MPI_GROUP_EMPTY);
  CHECK_HANDLE(Group, MPI_GROUP_NULL);
  CHECK_HANDLE(Info, MPI_INFO_ENV);
  CHECK_HANDLE(Info, MPI_INFO_NULL);
  CHECK_HANDLE(Message, MPI_MESSAGE_NO_PROC);
  CHECK_HANDLE(Message, MPI_MESSAGE_NULL);
  CHECK_HANDLE(Op, MPI_SUM);
  CHECK_HANDLE(Op, MPI_OP_NULL);
  CHECK_HANDLE(Request, MPI_REQUEST_NULL);
  CHECK_HANDLE(Session, MPI_SESSION_NULL);
  CHECK_HANDLE(Type, MPI_DOUBLE);
  CHECK_HANDLE(Type, MPI_DATATYPE_NULL);
  CHECK_HANDLE(Win, MPI_WIN_NULL);
}

static void ignore(MPI_Comm* comm, int* code, ...) { (void)comm, (void)code; }
static void add(void* in, void* inout, int* count, MPI_Datatype* type) {
  int i;
  (void)type;
  for (i = 0; i < *count; ++i) ((int*)inout)[i] += ((int*)in)[i];
}

static void check_objects(void) {
  MPI_Comm comm;
  MPI_Errhandler handler;
  MPI_Group group;
  MPI_Info info;
  MPI_Op op;
  MPI_Session session;
  MPI_Datatype type;
  int rank, size, found, sum = 0, bytes;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_create_errhandler(ignore, &handler);
  MPI_Comm_group(comm, &group);
  MPI_Info_create(&info);
  MPI_Op_create(add, 1, &op);
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
  MPI_Type_contiguous(3, MPI_INT, &type);
  CHECK_HANDLE(Comm, comm);
  CHECK_HANDLE(Errhandler, handler);
  CHECK_HANDLE(Group, group);
  CHECK_HANDLE(Info, info);
  CHECK_HANDLE(Op, op);
  CHECK_HANDLE(Session, session);
  CHECK_HANDLE(Type, type);
  EXPECT(MPI_Comm_rank(MPI_Comm_f2c(MPI_Comm_c2f(comm)), &found) == MPI_SUCCESS && found == rank);
  EXPECT(MPI_Group_size(MPI_Group_f2c(MPI_Group_c2f(group)), &found) == MPI_SUCCESS && found == size);
  EXPECT(MPI_Type_size(MPI_Type_f2c(MPI_Type_c2f(type)), &bytes) == MPI_SUCCESS && bytes == 12);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_Op_f2c(MPI_Op_c2f(op)), comm);
  EXPECT(sum == size * (size - 1) / 2);
  MPI_Type_free(&type);
  MPI_Session_finalize(&session);
  MPI_Op_free(&op);
  MPI_Info_free(&info);
  MPI_Group_free(&group);
  MPI_Errhandler_free(&handler);
  MPI_Comm_free(&comm);
}

static void check_messages(void) {
  const int sent[2] = {7, 8};
  int received[2] = {0, 0}, count = 0;
  MPI_Fint fortran_request, fortran_message;
  MPI_Request request;
  MPI_Message message;
  MPI_Status status;
  MPI_Isend(sent, 2, MPI_INT, 0, 5, MPI_COMM_SELF, &request);
  CHECK_HANDLE(Request, request);
  fortran_request = MPI_Request_c2f(request);
  MPI_Mprobe(0, 5, MPI_COMM_SELF, &message, &status);
  CHECK_HANDLE(Message, message);
  fortran_message = MPI_Message_c2f(message);
  message = MPI_Message_f2c(fortran_message);
  MPI_Mrecv(received, 2, MPI_INT, &message, &status);
  request = MPI_Request_f2c(fortran_request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  EXPECT(received[0] == 7 && received[1] == 8);
  MPI_Get_count(&status, MPI_INT, &count);
  EXPECT(count == 2);
}

static void expect_status(const MPI_Status* status) {
  int count = 0, cancelled = 0;
  EXPECT(status->MPI_SOURCE == 3 && status->MPI_TAG == 4 && status->MPI_ERROR == 5);
  MPI_Get_count(status, MPI_INT, &count);
  MPI_Test_cancelled(status, &cancelled);
  EXPECT(count == 6 && cancelled == 1);
}

static void check_statuses(void) {
  MPI_Status status, back;
  MPI_F08_status modern;
  MPI_Fint fortran[MPI_F_STATUS_SIZE];
  EXPECT(sizeof(fortran) == sizeof(MPI_Status) && sizeof(modern) == sizeof(MPI_Status));
  MPI_Status_set_source(&status, 3);
  MPI_Status_set_tag(&status, 4);
  MPI_Status_set_error(&status, 5);
  MPI_Status_set_elements(&status, MPI_INT, 6);
  MPI_Status_set_cancelled(&status, 1);
  EXPECT(MPI_Status_c2f(&status, fortran) == MPI_SUCCESS);
  EXPECT(fortran[MPI_F_SOURCE] == 3 && fortran[MPI_F_TAG] == 4 && fortran[MPI_F_ERROR] == 5);
  EXPECT(MPI_Status_f2c(fortran, &back) == MPI_SUCCESS);
  expect_status(&back);
  EXPECT(MPI_Status_c2f08(&status, &modern) == MPI_SUCCESS && MPI_Status_f082c(&modern, &back) == MPI_SUCCESS);
  expect_status(&back);
  EXPECT(MPI_Status_f2f08(fortran, &modern) == MPI_SUCCESS && MPI_Status_f082f(&modern, fortran) == MPI_SUCCESS);
  EXPECT(MPI_Status_f2c(fortran, &back) == MPI_SUCCESS);
  expect_status(&back);
  EXPECT(MPI_Status_c2f(MPI_STATUS_IGNORE, fortran) == MPI_ERR_ARG);
  EXPECT(MPI_Status_f2c(MPI_F_STATUS_IGNORE, &back) == MPI_ERR_ARG);
  EXPECT(MPI_Status_f2c(MPI_F_STATUSES_IGNORE, &back) == MPI_ERR_ARG);
  EXPECT(MPI_Status_f082c(MPI_F08_STATUS_IGNORE, &back) == MPI_ERR_ARG);
  EXPECT(MPI_Status_f082c(MPI_F08_STATUSES_IGNORE, &back) == MPI_ERR_ARG);
}

int main(int argc, char** argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check_predefined();
  check_objects();
  check_messages();
  check_statuses();
  if (rank == 0) printf("Fortran handles on %d ranks: as expected\n", size);
  return MPI_Finalize();
}
