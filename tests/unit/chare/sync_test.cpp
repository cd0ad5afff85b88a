#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "weft/weft.h"

#include "tests/support/in_process_job.h"

namespace weft::chare {
namespace {

using testing::InProcessJob;

int alive = 0;

void use_strategy(InProcessJob& job, std::string_view name) {
  for (int pe = 0; pe < job.num_pes(); ++pe) {
    for (const runtime::ModelOption& option : job.runtime(pe).model<Chares>().options()) {
      if (option.variable != "WEFT_LB") continue;
      EXPECT_TRUE(option.set(name));
    }
  }
}

void work(std::chrono::microseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}

// g++ 12 does not take initializer lists inside co_await expressions.
template <class... Values>
std::vector<int> list(Values... values) {
  return {values...};
}

template <class T>
Task<std::string> error_of(Future<T> future) {
  try {
    co_await future;
  } catch (const base::Error& error) {
    co_return error.what();
  }
  co_return "";
}

bool says(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

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
    over = target;
    has_target = true;
    at_sync();
  }
  void sync_with(double load_s, Future<int> target) {
    set_load_s(load_s);
    sync(target);
  }
  void sync_alone() { at_sync(); }
  // Both end when open() is called.
  Task<> sync_and_wait(Future<int> target) {
    sync(target);
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
    sync(target);
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
Task<> step(Runtime& runtime, Array<Worker> workers, std::vector<double> loads) {
  Future<int> over(runtime);
  for (std::size_t i = 0; i < loads.size(); ++i) {
    workers[static_cast<int>(i)].send<&Worker::sync_with>(loads[i], over);
  }
  EXPECT_EQ(co_await over, static_cast<int>(loads.size()));
}

// max / average - 1
double imbalance(const std::vector<int>& pes, const std::vector<double>& loads, int num_pes) {
  std::vector<double> times(static_cast<std::size_t>(num_pes));
  double sum = 0;
  for (std::size_t i = 0; i < pes.size(); ++i) {
    times[static_cast<std::size_t>(pes[i])] += loads[i];
    sum += loads[i];
  }
  return *std::ranges::max_element(times) / (sum / num_pes) - 1;
}

std::vector<double> ramp(int count) {
  std::vector<double> loads;
  for (int i = 0; i < count; ++i) loads.push_back(1 + 9.0 * i / (count - 1));
  return loads;
}

TEST(Sync, BalancesARampInOneStep) {
  for (const char* machine : {"loopback", "ucx"}) {
    for (int num_pes : {2, 4}) {
      alive = 0;
      InProcessJob job(num_pes, machine);
      EXPECT_EQ(job.run([num_pes](Runtime& runtime) -> Task<> {
        const std::vector<double> loads = ramp(16 * num_pes);
        const auto count = static_cast<int>(loads.size());
        auto workers = Array<Worker>::create(runtime, {count});
        EXPECT_GT(imbalance(co_await workers.call<&Worker::where_now>(), loads, num_pes), 0.3);
        co_await step(runtime, workers, loads);
        EXPECT_LT(imbalance(co_await workers.call<&Worker::where_now>(), loads, num_pes), 0.05);
        for (int resumed : co_await workers.call<&Worker::times_resumed>()) EXPECT_EQ(resumed, 1);
        EXPECT_EQ(alive, count);
        co_await workers.destroy();
        EXPECT_EQ(alive, 0);
      }),
                "");
    }
  }
}

TEST(Sync, ResumesEachElementOnceInEachStep) {
  for (int num_pes : {1, 2, 3, 5}) {
    for (const char* strategy : {"none", "rotate", "random", "greedy", "diffusion"}) {
      SCOPED_TRACE(strategy);
      InProcessJob job(num_pes);
      use_strategy(job, strategy);
      EXPECT_EQ(job.run([num_pes](Runtime& runtime) -> Task<> {
        constexpr int kElements = 7;
        auto workers = Array<Worker>::create(runtime, {kElements});
        for (int i = 1; i <= 12; ++i) {
          std::vector<double> loads;
          for (int j = 0; j < kElements; ++j) loads.push_back((i * j) % 5);
          co_await step(runtime, workers, loads);
          for (int resumed : co_await workers.call<&Worker::times_resumed>()) EXPECT_EQ(resumed, i);
          for (int pe : co_await workers.call<&Worker::where_now>()) EXPECT_LT(pe, num_pes);
        }
      }),
                "");
    }
  }
}

TEST(Sync, ElementsThatCannotMoveStay) {
  InProcessJob job(3);
  use_strategy(job, "rotate");
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto workers = Array<Worker>::create(runtime, {6});
    const std::vector<int> before = co_await workers.call<&Worker::where_now>();
    co_await workers[0].call<&Worker::pin>(true);
    auto waiting = workers[1].call<&Worker::wait>();
    Future<int> over(runtime);
    // The coroutine that calls at_sync() has not ended when its element is reported.
    auto caller = workers[2].call<&Worker::sync_and_wait>(over);
    for (int i : {0, 1, 3, 4, 5}) workers[i].send<&Worker::sync>(over);
    EXPECT_EQ(co_await over, 6);
    const std::vector<int> after = co_await workers.call<&Worker::where_now>();
    for (int i = 0; i < 6; ++i) EXPECT_EQ(after[i], i < 3 ? before[i] : (before[i] + 1) % 3) << i;
    for (int i : {1, 2}) workers[i].send<&Worker::open>();
    co_await waiting;
    co_await caller;
    co_await workers[0].call<&Worker::pin>(false);
    co_await step(runtime, workers, std::vector<double>(6, 1.0));
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(co_await workers[i].call<&Worker::where_now>(), (before[i] + 1) % 3);
    }
  }),
            "");
}

