// created(): what an element waits for before it is ready.
#include "weft/chare/created.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "weft/weft.h"

#include "tests/support/errors.h"
#include "tests/support/in_process_job.h"

namespace weft::chare {
namespace {

using test_support::error_of;
using test_support::says;

int alive = 0;  // on all PEs of the test's job

struct Holder : Chare<Holder> {
  Future<> open() { return opened = Future<>(runtime()); }
  Task<> wait() { co_await opened; }
  Future<> opened;
};

// Waits for the gate of its index.
struct Block : Chare<Block> {
  Block(ElementProxy<Holder> gate_in, int failing_in) : gate(gate_in), failing(failing_in) { ++alive; }
  explicit Block(Moved) { ++alive; }
  ~Block() override { --alive; }
  void pup(Pup& p) { p | gate | failing | is_ready | num_created | touched; }

  Task<> created() {
    ++num_created;
    co_await gate.call<&Holder::wait>();
    if (linear_index() == static_cast<std::uint64_t>(failing)) throw std::runtime_error("no block");
    is_ready = true;
  }
  int touch() {
    if (!is_ready) throw std::runtime_error("touched too early");
    return ++touched;
  }
  int touch_large(std::vector<int> values) {
    touch();
    return static_cast<int>(values.size());
  }
  Task<int> add_all() { co_return co_await allreduce(touch(), Reducer::kSum); }
  void go(int to_pe) { migrate(to_pe); }
  int times_created() { return num_created; }

  ElementProxy<Holder> gate;
  int failing = -1;
  bool is_ready = false;
  int num_created = 0;
  int touched = 0;
};

class Created : public ::testing::TestWithParam<int> {};

TEST_P(Created, CallsAndTheCreationWaitForIt) {
  for (const char* machine : {"loopback", "ucx"}) {
    alive = 0;
    testing::InProcessJob job(GetParam(), machine);
    EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
      auto holder = Singleton<Holder>::create(runtime, runtime.num_pes() - 1);
      const Future<> gate = co_await holder.element().call<&Holder::open>();
      auto blocks = Array<Block>::create(runtime, {7}, holder.element(), -1);
      Future<> made = blocks.created();
      Future<int> one = blocks[6].call<&Block::touch>();
      Future<int> large = blocks[6].call<&Block::touch_large>(std::vector<int>(100'000));
      Future<std::vector<int>> all = blocks.call<&Block::touch>();
      Future<std::vector<int>> sums = blocks.call<&Block::add_all>();
      const auto ends = blocks.section({0, 6});
      Future<std::vector<int>> some = ends.call<&Block::touch>();
      blocks.send<&Block::touch>();
      co_await runtime.quiescence();
      EXPECT_FALSE(made.is_ready() || one.is_ready() || large.is_ready() || all.is_ready() ||
                   some.is_ready() || sums.is_ready());
      gate.set();
      co_await made;
      EXPECT_GE(co_await one, 1);
      EXPECT_EQ(co_await large, 100'000);
      EXPECT_EQ((co_await all).size(), 7U);
      EXPECT_EQ((co_await some).size(), 2U);
      EXPECT_EQ((co_await sums).size(), 7U);
      EXPECT_EQ(co_await blocks.call<&Block::times_created>(), std::vector<int>(7, 1));
      // Not after a move.
      const int to_pe = runtime.num_pes() - 1;
      co_await blocks[0].call<&Block::go>(to_pe);
      EXPECT_EQ(co_await blocks[0].call<&Block::times_created>(), 1);
      co_await blocks.created();  // again
      co_await blocks.destroy();
      EXPECT_EQ(alive, 0);
    }),
              "");
  }
}

TEST_P(Created, AnExceptionIsThatOfTheCreation) {
  for (const int failing : {0, 3, 6}) {
    alive = 0;
    testing::InProcessJob job(GetParam());
    EXPECT_EQ(job.run([failing](Runtime& runtime) -> Task<> {
      auto holder = Singleton<Holder>::create(runtime, 0);
      const Future<> gate = co_await holder.element().call<&Holder::open>();
      auto blocks = Array<Block>::create(runtime, {7}, holder.element(), failing);
      Future<> made = blocks.created();
      Future<int> early = blocks[failing].call<&Block::touch>();
      Future<std::vector<int>> all = blocks.call<&Block::touch>();
      co_await runtime.quiescence();
      EXPECT_EQ(alive, 7);
      gate.set();
      const std::string why = co_await error_of(made);
      EXPECT_TRUE(says(why, "no block"));
      EXPECT_TRUE(says(why, "Block[" + std::to_string(failing) + "] on PE"));
      EXPECT_TRUE(says(co_await error_of(early), "could not be created: created() of"));
      EXPECT_TRUE(says(co_await error_of(all), "could not be created: created() of"));
      co_await runtime.quiescence();
      EXPECT_EQ(alive, 0);
    }),
              "");
    EXPECT_EQ(alive, 0);
  }
}

TEST_P(Created, WithoutAnAwaitTheExceptionEndsTheJob) {
  testing::InProcessJob job(GetParam());
  const std::string failure = job.run([](Runtime& runtime) -> Task<> {
    auto holder = Singleton<Holder>::create(runtime, 0);
    const Future<> gate = co_await holder.element().call<&Holder::open>();
    Array<Block>::create(runtime, {7}, holder.element(), 6);
    gate.set();
    co_await runtime.make_future<>();
  });
  EXPECT_TRUE(says(failure, "in created() of"));
  EXPECT_TRUE(says(failure, "Block[6] on PE"));
  EXPECT_TRUE(says(failure, "no block"));
}

// Elements that are freed while they wait are freed when the method has ended.
TEST_P(Created, MayBeDestroyedMeanwhile) {
  alive = 0;
  testing::InProcessJob job(GetParam());
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    for (const int failing : {-1, 2}) {
      auto holder = Singleton<Holder>::create(runtime, 0);
      const Future<> gate = co_await holder.element().call<&Holder::open>();
      auto blocks = Array<Block>::create(runtime, {4}, holder.element(), -1);
      Future<int> early = blocks[1].call<&Block::touch>();
      if (failing >= 0) co_await runtime.quiescence();
      co_await blocks.destroy();
      EXPECT_TRUE(says(co_await error_of(early), "has been destroyed"));
      gate.set();
      co_await runtime.quiescence();
      EXPECT_EQ(alive, 0);
    }
  }),
            "");
}

