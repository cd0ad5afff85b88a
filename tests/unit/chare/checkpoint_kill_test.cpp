// A job that writes one checkpoint after the other is killed at random points; what it has completed must be there.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/in_process_job.h"
#include "tests/unit/checkpoint/files.h"

namespace weft::chare {
namespace {

using testing::InProcessJob;
using testing::TemporaryFolder;

constexpr int kNumCells = 5;
constexpr int kMostSteps = 1'000'000;

struct Walker : Chare<Walker> {
  void pup(Pup& p) { p | step | trail; }
  void advance(int to_step) {
    step = to_step;
    trail.assign(static_cast<std::size_t>(100 * (1 + to_step % 7)), mark());
  }
  int mark() const { return step * 31 + static_cast<int>(linear_index()); }
  int check() {
    for (const int value : trail) {
      if (value != mark()) return -1;
    }
    return step;
  }
  int step = 0;
  std::vector<int> trail;
};

void report(int descriptor, char what) {
  if (::write(descriptor, &what, 1) != 1) ::_exit(3);
}

// Restores, if there is a checkpoint, and then writes checkpoints until it is killed. It reports the begin of each with
// 'b' and its end with 'e'. Its first report is 'e' if it has restored.
[[noreturn]] void run_until_killed(const std::string& folder, int descriptor) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const std::string failure = InProcessJob(2).run([&](Runtime& runtime) -> Task<> {
    Array<Walker> walkers;
    int step = 0;
    if (has_checkpoint(folder)) {
      co_await restore(runtime, folder, walkers, step);
    } else {
      walkers = Array<Walker>::create(runtime, {kNumCells});
    }
    while (step < kMostSteps) {
      ++step;
      co_await walkers.call<&Walker::advance>(step);
      report(descriptor, 'b');
      co_await checkpoint(runtime, folder, walkers, step);
      report(descriptor, 'e');
    }
  });
  ::_exit(failure.empty() ? 0 : 2);
}

// Kills the job after `num_reports` of its reports. Returns how many checkpoints it has completed for certain.
int run_and_kill(const std::string& folder, int num_reports) {
  std::array<int, 2> pipe{};
  if (::pipe(pipe.data()) != 0) throw std::runtime_error("no pipe");
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(pipe[0]);
    run_until_killed(folder, pipe[1]);
  }
  ::close(pipe[1]);
  int completed = 0;
  char what = 0;
  for (int i = 0; i < num_reports; ++i) {
    EXPECT_EQ(::read(pipe[0], &what, 1), 1) << "the job has ended by itself";
    if (what == 'e') ++completed;
  }
  ::kill(child, SIGKILL);
  while (::read(pipe[0], &what, 1) == 1) {  // what it has reported before it died
    if (what == 'e') ++completed;
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
  ::close(pipe[0]);
  return completed;
}

// The step of the newest checkpoint, 0 if there is none. Checks the state of every element.
int restored_step(const std::string& folder, int num_pes) {
  int step = 0;
  if (!has_checkpoint(folder)) return 0;
  EXPECT_EQ(InProcessJob(num_pes).run([&](Runtime& runtime) -> Task<> {
    Array<Walker> walkers;
    co_await restore(runtime, folder, walkers, step);
    const std::vector<int> expected(kNumCells, step);
    EXPECT_EQ(co_await walkers.call<&Walker::check>(), expected);
  }),
            "");
  return step;
}

TEST(CheckpointKill, ACompletedCheckpointSurvivesAKilledJob) {
  const std::uint32_t seed = testing::seed_of_test(20261123);
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  const TemporaryFolder folder;
  int last = 0;
  int in_the_middle = 0;
  for (int round = 0; round < 100; ++round) {
    const int num_reports = 1 + static_cast<int>(random() % 6);
    const int completed = run_and_kill(folder.path(), num_reports);
    const int step = restored_step(folder.path(), 1 + round % 3);
    // One more may be complete that the job could not report.
    ASSERT_TRUE(step == last + completed || step == last + completed + 1)
        << "round " << round << ": step " << step << " after " << last << " + " << completed;
    if (std::filesystem::exists(folder / ("checkpoint-" + std::to_string(step + 1) + ".partial")))
      ++in_the_middle;
    last = step;
  }
  EXPECT_GT(last, 50);
  EXPECT_GT(in_the_middle, 10);  // kills that have hit a checkpoint under way
}

}  // namespace
}  // namespace weft::chare
