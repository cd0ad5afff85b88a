// How long a message takes to a PE that has posted its receive and then computes for a second.
//
// The time runs from the send until the sender's operation completes, or until the receiver sees all bytes in
// place, whichever is earlier. The receiver looks at its buffer every 64 KiB of bytes, between steps of its
// computation; it does not enter the runtime. Both PEs read CLOCK_MONOTONIC, which the processes of a host share.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>

#include "weft/weft.h"

#include "benchmarks/buffers.h"
#include "benchmarks/job_program.h"
#include "benchmarks/measuring.h"

namespace weft::benchmarks {
namespace {

constexpr double kBusyS = 1.0;
// The sender waits this long, so that the receiver computes when the message is sent.
constexpr double kPauseS = 0.05;
constexpr std::size_t kStride = 64 << 10;

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool all_arrived(weft::Buffer buffer, std::byte expected) {
  const auto* bytes = static_cast<const volatile std::byte*>(buffer.data);
  for (std::size_t end = buffer.size_bytes; end > 0; end -= std::min(end, kStride)) {
    if (bytes[end - 1] != expected) return false;
  }
  std::atomic_thread_fence(std::memory_order_acquire);
  return true;
}

// Computes for `kBusyS`; the time at which the message was there, or infinity.
double compute(weft::Buffer buffer, std::byte expected) {
  double arrived_s = std::numeric_limits<double>::infinity();
  volatile double value = 1;
  for (const double end_s = now_s() + kBusyS; now_s() < end_s;) {
    for (int i = 0; i < 10'000; ++i) value = value * 1.0000001 + 1e-9;
    if (std::isinf(arrived_s) && all_arrived(buffer, expected)) arrived_s = now_s();
  }
  return arrived_s;
}

class Peer : public weft::Chare<Peer> {
 public:
  Peer() { pin(pe()); }

  weft::Task<> play(std::vector<Step> steps) {
    weft::Channel channel(*this, proxy()[1 - index()]);
    for (const Step& step : steps) {
      auto data = make_buffer(runtime(), weft::Kind::kHost, step.size_bytes);
      for (std::int64_t i = 0; i < step.warmup + step.iterations; ++i) {
        const auto expected = static_cast<std::byte>(2 + i);
        if (linear_index() == 0) {
          std::memset(data.data(), static_cast<int>(expected), step.size_bytes);
          const double s = co_await send(channel, data.buffer());
          if (i >= step.warmup) report("latency_us", step.size_bytes, s * 1e6);
        } else {
          co_await receive(channel, data.buffer(), expected);
        }
      }
    }
  }

 private:
  // The seconds that the message took.
  weft::Task<double> send(weft::Channel channel, weft::Buffer data) {
    co_await channel.recv(weft::Buffer());
    for (Stopwatch pause; pause.elapsed_s() < kPauseS;) {
    }
    const double start_s = now_s();
    co_await channel.send(data);
    const double sent_s = now_s();
    double arrived_s = 0;
    co_await channel.recv(weft::Buffer{&arrived_s, sizeof arrived_s, {}, nullptr});
    co_return std::min(sent_s, arrived_s) - start_s;
  }

  weft::Task<> receive(weft::Channel channel, weft::Buffer data, std::byte expected) {
    auto receiving = channel.recv(data);
    co_await channel.send(weft::ConstBuffer());
    double arrived_s = compute(data, expected);
    co_await receiving;
    co_await channel.send(weft::ConstBuffer(&arrived_s, sizeof arrived_s));
  }
};

weft::Task<> measure(weft::Runtime& runtime, const Arguments& arguments) {
  if (runtime.num_pes() != 2) die("this needs 2 PEs: weft run -n 2 busy_receiver ...");
  auto peers = weft::Array<Peer>::create(runtime, {2});
  co_await peers.call<&Peer::play>(arguments.steps);
}

}  // namespace
}  // namespace weft::benchmarks

int main(int argc, char** argv) { return weft::benchmarks::run(argc, argv, weft::benchmarks::measure); }
