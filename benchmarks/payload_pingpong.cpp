// Payloads between two chares, each on a PE of its own: an entry method with one payload, sent in place with
// nocopy, that its post entry method lands in memory of the same kind, allocated beforehand.
//
// WEFT_MESSAGING_PATH=tagged|active forces one of the two wire paths (src/runtime/message/README.md).
// By default the runtime takes the path that is faster for the size.
#include <span>
#include <utility>

#include "weft/weft.h"

#include "benchmarks/buffers.h"
#include "benchmarks/job_program.h"
#include "benchmarks/measuring.h"

namespace weft::benchmarks {
namespace {

class Peer : public weft::Chare<Peer> {
 public:
  Peer() { pin(pe()); }

  // Both chares have their memory before the first message arrives.
  void prepare(weft::Kind memory, Step step) {
    // Windows go one way.
    outgoing_ = Buffers(runtime(), memory, step.size_bytes, pe() == 0 ? step.buffers : 1);
    incoming_ = Buffers(runtime(), memory, step.size_bytes, pe() == 0 ? 1 : step.buffers);
  }

  // Plays `step` with the other; `done` gets the seconds of the timed part.
  void begin(int bench, Step step, weft::Future<double> done) {
    bench_ = static_cast<Bench>(bench);
    left_ = step.warmup;
    timed_left_ = step.iterations;
    done_ = std::move(done);
    next();
  }

  void ping(weft::Payload<std::byte>) { send<&Peer::pong>(); }
  void pong(weft::Payload<std::byte>) { next(); }
  void take(weft::Payload<std::byte>) {
    if (++arrived_ < kWindow) return;
    arrived_ = 0;
    partner().send<&Peer::next>();
  }
  void post(weft::ReceiveBuffer<std::byte>& data) { data.into(incoming_.next().span()); }

  void next() {
    if (left_ == 0) {
      if (timed_left_ == 0) return done_.set(stopwatch_.elapsed_s());
      left_ = timed_left_;
      timed_left_ = 0;
      stopwatch_ = Stopwatch();
    }
    --left_;
    if (bench_ == Bench::kLatency) return send<&Peer::ping>();
    for (int i = 0; i < kWindow; ++i) send<&Peer::take>();
  }

  using PostEntryMethods =
      weft::PostEntryMethods<weft::Post<&Peer::ping, &Peer::post>, weft::Post<&Peer::pong, &Peer::post>,
                             weft::Post<&Peer::take, &Peer::post>>;

 private:
  weft::ElementProxy<Peer> partner() { return proxy()[1 - index()]; }

  // An answer says that the message before it has arrived, so its buffer is free again.
  template <auto Method>
  void send() {
    partner().send<Method>(weft::nocopy(outgoing_.next().span())).detach();
  }

  Bench bench_ = Bench::kLatency;
  Buffers outgoing_;
  Buffers incoming_;
  std::int64_t left_ = 0;
  std::int64_t timed_left_ = 0;
  std::int64_t arrived_ = 0;
  Stopwatch stopwatch_;
  weft::Future<double> done_;
};

weft::Task<> measure(weft::Runtime& runtime, const Arguments& arguments) {
  if (runtime.num_pes() != 2) die("this needs 2 PEs: weft run -n 2 payload_pingpong ...");
  auto peers = weft::Group<Peer>::create(runtime);
  for (const Step& step : arguments.steps) {
    co_await peers.call<&Peer::prepare>(arguments.memory, step);
    weft::Future<double> done(runtime);
    peers[0].send<&Peer::begin>(static_cast<int>(arguments.bench), step, done);
    report(arguments.bench, step, co_await done);
    co_await runtime.quiescence();
  }
}

}  // namespace
}  // namespace weft::benchmarks

int main(int argc, char** argv) { return weft::benchmarks::run(argc, argv, weft::benchmarks::measure); }
