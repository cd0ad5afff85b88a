// Chares in a job that outlives losses of PEs. The test decides when each PE is told of a loss.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "weft/weft.h"

#include "tests/support/in_process_job.h"

namespace weft::chare {
namespace {

struct Worker : Chare<Worker> {
  explicit Worker(int first) : count(first) {}
  explicit Worker(Moved) {}
  void pup(Pup& p) { p | count; }
  void go(int to_pe) { migrate(to_pe); }
  int where_now() { return pe(); }
  int add() { return ++count; }
  Task<int> ask(int index) { co_return co_await proxy()[index].call<&Worker::where_now>(); }
  Task<> make_anew(int index) {
    co_await runtime().model<Chares>().revive(collection(), static_cast<std::uint64_t>(index));
  }
  int count = 0;
};

struct LossesTest : ::testing::Test {
  explicit LossesTest(int num_pes = 4) : job(testing::InProcessJob::outliving_losses(num_pes)) {}
  void run(const std::function<Task<>(Runtime&)>& main) { EXPECT_EQ(job.run(main), ""); }

  // The element moves to that PE, and is there.
  static Task<> move(Array<Worker> workers, int index, int to_pe) {
    co_await workers[index].call<&Worker::go>(to_pe);
    int at = -1;
    while (at != to_pe) at = co_await workers[index].call<&Worker::where_now>();
  }
  // The PE whose loss is the outcome of the call; -1: it succeeds.
  static Task<int> lost_of(Future<int> call) {
    try {
      co_await call;
    } catch (const LostPe& error) {
      co_return error.pe();
    }
    co_return -1;
  }
  static Future<> revive(Runtime& runtime, Array<Worker> workers, std::uint64_t index) {
    return runtime.model<Chares>().revive(workers.collection(), index);
  }

  testing::InProcessJob job;
};

TEST_F(LossesTest, AProgramCatchesALossAndMakesTheChareAnew) {
  run([this](Runtime& runtime) -> Task<> {
    auto workers = Array<Worker>::create(runtime, {4}, 10);
    co_await workers[2].call<&Worker::add>();
    job.lose(2);
    int count = 0;
    try {
      count = co_await workers[2].call<&Worker::add>();
    } catch (const weft::LostPe& error) {
      EXPECT_EQ(error.pe(), 2);
      EXPECT_NE(std::string(error.what()).find("Worker[2]"), std::string::npos) << error.what();
    }
    EXPECT_EQ(count, 0);
    co_await revive(runtime, workers, 2);
    count = co_await workers[2].call<&Worker::add>();
    EXPECT_EQ(count, 11);
    const int at = co_await workers[1].call<&Worker::ask>(2);
    EXPECT_EQ(at, 3);
  });
}

// PE 0 knows of the first of two moves. Its calls go by way of PE 2, which knows of both.
TEST_F(LossesTest, CallsToAChareThatWasLostAfterMovesFail) {
  for (const int index : {1, 3}) {  // the home of 3 is lost too
    testing::InProcessJob one = testing::InProcessJob::outliving_losses(4);
    EXPECT_EQ(one.run([&](Runtime& runtime) -> Task<> {
      auto workers = Array<Worker>::create(runtime, {4}, 0);
      co_await move(workers, index, 2);
      co_await workers[index].call<&Worker::go>(3);
      int at = -1;
      while (at != 3) at = co_await workers[1].call<&Worker::ask>(index);
      one.lose(3);
      int lost = co_await lost_of(workers[index].call<&Worker::where_now>());
      EXPECT_EQ(lost, 3);
      lost = co_await lost_of(workers[1].call<&Worker::ask>(index));
      EXPECT_EQ(lost, 3);
      co_await revive(runtime, workers, static_cast<std::uint64_t>(index));
      const int home = co_await workers[index].call<&Worker::where_now>();
      EXPECT_EQ(home, index == 1 ? 1 : 0);
      // Its new moves are known as newer than those of the lost one.
      for (const int to_pe : {2, 1, 0, 2}) {
        co_await move(workers, index, to_pe);
        at = co_await workers[2].call<&Worker::ask>(index);
        EXPECT_EQ(at, to_pe);
      }
    }),
              "");
  }
}

TEST_F(LossesTest, AChareDoesNotMoveToALostPe) {
  run([this](Runtime& runtime) -> Task<> {
    auto workers = Array<Worker>::create(runtime, {4}, 10);
    co_await workers.created();
    workers.local(0)->migrate(3);
    job.kill(3);
    runtime.losses().tell(3, "it was killed");
    runtime.losses().handle_told();  // before the turn of the move
    job.lose(3);
    int at = co_await workers[0].call<&Worker::where_now>();
    EXPECT_EQ(at, 0);
    int refused = -1;
    try {
      workers.local(0)->migrate(3);
    } catch (const LostPe& error) {
      refused = error.pe();
      EXPECT_NE(std::string(error.what()).find("cannot move: PE 3 is lost"), std::string::npos)
          << error.what();
    }
    EXPECT_EQ(refused, 3);
    at = co_await workers[0].call<&Worker::where_now>();
    EXPECT_EQ(at, 0);
  });
}

}  // namespace
}  // namespace weft::chare
