// What the programs of Weft measure, asked of Charm++: values, buffers in place, broadcast and reduction.
//
//   charm_pingpong latency|bandwidth array|vector|nocopy SIZE:ITERATIONS:WARMUP[:BUFFERS]...
//   charm_pingpong reduction array ELEMENTS:ITERATIONS:WARMUP
//
// array: a marshalled array, which the entry method reads in the message. vector: a std::vector, which the entry method
// gets as one of its own. nocopy: a buffer that is sent in place and lands in a buffer that the receiver posts.
// reduction: seconds of a broadcast of a 64-bit integer to the elements of an array that exists, and of a sum over them.
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "benchmarks/weft_bench/cores/pin.h"
#include "charm_pingpong.decl.h"

CProxy_Main main_proxy;
CProxy_Peer peers;
CProxy_Element elements;

constexpr int kWindow = 64;

enum class Way { kArray, kVector, kNocopy };

struct Step {
  int size = 0;
  int iterations = 0;
  int warmup = 0;
  int buffers = 1;
};

// A PE has many objects that ask for it; pinned again, it would find one usable core.
void pin() {
  static bool is_pinned = false;
  if (!is_pinned) weft::benchmarks::pin(CkMyPe());
  is_pinned = true;
}

class Main : public CBase_Main {
 public:
  explicit Main(CkArgMsg* arguments) {
    main_proxy = thisProxy;
    if (arguments->argc < 4)
      CkAbort("usage: charm_pingpong BENCH array|vector|nocopy SIZE:ITERATIONS:WARMUP[:BUFFERS]...");
    bench_ = arguments->argv[1];
    const std::string way = arguments->argv[2];
    if (way != "array" && way != "vector" && way != "nocopy") CkAbort("'%s' is no way", way.c_str());
    way_ = way == "array" ? Way::kArray : way == "vector" ? Way::kVector : Way::kNocopy;
    for (int i = 3; i < arguments->argc; ++i) {
      Step step;
      if (std::sscanf(arguments->argv[i], "%d:%d:%d:%d", &step.size, &step.iterations, &step.warmup,
                      &step.buffers) < 3) {
        CkAbort("'%s' is not SIZE:ITERATIONS:WARMUP[:BUFFERS]", arguments->argv[i]);
      }
      steps_.push_back(step);
    }
    if (bench_ == "reduction") {
      elements = CProxy_Element::ckNew(steps_[0].size);
      next_reduction();
    } else {
      peers = CProxy_Peer::ckNew();
      peers.prepare(steps_[0].size, steps_[0].buffers);
    }
  }

  void prepared() {
    if (++prepared_ < CkNumPes()) return;
    prepared_ = 0;
    const Step& step = steps_[number_];
    peers[0].begin(bench_ == "latency", static_cast<int>(way_), step.warmup, step.iterations);
  }

  void played(double elapsed_s) {
    const Step& step = steps_[number_];
    const double size = step.size;
    if (bench_ == "latency") {
      report("latency_us", elapsed_s / step.iterations / 2 * 1e6);
    } else {
      report("bandwidth_GBps", step.iterations * kWindow * size / elapsed_s / 1e9);
    }
    if (++number_ == steps_.size()) return CkExit();
    peers.prepare(steps_[number_].size, steps_[number_].buffers);
  }

  void total(CmiInt8 sum) {
    const Step& step = steps_[0];
    if (sum != step.size) CkAbort("the reduction missed elements");
    ++rounds_;
    if (rounds_ == step.warmup) start_s_ = CkWallTimer();
    if (rounds_ < step.warmup + step.iterations) return next_reduction();
    report("time_s", (CkWallTimer() - start_s_) / step.iterations);
    CkExit();
  }

 private:
  void next_reduction() { elements.add(1); }
  void report(const char* metric, double value) {
    std::printf("{\"size_bytes\": %d, \"metric\": \"%s\", \"value\": %.9g}\n", steps_[number_].size, metric,
                value);
    std::fflush(stdout);
  }

