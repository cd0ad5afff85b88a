// Reductions without a value, contributions of constructors, and targets with bound arguments.
#include <gtest/gtest.h>

#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "tests/support/in_process_job.h"

namespace weft::runtime {
namespace {

struct Part : Chare<Part> {
  Part() = default;
  explicit Part(Future<> built) { contribute(target_of(built)); }
  // The constructor contributes to a method of all elements.
  explicit Part(int) { contribute(proxy().target<&Part::all_here>()); }

  void give(Future<> done) { contribute(target_of(done)); }
  void give_to_methods() {
    contribute(proxy()[0].target<&Part::one_here>());
    contribute(proxy().target<&Part::all_here>());
  }
  void give_bound(std::string name) {
    contribute(1, Reducer::kSum, proxy()[0].target<&Part::take>(name, std::vector<int>{1, 2}));
    contribute(2, Reducer::kSum, proxy().target<&Part::take>("all", std::vector<int>(100, 7)));
    contribute(proxy().target<&Part::take_none>(3, "x"));
  }
  Task<int> in_steps(int steps) {
    for (int i = 0; i < steps; ++i) co_await allreduce();
    co_return steps;
  }
  void some_with_value(Future<> done) {
    const Target unchecked = target_of(done);
    if (index() == 0) return contribute(1, Reducer::kSum, unchecked);
    contribute(unchecked);
  }

  void one_here() { heard.emplace_back("one"); }
  void all_here() { heard.emplace_back("all"); }
  void take(const std::string& name, std::vector<int> values, int result) {
    heard.push_back(name + " " + std::to_string(std::accumulate(values.begin(), values.end(), 0)) + " " +
                    std::to_string(result));
  }
  void take_none(int number, std::string text) { heard.push_back(text + std::to_string(number)); }
  std::vector<std::string> take_heard() { return std::exchange(heard, {}); }
  std::vector<std::string> heard;
};

// Some elements contribute in their constructors, the others in a method.
struct EarlyOrLate : Chare<EarlyOrLate> {
  EarlyOrLate(int first, int count) {
    const int own = index();
    if (own >= first && own < first + count) sum.emplace(allreduce(own, Reducer::kSum));
  }
  Task<int> sum_of_all() {
    if (!sum) sum.emplace(allreduce(static_cast<int>(index()), Reducer::kSum));
    co_return co_await *sum;
  }
  std::optional<Future<int>> sum;
};

// PEs and elements: all PEs have some, or only the last one.
class EmptyReductions : public ::testing::TestWithParam<std::tuple<int, int>> {
 protected:
  int num_pes() const { return std::get<0>(GetParam()); }
  int num_parts() const { return std::get<1>(GetParam()); }
  Shape shape() const { return num_parts() == 2 ? Shape(2).on_pe(num_pes() - 1) : Shape(num_parts()); }
};

TEST_P(EmptyReductions, FuturesAndMethodsWithoutParameters) {
  testing::InProcessJob job(num_pes());
  std::vector<std::vector<std::string>> heard;
  std::vector<int> steps;
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto parts = Array<Part>::create(runtime, shape());
    Future<> done(runtime);
    parts.send<&Part::give>(done);
    co_await done;
    parts.send<&Part::give_to_methods>();
    co_await runtime.quiescence();
    heard = co_await parts.call<&Part::take_heard>();
    steps = co_await parts.call<&Part::in_steps>(5);
  }),
            "");
  ASSERT_EQ(heard.size(), static_cast<std::size_t>(num_parts()));
  for (std::size_t i = 0; i < heard.size(); ++i) {
    std::sort(heard[i].begin(), heard[i].end());
    EXPECT_EQ(heard[i], i == 0 ? (std::vector<std::string>{"all", "one"}) : (std::vector<std::string>{"all"}))
        << i;
  }
  EXPECT_EQ(steps, std::vector<int>(static_cast<std::size_t>(num_parts()), 5));
}

TEST_P(EmptyReductions, FromConstructors) {
  testing::InProcessJob job(num_pes());
  std::vector<std::vector<std::string>> heard;
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    Future<> built(runtime);
    Array<Part>::create(runtime, shape(), built);
    co_await built;
    auto made = Array<Part>::create(runtime, shape(), 0);
    co_await runtime.quiescence();
    heard = co_await made.call<&Part::take_heard>();
  }),
            "");
  EXPECT_EQ(heard, std::vector<std::vector<std::string>>(static_cast<std::size_t>(num_parts()), {"all"}));
}

TEST_P(EmptyReductions, ConstructorsAndMethodsTakePartInOneReduction) {
  testing::InProcessJob job(num_pes());
  const int parts = num_parts();
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    for (const int count : {1, parts / 2, parts}) {
      for (int first = 0; first < parts; first += 1 + parts / 5) {
        auto mixed = Array<EarlyOrLate>::create(runtime, shape(), first, count);
        std::vector<int> sums = co_await mixed.call<&EarlyOrLate::sum_of_all>();
        EXPECT_EQ(sums, std::vector<int>(static_cast<std::size_t>(parts), parts * (parts - 1) / 2))
            << first << ", " << count;
      }
    }
  }),
            "");
}

TEST_P(EmptyReductions, BoundArgumentsComeBeforeTheResult) {
  testing::InProcessJob job(num_pes());
  std::vector<std::vector<std::string>> heard;
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto parts = Array<Part>::create(runtime, shape());
    parts.send<&Part::give_bound>("one");
    co_await runtime.quiescence();
    heard = co_await parts.call<&Part::take_heard>();
  }),
            "");
  ASSERT_EQ(heard.size(), static_cast<std::size_t>(num_parts()));
  const std::string all = "all 700 " + std::to_string(2 * num_parts());
  const std::string one = "one 3 " + std::to_string(num_parts());
  for (std::size_t i = 0; i < heard.size(); ++i) {
    std::sort(heard[i].begin(), heard[i].end());
    EXPECT_EQ(heard[i],
              i == 0 ? (std::vector<std::string>{all, one, "x3"}) : (std::vector<std::string>{all, "x3"}))
        << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Jobs, EmptyReductions,
                         ::testing::Values(std::tuple(1, 1), std::tuple(1, 5), std::tuple(3, 2),
                                           std::tuple(3, 10), std::tuple(11, 20)));

TEST(EmptyReductionErrors, SomeElementsWithAValueEndTheJob) {
  testing::InProcessJob job(2);
  const std::string failure = job.run([](Runtime& runtime) -> Task<> {
    auto parts = Array<Part>::create(runtime, {4});
    Future<> done(runtime);
    parts.send<&Part::some_with_value>(done);
    co_await done;
  });
  EXPECT_NE(failure.find("name different reducers or types"), std::string::npos) << failure;
}

}  // namespace
}  // namespace weft::runtime
