// Several ranks in one process, each a function on a stack of its own. Each job runs in a process of its own, because a process
// starts MPI once.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "device_rank_programs.h"
#include "rank_programs.h"
#include "ranks/fiber.h"

namespace weft::mpi {
namespace {

struct EndOfRanks {
  int code = -1;
  std::string output;  // of stdout and stderr
};

EndOfRanks run_ranks(testing::RankProgram program, int num_ranks) {
  std::array<int, 2> ends{};
  EXPECT_EQ(pipe(ends.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    const std::vector<int> all_here(static_cast<std::size_t>(num_ranks), 0);
    const int code = testing::run_as_ranks(program, 0, 1, all_here);
    std::fflush(nullptr);
    std::_Exit(code);
  }
  close(ends[1]);
  EndOfRanks end;
  std::array<char, 4096> bytes{};
  for (ssize_t size = 0; (size = read(ends[0], bytes.data(), bytes.size())) > 0;)
    end.output.append(bytes.data(), static_cast<std::size_t>(size));
  close(ends[0]);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  end.code = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  return end;
}

class VirtualRanks : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!Fiber::are_available()) GTEST_SKIP() << "this build has no Boost.Context";
  }
};

class GoodPrograms : public VirtualRanks, public ::testing::WithParamInterface<const char*> {};

TEST_P(GoodPrograms, RunOnOneToManyRanks) {
  for (const int num_ranks : {2, 3, 16}) {
    const EndOfRanks end = run_ranks(testing::rank_programs().at(GetParam()), num_ranks);
    EXPECT_EQ(end.code, 0) << num_ranks << " ranks: " << end.output;
    EXPECT_EQ(end.output, "");
  }
}

INSTANTIATE_TEST_SUITE_P(All, GoodPrograms,
                         ::testing::Values("knows_its_number", "passes_messages", "keeps_order", "polls",
                                           "combines", "makes_communicators", "catches_exceptions",
                                           "uses_sessions", "exits_early", "uses_no_mpi"),
                         [](const auto& suite) { return std::string(suite.param); });

TEST_F(VirtualRanks, HaveDataInDeviceMemory) {
  for (const testing::RankProgram program :
       {&testing::moves_device_memory, &testing::waits_for_streams, &testing::allocates_on_devices,
        &testing::queues_messages_on_streams}) {
    for (const int num_ranks : {1, 2, 5}) {
      const EndOfRanks end = run_ranks(program, num_ranks);
      EXPECT_EQ(end.code, 0) << num_ranks << " ranks: " << end.output;
      EXPECT_EQ(end.output, "");
    }
  }
}

TEST_F(VirtualRanks, TwoHundredAndFiftySixOfThem) {
  const EndOfRanks end = run_ranks(&testing::combines, 256);
  EXPECT_EQ(end.code, 0) << end.output;
}

TEST_F(VirtualRanks, OneAloneWorksToo) {
  const EndOfRanks end = run_ranks(&testing::combines, 1);
  EXPECT_EQ(end.code, 0) << end.output;
}

TEST_F(VirtualRanks, TheFirstCodeThatIsNotZeroIsTheResult) {
  EXPECT_EQ(run_ranks(&testing::fails_at_rank_2, 4).code, 7);
}

TEST_F(VirtualRanks, ARankThatEndsWithoutFinalizeEndsTheJob) {
  const EndOfRanks end = run_ranks(&testing::forgets_to_finalize, 4);
  EXPECT_EQ(end.code, 3);
  EXPECT_NE(end.output.find("rank 1 ended with code 3 before it called MPI_Finalize"), std::string::npos)
      << end.output;
}

TEST_F(VirtualRanks, ARankThatNeverStartsMpiEndsTheJob) {
  const EndOfRanks end = run_ranks(&testing::never_starts_mpi, 4);
  EXPECT_EQ(end.code, 1);
  EXPECT_NE(end.output.find("rank 1 ended with code 0 and had not called MPI_Init"), std::string::npos)
      << end.output;
}

TEST_F(VirtualRanks, ARankThatHasEndedBeforeMpiStartsEndsTheJob) {
  const EndOfRanks end = run_ranks(&testing::ends_before_mpi_starts, 4);
  EXPECT_EQ(end.code, 1);
  EXPECT_NE(end.output.find("rank 0 ended with code 0 and had not called MPI_Init"), std::string::npos)
      << end.output;
}

TEST_F(VirtualRanks, AbortEndsTheJob) {
  const EndOfRanks end = run_ranks(&testing::aborts, 4);
  EXPECT_EQ(end.code, 5);
  EXPECT_NE(end.output.find("rank 1 called MPI_Abort with code 5"), std::string::npos) << end.output;
}

TEST_F(VirtualRanks, AHostOfAnotherVersionIsRefused) {
  weft_mpi_host_program program{};
  program.revision = WEFT_MPI_HOST_REVISION + 1;
  EXPECT_EQ(weft_mpi_host_run(&program), 1);
}

// --- Fibers

struct Counting {
  Fiber* fiber = nullptr;
  int count = 0;
};

TEST_F(VirtualRanks, AFiberSuspendsAndIsAbandoned) {
  Counting counting;
  Fiber fiber(
      {.size_bytes = 1 << 16},
      [](void* context) {
        auto* const shared = static_cast<Counting*>(context);
        for (; shared->count < 3; ++shared->count) {
          errno = 40 + shared->count;
          shared->fiber->suspend();
          if (errno != 40 + shared->count) break;
        }
        shared->fiber->abandon();
      },
      &counting);
  counting.fiber = &fiber;
  for (int turn = 0; turn < 3; ++turn) {
    fiber.resume();
    EXPECT_EQ(counting.count, turn);
    errno = 0;
  }
  fiber.resume();
  EXPECT_EQ(counting.count, 3);
}

}  // namespace
}  // namespace weft::mpi
