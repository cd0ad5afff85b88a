// Queued channels: numbers go around a ring of chares, ordered by their streams alone.
//
//   weft run -n 2 build/release/examples/queued_channels
//
// The devices are emulated, so it runs on any machine. On GPUs the kind is kCuda, kernels run on stream.handle(), and a graph can be
// captured from it.
#include <cstdint>
#include <cstdio>
#include <vector>

#include "weft/weft.h"

constexpr int kSize = 5;
constexpr int kRounds = kSize - 1;

struct Ring : weft::Chare<Ring> {
  weft::Task<std::int64_t> pass() {
    const weft::Place device = weft::device_of(runtime(), weft::Kind::kEmulated);
    weft::Stream stream(runtime(), device);
    weft::DeviceArray<std::int64_t> mine(runtime(), 1, device);
    weft::DeviceArray<std::int64_t> first(runtime(), 1, device);
    weft::DeviceArray<std::int64_t> second(runtime(), 1, device);
    const std::int64_t number = index();
    stream.copy(mine.buffer(), weft::ConstBuffer(&number, sizeof number));

    // A channel for each direction. Its number is the sender's, because two chares alone would have two of them.
    const int before = (index() + kSize - 1) % kSize;
    weft::QueuedChannel next(*this, proxy()[(index() + 1) % kSize], device, {}, index());
    weft::QueuedChannel previous(*this, proxy()[before], device, {first.buffer(), second.buffer()}, before);
    const weft::Future<> connected = next.connect();
    co_await previous.connect();
    co_await connected;

    // The message that has arrived is the next one to send. The CPU queues all rounds, and waits for their end alone.
    weft::Buffer message = mine.buffer();
    for (int round = 0; round < kRounds; ++round) {
      next.send(message, stream.handle());
      message = previous.recv(stream.handle());
    }
    std::int64_t last = 0;
    stream.copy({&last, sizeof last, {}, nullptr}, message);
    co_await stream.done();
    co_return last;
  }
};

weft::Task<> start(weft::Runtime& runtime) {
  const auto ring = weft::Array<Ring>::create(runtime, {kSize});
  const std::vector<std::int64_t> numbers = co_await ring.call<&Ring::pass>();
  for (int i = 0; i < kSize; ++i)
    std::printf("chare %d has the number of chare %lld\n", i, static_cast<long long>(numbers[i]));
}

int main(int argc, char** argv) { return weft::run(argc, argv, start); }