// It is reported as one that can move, and is pinned before the decision.
TEST(Sync, AnElementThatCannotMoveAnyMoreStays) {
  InProcessJob job(2);
  use_strategy(job, "rotate");
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto workers = Array<Worker>::create(runtime, {4});
    Future<int> over(runtime);
    for (int i : {2, 3}) co_await workers[i].call<&Worker::sync>(over);
    co_await runtime.quiescence();  // PE 1 has reported
    co_await workers[2].call<&Worker::pin>(true);
    auto waiting = workers[3].call<&Worker::wait>();
    co_await workers[3].call<&Worker::call>();  // it has begun to wait
    for (int i : {0, 1}) workers[i].send<&Worker::sync>(over);
    EXPECT_EQ(co_await over, 4);
    EXPECT_EQ(co_await workers.call<&Worker::where_now>(), list(1, 1, 1, 1));
    workers[3].send<&Worker::open>();
    co_await waiting;
    co_await step(runtime, workers, std::vector<double>(4, 1.0));
    EXPECT_EQ(co_await workers.call<&Worker::where_now>(), list(0, 0, 1, 0));
  }),
            "");
}

TEST(Sync, CallsRunWhileElementsWait) {
  InProcessJob job(2);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto workers = Array<Worker>::create(runtime, {4});
    Future<int> over(runtime);
    for (int i : {0, 1, 2}) co_await workers[i].call<&Worker::sync>(over);
    for (int i = 0; i < 3; ++i) workers.send<&Worker::call>();
    co_await runtime.quiescence();
    EXPECT_EQ(co_await workers.call<&Worker::num_calls>(), list(3, 3, 3, 3));
    EXPECT_EQ(co_await workers.call<&Worker::times_resumed>(), list(0, 0, 0, 0));
    workers[3].send<&Worker::sync>(over);
    EXPECT_EQ(co_await over, 4);
  }),
            "");
}

