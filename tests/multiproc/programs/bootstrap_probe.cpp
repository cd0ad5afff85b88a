// Goes through the bootstrap and does, at the stage that its arguments name, what they say. For the tests of
// `weft run` and pmix.
//
//     bootstrap_probe [ROUNDS] [PE:STAGE:ACTION]...
//
// Stages in order: start, join, exchange, barrier, finish. Before a stage every action that names this PE (or
// * for all of them) is done: kill (SIGKILL itself), segv, exit0, exit3, abort, idle (until the launcher ends
// the job), spin, hangup (close the connection and wait), garbage (send bytes that are no frame), ready
// (print a line), stubborn (ignore SIGTERM from here on).
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "machine/bootstrap/bootstrap.h"

namespace {

using weft::base::Status;
using weft::machine::Bootstrap;

struct Action {
  std::string pe;
  std::string stage;
  std::string what;
};

[[noreturn]] void leave(const Status& status) {
  if (status.code() != weft::base::StatusCode::kCancelled)
    fmt::print(stderr, "probe: {}\n", status.to_string());
  std::_Exit(1);
}

// Known before the bootstrap too, where `weft run` is the launcher.
std::string my_pe(const Bootstrap* bootstrap) {
  if (bootstrap != nullptr) return std::to_string(bootstrap->pe());
  const char* number = std::getenv("WEFT_PE");
  return number == nullptr ? "0" : number;
}

// Waits for the launcher's word, as the runtime's idle loop does.
[[noreturn]] void idle(Bootstrap* bootstrap) {
  pollfd watched{bootstrap == nullptr ? -1 : bootstrap->watch_fd(), POLLIN, 0};
  while (true) {
    if (poll(&watched, 1, -1) <= 0) continue;
    if (const Status status = bootstrap->watch_status(); status.failed()) leave(status);
  }
}

void act(const Action& action, Bootstrap* bootstrap) {
  if (action.what == "kill") kill(getpid(), SIGKILL);
  if (action.what == "segv") {
    signal(SIGSEGV, SIG_DFL);
    kill(getpid(), SIGSEGV);
  }
  if (action.what == "exit0") std::_Exit(0);
  if (action.what == "exit3") std::_Exit(3);
  if (action.what == "ready") {
    fmt::print("ready {} {}\n", my_pe(bootstrap), getpid());
    std::fflush(stdout);
  }
  if (action.what == "idle") idle(bootstrap);
  if (action.what == "spin") {
    for (volatile bool on = true; on;) {
    }
  }
  if (action.what == "stubborn") signal(SIGTERM, SIG_IGN);
  if (bootstrap == nullptr) return;
  if (action.what == "abort") {
    bootstrap->abort(7, "the probe was told to abort\nwith a second line");
    std::_Exit(7);
  }
  if (action.what == "hangup") {
    close(bootstrap->watch_fd());
    while (true) pause();
  }
  if (action.what == "garbage") {
    constexpr std::string_view kGarbage = "this is not a frame at all";
    if (write(bootstrap->watch_fd(), kGarbage.data(), kGarbage.size()) < 0) std::_Exit(4);
  }
}

std::vector<std::byte> bytes_of(int pe, int round) {
  // Sizes differ between PEs and rounds, and are sometimes zero.
  std::vector<std::byte> bytes(static_cast<std::size_t>((pe * 977 + round * 31) % 5000));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(static_cast<std::size_t>(pe * 7 + round) + i);
  }
  return bytes;
}

void exchange_and_check(Bootstrap& bootstrap, int round) {
  auto all = bootstrap.exchange(bytes_of(bootstrap.pe(), round));
  if (!all.ok()) leave(all.status());
  for (int pe = 0; pe < bootstrap.num_pes(); ++pe) {
    if ((*all)[static_cast<std::size_t>(pe)] != bytes_of(pe, round)) {
      fmt::print(stderr, "probe: PE {} got wrong bytes of PE {} in round {}\n", bootstrap.pe(), pe, round);
      std::_Exit(5);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  int rounds = 1;
  std::vector<Action> actions;
  for (int i = 1; i < argc; ++i) {
    const std::string text = argv[i];
    const auto first = text.find(':');
    if (first == std::string::npos) {
      rounds = std::stoi(text);
      continue;
    }
    const auto second = text.find(':', first + 1);
    actions.push_back(
        {text.substr(0, first), text.substr(first + 1, second - first - 1), text.substr(second + 1)});
  }
  std::unique_ptr<Bootstrap> bootstrap;
  const auto stage = [&](std::string_view name) {
    const std::string pe = my_pe(bootstrap.get());
    for (const Action& action : actions) {
      if (action.stage == name && (action.pe == "*" || action.pe == pe)) act(action, bootstrap.get());
    }
  };

  stage("start");
  auto made = weft::machine::make_bootstrap();
  if (!made.ok()) leave(made.status());
  bootstrap = std::move(made).value();
  stage("join");
  for (int round = 0; round < rounds; ++round) {
    stage("exchange");
    exchange_and_check(*bootstrap, round);
    stage("barrier");
    if (const Status status = bootstrap->barrier(); status.failed()) leave(status);
  }
  fmt::print("{} {} of {}, local {} of {}\n", bootstrap->name(), bootstrap->pe(), bootstrap->num_pes(),
             bootstrap->local_rank(), bootstrap->local_size());
  std::fflush(stdout);
  stage("finish");
  bootstrap->finished(0);
  stage("finished");
  return 0;
}
