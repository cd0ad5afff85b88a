// A plain copy between two devices by one process that sees both: copy, record an event, poll it. Without
// kernels of its own, no system that passes messages can be faster.
//
// It uses the cuda kind's own calls: cuMemcpyPeerAsync between devices, cuMemcpyAsync on one, and the calls
// that make the right context current before them. latency: a copy there and, when it is done, a copy back.
// bandwidth, rate: windows of kWindow copies, the last of which is awaited.
// Use: peer_copy BENCH SIZE:ITERATIONS:WARMUP... --memory cuda|emulated [--devices FROM,TO]
#include "benchmarks/measuring.h"
#include "memory/memory.h"

namespace weft::benchmarks {
namespace {

template <class T>
T value_of(base::Result<T> result) {
  if (!result.ok()) die(result.status().to_string());
  return std::move(result).value();
}

void check(const base::Status& status) {
  if (status.failed()) die(status.to_string());
}

class Copies {
 public:
  Copies(memory::Memory& memory, const Arguments& arguments, std::size_t size_bytes)
      : memory_(memory),
        backend_(*memory.backend(arguments.memory)),
        first_(value_of(memory.allocate(size_bytes, place(arguments, 0)))),
        second_(value_of(memory.allocate(size_bytes, place(arguments, 1)))) {}
  ~Copies() {
    check(memory_.deallocate(first_));
    check(memory_.deallocate(second_));
  }
  Copies(const Copies&) = delete;
  Copies& operator=(const Copies&) = delete;

  void there_and_back(std::int64_t round_trips) {
    for (std::int64_t i = 0; i < round_trips; ++i) {
      copy(second_, first_);
      wait_for(first_);
      copy(first_, second_);
      wait_for(second_);
    }
  }

  void windows(std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      for (int slot = 0; slot < kWindow; ++slot) copy(second_, first_);
      wait_for(first_);
    }
  }

 private:
  static memory::Place place(const Arguments& arguments, std::size_t which) {
    return {arguments.memory, static_cast<std::int16_t>(arguments.devices[which])};
  }

  // On the source's own stream.
  void copy(const memory::Buffer& to, const memory::Buffer& from) {
    check(backend_.copy_async(to.data, to.place, from.data, from.place, from.size_bytes, nullptr));
  }
  void wait_for(const memory::Buffer& source) {
    memory::EventHandle event = value_of(backend_.record(nullptr, source.place.device));
    base::Status status;
    do {
      status = backend_.query(event);
    } while (status.is_pending());
    check(status);
    backend_.release_event(event);
  }

  memory::Memory& memory_;
  memory::KindBackend& backend_;
  memory::Buffer first_;
  memory::Buffer second_;
};

void measure(const Arguments& arguments) {
  memory::Memory memory;
  check(memory.availability(arguments.memory));
  if (arguments.memory == memory::Kind::kHost) die("host memory is copied by no device: --memory cuda");
  auto exchange = arguments.bench == Bench::kLatency ? &Copies::there_and_back : &Copies::windows;
  for (const Step& step : arguments.steps) {
    Copies copies(memory, arguments, step.size_bytes);
    (copies.*exchange)(step.warmup);
    Stopwatch stopwatch;
    (copies.*exchange)(step.iterations);
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
