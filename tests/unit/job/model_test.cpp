// Models as plug-ins: a model of a program, installed next to Weft's own.
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "tests/support/in_process_job.h"
#include "tests/unit/job/counter_model.h"

namespace weft::counter {
namespace {

struct Bystander : Chare<Bystander> {
  Task<> wait(Future<> done) { co_await done; }
};

class ModelTest : public ::testing::TestWithParam<const char*> {
 protected:
  ModelTest() : job(3, GetParam()) {
    for (int pe = 0; pe < job.num_pes(); ++pe) job.runtime(pe).install<Counter>();
  }
  Counter& counter(int pe) { return job.runtime(pe).model<Counter>(); }

  testing::InProcessJob job;
};

TEST_P(ModelTest, SendsMessagesAndBlocksBesideTheOtherModels) {
  std::vector<double> sent(1000, 1.5);
  std::vector<double> received(1000);
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    for (int pe = 0; pe < 3; ++pe) counter(0).add(pe, pe + 1);
    counter(2).add(0, 10);
    co_await runtime.quiescence();
    runtime::Operation sending = counter(0).send_block(1, 7, {sent.data(), 8000});
    runtime::Operation receiving = counter(1).receive_block(7, {received.data(), 8000, {}, nullptr});
    co_await sending;
    while (!receiving.is_done()) co_await yield_now(runtime);
    co_await receiving;
  }),
            "");
  EXPECT_EQ(counter(0).count(), 11);
  EXPECT_EQ(counter(1).count(), 2);
  EXPECT_EQ(counter(2).count(), 3);
  EXPECT_EQ(received, sent);
}

TEST_P(ModelTest, BroadcastsReachEveryPe) {
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    for (int pe = 0; pe < 3; ++pe) counter(0).add(pe, 5);
    co_await runtime.quiescence();
    counter(1).clear_all();
    co_await runtime.quiescence();
  }),
            "");
  for (int pe = 0; pe < 3; ++pe) EXPECT_EQ(counter(pe).count(), 0) << pe;
}

TEST_P(ModelTest, HasHandlersAndTagsOfItsOwnTheSameOnEveryPe) {
  std::vector<bool> taken(runtime::kNumHandlers);
  std::set<int> tag_types;
  for (const auto& installed : job.runtime(0).models()) {
    for (int i = 0; i < installed.range.num_handlers; ++i) {
      const auto handler = static_cast<std::size_t>(installed.range.first_handler + i);
      ASSERT_LT(handler, taken.size());
      EXPECT_FALSE(taken[handler]) << installed.needs.name;
      taken[handler] = true;
    }
    if (installed.needs.uses_tags) {
      EXPECT_TRUE(tag_types.insert(installed.range.tag_type).second) << installed.needs.name;
      EXPECT_GT(installed.range.tag_type, 1) << "0 and 1 are not a model's";
    }
  }
  EXPECT_EQ(job.runtime(0).models().back().needs.name, "counter");
  EXPECT_EQ(counter(0).range().first_handler, counter(2).range().first_handler);
  EXPECT_EQ(counter(0).range().tag_type, counter(2).range().tag_type);
}

TEST_P(ModelTest, BringsOptionsAReportAndAFingerprint) {
  const std::vector<runtime::ModelOption> options = counter(0).options();
  ASSERT_EQ(options.size(), 1u);
  EXPECT_FALSE(options[0].set("many"));
  EXPECT_TRUE(options[0].set("4"));
  EXPECT_EQ(counter(0).fingerprint()[0].second, "4");
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    counter(0).add(1, 2);
    co_await runtime.quiescence();
  }),
            "");
  EXPECT_EQ(counter(1).report(), std::vector<std::string>{"the counter stands at 8"});
}

TEST_P(ModelTest, AnObstacleToMovingMayComeFromEachModel) {
  std::vector<Status> seen;
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto bystanders = Array<Bystander>::create(runtime, 3);
    co_await runtime.quiescence();
    const runtime::ElementId first{bystanders.collection().id(), 0};
    seen.push_back(runtime.obstacle_to_moving(first));
    Future<> done(runtime);
    Future<> waited = bystanders[0].call<&Bystander::wait>(done);
    co_await yield_now(runtime);
    seen.push_back(runtime.obstacle_to_moving(first));
    counter(0).pin(first);
    seen.push_back(runtime.obstacle_to_moving(first));
    done.set();
    co_await waited;
    seen.push_back(runtime.obstacle_to_moving(first));
    seen.push_back(runtime.obstacle_to_moving({first.collection, 1}));
  }),
            "");
  ASSERT_EQ(seen.size(), 5u);
  EXPECT_TRUE(seen[0].ok());
  for (const Status& of_chares : {seen[1], seen[2]}) {
    EXPECT_NE(of_chares.message().find("Bystander[0] on PE 0 has 1 coroutine that waits"), std::string::npos)
        << of_chares.to_string();
  }
  EXPECT_EQ(seen[3].message(), "the counter has it pinned");
  EXPECT_TRUE(seen[4].ok());
}

TEST_P(ModelTest, ANameIsGivenOnce) { EXPECT_THROW(job.runtime(0).install<Counter>(), Error); }

struct Greedy final : runtime::Model {
  static constexpr runtime::ModelNeeds kNeeds{
      .name = "greedy", .num_handlers = runtime::kNumHandlers, .uses_tags = false};
  Greedy(runtime::Runtime&, const runtime::ModelRange&) {}
};

TEST_P(ModelTest, HandlersRunOutWithASentence) {
  try {
    job.runtime(0).install<Greedy>();
    FAIL() << "did not throw";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("the model greedy asks for 256 message handlers"),
              std::string::npos)
        << error.what();
  }
}

// A job of one PE without a launcher, as a program starts it.
void install_counter(Runtime& runtime) { runtime.install<Counter>(); }

TEST(ModelInAJob, IsInstalledByTheProgramAndReadsItsSettings) {
  ASSERT_EQ(setenv("WEFT_COUNTER_STEP", "3", 1), 0);
  job::Job job(install_counter);
  ASSERT_EQ(unsetenv("WEFT_COUNTER_STEP"), 0);
  Counter& counter = job.runtime().model<Counter>();
  int counted = 0;
  // The model goes when the job has run.
  auto count = [](Runtime& runtime, Counter& self, int& counted_out) -> Task<> {
    self.add(0, 2);
    co_await runtime.quiescence();
    counted_out = self.count();
    runtime.exit(0);
  };
  job.runtime().spawn(count(job.runtime(), counter, counted), "the test");
  EXPECT_EQ(job.run(), 0);
  EXPECT_EQ(counted, 6);
}

TEST(ModelInAJob, AValueThatItDoesNotKnowIsRefused) {
  ASSERT_EQ(setenv("WEFT_COUNTER_STEP", "many", 1), 0);
  try {
    job::Job job(install_counter);
    ADD_FAILURE() << "did not throw";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "WEFT_COUNTER_STEP is 'many': give a number from 1 to 9");
  }
  ASSERT_EQ(unsetenv("WEFT_COUNTER_STEP"), 0);
}

INSTANTIATE_TEST_SUITE_P(Machines, ModelTest, ::testing::Values("loopback", "ucx"));

}  // namespace
}  // namespace weft::counter
