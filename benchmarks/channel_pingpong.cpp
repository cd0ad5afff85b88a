// A channel between two chares, each on a PE of its own; on one PE both live there.
#include <cstring>
#include <optional>
#include <vector>

#include "weft/weft.h"

#include "benchmarks/measuring.h"
#include "memory/memory.h"

namespace weft::benchmarks {
namespace {

// Memory of any kind, given back at its end.
class Block {
 public:
  Block(weft::Runtime& runtime, memory::Kind kind, std::size_t size_bytes) : memory_(runtime.memory()) {
    auto buffer = memory_.allocate(size_bytes, {kind, 0});
    if (!buffer.ok()) die(buffer.status().to_string());
    buffer_ = *buffer;
    // Pages never written are all one page of zeros.
    if (kind == memory::Kind::kHost) std::memset(buffer_.data, 1, size_bytes);
  }
  ~Block() { static_cast<void>(memory_.deallocate(buffer_)); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  const weft::Buffer& buffer() const { return buffer_; }

 private:
  memory::Memory& memory_;
  weft::Buffer buffer_;
};

class Peer : public weft::Chare<Peer> {
 public:
  Peer() { pin(pe()); }

  weft::Task<> play(int bench, int memory, std::vector<Step> steps) {
    weft::Channel channel(*this, proxy()[1 - index()]);
    for (const Step& step : steps) {
      Block outgoing(runtime(), static_cast<memory::Kind>(memory), step.size_bytes);
      Block incoming(runtime(), static_cast<memory::Kind>(memory), step.size_bytes);
      auto exchange = static_cast<Bench>(bench) == Bench::kLatency ? &Peer::ping_pong : &Peer::windows;
      co_await (this->*exchange)(channel, outgoing.buffer(), incoming.buffer(), step.warmup);
      Stopwatch stopwatch;
      co_await (this->*exchange)(channel, outgoing.buffer(), incoming.buffer(), step.iterations);
      if (linear_index() == 0) report(static_cast<Bench>(bench), step, stopwatch.elapsed_s());
    }
  }

 private:
  weft::Task<> ping_pong(weft::Channel channel, weft::Buffer outgoing, weft::Buffer incoming,
                         std::int64_t round_trips) {
    // An answer says that the message before it has arrived, so that its buffer is free again; the last
    // message of all is waited for.
    std::optional<weft::Operation> sending;
    for (std::int64_t i = 0; i < round_trips; ++i) {
      if (linear_index() == 0) sending = channel.send(outgoing);
      co_await channel.recv(incoming);
      if (linear_index() == 1) sending = channel.send(outgoing);
    }
    if (sending) co_await *sending;
  }

  weft::Task<> windows(weft::Channel channel, weft::Buffer outgoing, weft::Buffer incoming,
                       std::int64_t count) {
    std::vector<weft::Operation> operations;
    operations.reserve(kWindow);
    for (std::int64_t i = 0; i < count; ++i) {
      for (int slot = 0; slot < kWindow; ++slot) {
        operations.push_back(linear_index() == 0 ? channel.send(outgoing) : channel.recv(incoming));
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
  co_await peers.call<&Peer::play>(static_cast<int>(arguments.bench), static_cast<int>(arguments.memory),
                                   arguments.steps);
}

}  // namespace
}  // namespace weft::benchmarks

int main(int argc, char** argv) {
  auto arguments = weft::benchmarks::parse_arguments(argc, argv);
  return weft::run(argc, argv, [&arguments](weft::Runtime& runtime) {
    return weft::benchmarks::measure(runtime, arguments);
  });
}
