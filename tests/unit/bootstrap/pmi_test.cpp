#include "machine/bootstrap/pmi/pmi.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace weft::machine::bootstrap {
namespace {

using base::StatusCode;

using Answers = std::map<std::string, std::string>;

// A launcher that speaks PMI to one process, on a thread of its own. The other processes give what this one gives,
// except where `store` says something else before.
class FakeLauncher {
 public:
  // `replies` replaces the whole answers to the commands that it names; an empty one ends the connection.
  explicit FakeLauncher(int num_pes, Answers store = {}, Answers replies = {})
      : num_pes_(num_pes), store_(std::move(store)), replies_(std::move(replies)) {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
    pe_end_ = ends[0];
    own_end_ = ends[1];
    thread_ = std::thread([this] { serve(); });
  }
  ~FakeLauncher() {
    wait();
    close(own_end_);
  }
  // Until the PE has closed its end, or the launcher its own.
  void wait() {
    if (thread_.joinable()) thread_.join();
  }
  FakeLauncher(const FakeLauncher&) = delete;
  FakeLauncher& operator=(const FakeLauncher&) = delete;

  PmiSettings settings(int pe) const { return {.fd = pe_end_, .pe = pe, .num_pes = num_pes_, .host = 5}; }
  std::vector<std::string> requests;  // read it after wait()

 private:
  void serve() {
    std::string text;
    std::array<char, 4096> piece;
    for (ssize_t got = 0; (got = read(own_end_, piece.data(), piece.size())) > 0;) {
      text.append(piece.data(), static_cast<std::size_t>(got));
      for (std::size_t end = 0; (end = text.find('\n')) != std::string::npos; text.erase(0, end + 1)) {
        requests.push_back(text.substr(0, end));
        const std::string answer = reply(requests.back());
        if (answer.empty()) shutdown(own_end_, SHUT_RDWR);
        if (answer.empty() || write(own_end_, answer.data(), answer.size()) < 0) return;
      }
    }
  }

  static std::string word(const std::string& request, const std::string& name) {
    const auto begin = request.find(" " + name + "=");
    if (begin == std::string::npos) return {};
    const auto first = begin + name.size() + 2;
    return request.substr(first, request.find(' ', first) - first);
  }

  // "weft-ROUND-PE-REST" for each PE.
  void put(const std::string& key, const std::string& value) {
    const auto before = key.find('-', 5) + 1;
    const auto after = key.find('-', before);
    for (int pe = 0; pe < num_pes_; ++pe) {
      store_.emplace(key.substr(0, before) + std::to_string(pe) + key.substr(after), value);
    }
  }

  std::string reply(const std::string& request) {
    const std::string command = request.substr(4, request.find(' ') - 4);
    if (const auto found = replies_.find(command); found != replies_.end()) return found->second;
    if (command == "init") return "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n";
    if (command == "get_my_kvsname") return "cmd=my_kvsname kvsname=kvs_1\n";
    if (command == "barrier_in") return "cmd=barrier_out\n";
    if (command == "finalize") return "cmd=finalize_ack\n";
    if (command == "put") {
      put(word(request, "key"), word(request, "value"));
      return "cmd=put_result rc=0 msg=success\n";
    }
    const auto found = store_.find(word(request, "key"));
    if (found == store_.end()) return "cmd=get_result rc=-1 msg=key_not_found value=unknown\n";
    return "cmd=get_result rc=0 msg=success value=" + found->second + "\n";
  }

  int num_pes_;
  std::map<std::string, std::string> store_;
  Answers replies_;
  int pe_end_ = -1;
  int own_end_ = -1;
  std::thread thread_;
};

std::vector<std::byte> bytes_to_send(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7);
  return bytes;
}

std::unique_ptr<Bootstrap> join(const FakeLauncher& launcher, int pe) {
  auto made = PmiBootstrap::join(launcher.settings(pe));
  EXPECT_TRUE(made.ok()) << made.status().to_string();
  return made.ok() ? std::move(made).value() : nullptr;
}

void expect_refusal(const base::Status& status, std::string_view words) {
  EXPECT_EQ(status.code() == StatusCode::kPeerFailed || status.code() == StatusCode::kCorrupt, true);
  EXPECT_NE(status.message().find(words), std::string_view::npos) << status.to_string();
}

TEST(PmiTest, AllPesOfTheHostAreCounted) {
  FakeLauncher launcher(3);
  auto bootstrap = join(launcher, 1);
  ASSERT_NE(bootstrap, nullptr);
  EXPECT_EQ(bootstrap->name(), "pmi");
  EXPECT_EQ(bootstrap->pe(), 1);
  EXPECT_EQ(bootstrap->num_pes(), 3);
  EXPECT_EQ(bootstrap->local_rank(), 1);
  EXPECT_EQ(bootstrap->local_size(), 3);
  EXPECT_TRUE(bootstrap->barrier().ok());
  EXPECT_TRUE(bootstrap->watch_status().ok());
  bootstrap->finished(0);
  bootstrap.reset();
}

