#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>

#include "machine/bootstrap/bootstrap.h"

namespace weft::machine {
namespace {

using base::StatusCode;

constexpr const char* kVariables[] = {"WEFT_BOOTSTRAP",
                                      "WEFT_PE",
                                      "WEFT_NUM_PES",
                                      "WEFT_LAUNCHER_PID",
                                      "WEFT_OUTER_PMIX",
                                      "PMIX_NAMESPACE",
                                      "PMIX_RANK",
                                      "PMI_FD",
                                      "PMI_PORT",
                                      "PMI_RANK",
                                      "PMI_SIZE",
                                      "SLURM_NTASKS",
                                      "SLURM_STEP_NUM_TASKS",
                                      "OMPI_COMM_WORLD_SIZE",
                                      "MASTER_ADDR",
                                      "MASTER_PORT",
                                      "RANK",
                                      "WORLD_SIZE"};

class MakeBootstrapTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : kVariables) unsetenv(name);
  }
  void TearDown() override { SetUp(); }

  static void set(const std::map<std::string, std::string>& variables) {
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  }

  static void expect_refused(StatusCode code, std::string_view words) {
    const auto bootstrap = make_bootstrap();
    ASSERT_FALSE(bootstrap.ok());
    EXPECT_EQ(bootstrap.status().code(), code) << bootstrap.status().to_string();
    EXPECT_NE(bootstrap.status().message().find(words), std::string_view::npos)
        << bootstrap.status().to_string();
  }
};

TEST_F(MakeBootstrapTest, WithoutALauncherThereIsOnePe) {
  auto made = make_bootstrap();
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  Bootstrap& bootstrap = **made;
  EXPECT_EQ(bootstrap.name(), "singleton");
  EXPECT_EQ(bootstrap.pe(), 0);
  EXPECT_EQ(bootstrap.num_pes(), 1);
  EXPECT_EQ(bootstrap.local_rank(), 0);
  EXPECT_EQ(bootstrap.local_size(), 1);
  EXPECT_EQ(bootstrap.watch_fd(), -1);
  EXPECT_TRUE(bootstrap.watch_status().ok());
  EXPECT_TRUE(bootstrap.barrier().ok());
  const std::vector<std::byte> mine = {std::byte{1}, std::byte{2}};
  auto all = bootstrap.exchange(mine);
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(*all, std::vector<std::vector<std::byte>>{mine});
  bootstrap.finished(0);
  ::testing::internal::CaptureStderr();
  bootstrap.abort(1, "two\nlines");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "two\nlines\n");
}

TEST_F(MakeBootstrapTest, ThePlaceIsKnownWithoutAConnection) {
  const auto expect_place = [](int pe, int num_pes) {
    base::Result<LaunchPlace> place = place_in_launch();
    ASSERT_TRUE(place.ok()) << place.status().to_string();
    EXPECT_EQ(place->pe, pe);
    EXPECT_EQ(place->num_pes, num_pes);
  };
  expect_place(0, 1);
  set({{"WEFT_BOOTSTRAP", "/nowhere"}, {"WEFT_NUM_PES", "4"}, {"WEFT_PE", "3"}, {"WEFT_LAUNCHER_PID", "1"}});
  expect_place(3, 4);
  set({{"WEFT_PE", "4"}});
  EXPECT_FALSE(place_in_launch().ok());
  set({{"WEFT_BOOTSTRAP", "singleton"}});
  expect_place(0, 1);
  set({{"WEFT_BOOTSTRAP", "singelton"}});
  EXPECT_FALSE(place_in_launch().ok());
  SetUp();
  set({{"PMIX_NAMESPACE", "job"}, {"PMIX_RANK", "5"}});
  expect_place(5, 0);  // PMIx says how many there are to processes that have joined
  SetUp();
  set({{"OMPI_COMM_WORLD_SIZE", "4"}});
  EXPECT_FALSE(place_in_launch().ok());
}

TEST_F(MakeBootstrapTest, AMissingVariableIsNamed) {
  set({{"WEFT_BOOTSTRAP", "/nowhere"}});
  expect_refused(StatusCode::kInvalidArgument, "WEFT_BOOTSTRAP is set but WEFT_NUM_PES is not");
}

