// Vectors by value between two chares, each on a PE of its own: the caller keeps its vector, and the method gets one of
// its own. entry_pingpong has values that the method views where they arrived.
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "weft/weft.h"

#include "benchmarks/job_program.h"
#include "benchmarks/measuring.h"

namespace weft::benchmarks {
namespace {

class Peer : public weft::Chare<Peer> {
 public:
  Peer() { pin(pe()); }

  void prepare(Step step) {
    outgoing_.assign(static_cast<std::size_t>(step.buffers),
                     std::vector<std::byte>(step.size_bytes, std::byte{1}));
  }

  // Plays `step` with the other; `done` gets the seconds of the timed part.
  void begin(int bench, Step step, weft::Future<double> done) {
    bench_ = static_cast<Bench>(bench);
    left_ = step.warmup;
    timed_left_ = step.iterations;
    done_ = std::move(done);
    next();
  }

  void ping(std::vector<std::byte>) { partner().send<&Peer::pong>(outgoing()); }
  void pong(std::vector<std::byte>) { next(); }
  void take(std::vector<std::byte>) {
    if (++arrived_ < kWindow) return;
    arrived_ = 0;
    partner().send<&Peer::next>();
  }

  void next() {
    if (left_ == 0) {
      if (timed_left_ == 0) return done_.set(stopwatch_.elapsed_s());
      left_ = timed_left_;
      timed_left_ = 0;
      stopwatch_ = Stopwatch();
    }
    --left_;
    if (bench_ == Bench::kLatency) return partner().send<&Peer::ping>(outgoing());
    for (int i = 0; i < kWindow; ++i) partner().send<&Peer::take>(outgoing());
  }

 private:
  weft::ElementProxy<Peer> partner() { return proxy()[1 - index()]; }
  const std::vector<std::byte>& outgoing() { return outgoing_[sent_++ % outgoing_.size()]; }

  Bench bench_ = Bench::kLatency;
  std::vector<std::vector<std::byte>> outgoing_;
  std::size_t sent_ = 0;
  std::int64_t left_ = 0;
  std::int64_t timed_left_ = 0;
  std::int64_t arrived_ = 0;
  Stopwatch stopwatch_;
  weft::Future<double> done_;
};

weft::Task<> measure(weft::Runtime& runtime, const Arguments& arguments) {
  if (runtime.num_pes() != 2) die("this needs 2 PEs: weft run -n 2 vector_pingpong ...");
  auto peers = weft::Group<Peer>::create(runtime);
  for (const Step& step : arguments.steps) {
    co_await peers.call<&Peer::prepare>(step);
    weft::Future<double> done(runtime);
    peers[0].send<&Peer::begin>(static_cast<int>(arguments.bench), step, done);
    report(arguments.bench, step, co_await done);
  }
}

}  // namespace
}  // namespace weft::benchmarks

int main(int argc, char** argv) { return weft::benchmarks::run(argc, argv, weft::benchmarks::measure); }
