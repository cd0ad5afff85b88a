// Large values of reductions for all PEs: cut, or sent when the exchange is repeated.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "weft/weft.h"

#include "runtime/collective/deferred_value.h"
#include "runtime/collective/exchange_plan.h"
#include "runtime/collective/reductions.h"
#include "runtime/message/handlers.h"
#include "tests/support/in_process_job.h"
#include "tests/unit/runtime/collective/large_job.h"
#include "tests/unit/runtime/collective/reducing_job.h"

namespace weft::runtime {
namespace {

TEST(LargeValues, AreCutFromTheLeastSizeOn) {
  // The number of elements is packed in front of them.
  for (const std::size_t count : {kLargeCount - 2, kLargeCount - 1, kLargeCount, kLargeCount + 1}) {
    CutJob job(one_on_each(2));
    for (int pe = 0; pe < 2; ++pe) job.contribute(pe, 0, Doubles(count, pe + 1.0));
    EXPECT_EQ(job.run(1), "");
    for (const auto& one : job.results) EXPECT_EQ(base::unpack<Doubles>(one[0]), Doubles(count, 3.0));
    EXPECT_EQ(job.num_parts(), count + 1 >= kLargeCount ? 4 : 0) << count;
    EXPECT_EQ(job.num_repeats(), 0);
  }
}

template <class T>
T serial(Reducer reducer, T a, T b) {
  return reduction_detail::merge(reducer, a, b);
}

// Whole numbers, so that the order does not matter.
template <class T>
void expect_serial_result(std::mt19937_64& random, const std::vector<int>& host_of_pe, const char* machine) {
  constexpr Reducer kReducers[] = {Reducer::kSum,       Reducer::kProduct,    Reducer::kMin,
                                   Reducer::kMax,       Reducer::kLogicalAnd, Reducer::kLogicalOr,
                                   Reducer::kLogicalXor};
  const Reducer reducer = kReducers[random() % std::size(kReducers)];
  const std::size_t count = kLeastCutBytes / sizeof(T) + random() % 100'000;
  std::vector<std::uint64_t> contributors;
  std::uint64_t total = 0;
  for (std::size_t pe = 0; pe < host_of_pe.size(); ++pe) total += contributors.emplace_back(1 + random() % 3);
  CutJob job(contributors, Route::kExchange, host_of_pe, machine);
  std::vector<T> expected;
  for (std::size_t pe = 0; pe < contributors.size(); ++pe) {
    for (std::uint64_t i = 0; i < contributors[pe]; ++i) {
      std::vector<T> value(count);
      for (T& one : value) one = static_cast<T>(is_logical(reducer) ? random() % 2 : 1 + random() % 2);
      for (std::size_t j = 0; j < expected.size(); ++j) expected[j] = serial(reducer, expected[j], value[j]);
      if (expected.empty()) expected = value;
      job.contribute(static_cast<int>(pe), 0, value, reducer);
    }
  }
  EXPECT_EQ(job.run(1), "");
  for (const auto& one : job.results) EXPECT_TRUE(base::unpack<std::vector<T>>(one[0]) == expected);
  EXPECT_GT(job.num_parts(), 0);
}

TEST(LargeValues, RandomValuesOnRandomPesGiveTheSerialResult) {
  constexpr std::uint64_t kSeed = 20261126;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937_64 random(kSeed);
  for (int round = 0; round < 12; ++round) {
    const int num_pes = 2 + static_cast<int>(random() % 7);
    const int num_hosts = 1 + static_cast<int>(random() % 3);
    std::vector<int> host_of_pe;
    for (int pe = 0; pe < num_pes; ++pe)
      host_of_pe.push_back(static_cast<int>(random() % static_cast<unsigned>(num_hosts)));
    const char* const machine = round % 4 == 3 ? "ucx" : "loopback";
    SCOPED_TRACE("round " + std::to_string(round) + ", PEs " + std::to_string(num_pes));
    switch (round % 3) {
      case 0:
        expect_serial_result<double>(random, host_of_pe, machine);
        break;
      case 1:
        expect_serial_result<std::uint8_t>(random, host_of_pe, machine);
        break;
      default:
        expect_serial_result<std::int64_t>(random, host_of_pe, machine);
    }
  }
}

// The bits of a sum depend on the order.
Doubles sum_of_fractions(int num_pes, const std::vector<int>& host_of_pe, std::size_t count, Reducer reducer,
                         bool& was_cut) {
  CutJob job(one_on_each(num_pes), Route::kExchange, host_of_pe);
  for (int pe = 0; pe < num_pes; ++pe) {
    Doubles value(count);
    for (std::size_t i = 0; i < count; ++i)
      value[i] = 1.0 / (1.0 + static_cast<double>(i % 1000) + 7.0 * pe * pe);
    job.contribute(pe, 0, value, reducer);
  }
  EXPECT_EQ(job.run(1), "");
  for (const auto& one : job.results) EXPECT_TRUE(one[0] == job.results[0][0]);
  was_cut = job.num_parts() > 0;
  return base::unpack<Doubles>(job.results[0][0]);
}

TEST(LargeValues, TheSumHasTheSameBitsAsThatOfSmallValues) {
  const std::vector<std::vector<int>> layouts = {
      {}, {0, 0, 1, 1, 1, 0}, {0, 1, 0, 1, 0, 1}, {0, 1, 2, 2, 2, 2}};
  for (const std::vector<int>& hosts : layouts) {
    bool was_cut = false;
    const Doubles large = sum_of_fractions(6, hosts, kLargeCount, Reducer::kSum, was_cut);
    EXPECT_TRUE(was_cut);
    const Doubles small = sum_of_fractions(6, hosts, 1000, Reducer::kSum, was_cut);
    EXPECT_FALSE(was_cut);
    for (std::size_t i = 0; i < large.size(); ++i)
      ASSERT_EQ(std::bit_cast<std::uint64_t>(large[i]), std::bit_cast<std::uint64_t>(small[i % 1000])) << i;
  }
}

TEST(LargeValues, ManyReductionsInARowDoNotMix) {
  for (const char* machine : {"loopback", "ucx"}) {
    CutJob job(one_on_each(4), Route::kExchange, {0, 0, 1, 1}, machine);
    constexpr int kReductions = 9;
    for (int i = 0; i < kReductions; ++i) {
      const std::size_t count = i % 3 == 1 ? 10 : kLargeCount + static_cast<std::size_t>(i);
      for (int pe = 0; pe < 4; ++pe)
        job.contribute(pe, static_cast<std::uint64_t>(i), Doubles(count, i + pe));
    }
    EXPECT_EQ(job.run(kReductions), "");
    for (const auto& one : job.results) {
      // Small ones may be over first.
      std::vector<double> firsts;
      for (const auto& result : one) {
        const auto value = base::unpack<Doubles>(result);
        EXPECT_EQ(value, Doubles(value.size(), value[0]));
        firsts.push_back(value[0]);
      }
      std::ranges::sort(firsts);
      for (int i = 0; i < kReductions; ++i) EXPECT_EQ(firsts[static_cast<std::size_t>(i)], 4.0 * i + 6);
    }
  }
}

TEST(LargeValues, AContributionThatComesLateReachesAllPes) {
  for (int late_pe : {0, 1, 2}) {
    CutJob job({1, 1, 2});
    // PE 2 behaves as if its second contributor had been elsewhere.
    for (int pe = 0; pe < 3; ++pe)
      job.job.runtime(pe).reductions().open(kScope, 4, 1, false, Route::kExchange);
    for (int pe = 0; pe < 3; ++pe) job.contribute(pe, 0, Doubles(kLargeCount, 1.0));
    int turns = 0;
    EXPECT_EQ(job.job.run_until([&] { return ++turns > 200; }), "");
    EXPECT_TRUE(job.results[0].empty());
    job.contribute(late_pe, 0, Doubles(kLargeCount, 100.0));
    EXPECT_EQ(job.run(1), "");
    for (const auto& one : job.results) EXPECT_EQ(base::unpack<Doubles>(one[0]), Doubles(kLargeCount, 103.0));
  }
}

// The late one comes while the values are cut.
TEST(LargeValues, ALateContributionMayComeMeanwhile) {
  for (int turns_before = 0; turns_before < 30; ++turns_before) {
    CutJob job({1, 1, 1, 1});
    for (int pe = 0; pe < 4; ++pe)
      job.job.runtime(pe).reductions().open(kScope, 5, 1, false, Route::kExchange);
    for (int pe = 0; pe < 4; ++pe) job.contribute(pe, 0, Doubles(kLargeCount, 1.0));
    int turns = 0;
    EXPECT_EQ(job.job.run_until([&] { return ++turns > turns_before; }), "");
    job.contribute(turns_before % 4, 0, Doubles(kLargeCount, 100.0));
    EXPECT_EQ(job.run(1), "");
    for (const auto& one : job.results) EXPECT_EQ(base::unpack<Doubles>(one[0]), Doubles(kLargeCount, 104.0));
  }
}

// Each PE of a step sends from memory that it merges into later. A first reduction may hide that a PE reads too late.
TEST(LargeValues, HostsOfDifferentSizesCountEachValueOnce) {
  constexpr int kReductions = 4;
  const std::vector<std::vector<int>> layouts = {
      {0, 0, 1}, {0, 1, 1}, {0, 0, 0, 1}, {0, 0, 0, 0, 1, 1}, {0, 0, 0, 0, 1}, {0, 1, 1, 2, 2, 2, 2, 2}};
  for (const char* machine : {"loopback", "ucx"}) {
    for (const std::vector<int>& hosts : layouts) {
      const int num_pes = static_cast<int>(hosts.size());
      CutJob job(one_on_each(num_pes), Route::kExchange, hosts, machine);
      for (int i = 0; i < kReductions; ++i) {
        for (int pe = 0; pe < num_pes; ++pe)
          job.contribute(pe, static_cast<std::uint64_t>(i), Doubles(4 * kLargeCount, 1 << pe));
        ASSERT_EQ(job.run(static_cast<std::size_t>(i) + 1), "");
      }
      const Doubles expected(4 * kLargeCount, (1 << num_pes) - 1);
      for (const auto& one : job.results) {
        for (const std::vector<std::byte>& result : one)
          ASSERT_EQ(base::unpack<Doubles>(result), expected)
              << machine << ", hosts " << ::testing::PrintToString(hosts);
      }
    }
  }
}

TEST(LargeValues, AContributorMayLeaveWhileTheExchangeIsRepeated) {
  for (int from = 0; from < 3; ++from) {
    for (int turns_before = 0; turns_before < 25; ++turns_before) {
      CutJob job(one_on_each(4), Route::kMovingExchange);
      const auto reductions = [&](int pe) -> Reductions& { return job.job.runtime(pe).reductions(); };
      reductions(2).contributor_arrived(kScope, 0);
      reductions(3).contributor_left(kScope, 0);
      for (const int pe : {0, 1, 2, 2}) job.contribute(pe, 0, Doubles(kLargeCount, 1.0));
      int turns = 0;
      EXPECT_EQ(job.job.run_until([&] { return ++turns > turns_before; }), "");
      reductions((from + 1) % 3).contributor_arrived(kScope, 1);
      reductions(from).contributor_left(kScope, 0);
      ASSERT_EQ(job.run(1), "") << "PE " << from << " after " << turns_before << " turns";
      for (const auto& one : job.results) {
        ASSERT_EQ(one.size(), 1U);
        EXPECT_EQ(base::unpack<Doubles>(one[0]), Doubles(kLargeCount, 4.0));
      }
    }
  }
}

// One value is deferred, and the merge with the other one, which is small, fails when the exchange is repeated.
TEST(LargeValues, NoPeGetsAResultAfterAFailedMerge) {
  for (const int large : {0, 1}) {
    CutJob job(one_on_each(2));
    job.contribute(large, 0, Doubles(kLargeCount, 1.0));
    job.contribute(1 - large, 0, Doubles(3, 1.0));
    std::string failure;
    for (int turn = 0; turn < 3000; ++turn) {
      for (const int pe : {0, 1}) {
        if (!job.job.runtime(pe).stopped()) job.job.runtime(pe).step();
      }
    }
    for (const int pe : {0, 1}) failure += job.job.runtime(pe).failure();
    EXPECT_NE(failure, "");
    for (const auto& one : job.results) EXPECT_TRUE(one.empty()) << "the large value is on PE " << large;
  }
}

TEST(LargeValues, APeThatAllContributorsHaveLeftGetsTheResult) {
  for (const std::vector<int>& hosts :
       {std::vector<int>{}, std::vector<int>{0, 0, 1, 1}, std::vector<int>{0, 1, 1, 0}}) {
    for (const int empty : {0, 1, 2, 3}) {
      CutJob job(one_on_each(4), Route::kMovingExchange, hosts);
      const int other = (empty + 1) % 4;
      job.job.runtime(other).reductions().contributor_arrived(kScope, 0);
      job.job.runtime(empty).reductions().contributor_left(kScope, 0);
      for (const int pe : {0, 1, 2, 3})
        job.contribute(pe == empty ? other : pe, 0, Doubles(kLargeCount, 1 << pe));
      EXPECT_EQ(job.run(1), "");
      for (const auto& one : job.results)
        EXPECT_EQ(base::unpack<Doubles>(one[0]), Doubles(kLargeCount, 15.0));
      EXPECT_EQ(job.num_parts(), 0);
      EXPECT_GT(job.num_repeats(), 0);
    }
  }
}

TEST(LargeValues, OnePeMayHaveThemAll) {
  CutJob job(one_on_each(4), Route::kMovingExchange, {0, 0, 1, 1});
  for (const int pe : {0, 2, 3}) {
    job.job.runtime(1).reductions().contributor_arrived(kScope, 0);
    job.job.runtime(pe).reductions().contributor_left(kScope, 0);
  }
  for (int i = 0; i < 4; ++i) job.contribute(1, 0, Doubles(kLargeCount, 1 << i));
  EXPECT_EQ(job.run(1), "");
  for (const auto& one : job.results) EXPECT_EQ(base::unpack<Doubles>(one[0]), Doubles(kLargeCount, 15.0));
}

// Texts that are joined. Those that begin with a letter from A to Z say that they can be cut.
void join(Runtime&, Reducer, std::vector<std::byte>& accumulated, std::span<const std::byte> more) {
  accumulated.insert(accumulated.end(), more.begin(), more.end());
}
ElementLayout layout_of_text(Reducer, std::span<const std::byte> value) {
  if (value[0] < std::byte{'A'} || value[0] > std::byte{'Z'}) return {};
  return {
      [](Reducer, std::byte*, const std::byte*, const std::byte*, std::size_t) { ADD_FAILURE() << "cut"; }, 1,
      1};
}
Combiner joiner{"weft::runtime::large_values_test joiner", &join, 0, &layout_of_text};
const bool is_registered = Registry<Combiner>::add(&joiner);

TEST(LargeValues, ThatAreNotAlikeAreSentWhole) {
  static_cast<void>(is_registered);
  // Each digit stands for a PE: small, large, large and cuttable in two forms.
  for (const std::string forms :
       {"AB", "Aa", "aA", "Ax", "xA", "ABAB", "AxBx", "xxAx", "aABx", "AAAx", "xAAAA", "AAAaxB"}) {
    std::vector<std::string> texts;
    for (const char form : forms) texts.emplace_back(form == 'x' ? 3 : kLeastCutBytes + 1, form);
    CutJob job(one_on_each(static_cast<int>(forms.size())));
    for (std::size_t pe = 0; pe < texts.size(); ++pe)
      job.contribute(static_cast<int>(pe), 0, &joiner, std::as_bytes(std::span(texts[pe])), Reducer::kCustom);
    ASSERT_EQ(job.run(1), "") << forms;
    // Each text is there as often as PEs gave it, in any order.
    const std::vector<std::byte>& joined = job.results[0][0];
    for (const auto& one : job.results) EXPECT_TRUE(one[0] == joined) << forms;
    std::size_t total_bytes = 0;
    for (const std::string& one : texts) {
      total_bytes += one.size();
      const auto given = std::ranges::count(forms, one[0]);
      EXPECT_EQ(std::ranges::count(joined, static_cast<std::byte>(one[0])),
                given * static_cast<std::ptrdiff_t>(one.size()))
          << forms;
    }
    EXPECT_EQ(joined.size(), total_bytes) << forms;
    EXPECT_EQ(job.num_parts(), 0);
  }
}

TEST(LargeValues, OfDifferentLengthsEndTheJob) {
  for (const std::size_t other : {std::size_t{3}, kLargeCount + 1}) {
    CutJob job(one_on_each(2));
    job.contribute(0, 0, Doubles(kLargeCount, 1.0));
    job.contribute(1, 0, Doubles(other, 1.0));
    const std::string failure = job.run(1);
    EXPECT_NE(failure.find("all must have the same length"), std::string::npos) << failure;
  }
}

TEST(LargeValues, OfDifferentTypesEndTheJob) {
  CutJob job(one_on_each(2));
  job.contribute(0, 0, Doubles(kLargeCount, 1.0));
  job.contribute(1, 0, std::vector<float>(2 * kLargeCount, 1.0F));
  const std::string failure = job.run(1);
  EXPECT_NE(failure.find("name different reducers or types"), std::string::npos) << failure;
}

// Vectors of chares are packed in memory that the PE keeps.
struct LargeAdder : Chare<LargeAdder> {
  // What is wrong; empty if nothing is.
  Task<std::string> check(int num_elements) {
    const auto mine = static_cast<std::size_t>(index());
    const auto all = static_cast<std::size_t>(num_elements);
    const Doubles numbers(kLargeCount, static_cast<double>(mine + 1));
    for (int round = 0; round < 3; ++round) {
      const Doubles sum = co_await allreduce(numbers, Reducer::kSum);
      if (sum != Doubles(kLargeCount, static_cast<double>(all * (all + 1) / 2))) co_return "sum";
    }
    std::vector<int> flags(2 * kLargeCount, 7);
    flags[mine] = 0;
    const std::vector<int> true_in_all = co_await allreduce(flags, Reducer::kLogicalAnd);
    for (std::size_t i = 0; i < flags.size(); ++i) {
      if (true_in_all[i] != (i < all ? 0 : 1)) co_return "logical and";
    }
    const std::vector<std::string> names(1, std::string(kLeastCutBytes, 'x'));
    const std::vector<std::string> joined = co_await allreduce(names, Reducer::kConcat);
    if (joined != std::vector<std::string>(all, names[0])) co_return "concat";
    co_return "";
  }
};

TEST(LargeValues, VectorsOfCharesAreReduced) {
  for (const int num_elements : {1, 3, 4, 9}) {
    testing::InProcessJob job(4, "loopback", options_of({0, 1, 0, 1}));
    std::vector<std::string> wrong;
    EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
      auto adders = Array<LargeAdder>::create(runtime, {num_elements});
      wrong = co_await adders.call<&LargeAdder::check>(num_elements);
    }),
              "");
    EXPECT_EQ(wrong, std::vector<std::string>(static_cast<std::size_t>(num_elements)));
  }
}

