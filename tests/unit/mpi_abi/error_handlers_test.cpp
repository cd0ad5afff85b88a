#include <gtest/gtest.h>

#include <vector>

#include "weft/mpi/mpi.h"

#include "ended_jobs.h"
#include "entry/handles.h"

namespace weft::mpi {
namespace {

struct HandlerCall {
  MPI_File file;
  int code;
  friend bool operator==(const HandlerCall&, const HandlerCall&) = default;
};

std::vector<HandlerCall>& handler_calls() {
  static std::vector<HandlerCall> calls;
  return calls;
}

void record_call(MPI_File* file, int* code, ...) { handler_calls().push_back({*file, *code}); }

// MPI_FILE_NULL is the only object with an error handler that is there before MPI_Init.
class ErrorHandlers : public ::testing::Test {
 protected:
  ErrorHandlers() { MPI_File_get_errhandler(MPI_FILE_NULL, &before_); }
  ~ErrorHandlers() override { MPI_File_set_errhandler(MPI_FILE_NULL, before_); }

  EndedJobs ended_;
  MPI_Errhandler before_ = MPI_ERRHANDLER_NULL;
};

TEST_F(ErrorHandlers, FilesBeginWithErrorsReturn) { EXPECT_EQ(before_, MPI_ERRORS_RETURN); }

TEST_F(ErrorHandlers, AFunctionOfTheProgramIsCalledAlsoAfterItsHandleWasFreed) {
  handler_calls().clear();
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  ASSERT_EQ(MPI_File_create_errhandler(record_call, &handler), MPI_SUCCESS);
  ASSERT_EQ(MPI_File_set_errhandler(MPI_FILE_NULL, handler), MPI_SUCCESS);
  MPI_Errhandler found = MPI_ERRHANDLER_NULL;
  ASSERT_EQ(MPI_File_get_errhandler(MPI_FILE_NULL, &found), MPI_SUCCESS);
  EXPECT_EQ(found, handler);
  EXPECT_EQ(MPI_Errhandler_free(&found), MPI_SUCCESS);
  EXPECT_EQ(MPI_Errhandler_free(&handler), MPI_SUCCESS);
  EXPECT_EQ(handler, MPI_ERRHANDLER_NULL);
  EXPECT_EQ(MPI_File_call_errhandler(MPI_FILE_NULL, MPI_ERR_IO), MPI_SUCCESS);
  EXPECT_EQ(handler_calls(), (std::vector<HandlerCall>{{MPI_FILE_NULL, MPI_ERR_IO}}));
}

TEST_F(ErrorHandlers, PredefinedHandlersKeepTheirHandlesAndMayBeFreed) {
  for (MPI_Errhandler handler : {MPI_ERRORS_ARE_FATAL, MPI_ERRORS_ABORT, MPI_ERRORS_RETURN}) {
    ASSERT_EQ(MPI_File_set_errhandler(MPI_FILE_NULL, handler), MPI_SUCCESS);
    MPI_Errhandler found = MPI_ERRHANDLER_NULL;
    ASSERT_EQ(MPI_File_get_errhandler(MPI_FILE_NULL, &found), MPI_SUCCESS);
    EXPECT_EQ(found, handler);
    EXPECT_EQ(MPI_Errhandler_free(&found), MPI_SUCCESS);
    EXPECT_EQ(found, MPI_ERRHANDLER_NULL);
  }
}

TEST_F(ErrorHandlers, AHandlerOfAnotherKindOfObjectIsRefused) {
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  ASSERT_EQ(MPI_Win_create_errhandler(ignore_error_of_window, &handler), MPI_SUCCESS);
  EXPECT_EQ(MPI_File_set_errhandler(MPI_FILE_NULL, handler), MPI_ERR_ERRHANDLER);
  EXPECT_EQ(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRHANDLER_NULL), MPI_ERR_ERRHANDLER);
  EXPECT_EQ(MPI_Errhandler_free(&handler), MPI_SUCCESS);
}

TEST_F(ErrorHandlers, ObjectsThatAreNotThereAreErrors) {
  MPI_Errhandler found = MPI_ERRHANDLER_NULL;
  EXPECT_EQ(MPI_Comm_get_errhandler(MPI_COMM_NULL, &found), MPI_ERR_COMM);
  EXPECT_EQ(MPI_Win_get_errhandler(MPI_WIN_NULL, &found), MPI_ERR_WIN);
  EXPECT_EQ(MPI_Session_set_errhandler(MPI_SESSION_NULL, MPI_ERRORS_RETURN), MPI_ERR_SESSION);
  EXPECT_EQ(MPI_Comm_call_errhandler(MPI_COMM_NULL, MPI_ERR_IO), MPI_ERR_COMM);
  EXPECT_EQ(MPI_File_get_errhandler(MPI_FILE_NULL, nullptr), MPI_ERR_ARG);
}

}  // namespace
}  // namespace weft::mpi