  std::string bench_;
  Way way_ = Way::kArray;
  std::vector<Step> steps_;
  std::size_t number_ = 0;
  int prepared_ = 0;
  int rounds_ = 0;
  double start_s_ = 0;
};

class Peer : public CBase_Peer {
 public:
  Peer() { pin(); }

  void prepare(int size, int buffers) {
    outgoing_.assign(buffers, std::vector<char>(size, 1));
    incoming_.assign(buffers, std::vector<char>(size, 1));
    main_proxy.prepared();
  }

  void begin(bool latency, int way, int warmup, int iterations) {
    latency_ = latency;
    way_ = static_cast<Way>(way);
    left_ = warmup;
    timed_left_ = iterations;
    next();
  }

  void ping(int, char*) { thisProxy[partner()].pong(size(), outgoing().data()); }
  void pong(int, char*) { next(); }
  void take(int, char*) { count(); }

  void ping_vector(const std::vector<char>&) { thisProxy[partner()].pong_vector(outgoing()); }
  void pong_vector(const std::vector<char>&) { next(); }
  void take_vector(const std::vector<char>&) { count(); }

  void land_ping(int, char*, CkNcpyBufferPost* post) { land(post); }
  void land_pong(int, char*, CkNcpyBufferPost* post) { land(post); }
  void land_take(int, char*, CkNcpyBufferPost* post) { land(post); }
  void land_ping(int, char*) { thisProxy[partner()].land_pong(size(), CkSendBuffer(outgoing().data())); }
  void land_pong(int, char*) { next(); }
  void land_take(int, char*) { count(); }

  void next() {
    if (left_ == 0) {
      if (timed_left_ == 0) return main_proxy.played(CkWallTimer() - start_s_);
      left_ = timed_left_;
      timed_left_ = 0;
      start_s_ = CkWallTimer();
    }
    --left_;
    for (int i = 0; i < (latency_ ? 1 : kWindow); ++i) send();
  }

 private:
  int partner() const { return 1 - CkMyPe(); }
  int size() const { return static_cast<int>(outgoing_[0].size()); }
  std::vector<char>& outgoing() { return outgoing_[sent_++ % outgoing_.size()]; }

  void send() {
    auto other = thisProxy[partner()];
    switch (way_) {
      case Way::kArray:
        return latency_ ? other.ping(size(), outgoing().data()) : other.take(size(), outgoing().data());
      case Way::kVector:
        return latency_ ? other.ping_vector(outgoing()) : other.take_vector(outgoing());
      case Way::kNocopy:
        auto buffer = CkSendBuffer(outgoing().data());
        return latency_ ? other.land_ping(size(), buffer) : other.land_take(size(), buffer);
    }
  }

  void land(CkNcpyBufferPost* post) {
    // A tag of its own for each message: several are in flight.
    const int tag = landed_;
    CkMatchBuffer(post, 0, tag);
    CkPostBuffer(incoming_[landed_++ % incoming_.size()].data(), static_cast<std::size_t>(size()), tag);
  }

  void count() {
    if (++arrived_ < kWindow) return;
    arrived_ = 0;
    thisProxy[partner()].next();
  }

  bool latency_ = true;
  Way way_ = Way::kArray;
  std::vector<std::vector<char>> outgoing_;
  std::vector<std::vector<char>> incoming_;
  std::size_t sent_ = 0;
  int landed_ = 0;
  int left_ = 0;
  int timed_left_ = 0;
  int arrived_ = 0;
  double start_s_ = 0;
};

class Element : public CBase_Element {
 public:
  Element() { pin(); }
  void add(CmiInt8 value) {
    contribute(sizeof value, &value, CkReduction::sum_long_long,
               CkCallback(CkReductionTarget(Main, total), main_proxy));
  }
};

#include "charm_pingpong.def.h"