// A part that no exchange waits for, with and without elements.
TEST(LargeValues, DamagedPartsAreRefused) {
  for (const std::size_t payload_bytes : {10U, 24U}) {
    for (const bool has_elements : {false, true}) {
      CutJob job(one_on_each(2));
      Runtime& runtime = job.job.runtime(1);
      MessagePtr message = Message::create(runtime, kReductionCutHandler, payload_bytes);
      std::memset(message->payload(), 0, payload_bytes);
      std::memcpy(message->payload(), &kScope.id, sizeof kScope.id);
      std::vector<std::byte> elements(100);
      if (has_elements)
        message->attach(Attachment(memory::Buffer{elements.data(), elements.size(), {}, nullptr}));
      runtime.send(0, std::move(message));
      const std::string failure = job.job.run_until([] { return false; });
      EXPECT_NE(failure.find("from PE 1"), std::string::npos) << failure;
    }
  }
}

TEST(LargeMemory, KeepsTheLargestAndGivesWhatIsLargeEnough) {
  LargeMemory memory;
  EXPECT_TRUE(memory.take(1).empty());
  for (const std::size_t kib : {40, 10, 30, 1, 20}) memory.keep(std::vector<std::byte>(kib << 10));
  EXPECT_EQ(memory.take(21 << 10).capacity(), std::size_t{30} << 10);
  EXPECT_EQ(memory.take(31 << 10).capacity(), std::size_t{40} << 10);
  EXPECT_EQ(memory.take(21 << 10).capacity(), 0U);
  EXPECT_EQ(memory.take(1).capacity(), std::size_t{20} << 10);
  EXPECT_EQ(memory.take(1).capacity(), 0U);
}

TEST(LargeValues, DescriptionsOfAPeMayNotComeTwice) {
  const std::vector<std::byte> value(100);
  const ElementLayout layout = reduction_detail::layout_of_values<Doubles>()(Reducer::kSum, value);
  std::vector<DeferredDescription> two = {describe(value, layout, 1, 0), describe(value, layout, 1, 1)};
  const auto bytes = std::as_bytes(std::span(two));
  EXPECT_EQ(read_descriptions(bytes, 2).size(), 2U);
  EXPECT_TRUE(read_descriptions(bytes, 1).empty());
  EXPECT_TRUE(read_descriptions(bytes.first(50), 2).empty());
  two[1].pe = 0;
  EXPECT_TRUE(read_descriptions(bytes, 2).empty());
}

}  // namespace
}  // namespace weft::runtime
