// Large values on one host: merged in parts by all PEs, for exchanges and for reductions up the tree.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "weft/weft.h"

#include "collective/engine.h"
#include "models/chare/reductions/engine_merges.h"
#include "runtime/collective/exchange_plan.h"
#include "runtime/collective/reductions.h"
#include "tests/support/in_process_job.h"
#include "tests/support/pattern.h"
#include "tests/unit/runtime/collective/large_job.h"
#include "tests/unit/runtime/collective/reducing_job.h"

namespace weft::runtime {
namespace {

constexpr std::size_t kTreeCount = kLeastTreeBytes / sizeof(double);
constexpr std::size_t kPieceCount = (std::size_t{1} << 20) / sizeof(double);

// Of a contribution; whole numbers, so that the order does not matter. They repeat after so many.
constexpr std::size_t kPeriod = 1009;

void repeat_numbers(Doubles& value) {
  test_support::repeat_bytes(value.data(), kPeriod * sizeof(double), value.size() * sizeof(double));
}

Doubles value_of(int pe, std::uint64_t sequence, std::size_t count) {
  Doubles value(count);
  for (std::size_t i = 0; i < std::min(count, kPeriod); ++i)
    value[i] = static_cast<double>((static_cast<std::size_t>(pe) + 1) * (i + 1) + sequence);
  repeat_numbers(value);
  return value;
}

Doubles sum_of(const std::vector<int>& pes, std::uint64_t sequence, std::size_t count) {
  Doubles sum(count);
  for (const int pe : pes) {
    const Doubles value = value_of(pe, sequence, std::min(count, kPeriod));
    for (std::size_t i = 0; i < value.size(); ++i) sum[i] += value[i];
  }
  repeat_numbers(sum);
  return sum;
}

std::vector<int> all_pes(int num_pes) {
  std::vector<int> pes;
  for (int pe = 0; pe < num_pes; ++pe) pes.push_back(pe);
  return pes;
}

std::vector<Route> routes_of(int num_pes) {
  std::vector<Route> routes = {Route::kTree, Route::kFullTree, Route::kExchange};
  if (ExchangePlan::reaches_all(num_pes, nullptr)) routes.push_back(Route::kMovingExchange);
  return routes;
}

// Waits for the results of so many reductions where they go, and gives those of one PE.
std::vector<Doubles> results_of(LargeJob& job, std::size_t num_reductions) {
  std::vector<std::size_t> wanted(job.results.size(), job.target_pe < 0 ? num_reductions : 0);
  if (job.target_pe >= 0) wanted[static_cast<std::size_t>(job.target_pe)] = num_reductions;
  EXPECT_EQ(job.job.run_until([&] {
    return std::ranges::equal(job.results, wanted,
                              [](const auto& have, std::size_t want) { return have.size() >= want; });
  }),
            "");
  job.settle();
  for (std::size_t pe = 0; pe < wanted.size(); ++pe) EXPECT_EQ(job.results[pe].size(), wanted[pe]);
  // Those of different sizes may overtake one another.
  for (auto& one : job.results) std::ranges::stable_sort(one, {}, &std::vector<std::byte>::size);
  const auto target = static_cast<std::size_t>(std::max(job.target_pe, 0));
  for (const auto& one : job.results) EXPECT_TRUE(job.target_pe >= 0 || one == job.results[target]);
  std::vector<Doubles> values;
  for (const auto& result : job.results[target]) values.push_back(base::unpack<Doubles>(result));
  for (int pe = 0; pe < job.job.num_pes(); ++pe) {
    EXPECT_EQ(job.job.runtime(pe).reductions().num_deferred(), 0U);
    EXPECT_EQ(job.job.runtime(pe).model<collective::Engine>().boards().num_posted(), 0U);
  }
  return values;
}

TEST(MergedValues, AreTheSumForEachWayTargetAndSize) {
  for (const int num_pes : {2, 3, 4, 5}) {
    const std::size_t least =
        collective::direct_sizes(collective::Kind::kAllreduce, num_pes, collective::Spread::kOneHost).least /
        sizeof(double);
    for (const Route route : routes_of(num_pes)) {
      for (const int target_pe : {-1, 0, num_pes - 1}) {
        // The number of elements is packed in front of them.
        const bool is_in_tree = route == Route::kFullTree || target_pe >= 0;
        const std::size_t least_here = is_in_tree ? std::max(least, kTreeCount - 1) : least;
        for (const std::size_t count : {least - 1, least, least_here - 1, least_here, least_here + 1,
                                        kPieceCount, kPieceCount + 1, 3 * kPieceCount + 77}) {
          SCOPED_TRACE("PEs " + std::to_string(num_pes) + ", route " +
                       std::to_string(static_cast<int>(route)) + ", target " + std::to_string(target_pe) +
                       ", elements " + std::to_string(count));
          LargeJob job(one_on_each(num_pes), route);
          job.target_pe = target_pe;
          for (int pe = 0; pe < num_pes; ++pe) job.contribute(pe, 0, value_of(pe, 0, count));
          const std::vector<Doubles> results = results_of(job, 1);
          ASSERT_EQ(results.size(), 1U);
          EXPECT_TRUE(results[0] == sum_of(all_pes(num_pes), 0, count));
          EXPECT_EQ(job.num_merges(), route != Route::kTree && count >= least_here ? num_pes : 0);
          EXPECT_EQ(job.num_parts(), 0);
        }
      }
    }
  }
}

TEST(MergedValues, OnARealMachine) {
  for (const Route route : {Route::kFullTree, Route::kExchange}) {
    for (const int target_pe : {-1, 1}) {
      LargeJob job(one_on_each(3), route, {}, "ucx");
      job.target_pe = target_pe;
      constexpr std::uint64_t kReductions = 5;
      for (std::uint64_t i = 0; i < kReductions; ++i)
        for (int pe = 0; pe < 3; ++pe) job.contribute(pe, i, value_of(pe, i, (i + 1) * 30'000));
      const std::vector<Doubles> results = results_of(job, kReductions);
      ASSERT_EQ(results.size(), kReductions);
      for (std::uint64_t i = 0; i < kReductions; ++i)
        EXPECT_TRUE(results[i] == sum_of(all_pes(3), i, (i + 1) * 30'000));
    }
  }
}

TEST(MergedValues, RandomReductionsInARowDoNotMix) {
  constexpr std::uint64_t kSeed = 20261129;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937_64 random(kSeed);
  for (int round = 0; round < 12; ++round) {
    const int num_pes = 2 + static_cast<int>(random() % 4);
    const std::vector<Route> routes = routes_of(num_pes);
    std::vector<std::uint64_t> contributors;
    std::vector<int> who;
    for (int pe = 0; pe < num_pes; ++pe) {
      contributors.push_back(1 + random() % 3);
      for (std::uint64_t i = 0; i < contributors.back(); ++i) who.push_back(pe);
    }
    LargeJob job(contributors, routes[random() % routes.size()]);
    job.target_pe = static_cast<int>(random() % static_cast<unsigned>(num_pes + 1)) - 1;
    constexpr std::uint64_t kReductions = 8;
    std::vector<std::size_t> counts;
    for (std::uint64_t i = 0; i < kReductions; ++i) counts.push_back(1 + i + 10 * (random() % 30'000));
    std::ranges::sort(counts);
    // Each contributor is some reductions ahead of others.
    std::vector<std::uint64_t> next(who.size());
    for (std::size_t left = who.size() * kReductions; left > 0;) {
      const std::size_t one = random() % who.size();
      if (next[one] == kReductions) continue;
      job.contribute(who[one], next[one], value_of(who[one], next[one], counts[next[one]]));
      ++next[one];
      --left;
      if (random() % 2 == 0) {
        std::uint64_t turns = random() % 5;
        EXPECT_EQ(job.job.run_until([&] { return turns-- == 0; }), "");
      }
    }
    const std::vector<Doubles> results = results_of(job, kReductions);
    ASSERT_EQ(results.size(), kReductions);
    for (std::uint64_t i = 0; i < kReductions; ++i)
      EXPECT_TRUE(results[i] == sum_of(who, i, counts[i])) << "round " << round << ", reduction " << i;
  }
}

// Values are decided about in another order than that of their numbers, and each PE has its own turn.
TEST(MergedValues, ManyMayBeUnderWay) {
  for (const Route route : {Route::kFullTree, Route::kExchange}) {
    LargeJob job({2, 1, 1}, route);
    job.target_pe = route == Route::kFullTree ? 1 : -1;
    constexpr std::uint64_t kReductions = 12;
    for (std::uint64_t i = 0; i < kReductions; ++i)
      for (const int pe : {0, 1, 2}) job.contribute(pe, i, value_of(pe, i, 200'000 + i));
    for (std::uint64_t i = kReductions; i-- > 0;) {
      job.contribute(0, i, value_of(0, i, 200'000 + i));
      int turns = 0;
      EXPECT_EQ(job.job.run_until([&] { return ++turns > 3; }), "");
    }
    const std::vector<Doubles> results = results_of(job, kReductions);
    ASSERT_EQ(results.size(), kReductions);
    for (std::uint64_t i = 0; i < kReductions; ++i)
      EXPECT_TRUE(results[i] == sum_of({0, 0, 1, 2}, i, 200'000 + i)) << i;
  }
}

// The bits of a sum depend on the order.
TEST(MergedValues, HaveTheSameBitsInEveryRun) {
  for (const int target_pe : {-1, 2}) {
    std::vector<std::byte> first;
    for (int run = 0; run < 3; ++run) {
      LargeJob job(one_on_each(4), target_pe < 0 ? Route::kExchange : Route::kFullTree);
      job.target_pe = target_pe;
      for (int i = 0; i < 4; ++i) {
        const int pe = (i + run) % 4;
        Doubles value(50'000);
        for (std::size_t k = 0; k < value.size(); ++k)
          value[k] = 1.0 / (1.0 + static_cast<double>(k % 1000) + 7.0 * pe * pe);
        job.contribute(pe, 0, value);
        int turns = 0;
        EXPECT_EQ(job.job.run_until([&] { return ++turns > run; }), "");
      }
      results_of(job, 1);
      const std::vector<std::byte>& result = job.results[static_cast<std::size_t>(std::max(target_pe, 0))][0];
      if (first.empty()) first = result;
      EXPECT_TRUE(result == first);
      EXPECT_EQ(job.num_merges(), 4);
    }
  }
}

TEST(MergedValues, OfDifferentLengthsEndTheJob) {
  for (const Route route : {Route::kFullTree, Route::kExchange}) {
    for (const int target_pe : {-1, 0, 1}) {
      for (const std::size_t other : {std::size_t{3}, kLargeCount + 1}) {
        LargeJob job(one_on_each(2), route);
        job.target_pe = target_pe;
        job.contribute(0, 0, Doubles(kLargeCount, 1.0));
        job.contribute(1, 0, Doubles(other, 1.0));
        const std::string failure = job.job.run_until([] { return false; });
        EXPECT_NE(failure.find("all must have the same length"), std::string::npos) << failure;
        EXPECT_TRUE(job.results[0].empty() && job.results[1].empty());
      }
    }
  }
}

TEST(MergedValues, OfDifferentTypesEndTheJob) {
  LargeJob job(one_on_each(2), Route::kFullTree);
  job.target_pe = 0;
  job.contribute(0, 0, Doubles(kLargeCount, 1.0));
  job.contribute(1, 0, std::vector<float>(2 * kLargeCount, 1.0F));
  const std::string failure = job.job.run_until([] { return false; });
  EXPECT_NE(failure.find("name different reducers or types"), std::string::npos) << failure;
}

// Some are small, or some PEs have none.
TEST(MergedValues, ThatNotAllPesHaveAreSentToTheRoot) {
  for (const int num_pes : {2, 3, 4, 5, 10}) {
    for (const int target_pe : {-1, 0, num_pes - 1}) {
      for (int empty = 0; empty < num_pes; ++empty) {
        SCOPED_TRACE("PEs " + std::to_string(num_pes) + ", target " + std::to_string(target_pe) +
                     ", none on PE " + std::to_string(empty));
        std::vector<std::uint64_t> contributors = one_on_each(num_pes);
        contributors[static_cast<std::size_t>(empty)] = 0;
        std::vector<int> who = all_pes(num_pes);
        std::erase(who, empty);
        LargeJob job(contributors, Route::kFullTree);
        job.target_pe = target_pe;
        constexpr std::uint64_t kReductions = 3;
        for (std::uint64_t i = 0; i < kReductions; ++i)
          for (const int pe : who) job.contribute(pe, i, value_of(pe, i, 5000 + i));
        const std::vector<Doubles> results = results_of(job, kReductions);
        ASSERT_EQ(results.size(), kReductions);
        for (std::uint64_t i = 0; i < kReductions; ++i)
          EXPECT_TRUE(results[i] == sum_of(who, i, 5000 + i)) << i;
        EXPECT_EQ(job.num_merges(), 0);
      }
    }
  }
}

// A reduction after those that are not deferred is merged again.
TEST(MergedValues, AreDeferredAgainAfterAPause) {
  LargeJob job({1, 1, 1}, Route::kFullTree);
  job.target_pe = 2;
  constexpr std::uint64_t kReductions = 70;
  for (std::uint64_t i = 0; i < kReductions; ++i) {
    // At first PE 1 has none.
    if (i == 0) {
      job.job.runtime(2).reductions().contributor_arrived(kScope, 0);
      job.job.runtime(1).reductions().contributor_left(kScope, 0);
    } else if (i == 1) {
      job.job.runtime(1).reductions().contributor_arrived(kScope, 1);
      job.job.runtime(2).reductions().contributor_left(kScope, 0);
    }
    for (const int pe : i == 0 ? std::vector<int>{0, 2, 2} : all_pes(3))
      job.contribute(pe, i, value_of(pe, i, 5000));
    const std::vector<Doubles> results = results_of(job, i + 1);
    ASSERT_EQ(results.size(), i + 1);
    EXPECT_TRUE(results[i] == sum_of(i == 0 ? std::vector<int>{0, 2, 2} : all_pes(3), i, 5000)) << i;
  }
  EXPECT_EQ(job.num_merges(), 3 * 6);
}

TEST(MergedValues, AContributionMayComeLate) {
  for (const Route route : {Route::kFullTree, Route::kExchange}) {
    for (const int target_pe : {-1, 0, 2}) {
      for (const int late_pe : {0, 1, 2}) {
        for (int turns_before = 0; turns_before < 12; ++turns_before) {
          LargeJob job({1, 1, 1}, route);
          job.target_pe = target_pe;
          for (int pe = 0; pe < 3; ++pe) {
            job.job.runtime(pe).reductions().open(kScope, 4, 1, false, route);
            job.contribute(pe, 0, value_of(pe, 0, 40'000));
          }
          int turns = 0;
          EXPECT_EQ(job.job.run_until([&] { return ++turns > turns_before; }), "");
          job.contribute(late_pe, 0, value_of(late_pe, 0, 40'000));
          const std::vector<Doubles> results = results_of(job, 1);
          ASSERT_EQ(results.size(), 1U);
          EXPECT_TRUE(results[0] == sum_of({0, 1, 2, late_pe}, 0, 40'000))
              << "route " << static_cast<int>(route) << ", target " << target_pe << ", late " << late_pe
              << ", turns " << turns_before;
        }
      }
    }
  }
}

TEST(MergedValues, AContributorMayMoveBetweenReductions) {
  for (const Route route : {Route::kFullTree, Route::kMovingExchange}) {
    for (const int target_pe : {-1, 0, 3}) {
      for (const int from : {0, 1, 3}) {
        for (const std::uint64_t on_it : {1, 2}) {  // with one it is left by all
          std::vector<std::uint64_t> contributors = one_on_each(4);
          contributors[static_cast<std::size_t>(from)] = on_it;
          LargeJob job(contributors, route);
          job.target_pe = target_pe;
          const int to = (from + 1) % 4;
          std::vector<int> who = all_pes(4);
          if (on_it == 2) who.push_back(from);
          std::vector<int> then = all_pes(4);
          if (on_it == 1) std::erase(then, from);
          then.push_back(to);
          for (const int pe : who) job.contribute(pe, 0, value_of(pe, 0, 5000));
          job.job.runtime(to).reductions().contributor_arrived(kScope, 1);
          job.job.runtime(from).reductions().contributor_left(kScope, 0);
          for (const int pe : then) job.contribute(pe, 1, value_of(pe, 1, 5001));
          const std::vector<Doubles> results = results_of(job, 2);
          ASSERT_EQ(results.size(), 2U);
          EXPECT_TRUE(results[0] == sum_of(who, 0, 5000));
          EXPECT_TRUE(results[1] == sum_of(then, 1, 5001));
        }
      }
    }
  }
}

// PEs close the scope one after the other, at any step.
TEST(MergedValues, AScopeMayCloseMeanwhile) {
  for (const bool is_for_all : {true, false}) {
    for (int turns_before = 0; turns_before < 40; ++turns_before) {
      for (const int first_to_close : {0, 2}) {
        LargeJob job(one_on_each(4), is_for_all ? Route::kExchange : Route::kFullTree);
        std::vector<bool> is_closed(4);
        Future<Doubles> future(job.job.runtime(1));
        Target target = target_of(future);
        if (is_for_all) {
          target = {};
          target.handler = kResultHandler;
          target.flags = kBroadcastFlag;
        }
        const auto value = base::pack(Doubles(270'000, 1.0));
        for (int pe = 0; pe < 4; ++pe)
          job.job.runtime(pe).reductions().contribute(kScope, 0, 0, Reducer::kSum,
                                                      value_combiner<Doubles>(Reducer::kSum), value, target);
        int turns = 0;
        EXPECT_EQ(job.job.run_until([&] { return ++turns > turns_before; }), "");
        for (int i = 0; i < 4; ++i) {
          Reductions& reductions = job.job.runtime((first_to_close + i) % 4).reductions();
          reductions.set_closed_function(
              [](void*, ScopeId scope) {
                return scope == kScope ? base::Status(base::StatusCode::kClosed, "destroyed")
                                       : base::Status();
              },
              nullptr);
          reductions.close(kScope, "destroyed");
          turns = 0;
          EXPECT_EQ(job.job.run_until([&] { return ++turns > 2; }), "");
        }
        job.settle();
        EXPECT_TRUE(is_for_all || future.is_ready()) << turns_before;
        for (int pe = 0; pe < 4; ++pe) {
          EXPECT_EQ(job.job.runtime(pe).reductions().num_deferred(), 0U);
          EXPECT_EQ(job.job.runtime(pe).model<collective::Engine>().boards().num_posted(), 0U)
              << "PE " << pe << " after " << turns_before << " turns";
        }
      }
    }
  }
}

// The merge at the root fails, because the values are not alike.
void refuse(Runtime&, Reducer, std::vector<std::byte>&, std::span<const std::byte>) {
  throw std::runtime_error("no merge");
}
ElementLayout layout_with_a_front(Reducer, std::span<const std::byte>) {
  return {[](Reducer, std::byte*, const std::byte*, const std::byte*, std::size_t) {}, 1, 1};
}
Combiner refuser{"weft::runtime::merged_values_test refuser", &refuse, 0, &layout_with_a_front};
const bool is_refuser_registered = Registry<Combiner>::add(&refuser);

TEST(MergedValues, NoPeGetsAResultAfterAFailedMerge) {
  static_cast<void>(is_refuser_registered);
  for (const Route route : {Route::kFullTree, Route::kExchange}) {
    for (const int target_pe : {-1, 1}) {
      LargeJob job(one_on_each(3), route);
      job.target_pe = target_pe;
      for (int pe = 0; pe < 3; ++pe) {
        const std::vector<std::byte> value(100'000, static_cast<std::byte>(pe));
        job.contribute(pe, 0, &refuser, value, Reducer::kCustom);
      }
      const std::string failure = job.job.run_until([] { return false; });
      EXPECT_NE(failure.find("no merge"), std::string::npos) << failure;
      for (const auto& one : job.results) EXPECT_TRUE(one.empty());
    }
  }
}

std::string decide(bool merges, std::uint32_t target_pe, bool has_value) {
  LargeJob job({1, 1, 1}, Route::kFullTree);
  if (has_value) job.contribute(1, 0, Doubles(kLargeCount, 1.0));
  job.settle();
  Target target;
  target.handler = kResultHandler;
  target.pe = target_pe;
  job.job.runtime(0).send(1, Message::pack(job.job.runtime(0), kReductionDecisionHandler, kScope.root_pe,
                                           kScope.id, std::uint64_t{0}, merges, target));
  int turns = 0;
  return job.job.run_until([&] { return ++turns > 100; });
}

TEST(MergedValues, DamagedDecisionsAreRefused) {
  EXPECT_NE(decide(true, 0, false).find("that it does not have"), std::string::npos);
  EXPECT_NE(decide(true, 3, true).find("for a PE that does not exist"), std::string::npos);
  EXPECT_EQ(decide(false, 0, false), "");
}

double sum_to(int last) { return 0.5 * last * (last + 1); }

struct Summer : Chare<Summer> {
  void give(std::size_t count, Future<Doubles> result) {
    contribute(Doubles(count, static_cast<double>(index() + 1)), Reducer::kSum, target_of(result));
  }
  void give_unless(int silent, Future<Doubles> result) {
    if (index() != silent) give(kLargeCount, std::move(result));
  }
  Task<bool> give_to_all(std::size_t count) {
    const int n = static_cast<int>(collection().shape().size());
    const Doubles sum = co_await allreduce(Doubles(count, static_cast<double>(index() + 1)), Reducer::kSum);
    const bool is_right = sum == Doubles(count, sum_to(n));
    co_return is_right;
  }
};

TEST(MergedValues, VectorsOfCharesAreReduced) {
  for (const int num_pes : {2, 3, 6}) {
    for (const int num_elements : {1, 3, 7, 12}) {
      testing::InProcessJob job(num_pes);
      EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
        auto summers = Array<Summer>::create(runtime, {num_elements});
        for (const std::size_t count : {500UL, 1024UL, 5000UL, 300'000UL}) {
          Future<Doubles> result(runtime);
          summers.send<&Summer::give>(count, result);
          const Doubles sum = co_await result;
          EXPECT_TRUE(sum == Doubles(count, sum_to(num_elements)));
          const std::vector<bool> all = co_await summers.call<&Summer::give_to_all>(count);
          EXPECT_EQ(std::ranges::count(all, true), num_elements);
        }
      }),
                "");
    }
  }
}

TEST(MergedValues, TheEndOfACollectionFreesWhatIsDeferred) {
  testing::InProcessJob job(3);
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto summers = Array<Summer>::create(runtime, {6});
    Future<Doubles> result(runtime);
    summers.send<&Summer::give_unless>(5, result);
    co_await runtime.quiescence();
    EXPECT_GT(job.runtime(1).reductions().num_deferred(), 0U);
    co_await summers.destroy();
    std::string why;
    try {
      co_await result;
    } catch (const Error& error) {
      why = error.what();
    }
    EXPECT_NE(why.find("was destroyed before the reduction was complete"), std::string::npos) << why;
    for (int pe = 0; pe < 3; ++pe) EXPECT_EQ(job.runtime(pe).reductions().num_deferred(), 0U);
  }),
            "");
}

}  // namespace
}  // namespace weft::runtime
