// What benchmarks/call_rate.cpp measures, asked of Charm++: calls of 8 bytes from all PEs to chares of all other PEs, one by one or
// aggregated by TRAM. Millions per second, of all PEs together; the best run counts.
//
//   charm_call_rate single|aggregated CALLS CHARES RUNS YIELD
//
// Each PE makes CALLS calls to chares that it chooses at random among the CHARES of each other PE. After YIELD calls it lets the
// scheduler run: Charm++ has no word for "wait for room". 0 is never.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "NDMeshStreamer.h"
#include "benchmarks/weft_bench/cores/pin.h"
#include "charm_call_rate.decl.h"

CProxy_Main main_proxy;
CProxy_Counter counters;
CProxy_Callers callers;

class Main : public CBase_Main {
 public:
  explicit Main(CkArgMsg* arguments) {
    main_proxy = thisProxy;
    if (arguments->argc != 6 || CkNumPes() < 2)
      CkAbort("usage, on 2 PEs or more: charm_call_rate single|aggregated CALLS CHARES RUNS YIELD");
    const std::string way = arguments->argv[1];
    if (way != "single" && way != "aggregated") CkAbort("'%s' is no way", way.c_str());
    is_aggregated_ = way == "aggregated";
    calls_ = number(arguments->argv[2]);
    chares_ = number(arguments->argv[3]);
    runs_ = number(arguments->argv[4]);
    yield_ = number(arguments->argv[5]);
    counters = CProxy_Counter::ckNew(static_cast<int>(chares_) * CkNumPes());
    callers = CProxy_Callers::ckNew();
  }

  void ready() { begin(); }

  void ended() {
    best_s_ = std::min(best_s_, CkWallTimer() - start_s_);
    if (++run_ < runs_) return begin();
    counters.contribute_sum();
  }

  void summed(CmiUInt8 sum) {
    const CmiUInt8 all_calls = calls_ * CkNumPes();
    if (sum != all_calls * runs_) CkAbort("calls were lost");
    std::printf("{\"size_bytes\": 8, \"metric\": \"rate_Mps\", \"value\": %.9g}\n",
                static_cast<double>(all_calls) / best_s_ / 1e6);
    std::fflush(stdout);
    CkExit();
  }

 private:
  static CmiUInt8 number(const char* word) { return std::strtoull(word, nullptr, 10); }

  void begin() {
    start_s_ = CkWallTimer();
    callers.make_calls(is_aggregated_, calls_, chares_, yield_);
    CkStartQD(CkCallback(CkIndex_Main::ended(), thisProxy));
  }

  bool is_aggregated_ = false;
  CmiUInt8 calls_ = 0, chares_ = 0, runs_ = 0, yield_ = 0, run_ = 0;
  double start_s_ = 0;
  double best_s_ = 1e9;
};

class Counter : public CBase_Counter {
 public:
  Counter() { contribute(CkCallback(CkReductionTarget(Main, ready), main_proxy)); }
  explicit Counter(CkMigrateMessage*) {}

  void add(CmiUInt8 value) { sum_ += value; }
  void add_aggregated(const CmiUInt8& value) { sum_ += value; }
  void contribute_sum() {
    contribute(sizeof sum_, &sum_, CkReduction::sum_ulong_long,
               CkCallback(CkReductionTarget(Main, summed), main_proxy));
  }

 private:
  CmiUInt8 sum_ = 0;
};

class Callers : public CBase_Callers {
 public:
  Callers() : state_(CkMyPe() + 1) { weft::benchmarks::pin(CkMyPe()); }

  void make_calls(bool is_aggregated, CmiUInt8 calls, CmiUInt8 chares, CmiUInt8 yield) {
    if (is_aggregated) {
      call_each(calls, chares, yield, [](int target) { counters[target].add_aggregated(1); });
    } else {
      call_each(calls, chares, yield, [](int target) { counters[target].add(1); });
    }
  }

 private:
  template <class Call>
  void call_each(CmiUInt8 calls, CmiUInt8 chares, CmiUInt8 yield, Call call) {
    const CmiUInt8 others = chares * (CkNumPes() - 1);
    const CmiUInt8 first_own = chares * CkMyPe();
    CmiUInt8 until_yield = yield;
    for (CmiUInt8 i = 0; i < calls; ++i) {
      state_ = state_ * 6364136223846793005U + 1442695040888963407U;
      CmiUInt8 target = (state_ >> 32) * others >> 32;
      if (target >= first_own) target += chares;
      call(static_cast<int>(target));
      if (yield == 0 || --until_yield > 0) continue;
      until_yield = yield;
      CthYield();
    }
  }

  CmiUInt8 state_;
};

#include "charm_call_rate.def.h"
