// Elements that reach sync points on request, for the tests of load balancing.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/weft.h"

#include "runtime/losses/losses.h"
#include "tests/support/errors.h"
#include "tests/support/in_process_job.h"
#include "tests/support/thread_time.h"

namespace weft::chare::sync_testing {

using test_support::error_of;
using test_support::says;
using testing::InProcessJob;
using testing::thread_time;

// The elements that exist, on all PEs of the process.
inline int alive = 0;

inline void use_strategy(InProcessJob& job, std::string_view name) {
  for (int pe = 0; pe < job.num_pes(); ++pe) {
    for (const runtime::ModelOption& option : job.runtime(pe).model<Chares>().options()) {
      if (option.variable != "WEFT_LB") continue;
      EXPECT_TRUE(option.set(name));
    }
  }
}

// The other PEs know of the loss before they do anything else.
inline void lose_at_once(InProcessJob& job, int lost) {
  job.kill(lost);
  for (int pe = 0; pe < job.num_pes(); ++pe) {
    if (pe == lost) continue;
    job.runtime(pe).losses().tell(lost, "it was killed");
    job.runtime(pe).losses().handle_told();
  }
}

// The thread's time, because loads leave out waits for a processor; a thousandth more, because the clocks may differ a little.
inline void work(std::chrono::microseconds time) {
  const std::chrono::nanoseconds end = thread_time() + time * 1001 / 1000;
  while (thread_time() < end) {
  }
}

// g++ 12 does not take initializer lists inside co_await expressions.
template <class... Values>
std::vector<int> list(Values... values) {
  return {values...};
}

// Reaches sync points on request. `over` gets one contribution of each element when the step is over.
struct Worker : Chare<Worker> {
  Worker() { ++alive; }
  ~Worker() override { --alive; }
  void pup(Pup& p) { p | over | has_target | resumed | arrivals | late | calls; }

  void migrated() override { ++arrivals; }
  void resume_from_sync() override {
    ++resumed;
    resumed_with_s = load_s();
    if (arrivals != static_cast<int>(num_moves())) ++late;  // migrated() has not run
    if (has_target) contribute(1, Reducer::kSum, target_of(over));
    has_target = false;
  }

  void sync(Future<int> target) {
    over = std::move(target);
    has_target = true;
    at_sync();
  }
  void sync_with(double load_s, Future<int> target) {
    set_load_s(load_s);
    sync(std::move(target));
  }
  void sync_alone() { at_sync(); }
  // Both end when open() is called.
  Task<> sync_and_wait(Future<int> target) {
    sync(std::move(target));
    co_await wait();
  }
  Task<> wait() {
    gate = Future<>(runtime());
    co_await gate;
  }
  void open() { gate.set(); }
  void go(int to_pe) { migrate(to_pe); }
  void go_and_sync(int to_pe, Future<int> target) {
    migrate(to_pe);
    sync(std::move(target));
  }
  void go_sync_and_pin(int to_pe, Future<int> target) {
    go_and_sync(to_pe, std::move(target));
    set_pinned(true);
  }
  void pin(bool pinned) { set_pinned(pinned); }
  void call() { ++calls; }
  void set_load(double load_s) { set_load_s(load_s); }
  double load() { return load_s(); }
  double load_when_resumed() { return resumed_with_s; }
  double spin(int time_us) {
    work(std::chrono::microseconds(time_us));
    return load_s();
  }
  // With a load of 1 for each millisecond that it has worked on PE 0. Other PEs take twice as long.
  void work_and_sync(int load, Future<int> target) {
    work(std::chrono::milliseconds(pe() == 0 ? load : 2 * load));
    sync_with(load, std::move(target));
  }
  Task<> spin_twice(int time_us) {
    work(std::chrono::microseconds(time_us));
    co_await wait();
    work(std::chrono::microseconds(time_us));
  }
  int where_now() { return pe(); }
  int times_resumed() { return late == 0 ? resumed : -1000; }
  int num_calls() { return calls; }

  Future<> gate;
  Future<int> over;
  bool has_target = false;
  int resumed = 0;
  int arrivals = 0;
  int late = 0;
  int calls = 0;
  double resumed_with_s = -1;
};

// One step of all elements, with these loads.
inline Task<> step(Runtime& runtime, Array<Worker> workers, std::vector<double> loads) {
  Future<int> over(runtime);
  for (std::size_t i = 0; i < loads.size(); ++i) {
    workers[static_cast<int>(i)].send<&Worker::sync_with>(loads[i], over);
  }
  EXPECT_EQ(co_await over, static_cast<int>(loads.size()));
}

}  // namespace weft::chare::sync_testing