// Elements of PEs that wait, on PEs that have reported, and on PEs without elements.
TEST(Sync, ElementsMoveBetweenSyncPoints) {
  for (int num_pes : {2, 4}) {
    InProcessJob job(num_pes);
    use_strategy(job, "rotate");
    EXPECT_EQ(job.run([num_pes](Runtime& runtime) -> Task<> {
      constexpr int kElements = 6;
      auto workers = Array<Worker>::create(runtime, {kElements});
      for (int round = 0; round < 30; ++round) {
        Future<int> over(runtime);
        for (int i = 0; i < kElements; ++i) {
          // All to one PE now and then.
          const int to_pe = round % 3 == 0 ? round / 3 % num_pes : (i * 5 + round) % num_pes;
          if ((i + round) % 2 == 0) {
            workers[i].send<&Worker::go_and_sync>(to_pe, over);
          } else {
            workers[i].send<&Worker::go>(to_pe);
            workers[i].send<&Worker::sync>(over);
          }
          if (round % 4 == 0) co_await runtime.quiescence();  // the others have reported
        }
        EXPECT_EQ(co_await over, kElements);
        for (int resumed : co_await workers.call<&Worker::times_resumed>()) EXPECT_EQ(resumed, round + 1);
      }
    }),
              "");
  }
}

TEST(Sync, RefusesMovesAndASecondSyncWhileAnElementWaits) {
  InProcessJob job(2);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto workers = Array<Worker>::create(runtime, {2});
    Future<int> over(runtime);
    co_await workers[0].call<&Worker::sync>(over);
    EXPECT_TRUE(says(co_await error_of(workers[0].call<&Worker::go>(1)), "it waits at a sync point"));
    EXPECT_TRUE(says(co_await error_of(workers[0].call<&Worker::sync_alone>()), "it waits at one already"));
    workers[1].send<&Worker::sync>(over);
    EXPECT_EQ(co_await over, 2);
    co_await workers[0].call<&Worker::go>(1);
    EXPECT_EQ(co_await workers[0].call<&Worker::where_now>(), 1);
    for (double load_s : {-1.0, 2e12, std::numeric_limits<double>::quiet_NaN()}) {
      EXPECT_TRUE(says(co_await error_of(workers[0].call<&Worker::set_load>(load_s)), "give 0 to 1"));
    }
  }),
            "");
}

// --- Other classes

struct Unmeasured : Chare<Unmeasured> {
  bool is_measured() { return load() != nullptr || load_s() != 0; }
  void sync() { at_sync(); }
  void set_load() { set_load_s(1); }
};

struct InConstructor : Chare<InConstructor> {
  InConstructor() { at_sync(); }
  void resume_from_sync() override {}
};

TEST(Sync, RefusesAClassThatIsNotResumed) {
  InProcessJob job(2);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto elements = Array<Unmeasured>::create(runtime, {2});
    EXPECT_TRUE(says(co_await error_of(elements[1].call<&Unmeasured::sync>()),
                     "does not override resume_from_sync()"));
    EXPECT_TRUE(says(co_await error_of(elements[1].call<&Unmeasured::set_load>()), "has no load"));
    EXPECT_FALSE(co_await elements[1].call<&Unmeasured::is_measured>());
    auto early = Array<InConstructor>::create(runtime, {2});
    EXPECT_TRUE(says(co_await error_of(early.created()), "after the constructor"));
  }),
            "");
}

template <class T>
struct Still : Chare<T> {
  void sync(Future<int> target) {
    over = target;
    this->set_load_s(this->linear_index());
    this->at_sync();
  }
  void resume_from_sync() override { this->contribute(1, Reducer::kSum, target_of(over)); }
  int where_now() { return this->pe(); }
  Future<int> over;
};
struct WithoutPup : Still<WithoutPup> {};
struct OfGroup : Still<OfGroup> {
  void pup(Pup& p) { p | over; }
};