// --- What created() may use

struct Worker : Chare<Worker> {
  static constexpr int kSize = 5;

  Worker() { contribute(1, Reducer::kSum, proxy().target<&Worker::count>()); }
  Task<> created() {
    const int self = static_cast<int>(linear_index());
    total = co_await allreduce(self, Reducer::kSum);
    Channel right(*this, proxy()[(self + 1) % kSize]);
    Channel left(*this, proxy()[(self + kSize - 1) % kSize]);
    const std::vector<int> mine(5000, self);
    std::vector<int> theirs(5000);
    auto sent = right.send(mine);
    co_await left.recv(std::span(theirs));
    co_await sent;
    neighbour = theirs.back();
    co_await yield_now(runtime());
    // Element 0 is ready before the others, wherever it is.
    if (self != 0) from_first = co_await proxy()[0].call<&Worker::number>();
  }
  void count(int size) { counted += size; }
  int number() { return 17; }
  std::vector<int> result() { return {total, neighbour, from_first, counted}; }
  int total = 0;
  int neighbour = -1;
  int from_first = 0;
  int counted = 0;
};

TEST_P(Created, MayReduceUseChannelsAndCallElementsThatAreReady) {
  for (const char* machine : {"loopback", "ucx"}) {
    testing::InProcessJob job(GetParam(), machine);
    EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
      auto workers = Array<Worker>::create(runtime, {Worker::kSize});
      co_await workers.created();
      co_await runtime.quiescence();
      for (int i = 0; i < Worker::kSize; ++i) {
        const std::vector<int> expected{10, (i + Worker::kSize - 1) % Worker::kSize, i == 0 ? 0 : 17,
                                        Worker::kSize};
        EXPECT_EQ(co_await workers[i].call<&Worker::result>(), expected) << i;
      }
    }),
              "");
  }
}

// A move that the constructor asks for comes after created(), and a method with a condition waits for both.
struct Mover : Chare<Mover> {
  Mover() { migrate(num_pes() - 1); }
  explicit Mover(Moved) {}
  void pup(Pup& p) { p | steps; }
  Task<> created() {
    for (int i = 0; i < 5; ++i) co_await yield_now(runtime());
    EXPECT_THROW(at_sync(), base::Error);
    steps.push_back("created on " + std::to_string(pe()));
  }
  void migrated() override { steps.push_back("moved to " + std::to_string(pe())); }
  void resume_from_sync() override {}  // it is measured
  bool has_steps() const { return !steps.empty(); }
  std::vector<std::string> look() { return steps; }
  using WhenConditions = weft::WhenConditions<When<&Mover::look, &Mover::has_steps>>;
  std::vector<std::string> steps;
};

