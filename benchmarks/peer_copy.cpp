// A plain copy between two devices by one process that sees both: copy, record an event, poll it. Without
// kernels of its own, no system that passes messages can be faster.
//
// It uses the cuda kind's own calls: cuMemcpyPeerAsync between devices, cuMemcpyAsync on one, and the calls
// that make the right context current before them. latency: a copy there and, when it is done, a copy back.
// bandwidth, rate: windows of kWindow copies, the last of which is awaited. pgas_latency, memspeed: a copy there that is
// awaited before the next. pgas_flood: windows of kFloodWindow copies there.
// Use: peer_copy BENCH SIZE:ITERATIONS:WARMUP... --memory cuda|emulated [--devices FROM,TO]
#include "benchmarks/device_copies.h"
#include "benchmarks/measuring.h"

namespace weft::benchmarks {
namespace {

class Copies {
 public:
  Copies(memory::Memory& memory, const Arguments& arguments, std::size_t size_bytes)
      : memory_(memory),
        backend_(*memory.backend(arguments.memory)),
        first_(value_of(memory.allocate(size_bytes, place(arguments, 0)))),
        second_(value_of(memory.allocate(size_bytes, place(arguments, 1)))) {}
  ~Copies() {
    expect_ok(memory_.deallocate(first_));
    expect_ok(memory_.deallocate(second_));
  }
  Copies(const Copies&) = delete;
  Copies& operator=(const Copies&) = delete;

  void there_and_back(std::int64_t round_trips) {
    for (std::int64_t i = 0; i < round_trips; ++i) {
      copy(second_, first_);
      wait_for(backend_, first_.place.device);
      copy(first_, second_);
      wait_for(backend_, second_.place.device);
    }
  }

  void windows(std::int64_t count, int size) {
    for (std::int64_t i = 0; i < count; ++i) {
      for (int slot = 0; slot < size; ++slot) copy(second_, first_);
      wait_for(backend_, first_.place.device);
    }
  }

 private:
  static memory::Place place(const Arguments& arguments, std::size_t which) {
    return {arguments.memory, static_cast<std::int16_t>(arguments.devices[which])};
  }

  // On the source's own stream.
  void copy(const memory::Buffer& to, const memory::Buffer& from) {
    expect_ok(backend_.copy_async(to.data, to.place, from.data, from.place, from.size_bytes, nullptr));
  }

  memory::Memory& memory_;
  memory::KindBackend& backend_;
  memory::Buffer first_;
  memory::Buffer second_;
};

void carry_out(Copies& copies, Bench bench, std::int64_t count) {
  switch (bench) {
    case Bench::kLatency:
      return copies.there_and_back(count);
    case Bench::kBandwidth:
    case Bench::kRate:
      return copies.windows(count, kWindow);
    case Bench::kOneSided:
    case Bench::kMemspeed:
      return copies.windows(count, 1);
    case Bench::kFlood:
      return copies.windows(count, kFloodWindow);
    default:
      die("peer_copy has latency, bandwidth, rate, pgas_latency, pgas_flood and memspeed");
  }
}

void measure(const Arguments& arguments) {
  memory::Memory memory;
  expect_ok(memory.availability(arguments.memory));
  if (arguments.memory == memory::Kind::kHost) die("host memory is copied by no device: --memory cuda");
  for (const Step& step : arguments.steps) {
    Copies copies(memory, arguments, step.size_bytes);
    carry_out(copies, arguments.bench, step.warmup);
    Stopwatch stopwatch;
    carry_out(copies, arguments.bench, step.iterations);
    report(arguments.bench, step, stopwatch.elapsed_s());
  }
}

}  // namespace
}  // namespace weft::benchmarks

int main(int argc, char** argv) {
  auto arguments = weft::benchmarks::parse_arguments(argc, argv);
  weft::benchmarks::pin(0);
  weft::benchmarks::measure(arguments);
  return 0;
}