TEST(Sync, NothingOfAGroupOrOfAClassWithoutPupMoves) {
  InProcessJob job(3);
  use_strategy(job, "rotate");
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto still = Array<WithoutPup>::create(runtime, {6});
    auto group = Group<OfGroup>::create(runtime);
    for (int round = 0; round < 3; ++round) {
      Future<int> over(runtime);
      Future<int> group_over(runtime);
      still.send<&WithoutPup::sync>(over);
      group.send<&OfGroup::sync>(group_over);
      EXPECT_EQ(co_await over, 6);
      EXPECT_EQ(co_await group_over, 3);
      EXPECT_EQ(co_await still.call<&WithoutPup::where_now>(), list(0, 0, 1, 1, 2, 2));
      EXPECT_EQ(co_await group.call<&OfGroup::where_now>(), list(0, 1, 2));
    }
  }),
            "");
}

// It has a channel to its neighbour from the start. The override is not public.
struct Linked : Chare<Linked> {
  void pup(Pup& p) { p | over; }
  void link() { channel.emplace(*this, proxy()[1 - static_cast<int>(linear_index())]); }
  void sync(Future<int> target) {
    over = target;
    at_sync();
  }
  int where_now() { return pe(); }
  Future<int> over;

 private:
  void resume_from_sync() override { contribute(1, Reducer::kSum, target_of(over)); }
  std::optional<channel::Channel> channel;
};

TEST(Sync, ElementsWithChannelsStay) {
  InProcessJob job(2);
  use_strategy(job, "rotate");
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto linked = Array<Linked>::create(runtime, {4});
    const std::vector<int> before = co_await linked.call<&Linked::where_now>();
    for (int i : {0, 1}) co_await linked[i].call<&Linked::link>();
    Future<int> over(runtime);
    linked.send<&Linked::sync>(over);
    EXPECT_EQ(co_await over, 4);
    const std::vector<int> after = co_await linked.call<&Linked::where_now>();
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(after[i], i < 2 ? before[i] : 1 - before[i]) << i;
  }),
            "");
}

struct Failing : Still<Failing> {
  void resume_from_sync() override { throw std::runtime_error("no way on"); }
};

TEST(Sync, AnExceptionInResumeFromSyncEndsTheJobByName) {
  InProcessJob job(2);
  const std::string failure = job.run([](Runtime& runtime) -> Task<> {
    auto failing = Array<Failing>::create(runtime, {2});
    failing.send<&Failing::sync>(Future<int>(runtime));
    co_await Future<>(runtime);
  });
  EXPECT_TRUE(says(failure, "in resume_from_sync()")) << failure;
  EXPECT_TRUE(says(failure, "no way on")) << failure;
}

// --- The measured load

TEST(Sync, MeasuresMethodsAndCoroutinesAndTheLoadMovesAlong) {
  InProcessJob job(2);
  use_strategy(job, "none");
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto workers = Array<Worker>::create(runtime, {2});
    const auto began = std::chrono::steady_clock::now();
    // The method that asks is still running.
    EXPECT_EQ(co_await workers[0].call<&Worker::spin>(2000), 0);
    EXPECT_GE(co_await workers[0].call<&Worker::load>(), 2e-3);
    EXPECT_EQ(co_await workers[1].call<&Worker::load>(), 0);
    auto spinning = workers[0].call<&Worker::spin_twice>(1000);
    co_await workers[1].call<&Worker::spin>(3000);
    workers[0].send<&Worker::open>();
    co_await spinning;
    co_await workers[0].call<&Worker::go>(1);
    const double load_s = co_await workers[0].call<&Worker::load>();
    EXPECT_GE(load_s, 4e-3);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - began;
    EXPECT_LE(load_s + co_await workers[1].call<&Worker::load>(), elapsed.count());
    co_await workers[0].call<&Worker::set_load>(0.5);
    EXPECT_EQ(co_await workers[0].call<&Worker::load>(), 0.5);
    co_await workers[0].call<&Worker::go>(0);
    EXPECT_EQ(co_await workers[0].call<&Worker::load>(), 0.5);
    EXPECT_EQ(co_await workers[0].call<&Worker::where_now>(), 0);
  }),
            "");
}