TEST_P(Created, ComesBeforeAMoveThatTheConstructorAsksFor) {
  testing::InProcessJob job(GetParam());
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto mover = Array<Mover>::create(runtime, Shape(1).on_pe(0));
    auto early = mover[0].call<&Mover::look>();
    co_await mover.created();
    EXPECT_EQ((co_await early).at(0), "created on 0");
    co_await runtime.quiescence();
    std::vector<std::string> expected{"created on 0"};
    if (runtime.num_pes() > 1) expected.push_back("moved to " + std::to_string(runtime.num_pes() - 1));
    EXPECT_EQ(co_await mover[0].call<&Mover::look>(), expected);
  }),
            "");
}

// --- Sparse arrays

TEST_P(Created, AnInsertionWaitsForIt) {
  alive = 0;
  testing::InProcessJob job(GetParam());
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto holder = Singleton<Holder>::create(runtime, 0);
    Future<> gate = co_await holder.element().call<&Holder::open>();
    auto blocks = Array<Block>::create_sparse(runtime, {100});
    co_await blocks.created();
    std::vector<Future<>> inserted;
    for (int i = 0; i < 6; ++i) {
      inserted.push_back(blocks.insert_on(i % runtime.num_pes(), i, holder.element(), 3));
    }
    Future<int> early = blocks[1].call<&Block::touch>();
    Future<int> lost = blocks[3].call<&Block::touch>();
    Future<> counted = blocks.done_inserting();
    Future<> removed = blocks[5].remove();
    co_await runtime.quiescence();
    EXPECT_EQ(alive, 6);
    for (Future<>& one : inserted) EXPECT_FALSE(one.is_ready());
    EXPECT_FALSE(early.is_ready() || counted.is_ready() || removed.is_ready());
    EXPECT_TRUE(says(co_await error_of(blocks.insert(2, holder.element(), -1)), "it exists already"));
    gate.set();
    for (int i = 0; i < 6; ++i) {
      const std::string why = co_await error_of(inserted[static_cast<std::size_t>(i)]);
      EXPECT_TRUE(i == 3 ? says(why, "no block") : says("[" + why + "]", "[]")) << i;
      if (i == 3) {
        EXPECT_TRUE(says(why, "in created() of"));
        EXPECT_TRUE(says(why, "Block[3] on PE"));
      }
    }
    EXPECT_EQ(co_await early, 1);
    co_await removed;
    co_await counted;
    EXPECT_TRUE(says(co_await error_of(lost), "finds no element"));
    co_await runtime.quiescence();
    EXPECT_EQ(alive, 4);
    // Again, now that the gate is open.
    co_await blocks.insert(3, holder.element(), -1);
    co_await blocks.insert(5, holder.element(), -1);
    co_await blocks.done_inserting();
    EXPECT_EQ(co_await blocks.call<&Block::times_created>(), std::vector<int>(6, 1));
    EXPECT_EQ(co_await blocks.call<&Block::add_all>(), std::vector<int>(6, 7));
    // A collection that ends meanwhile.
    gate = co_await holder.element().call<&Holder::open>();
    Future<> late = blocks.insert(50, holder.element(), -1);
    co_await runtime.quiescence();
    co_await blocks.destroy();
    EXPECT_TRUE(says(co_await error_of(late), "has been destroyed"));
    EXPECT_EQ(alive, 1);
    gate.set();
    co_await runtime.quiescence();
    EXPECT_EQ(alive, 0);
  }),
            "");
}

// An element that removes itself.
struct Passing : Chare<Passing> {
  Task<> created() {
    co_await yield_now(runtime());
    remove_self();
  }
  int get() { return 1; }
};

TEST_P(Created, MayRemoveItsElement) {
  testing::InProcessJob job(GetParam());
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto passing = Array<Passing>::create_sparse(runtime, {100});
    for (int i = 0; i < 4; ++i) co_await passing.insert(i);
    co_await passing.done_inserting();
    EXPECT_EQ((co_await passing.call<&Passing::get>()).size(), 0U);
    co_await passing.insert(2);
  }),
            "");
}

INSTANTIATE_TEST_SUITE_P(Pes, Created, ::testing::Values(1, 2, 3, 11));

}  // namespace
}  // namespace weft::chare
