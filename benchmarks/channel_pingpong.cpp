// A channel between two chares, each on a PE of its own; on one PE both live there.
#include <optional>
#include <vector>

#include "weft/weft.h"

#include "benchmarks/buffers.h"
#include "benchmarks/job_program.h"
#include "benchmarks/measuring.h"

namespace weft::benchmarks {
namespace {

class Peer : public weft::Chare<Peer> {
 public:
  Peer() { pin(pe()); }

  weft::Task<> play(int bench, weft::Kind memory, std::vector<Step> steps) {
    weft::Channel channel(*this, proxy()[1 - index()]);
    for (const Step& step : steps) {
      // Windows go one way.
      const bool is_first = linear_index() == 0;
      Buffers outgoing(runtime(), memory, step.size_bytes, is_first ? step.buffers : 1);
      Buffers incoming(runtime(), memory, step.size_bytes, is_first ? 1 : step.buffers);
      auto exchange = static_cast<Bench>(bench) == Bench::kLatency ? &Peer::ping_pong : &Peer::windows;
      co_await (this->*exchange)(channel, outgoing, incoming, step.warmup);
      Stopwatch stopwatch;
      co_await (this->*exchange)(channel, outgoing, incoming, step.iterations);
      if (linear_index() == 0) report(static_cast<Bench>(bench), step, stopwatch.elapsed_s());
    }
  }

 private:
  weft::Task<> ping_pong(weft::Channel channel, Buffers& outgoing, Buffers& incoming,
                         std::int64_t round_trips) {
    // An answer says that the message before it has arrived, so its buffer is free again. The last message
    // is awaited.
    std::optional<weft::Operation> sending;
    for (std::int64_t i = 0; i < round_trips; ++i) {
      if (linear_index() == 0) sending = channel.send(outgoing.next().buffer());
      co_await channel.recv(incoming.next().buffer());
      if (linear_index() == 1) sending = channel.send(outgoing.next().buffer());
    }
    if (sending) co_await *sending;
  }

  weft::Task<> windows(weft::Channel channel, Buffers& outgoing, Buffers& incoming, std::int64_t count) {
    std::vector<weft::Operation> operations;
    operations.reserve(kWindow);
    for (std::int64_t i = 0; i < count; ++i) {
      for (int slot = 0; slot < kWindow; ++slot) {
        operations.push_back(linear_index() == 0 ? channel.send(outgoing.next().buffer())
                                                 : channel.recv(incoming.next().buffer()));
      }
      for (weft::Operation& operation : operations) co_await operation;
      operations.clear();
      if (linear_index() == 0) {
        co_await channel.recv(weft::Buffer());
      } else {
        co_await channel.send(weft::ConstBuffer());
      }
    }
  }
};

weft::Task<> measure(weft::Runtime& runtime, const Arguments& arguments) {
  auto peers = weft::Array<Peer>::create(runtime, {2});
  co_await peers.call<&Peer::play>(static_cast<int>(arguments.bench), arguments.memory, arguments.steps);
}

}  // namespace
}  // namespace weft::benchmarks

int main(int argc, char** argv) { return weft::benchmarks::run(argc, argv, weft::benchmarks::measure); }