TEST(Sync, AStepUsesTheMeasuredTimesAndForgetsThem) {
  InProcessJob job(2);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto workers = Array<Worker>::create(runtime, {4});
    // All work on PE 0, none on PE 1: whatever the times are, one of them must go.
    for (int i : {0, 1}) co_await workers[i].call<&Worker::spin>(1000);
    for (int i : {2, 3}) co_await workers[i].call<&Worker::set_load>(0);
    Future<int> over(runtime);
    workers.send<&Worker::sync>(over);
    EXPECT_EQ(co_await over, 4);
    const std::vector<int> pes = co_await workers.call<&Worker::where_now>();
    EXPECT_NE(pes[0], pes[1]);
    EXPECT_EQ(co_await workers[0].call<&Worker::load_when_resumed>(), 0);
  }),
            "");
}

// --- Destruction

TEST(Sync, ACollectionMayBeDestroyedAtEachPointOfAStep) {
  for (const char* machine : {"loopback", "ucx"}) {
    // How many turns destroy() comes after at_sync(): before the reports, the decision, the moves, the end.
    for (int turns = 0; turns < 24; ++turns) {
      alive = 0;
      InProcessJob job(3, machine);
      use_strategy(job, "rotate");
      EXPECT_EQ(job.run([turns](Runtime& runtime) -> Task<> {
        auto workers = Array<Worker>::create(runtime, {9});
        co_await workers.call<&Worker::sync_alone>();
        for (int i = 0; i < turns; ++i) co_await yield_now(runtime);
        co_await workers.destroy();
        co_await runtime.quiescence();
        EXPECT_EQ(alive, 0);
      }),
                "");
    }
  }
}

TEST(Sync, ACollectionMayBeDestroyedWhileSomeElementsWait) {
  alive = 0;
  InProcessJob job(2);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    for (int round = 0; round < 3; ++round) {
      auto workers = Array<Worker>::create(runtime, {4});
      for (int i = 0; i <= round; ++i) co_await workers[i].call<&Worker::sync_alone>();
      co_await workers.destroy();
      EXPECT_EQ(alive, 0);
    }
  }),
            "");
}

// --- Random traffic

// Goes from sync point to sync point by itself, and counts the calls that it gets.
struct Nomad : Chare<Nomad> {
  Nomad() { ++alive; }
  ~Nomad() override { --alive; }
  void pup(Pup& p) { p | cargo | heard | steps | last_step | random_state | over; }

  void start(int num_steps, std::uint64_t seed, int cargo_size, Future<int> target) {
    last_step = num_steps;
    random_state = seed * 2862933555777941757 + linear_index() * 3037000493 + 1;
    cargo.assign(static_cast<std::size_t>(cargo_size), linear_index());
    over = target;
    go_on();
  }
  void go_on() {
    set_load_s(static_cast<double>(next() % 1000));
    switch (next() % 4) {
      case 0:
        migrate(static_cast<int>(next() % static_cast<std::uint64_t>(num_pes())));
        at_sync();
        break;
      case 1:
        migrate(static_cast<int>(next() % static_cast<std::uint64_t>(num_pes())));
        proxy()[linear_index()].send<&Nomad::sync>();
        break;
      default:
        at_sync();
    }
  }
  void sync() { at_sync(); }
  void resume_from_sync() override {
    if (++steps == last_step) return contribute(steps, Reducer::kSum, target_of(over));
    if (next() % 2 == 0) {
      proxy()[linear_index()].send<&Nomad::go_on>();
    } else {
      go_on();
    }
  }
  void hear(int source, int number) { ++heard[{source, number}]; }
  std::string log() {
    std::string text;
    if (std::ranges::count(cargo, linear_index()) != std::ssize(cargo)) text += "damaged cargo;";
    if (steps != last_step) text += std::to_string(steps) + " steps;";
    for (const auto& [id, count] : heard) {
      if (count != 1) text += "heard " + std::to_string(count) + " times;";
    }
    return text + std::to_string(heard.size());
  }
  std::uint64_t next() {
    random_state = random_state * 6364136223846793005 + 1442695040888963407;
    return random_state >> 33;
  }

