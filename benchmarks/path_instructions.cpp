// Sends messages between two PEs that live in this one process and thread, for counting instructions. No PE
// waits for another, so the count per message is the same in every run.
// Use: path_instructions machine|channel|entry|traced MESSAGES
//
// The cost of a message is the difference between runs with different MESSAGES; see instructions.py.
#include <charconv>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/chare/chares.h"
#include "weft/weft.h"

#include "benchmarks/measuring.h"
#include "collective/engine.h"
#include "job/trace/recorder.h"
#include "machine/factory/factory.h"
#include "machine/machine.h"
#include "memory/memory.h"
#include "models/channel/channels.h"

namespace weft::benchmarks {
namespace {

constexpr int kPes = 2;
constexpr std::int64_t kWarmUpMessages = 256;

// Two PEs; their runtimes take turns.
class Pair {
 public:
  Pair() {
    auto made = machine::make_in_process("ucx", {&memories_[0], &memories_[1]});
    if (!made.ok()) die(made.status().to_string());
    machines_ = std::move(made).value();
    for (int pe = 0; pe < kPes; ++pe) {
      auto slot = static_cast<std::size_t>(pe);
      runtimes_.push_back(std::make_unique<weft::Runtime>(*machines_[slot], memories_[slot]));
      runtimes_.back()->install<collective::Engine>();
      runtimes_.back()->install<chare::Chares>();
      runtimes_.back()->install<channel::Channels>();
    }
  }

  machine::Machine& machine(std::size_t pe) { return *machines_[pe]; }
  weft::Runtime& runtime(std::size_t pe) { return *runtimes_[pe]; }

  void run_until(const weft::Future<>& done) {
    while (!done.is_ready()) {
      for (auto& runtime : runtimes_) runtime->step();
    }
  }

 private:
  memory::Memory memories_[kPes];
  std::vector<std::unique_ptr<machine::Machine>> machines_;
  std::vector<std::unique_ptr<weft::Runtime>> runtimes_;
};

class Peer : public weft::Chare<Peer> {
 public:
  // Over a channel; messages / 2 round trips.
  weft::Task<> play(std::int64_t messages) {
    weft::Channel channel(*this, proxy()[1 - index()]);
    std::vector<std::uint64_t> number(1);
    for (std::int64_t i = 0; i < messages / 2; ++i) {
      if (linear_index() == 0) channel.send(number).detach();
      co_await channel.recv(number);
      if (linear_index() == 1) channel.send(number).detach();
    }
  }

  // By entry methods.
  void start(std::int64_t messages, weft::Future<> done) {
    left_ = messages / 2;
    done_ = std::move(done);
    pong(0);
  }
  void ping(std::uint64_t number) { proxy()[0].send<&Peer::pong>(number); }
  void pong(std::uint64_t number) {
    if (left_-- == 0) return done_.set();
    proxy()[1].send<&Peer::ping>(number);
  }

 private:
  std::int64_t left_ = 0;
  weft::Future<> done_;
};

void on_machine(Pair& pair, std::int64_t messages) {
  struct Waiting : base::Completion {
    Waiting() : Completion(&Waiting::call) {}
    static void call(base::Completion* self, base::Status, std::size_t) {
      static_cast<Waiting*>(self)->done = true;
    }
    bool done = false;
  };
  std::uint64_t outgoing = 1;
  std::uint64_t incoming = 0;
  weft::Buffer into{&incoming, sizeof incoming, {}, nullptr};
  for (std::int64_t i = 0; i < messages; ++i) {
    Waiting sent;
    Waiting received;
    sent.done = !pair.machine(0)
                     .tag_send(1, machine::make_tag(15, 1), {&outgoing, sizeof outgoing}, &sent)
                     .is_pending();
    received.done = !pair.machine(1)
                         .tag_receive(machine::make_tag(15, 1), machine::kFullTagMask, into, &received)
                         .is_pending();
    while (!received.done) pair.machine(1).progress();
    while (!sent.done) pair.machine(0).progress();
  }
}

void on_channel(Pair& pair, std::int64_t messages) {
  auto peers = weft::Group<Peer>::create(pair.runtime(0));
  weft::Future<> done = peers.call<&Peer::play>(messages);
  pair.run_until(done);
}

void on_entry_methods(Pair& pair, std::int64_t messages) {
  auto peers = weft::Group<Peer>::create(pair.runtime(0));
  weft::Future<> done(pair.runtime(0));
  peers[0].send<&Peer::start>(messages, done);
  pair.run_until(done);
}

// As with `weft run --trace`.
void on_traced_entry_methods(Pair& pair, std::int64_t messages) {
  constexpr std::size_t kMemoryBytes = 1 << 20;
  const job::Recorder first(pair.runtime(0), kMemoryBytes);
  const job::Recorder second(pair.runtime(1), kMemoryBytes);
  on_entry_methods(pair, messages);
}

// callgrind counts what runs in here (instructions.py names it): not the start of UCX, whose connections are made by a
// thread of its own, so that the PEs poll a different number of times in each run.
[[gnu::noinline]] void counted(void (*path)(Pair&, std::int64_t), Pair& pair, std::int64_t messages) {
  path(pair, messages);
}

}  // namespace
}  // namespace weft::benchmarks

int main(int argc, char** argv) {
  using namespace weft::benchmarks;
  if (argc != 3) die("usage: path_instructions machine|channel|entry|traced MESSAGES");
  std::string_view path = argv[1];
  std::int64_t messages = 0;
  std::from_chars(argv[2], argv[2] + std::strlen(argv[2]), messages);
  void (*run)(Pair&, std::int64_t) = path == "machine"   ? on_machine
                                     : path == "channel" ? on_channel
                                     : path == "entry"   ? on_entry_methods
                                     : path == "traced"  ? on_traced_entry_methods
                                                         : nullptr;
  if (run == nullptr) die("the path is machine, channel, entry or traced");
  Pair pair;
  run(pair, kWarmUpMessages);
  counted(run, pair, messages);
  return 0;
}
