#include "entry/entry.h"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <string>

#include "ended_jobs.h"
#include "entry/handles.h"

namespace weft::mpi {
namespace {

class TestWindow final : public ErrorScope {
 public:
  explicit TestWindow(Ref<ErrorHandler> handler) : ErrorScope(ObjectKind::kWindow, std::move(handler)) {
    set_name("the window");
  }
};

Ref<TestWindow> window_with(const Ref<ErrorHandler>& handler) {
  return Ref<TestWindow>::adopt(new TestWindow(handler));
}

MPI_Win handle_of_window(const Ref<TestWindow>& window) { return handle_of<MPI_Win>(window.get()); }

TEST(Guarded, ReturnsTheClassOfAnErrorIfTheHandlerReturns) {
  const auto window = window_with(this_rank().errors_return);
  const MPI_Win win = handle_of_window(window);
  EXPECT_EQ(guarded("MPI_Test", win, []() -> Error { return {}; }), MPI_SUCCESS);
  EXPECT_EQ(guarded("MPI_Test", win, []() -> Error { return {MPI_ERR_DISP, "too far"}; }), MPI_ERR_DISP);
}

TEST(Guarded, CatchesWhatTheBodyThrows) {
  const auto window = window_with(this_rank().errors_return);
  const MPI_Win win = handle_of_window(window);
  EXPECT_EQ(guarded("MPI_Test", win, []() -> Error { throw std::bad_alloc(); }), MPI_ERR_NO_MEM);
  EXPECT_EQ(guarded("MPI_Test", win, []() -> Error { throw std::runtime_error("broken"); }), MPI_ERR_INTERN);
  EXPECT_EQ(guarded("MPI_Test", win, []() -> Error { throw 7; }), MPI_ERR_INTERN);
  EXPECT_EQ(without_exceptions("MPI_Test", win, []() -> int { throw std::bad_alloc(); }), MPI_ERR_NO_MEM);
  EXPECT_EQ(without_exceptions("MPI_Test", win, [] { return 42; }), 42);
}

TEST(Raise, AFatalHandlerEndsTheJobWithASentence) {
  const EndedJobs ended;
  const auto window = window_with(this_rank().errors_are_fatal);
  raise("MPI_Put_c", handle_of_window(window), {MPI_ERR_DISP, "the displacement 9 is outside"});
  EXPECT_EQ(EndedJobs::last(),
            "weft: MPI_Put on the window: the displacement 9 is outside (MPI_ERR_DISP). The error handler "
            "MPI_ERRORS_ARE_FATAL ends the job; set MPI_ERRORS_RETURN to get the error code instead.");
}

TEST(Raise, AnErrorWithoutATextHasThatOfItsClass) {
  const EndedJobs ended;
  const auto window = window_with(this_rank().errors_abort);
  raise("MPI_Put", handle_of_window(window), {MPI_ERR_DISP, {}});
  EXPECT_NE(EndedJobs::last().find("invalid displacement"), std::string::npos) << EndedJobs::last();
  EXPECT_NE(EndedJobs::last().find("MPI_ERRORS_ABORT"), std::string::npos) << EndedJobs::last();
}

TEST(Raise, AnErrorWithoutAnObjectIsFatalBeforeMpiInit) {
  const EndedJobs ended;
  EXPECT_EQ(raise("MPI_Info_set", kNoObject, {MPI_ERR_INFO, "no info"}), MPI_ERR_INFO);
  EXPECT_NE(EndedJobs::last().find("MPI_Info_set"), std::string::npos);
}

TEST(Raise, AnErrorOfANullHandleGoesToTheHandlerOfMpiCommSelf) {
  const EndedJobs ended;
  const auto self = window_with(this_rank().errors_return);
  this_rank().self = self.get();
  EXPECT_EQ(raise("MPI_Send", MPI_COMM_NULL, {MPI_ERR_COMM, "null"}), MPI_ERR_COMM);
  EXPECT_EQ(raise("MPI_Put", MPI_WIN_NULL, {MPI_ERR_WIN, "null"}), MPI_ERR_WIN);
  this_rank().self = nullptr;
  EXPECT_EQ(EndedJobs::last(), "");
}

TEST(Raise, ErrorsOfFilesReturnByDefault) {
  const EndedJobs ended;
  EXPECT_EQ(raise("MPI_File_open", MPI_FILE_NULL, {MPI_ERR_NO_SUCH_FILE, "gone"}), MPI_ERR_NO_SUCH_FILE);
  EXPECT_EQ(EndedJobs::last(), "");
}

TEST(NotImplemented, SaysItsNameOnce) {
  const auto window = window_with(this_rank().errors_return);
  const MPI_Win win = handle_of_window(window);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(not_implemented("MPI_Imagined", win), MPI_ERR_UNSUPPORTED_OPERATION);
  EXPECT_EQ(not_implemented("MPI_Imagined", win), MPI_ERR_UNSUPPORTED_OPERATION);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "weft: MPI_Imagined is not implemented\n");
}

TEST(Require, NamesTheArgumentThatIsNull) {
  const int there = 0;
  EXPECT_TRUE(require({{&there, "size"}}).ok());
  const Error error = require({{&there, "size"}, {nullptr, "rank"}});
  EXPECT_EQ(error.error_class, MPI_ERR_ARG);
  EXPECT_EQ(error.text, "the argument rank is a null pointer");
}

TEST(Require, NamesAConstantThatIsNoAddress) {
  const Error error = require({{MPI_IN_PLACE, "buffer"}});
  EXPECT_EQ(error.error_class, MPI_ERR_ARG);
  EXPECT_EQ(error.text, "the argument buffer is MPI_IN_PLACE, which is not allowed here");
}

TEST(CopyString, CutsWhatDoesNotFit) {
  char text[4] = {'x', 'x', 'x', 'x'};
  copy_string("ab", 4, text);
  EXPECT_STREQ(text, "ab");
  copy_string("abcdef", 4, text);
  EXPECT_STREQ(text, "abc");
  copy_string("abcdef", 0, nullptr);
}

TEST(Handles, AnObjectOfAnotherKindIsNotFound) {
  const auto window = window_with(this_rank().errors_return);
  const MPI_Win win = handle_of_window(window);
  EXPECT_EQ(error_scope(win), window.get());
  EXPECT_EQ(error_scope(reinterpret_cast<MPI_Comm>(win)), nullptr);
  EXPECT_EQ(error_scope(MPI_WIN_NULL), nullptr);
}

}  // namespace
}  // namespace weft::mpi