  std::vector<std::uint64_t> cargo;
  std::map<std::pair<int, int>, int> heard;
  int steps = 0;
  int last_step = 0;
  std::uint64_t random_state = 0;
  Future<int> over;
};

struct Caller : Chare<Caller> {
  Task<int> run(Array<Nomad> nomads, unsigned seed, int count) {
    std::mt19937 random(seed + static_cast<unsigned>(pe()));
    const auto elements = static_cast<unsigned>(nomads.shape().size());
    int broadcasts = 0;
    for (int number = 0; number < count; ++number) {
      if (random() % 16 == 0) {
        nomads.send<&Nomad::hear>(pe(), -1 - broadcasts++);
      } else {
        nomads[static_cast<int>(random() % elements)].send<&Nomad::hear>(pe(), number);
      }
      if (random() % 4 == 0) co_await yield_now(runtime());
    }
    co_return broadcasts;
  }
};

void run_nomads(const char* machine, const char* strategy, int num_pes, int elements, int steps,
                int cargo_size, unsigned seed) {
  SCOPED_TRACE(std::string(machine) + " " + strategy + " " + std::to_string(num_pes) + " PEs, " +
               std::to_string(elements) + " elements, seed " + std::to_string(seed));
  alive = 0;
  InProcessJob job(num_pes, machine);
  use_strategy(job, strategy);
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto nomads = Array<Nomad>::create(runtime, {elements});
    auto callers = Group<Caller>::create(runtime);
    Future<int> over(runtime);
    nomads.send<&Nomad::start>(steps, std::uint64_t{seed}, cargo_size, over);
    constexpr int kCalls = 300;
    auto calling = callers.call<&Caller::run>(nomads, seed, kCalls);
    EXPECT_EQ(co_await over, steps * elements);
    int broadcasts = 0;
    for (int of_pe : co_await calling) broadcasts += of_pe;
    co_await runtime.quiescence();
    int heard = 0;
    for (const std::string& log : co_await nomads.call<&Nomad::log>()) {
      EXPECT_EQ(log.find(';'), std::string::npos) << log;
      heard += std::stoi(log);
    }
    EXPECT_EQ(heard, kCalls * num_pes - broadcasts + broadcasts * elements);
    EXPECT_EQ(alive, elements);
    co_await nomads.destroy();
    EXPECT_EQ(alive, 0);
  }),
            "");
}

TEST(Sync, RunsManyStepsUnderRandomTraffic) {
  const unsigned seed = std::random_device()();
  std::printf("seed %u\n", seed);
  unsigned run = 0;
  for (const char* strategy : {"random", "rotate", "greedy_refine", "diffusion"}) {
    for (int num_pes : {1, 2, 3, 4, 6}) {
      run_nomads("loopback", strategy, num_pes, 1 + static_cast<int>(run * 5 % 13), 40, 4, seed + run);
      ++run;
    }
  }
}