TEST_F(MakeBootstrapTest, AWrongVariableIsNamed) {
  set({{"WEFT_BOOTSTRAP", "/nowhere"}, {"WEFT_NUM_PES", "2"}, {"WEFT_PE", "2"}, {"WEFT_LAUNCHER_PID", "1"}});
  expect_refused(StatusCode::kInvalidArgument, "WEFT_PE='2' is not a number from 0 to 1");
  set({{"WEFT_PE", "1x"}});
  expect_refused(StatusCode::kInvalidArgument, "WEFT_PE='1x'");
  set({{"WEFT_PE", "1"}, {"WEFT_NUM_PES", "0"}});
  expect_refused(StatusCode::kInvalidArgument, "WEFT_NUM_PES='0'");
}

TEST_F(MakeBootstrapTest, ALauncherThatIsGoneIsNamed) {
  set({{"WEFT_BOOTSTRAP", "/nowhere/at/all"},
       {"WEFT_NUM_PES", "2"},
       {"WEFT_PE", "1"},
       {"WEFT_LAUNCHER_PID", "1"}});
  expect_refused(StatusCode::kUnreachable, "PE 1 cannot reach `weft run` (pid 1) at /nowhere/at/all");
  set({{"WEFT_BOOTSTRAP", "/" + std::string(199, 'x')}});
  expect_refused(StatusCode::kInvalidArgument, "is longer than the 107 bytes of a socket's path");
}

TEST_F(MakeBootstrapTest, AMisspelledRequestIsRefused) {
  set({{"WEFT_BOOTSTRAP", "singelton"}, {"PMI_FD", "3"}, {"PMI_SIZE", "2"}});
  expect_refused(StatusCode::kInvalidArgument, "WEFT_BOOTSTRAP is 'singelton': set it to singleton");
}

TEST_F(MakeBootstrapTest, ProcessesThatCannotFindOneAnotherAreRefused) {
  for (const char* variable : {"PMI_SIZE", "SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_SIZE"}) {
    SetUp();
    set({{variable, "4"}});
    expect_refused(StatusCode::kUnsupported,
                   std::string("a launcher started 4 processes of this program (") + variable + "=4)");
    set({{"WEFT_BOOTSTRAP", "singleton"}});
    EXPECT_TRUE(make_bootstrap().ok());
    SetUp();
    set({{variable, "1"}});
    EXPECT_TRUE(make_bootstrap().ok());
  }
  // One of them prints the sentence.
  set({{"PMI_SIZE", "4"}, {"PMI_RANK", "1"}});
  expect_refused(StatusCode::kCancelled, "process 0 says why");
}

TEST_F(MakeBootstrapTest, ProcessesOfTorchrunAreRefused) {
  const std::map<std::string, std::string> torchrun{
      {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "29500"}, {"RANK", "0"}, {"WORLD_SIZE", "4"}};
  set(torchrun);
  expect_refused(StatusCode::kUnsupported, "`weft run -n 4`");
  set({{"RANK", "1"}});
  expect_refused(StatusCode::kCancelled, "process 0 says why");
  set({{"WEFT_BOOTSTRAP", "singleton"}});
  EXPECT_TRUE(make_bootstrap().ok());
  // A program that starts processes itself sets some of them only. One process is a job of one PE.
  for (const char* variable : {"MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE"}) {
    SetUp();
    set(torchrun);
    unsetenv(variable);
    EXPECT_TRUE(make_bootstrap().ok()) << variable;
  }
  set(torchrun);
  set({{"WORLD_SIZE", "1"}});
  EXPECT_TRUE(make_bootstrap().ok());
}

// The variables of an outer launcher stay; the connection of the inner one is open.
TEST_F(MakeBootstrapTest, OfTwoLaunchersTheInnerOneCounts) {
  std::array<int, 2> ends{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  close(ends[1]);
  const std::string fd = std::to_string(ends[0]);
  set({{"PMIX_NAMESPACE", "outer"}, {"PMI_FD", fd}, {"PMI_SIZE", "4"}, {"PMI_RANK", "1"}});
  expect_refused(StatusCode::kPeerFailed, "PMI_FD serves one Weft program");
  // It is closed now, so PMIx is the inner one. There is no server; where there is no library, that is said first.
  const auto bootstrap = make_bootstrap();
  ASSERT_FALSE(bootstrap.ok());
  EXPECT_EQ(bootstrap.status().message().find("PMI_FD"), std::string_view::npos)
      << bootstrap.status().to_string();
}

TEST_F(MakeBootstrapTest, AnOpenFileThatIsNoConnectionIsNoPmiLauncher) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  set({{"PMIX_NAMESPACE", "outer"},
       {"PMI_FD", std::to_string(ends[0])},
       {"PMI_SIZE", "4"},
       {"PMI_RANK", "1"}});
  const auto bootstrap = make_bootstrap();
  ASSERT_FALSE(bootstrap.ok());
  EXPECT_EQ(bootstrap.status().message().find("PMI_FD"), std::string_view::npos)
      << bootstrap.status().to_string();
  close(ends[0]);
  close(ends[1]);
}

