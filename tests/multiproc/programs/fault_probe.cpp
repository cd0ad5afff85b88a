// A whole job, runtime and chares and channels, that goes wrong as its first argument says. For the fault
// tests.
//
//     fault_probe load        every PE sends small and large messages until it is ended; ready when it is connected
//     fault_probe idle        every PE sleeps
//     fault_probe busy        every PE but 0 is in an entry method that never returns
//     fault_probe startup     says that it is ready, then starts the job
//     fault_probe throw       an entry method on PE 1 throws, and nobody awaits it
//     fault_probe rethrow     an entry method on PE 1 throws, and main, who awaits it, lets it through
//     fault_probe catch       the same, but main catches it and the job ends well
//     fault_probe range       an element that does not exist
//     fault_probe size        a receive of the wrong size, between PE 0 and PE 1
//     fault_probe exit CODE   ends the job with that code
//     fault_probe late CODE   PE 1 sends to PE 0 for as long as it drops its queue, after PE 0 has stopped
//
// Those that are to be acted upon print "ready PE PID" on every PE first.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "weft/weft.h"

namespace {

// One write, so that the lines of several PEs do not mix.
void say(const std::string& line) {
  if (write(STDOUT_FILENO, (line + "\n").data(), line.size() + 1) < 0) std::_Exit(9);
}

constexpr std::size_t kLargeBytes = std::size_t{1} << 20;

struct Worker : weft::Chare<Worker> {
  void hello() { say(fmt::format("ready {} {}", pe(), getpid())); }

  // Goes round for ever.
  void token(std::vector<std::uint8_t> bytes) { next().send<&Worker::token>(std::move(bytes)); }

  // As does this, in both directions at once. Ready when the connections to both neighbours have carried data: UCX, up to 1.22 at
  // least, can crash in a process while a peer that dies connects to it (ucp_ep_set_lanes_failed() of an endpoint without lanes).
  weft::Task<> stream() {
    weft::Channel to(*this, next(), 1);
    weft::Channel from(*this, proxy()[(index() + num_pes() - 1) % num_pes()], 1);
    std::vector<std::uint8_t> out(kLargeBytes);
    std::vector<std::uint8_t> in(kLargeBytes);
    for (int round = 0;; ++round) {
      weft::Operation sent = to.send(out);
      co_await from.recv(in);
      co_await sent;
      if (round == 2) hello();
    }
  }

  void connect(std::vector<std::uint8_t>) {}
  void take(std::uint64_t) {}

  // Sends in each turn in which PE 1 drops its queue, more than the ways between two PEs hold.
  struct Late : weft::runtime::Work {
    explicit Late(weft::ElementProxy<Worker> to_in) : Work(drop), to(to_in) {}
    static void drop(Work* self, weft::Runtime& runtime, weft::runtime::WorkAction action) {
      auto& late = *static_cast<Late*>(self);
      if (action != weft::runtime::WorkAction::kRun) {
        if (runtime.stopped() || late.turns == 0) return;
        --late.turns;
        for (int i = 0; i < 100; ++i) late.to.send<&Worker::take>(std::uint64_t{0});
      }
      runtime.post(self);
    }
    weft::ElementProxy<Worker> to;
    int turns = 2000;
  };
  void send_late() {
    static Late late(proxy()[0]);  // outlives the queue
    runtime().post(&late);
  }

  void be_busy() {
    hello();
    for (volatile bool busy = true; busy;) {
    }
  }

  int fail(int number) {
    throw std::invalid_argument(fmt::format("the number {} is not liked here", number));
  }

  weft::Task<> fail_later(int number) {
    co_await runtime().sleep(0);
    fail(number);
  }

  weft::Task<> send_four_bytes() {
    weft::Channel to(*this, proxy()[0]);
    std::vector<std::uint8_t> out(4);
    co_await to.send(out);
  }

  weft::Task<> receive_eight_bytes() {
    weft::Channel from(*this, proxy()[1]);
    std::vector<std::uint8_t> in(8);
    co_await from.recv(in);
  }

 private:
  weft::chare::ElementProxy<Worker> next() const { return proxy()[(index() + 1) % num_pes()]; }
};

weft::Task<> start(weft::Runtime& runtime, std::string_view what, int code) {
  auto workers = weft::Group<Worker>::create(runtime);
  if (what == "load") {
    for (int pe = 0; pe < runtime.num_pes(); ++pe)
      co_await workers[pe].call<&Worker::connect>(std::vector<std::uint8_t>(kLargeBytes));
    for (int pe = 0; pe < runtime.num_pes(); ++pe) {
      for (std::size_t size_bytes : {std::size_t{8}, std::size_t{8}, kLargeBytes}) {
        workers[pe].send<&Worker::token>(std::vector<std::uint8_t>(size_bytes));
      }
    }
    workers.send<&Worker::stream>();
  } else if (what == "idle" || what == "startup") {
    workers.send<&Worker::hello>();
  } else if (what == "busy") {
    workers[0].send<&Worker::hello>();
    for (int pe = 1; pe < runtime.num_pes(); ++pe) workers[pe].send<&Worker::be_busy>();
  } else if (what == "throw") {
    workers[1].send<&Worker::fail_later>(13);
  } else if (what == "rethrow") {
    co_await workers[1].call<&Worker::fail>(13);
  } else if (what == "catch") {
    try {
      co_await workers[1].call<&Worker::fail>(13);
    } catch (const weft::RemoteError& error) {
      say(fmt::format("caught {}: {}", error.type(), error.remote_message()));
    }
    co_return;
  } else if (what == "range") {
    workers[runtime.num_pes()].send<&Worker::hello>();
  } else if (what == "size") {
    workers[1].send<&Worker::send_four_bytes>();
    workers[0].send<&Worker::receive_eight_bytes>();
  } else if (what == "late") {
    co_await workers[1].call<&Worker::send_late>();
    runtime.exit(code);
  } else if (what == "exit") {
    runtime.exit(code);
  }
  co_await weft::Future<>(runtime);  // never set
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  const int code = argc > 2 ? std::stoi(argv[2]) : 0;
  if (what == "startup") {
    const char* pe = std::getenv("WEFT_PE");
    say(fmt::format("ready {} {}", pe == nullptr ? "0" : pe, getpid()));
  }
  return weft::run(argc, argv, [=](weft::Runtime& runtime) { return start(runtime, what, code); });
}