TEST(Sync, RunsManyStepsThroughUcx) {
  const unsigned seed = std::random_device()();
  std::printf("seed %u\n", seed);
  for (int cargo_size : {0, 20'000}) run_nomads("ucx", "random", 4, 9, 40, cargo_size, seed);
}

// --- What peers claim

struct WireHeader {
  std::uint64_t collection;
  std::uint64_t step;
  std::uint32_t kind;
  std::uint32_t reserved;
};
struct WireLoad {
  std::uint64_t index;
  double load_s;
  std::uint64_t can_move;
};
enum WireKind : std::uint32_t { kLoads, kPlan, kStays, kDone, kResume, kNoSuchKind };

template <class... Values>
void send_sync(Runtime& from, int to_pe, const Collection& collection, std::uint64_t step, std::uint32_t kind,
               const Values&... values) {
  constexpr int kSyncAfterEntry = 14;
  const auto handler =
      static_cast<runtime::HandlerId>(from.model<Chares>().entry_handler() + kSyncAfterEntry);
  from.send(to_pe,
            runtime::Message::pack(from, handler, WireHeader{collection.id(), step, kind, 0}, values...));
}

// Sends a message from PE 1 to PE 0, which decides, before any element waits.
template <class... Values>
std::string failure_of(std::uint64_t step, std::uint32_t kind, const Values&... values) {
  InProcessJob job(2);
  return job.run([&](Runtime& runtime) -> Task<> {
    auto workers = Array<Worker>::create(runtime, {4});
    co_await workers.created();
    send_sync(job.runtime(1), 0, workers.collection(), step, kind, values...);
    co_await runtime.quiescence();
  });
}

// One PE hears of the end of a step before the others. An element of it moves and reaches the next sync point on a PE that
// is still in the step. The end of the step then comes a second time, as one that a later message has overtaken.
TEST(Sync, AnElementMayBeAheadOfItsNewPe) {
  InProcessJob job(3);
  use_strategy(job, "none");
  EXPECT_EQ(job.run([&job](Runtime& runtime) -> Task<> {
    auto workers = Array<Worker>::create(runtime, {6});
    EXPECT_EQ(co_await workers.call<&Worker::where_now>(), list(0, 0, 1, 1, 2, 2));
    for (int i = 1; i < 6; ++i) co_await workers[i].call<&Worker::sync_alone>();
    co_await runtime.quiescence();
    send_sync(job.runtime(0), 2, workers.collection(), 0, kResume);
    co_await runtime.quiescence();
    EXPECT_EQ(co_await workers.call<&Worker::times_resumed>(), list(0, 0, 0, 0, 1, 1));
    co_await workers[4].call<&Worker::go>(1);
    co_await workers[4].call<&Worker::sync_alone>();
    EXPECT_EQ(co_await workers[4].call<&Worker::where_now>(), 1);
    co_await runtime.quiescence();
    workers[0].send<&Worker::sync_alone>();
    co_await runtime.quiescence();
    EXPECT_EQ(co_await workers.call<&Worker::times_resumed>(), list(1, 1, 1, 1, 1, 1));
    for (int i : {0, 1, 2, 3, 5}) workers[i].send<&Worker::sync_alone>();
    co_await runtime.quiescence();
    EXPECT_EQ(co_await workers.call<&Worker::times_resumed>(), list(2, 2, 2, 2, 2, 2));
  }),
            "");
}

TEST(Sync, ChecksWhatPeersSend) {
  using Loads = std::vector<WireLoad>;
  using Moves = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
  EXPECT_EQ(failure_of(0, kLoads, Loads{{2, 1, 1}}), "");
  EXPECT_TRUE(says(failure_of(0, kLoads, Loads{{4, 1, 1}}), "element 4 of 4"));
  EXPECT_TRUE(says(failure_of(0, kLoads, Loads{{2, 1, 1}, {2, 1, 1}}), "reported before"));
  EXPECT_TRUE(says(failure_of(0, kLoads, Loads{{2, -1, 1}}), "expected 0 to"));
  EXPECT_TRUE(says(failure_of(1, kLoads, Loads{}), "loads of step 1, not 0"));
  EXPECT_TRUE(says(failure_of(0, kLoads, std::uint64_t{1} << 60), "bytes"));
  EXPECT_TRUE(says(failure_of(0, kPlan, std::uint64_t{0}, Moves{}), "another PE decides"));
  EXPECT_TRUE(says(failure_of(0, kResume), "another PE decides"));
  EXPECT_TRUE(says(failure_of(0, kDone, std::uint64_t{0}, std::uint64_t{0}), "no moves of step 0"));
  EXPECT_TRUE(says(failure_of(0, kNoSuchKind), "there is no kind 5"));
}

}  // namespace
}  // namespace weft::chare
