#include "job/launch.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

#include "weft/job/job.h"

namespace weft::job {
namespace {

class LaunchAlone : public ::testing::Test {
 protected:
  void SetUp() override { setenv("WEFT_BOOTSTRAP", "singleton", 1); }
  void TearDown() override { unsetenv("WEFT_BOOTSTRAP"); }
};

TEST_F(LaunchAlone, IsPeZeroOfOne) {
  Launch launch = Launch::join();
  EXPECT_EQ(launch.pe(), 0);
  EXPECT_EQ(launch.num_pes(), 1);
  EXPECT_EQ(launch.exchange("a text"), std::vector<std::string>{"a text"});
  EXPECT_EQ(launch.exchange(""), std::vector<std::string>{""});
  launch.leave(0);
}

TEST_F(LaunchAlone, BecomesAJob) {
  setenv("WEFT_MACHINE", "loopback", 1);
  Job job({}, Launch::join());
  unsetenv("WEFT_MACHINE");
  EXPECT_EQ(job.runtime().num_pes(), 1);
  job.runtime().exit(7);
  EXPECT_EQ(job.run(), 7);
}

// A model that counts the ends of its jobs.
struct Witness final : runtime::Model {
  static constexpr runtime::ModelNeeds kNeeds{.name = "witness"};
  Witness(runtime::Runtime&, const runtime::ModelRange&) {}
  ~Witness() override { ++num_ends; }
  Witness(const Witness&) = delete;
  Witness& operator=(const Witness&) = delete;

  static inline int num_ends = 0;
};

// What a forked child of this process exits with after `body`.
template <class Body>
int exit_code_of_child(const Body& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    ::_exit(Witness::num_ends);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(LaunchAlone, AForkedChildDoesNotEndTheJobOfItsParent) {
  setenv("WEFT_MACHINE", "loopback", 1);
  auto job =
      std::make_unique<Job>([](runtime::Runtime& runtime) { runtime.install<Witness>(); }, Launch::join());
  unsetenv("WEFT_MACHINE");
  EXPECT_EQ(exit_code_of_child([&] { job.reset(); }), 0);
  EXPECT_EQ(exit_code_of_child([&] { job->abort(3, "the child ends alone"); }), 3);
  EXPECT_EQ(Witness::num_ends, 0);
  job.reset();
  EXPECT_EQ(Witness::num_ends, 1);
}

}  // namespace
}  // namespace weft::job