TEST(PmiTest, PesOfOtherHostsAreNotLocal) {
  FakeLauncher launcher(3, {{"weft-0-0-size", "8"}, {"weft-0-0-0", "0900000000000000"}});
  auto bootstrap = join(launcher, 2);
  ASSERT_NE(bootstrap, nullptr);
  EXPECT_EQ(bootstrap->local_rank(), 1);
  EXPECT_EQ(bootstrap->local_size(), 2);
  bootstrap.reset();
}

TEST(PmiTest, BytesOfAnySizeAreExchanged) {
  FakeLauncher launcher(2);
  auto bootstrap = join(launcher, 0);
  ASSERT_NE(bootstrap, nullptr);
  constexpr std::size_t kPiece = PmiBootstrap::kPieceBytes;
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, kPiece - 1, kPiece, kPiece + 1, 10 * kPiece}) {
    const auto mine = bytes_to_send(size);
    auto all = bootstrap->exchange(mine);
    ASSERT_TRUE(all.ok()) << all.status().to_string();
    EXPECT_EQ(*all, (std::vector<std::vector<std::byte>>{mine, mine})) << size;
  }
  bootstrap.reset();
}

TEST(PmiTest, WhatIsNoAnswerOfAPeIsRefused) {
  const std::vector<Answers> wrong = {
      {{"weft-1-1-size", "many"}},
      {{"weft-1-1-size", "-1"}},
      {{"weft-1-1-size", "99999999999"}},
      {{"weft-1-1-size", "2"}, {"weft-1-1-0", "0"}},
      {{"weft-1-1-size", "2"}, {"weft-1-1-0", "00ff11"}},
      {{"weft-1-1-size", "2"}, {"weft-1-1-0", "00fg"}},
      {{"weft-1-1-size", "2"}, {"weft-1-1-0", "00FF"}},
      {{"weft-1-1-size", "481"}},
  };
  for (const Answers& answers : wrong) {
    FakeLauncher launcher(2, answers);
    auto bootstrap = join(launcher, 0);
    ASSERT_NE(bootstrap, nullptr);
    auto all = bootstrap->exchange(bytes_to_send(2));
    ASSERT_FALSE(all.ok());
    expect_refusal(all.status(), "what PE 1 gave");
    bootstrap.reset();
  }
}

TEST(PmiTest, AWrongAnswerOfTheLauncherIsRefused) {
  for (const char* answer : {"cmd=something\n", "nothing at all\n", "\n", "cmd=response_to_init rc=-1\n"}) {
    FakeLauncher launcher(2, {}, {{"init", answer}});
    expect_refusal(PmiBootstrap::join(launcher.settings(0)).status(), "PE 0: joining the job");
  }
  FakeLauncher launcher(2, {}, {{"init", std::string(PmiConnection::kMaxLineBytes + 5000, 'x')}});
  expect_refusal(PmiBootstrap::join(launcher.settings(0)).status(), "a line of more than");
}

TEST(PmiTest, TheEndOfTheLauncherIsNoticed) {
  FakeLauncher launcher(2, {}, {{"barrier_in", ""}});
  expect_refusal(PmiBootstrap::join(launcher.settings(0)).status(), "the connection to the launcher ended");

  FakeLauncher later(2, {}, {{"finalize", ""}});
  auto bootstrap = join(later, 1);
  ASSERT_NE(bootstrap, nullptr);
  EXPECT_TRUE(bootstrap->watch_status().ok());
  bootstrap->finished(0);
  expect_refusal(bootstrap->watch_status(), "PE 1 lost its launcher");
}

TEST(PmiTest, AnAbortHasItsExitCode) {
  FakeLauncher launcher(2, {}, {{"abort", ""}});
  auto bootstrap = join(launcher, 0);
  ASSERT_NE(bootstrap, nullptr);
  ::testing::internal::CaptureStderr();
  bootstrap->abort(7, "why");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "why\n");
  bootstrap.reset();
  launcher.wait();
  EXPECT_EQ(launcher.requests.back(), "cmd=abort exitcode=7");
}

TEST(PmiTest, AWrongVariableIsNamed) {
  const auto set = [](const char* fd, const char* rank, const char* size) {
    setenv("PMI_FD", fd, 1);
    setenv("PMI_RANK", rank, 1);
    setenv("PMI_SIZE", size, 1);
    return PmiSettings::from_environment();
  };
  EXPECT_TRUE(set("3", "1", "2").ok());
  EXPECT_NE(set("x", "1", "2").status().message().find("PMI_FD='x'"), std::string_view::npos);
  EXPECT_NE(set("3", "2", "2").status().message().find("PMI_RANK='2' is not a number from 0 to 1"),
            std::string_view::npos);
  EXPECT_NE(set("3", "0", "0").status().message().find("PMI_SIZE='0'"), std::string_view::npos);
  for (const char* name : {"PMI_FD", "PMI_RANK", "PMI_SIZE"}) unsetenv(name);
}

}  // namespace
}  // namespace weft::machine::bootstrap