TEST_F(MakeBootstrapTest, TheLauncherAroundWeftRunDoesNotCount) {
  set({{"WEFT_BOOTSTRAP", "/nowhere"},
       {"PMIX_NAMESPACE", "a"},
       {"PMIX_RANK", "1"},
       {"WEFT_OUTER_PMIX", "a:1"}});
  expect_refused(StatusCode::kInvalidArgument, "WEFT_BOOTSTRAP is set but WEFT_NUM_PES is not");
  // Another one runs inside it. There is no server; where there is no library, that is said first.
  for (const auto& [variable, value] : {std::pair("PMIX_NAMESPACE", "b"), std::pair("PMIX_RANK", "0")}) {
    SetUp();
    set({{"WEFT_BOOTSTRAP", "/nowhere"},
         {"PMIX_NAMESPACE", "a"},
         {"PMIX_RANK", "1"},
         {"WEFT_OUTER_PMIX", "a:1"}});
    set({{variable, value}});
    const auto bootstrap = make_bootstrap();
    ASSERT_FALSE(bootstrap.ok());
    EXPECT_EQ(bootstrap.status().message().find("WEFT_BOOTSTRAP is set"), std::string_view::npos)
        << bootstrap.status().to_string();
  }
}

TEST_F(MakeBootstrapTest, APmiLauncherInsideWeftRunCounts) {
  std::array<int, 2> ends{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  close(ends[1]);
  set({{"WEFT_BOOTSTRAP", "/nowhere"},
       {"PMI_FD", std::to_string(ends[0])},
       {"PMI_RANK", "0"},
       {"PMI_SIZE", "1"},
       {"SLURM_STEP_NUM_TASKS", "4"}});  // of a launcher around both
  auto alone = make_bootstrap();
  ASSERT_TRUE(alone.ok()) << alone.status().to_string();
  EXPECT_EQ((*alone)->name(), "singleton");
  set({{"PMI_SIZE", "2"}});
  expect_refused(StatusCode::kPeerFailed, "PMI_FD serves one Weft program");
}

// A program that a PE starts inherits the variables, but not the connection.
TEST_F(MakeBootstrapTest, ADescriptorOfTheProgramIsNotTakenForAPmiConnection) {
  std::array<int, 2> sockets{};
  std::array<int, 2> files{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()), 0);
  ASSERT_EQ(pipe(files.data()), 0);
  for (const int fd : {sockets[0], files[1]}) {
    set({{"PMI_FD", std::to_string(fd)}, {"PMI_SIZE", "2"}, {"PMI_RANK", "1"}});
    expect_refused(StatusCode::kUnsupported, "the launcher's process 1 has had a Weft job already");
    EXPECT_EQ(write(fd, "x", 1), 1) << "it was closed";
  }
  std::array<char, 8> received{};
  EXPECT_EQ(read(sockets[1], received.data(), received.size()), 1)
      << "a launcher's command was written into it";
  EXPECT_EQ(read(files[0], received.data(), received.size()), 1);
  for (const int fd : {sockets[0], sockets[1], files[0], files[1]}) close(fd);
}

TEST_F(MakeBootstrapTest, ClosedStandardDescriptorsAreOpened) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    for (const int fd : {0, 1, 2}) close(fd);
    const bool is_made = make_bootstrap().ok();
    bool are_inherited = true;
    for (const int fd : {0, 1, 2}) are_inherited = are_inherited && fcntl(fd, F_GETFD) == 0;
    _exit(is_made && are_inherited && write(2, "x", 1) == 1 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(MakeBootstrapTest, AProgramThatABatchScriptStartsIsOnePe) {
  set({{"SLURM_NTASKS", "4"}});
  auto made = make_bootstrap();
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  EXPECT_EQ((*made)->num_pes(), 1);
}

}  // namespace
}  // namespace weft::machine
