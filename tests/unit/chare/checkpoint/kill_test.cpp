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

namespace weft::chare::saved {
namespace {

using testing::InProcessJob;
using testing::TemporaryFolder;

constexpr int kNumCells = 5;
constexpr int kMostSteps = 1'000'000;

// What the job tells the process that kills it.
struct Reports {
  void add(char what) {
    if (::write(descriptor, &what, 1) != 1) ::_exit(3);
    if (++count != stop_at) return;
    for (;;) ::pause();
  }
  int descriptor = -1;
  int stop_at = 0;  // after so many it waits to be killed; 0: never
  int count = 0;
};
Reports* reports = nullptr;  // of the process that is to be killed

struct Marcher : Chare<Marcher> {
  void pup(Pup& p) {
    if (p.is_packing() && reports != nullptr) reports->add('p');
    p | step | trail;
  }
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

// errors_test.cpp has a class of this name too.
struct Twin : Chare<Twin> {
  void pup(Pup&) {}
  void touch() {}
};
[[maybe_unused]] void use(const Array<Twin>& twins) { twins.send<&Twin::touch>(); }

// Restores, if there is a checkpoint, and then writes checkpoints until it is killed. It reports the begin of each with
// 'b', each element with 'p', and its end with 'e'.
[[noreturn]] void run_until_killed(const std::string& folder, Reports to) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  reports = &to;
  const std::string failure = InProcessJob(2).run([&](Runtime& runtime) -> Task<> {
    Array<Marcher> marchers;
    int step = 0;
    if (has_checkpoint(folder)) {
      co_await restore(runtime, folder, marchers, step);
    } else {
      marchers = Array<Marcher>::create(runtime, {kNumCells});
    }
    while (step < kMostSteps) {
      ++step;
      co_await marchers.call<&Marcher::advance>(step);
      reports->add('b');
      co_await checkpoint(runtime, folder, marchers, step);
      reports->add('e');
    }
  });
  ::_exit(failure.empty() ? 0 : 2);
}

struct Killed {
  int num_completed = 0;  // checkpoints, for certain
  char last = 0;          // its last report
};

// Kills the job after `num_reports` of its reports. `stops`: it waits there to be killed; else it goes on meanwhile.
Killed run_and_kill(const std::string& folder, int num_reports, bool stops) {
  std::array<int, 2> pipe{};
  if (::pipe(pipe.data()) != 0) throw std::runtime_error("no pipe");
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(pipe[0]);
    run_until_killed(folder, {pipe[1], stops ? num_reports : 0});
  }
  ::close(pipe[1]);
  Killed killed;
  char what = 0;
  const auto note = [&killed](char report) {
    killed.last = report;
    if (report == 'e') ++killed.num_completed;
  };
  for (int i = 0; i < num_reports; ++i) {
    EXPECT_EQ(::read(pipe[0], &what, 1), 1) << "the job has ended by itself";
    note(what);
  }
  ::kill(child, SIGKILL);
  while (::read(pipe[0], &what, 1) == 1) {  // what it has reported before it died
    note(what);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
  ::close(pipe[0]);
  return killed;
}

// The step of the newest checkpoint, 0 if there is none. Checks the state of every element.
int restored_step(const std::string& folder, int num_pes) {
  int step = 0;
  if (!has_checkpoint(folder)) return 0;
  EXPECT_EQ(InProcessJob(num_pes).run([&](Runtime& runtime) -> Task<> {
    Array<Marcher> marchers;
    co_await restore(runtime, folder, marchers, step);
    const std::vector<int> expected(kNumCells, step);
    EXPECT_EQ(co_await marchers.call<&Marcher::check>(), expected);
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
  int in_a_file = 0;
  for (int round = 0; round < 100; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const bool stops = round % 2 == 0;
    const int num_reports = 1 + static_cast<int>(random() % (3 * (kNumCells + 2)));
    const Killed killed = run_and_kill(folder.path(), num_reports, stops);
    const bool is_partial = std::filesystem::exists(
        folder / ("checkpoint-" + std::to_string(last + killed.num_completed + 1) + ".partial"));
    const int step = restored_step(folder.path(), 1 + round % 3);
    if (stops) {  // its last report says where it was
      ASSERT_EQ(step, last + killed.num_completed);
      ASSERT_TRUE(is_partial || killed.last != 'p');
      if (killed.last == 'p') ++in_a_file;
    } else {  // one more may be complete that the job could not report
      ASSERT_GE(step, last + killed.num_completed);
      ASSERT_LE(step, last + killed.num_completed + 1);
    }
    last = step;
  }
  EXPECT_GT(last, 50);
  EXPECT_GT(in_a_file, 20);
}

}  // namespace
}  // namespace weft::chare::saved
