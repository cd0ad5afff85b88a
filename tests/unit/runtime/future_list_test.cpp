#include "weft/runtime/future_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "tests/support/in_process_job.h"

namespace weft::runtime {
namespace {

struct ListSetter : Chare<ListSetter> {
  void set(FutureList<std::string> list) { list.set("PE " + std::to_string(pe())); }
  void set_or_fail(FutureList<int> list, int failing) {
    if (index() == failing) {
      list.set_error(std::make_exception_ptr(std::runtime_error("no value of " + std::to_string(failing))));
    } else {
      list.set(static_cast<int>(index()));
    }
  }
  void set_back(FutureList<int> list) { list.set(7); }
  void pass_on(FutureList<std::string> list, int to) { proxy()[to].send<&ListSetter::set>(list); }
  void contribute_index(FutureList<int> sums) {
    contribute(static_cast<int>(index()), Reducer::kSum, target_of(sums));
  }
};

class FutureLists : public ::testing::TestWithParam<int> {};

TEST_P(FutureLists, CollectTheValuesOfAllPes) {
  testing::InProcessJob job(GetParam());
  std::vector<std::string> values;
  std::vector<std::string> passed;
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto setters = Group<ListSetter>::create(runtime);
    const auto count = static_cast<std::uint64_t>(runtime.num_pes());
    FutureList<std::string> list(runtime, count);
    setters.send<&ListSetter::set>(list);
    values = co_await list;
    FutureList<std::string> once_more(runtime, count);
    setters.send<&ListSetter::pass_on>(once_more, runtime.num_pes() - 1);
    passed = co_await once_more;
  }),
            "");
  std::vector<std::string> expected;
  for (int pe = 0; pe < GetParam(); ++pe) expected.push_back("PE " + std::to_string(pe));
  std::ranges::sort(values);
  EXPECT_EQ(values, expected);
  EXPECT_EQ(passed, std::vector<std::string>(expected.size(), expected.back()));
}

TEST_P(FutureLists, TheFirstErrorIsTheResultAndTheRestIsDropped) {
  testing::InProcessJob job(GetParam());
  std::vector<std::string> messages;
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto setters = Group<ListSetter>::create(runtime);
    for (const bool keeps_handle : {true, false}) {
      for (int failing = 0; failing < runtime.num_pes(); ++failing) {
        FutureList<int> list(runtime, static_cast<std::uint64_t>(runtime.num_pes()));
        setters.send<&ListSetter::set_or_fail>(list, failing);
        try {
          co_await list;
        } catch (const std::exception& error) {
          messages.emplace_back(error.what());
        }
        if (!keeps_handle) list = {};
        co_await runtime.quiescence();
      }
    }
  }),
            "");
  ASSERT_EQ(messages.size(), 2 * static_cast<std::size_t>(GetParam()));
  for (const std::string& message : messages) {
    EXPECT_NE(message.find("no value of"), std::string::npos) << message;
  }
}

TEST_P(FutureLists, ResultsOfReductionsAreValues) {
  testing::InProcessJob job(GetParam());
  std::vector<int> sums;
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    FutureList<int> list(runtime, 2);
    auto three = Array<ListSetter>::create(runtime, {3});
    auto five = Array<ListSetter>::create(runtime, {5});
    three.send<&ListSetter::contribute_index>(list);
    five.send<&ListSetter::contribute_index>(list);
    sums = co_await list;
  }),
            "");
  std::ranges::sort(sums);
  EXPECT_EQ(sums, (std::vector<int>{3, 10}));
}

INSTANTIATE_TEST_SUITE_P(Pes, FutureLists, ::testing::Values(1, 2, 3));

TEST(FutureList, KeepsTheOrderOfArrival) {
  testing::InProcessJob job(1);
  FutureList<int> list(job.runtime(0), 3);
  FutureList<int> copy;
  copy = list;  // both share one state
  for (int i : {5, 3}) list.set(i);
  EXPECT_FALSE(list.is_ready());
  copy.set(4);
  EXPECT_TRUE(list.is_ready());
  EXPECT_EQ(list.get(), (std::vector<int>{5, 3, 4}));
  EXPECT_THROW(list.set(1), Error);
  EXPECT_THROW(copy.set_error(std::make_exception_ptr(std::runtime_error("late"))), Error);
  EXPECT_EQ(copy.get().size(), 3U);
}

TEST(FutureList, OfNoValuesIsReady) {
  testing::InProcessJob job(1);
  const FutureList<int> list(job.runtime(0), 0);
  EXPECT_TRUE(list.is_ready());
  EXPECT_TRUE(list.get().empty());
  EXPECT_THROW(list.set(1), Error);
}

TEST(FutureList, ComesHomeAsItself) {
  testing::InProcessJob job(2);
  std::vector<int> values;
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto setters = Group<ListSetter>::create(runtime);
    FutureList<int> list(runtime, 2);
    setters[0].send<&ListSetter::set_back>(list);
    setters[1].send<&ListSetter::set_back>(list);
    values = co_await list;
  }),
            "");
  EXPECT_EQ(values, (std::vector<int>{7, 7}));
}

TEST(FutureList, AValueTooManyOfAnotherPeEndsTheJob) {
  testing::InProcessJob job(2);
  const std::string failure = job.run([](Runtime& runtime) -> Task<> {
    auto setters = Group<ListSetter>::create(runtime);
    FutureList<int> list(runtime, 1);
    setters[1].send<&ListSetter::set_back>(list);
    setters[1].send<&ListSetter::set_back>(list);
    co_await list;
    co_await runtime.make_future<>();
  });
  EXPECT_NE(failure.find("set a future of PE 0"), std::string::npos) << failure;
}

}  // namespace
}  // namespace weft::runtime
