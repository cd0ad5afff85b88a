// Reductions whose result all PEs get, by recursive doubling.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <vector>

#include "runtime/collective/reductions.h"
#include "runtime/message/handlers.h"
#include "tests/support/in_process_job.h"
#include "tests/unit/runtime/collective/reducing_job.h"

namespace weft::runtime {
namespace {

TEST(Exchange, EachPeGetsEachResultOnce) {
  for (const char* machine : {"loopback", "ucx"}) {
    for (int num_pes : {2, 3, 4, 5, 7, 8, 11}) {
      ReducingJob reducing(num_pes, 0, machine);
      constexpr std::uint64_t kReductions = 20;
      for (std::uint64_t i = 0; i < kReductions; ++i) {
        for (int pe = 0; pe < num_pes; ++pe) reducing.contribute(pe, i, std::int64_t{1} << pe);
      }
      EXPECT_EQ(reducing.job.run_until([&] { return reducing.least_results() == kReductions; }), "");
      for (const auto& one : reducing.results) {
        EXPECT_EQ(one, std::vector<std::int64_t>(kReductions, (std::int64_t{1} << num_pes) - 1));
      }
    }
  }
}

// As of an element that has moved: its contribution comes on a PE that has given its part away.
TEST(Exchange, AContributionThatComesLateReachesAllPes) {
  for (int late_pe : {0, 1, 2}) {
    ReducingJob reducing(3, 1);
    for (int pe = 0; pe < 3; ++pe) reducing.contribute(pe, 0, 1);
    for (int pe = 0; pe < 3; ++pe) reducing.contribute(pe, 1, 10);
    reducing.settle();
    EXPECT_EQ(reducing.least_results(), 0U);
    reducing.contribute(late_pe, 0, 100);
    reducing.contribute(late_pe, 1, 1000);
    EXPECT_EQ(reducing.job.run_until([&] { return reducing.least_results() == 2; }), "");
    for (const auto& one : reducing.results) EXPECT_EQ(one, (std::vector<std::int64_t>{103, 1030}));
  }
}

// Early contributions of the next reduction do not count for this one.
TEST(Exchange, APeMayBeReductionsAhead) {
  ReducingJob reducing(4);
  for (std::uint64_t i = 0; i < 5; ++i) {
    for (int pe = 1; pe < 4; ++pe) reducing.contribute(pe, i, static_cast<std::int64_t>(i));
  }
  reducing.settle();
  EXPECT_EQ(reducing.least_results(), 0U);
  for (std::uint64_t i = 0; i < 5; ++i) reducing.contribute(0, i, static_cast<std::int64_t>(i));
  EXPECT_EQ(reducing.job.run_until([&] { return reducing.least_results() == 5; }), "");
  for (const auto& one : reducing.results) EXPECT_EQ(one, (std::vector<std::int64_t>{0, 4, 8, 12, 16}));
}

TEST(Exchange, APeThatAllContributorsHaveLeftGetsTheResult) {
  for (int empty : {0, 3}) {
    ReducingJob reducing(4, 0, "loopback", Route::kMovingExchange);
    reducing.move(empty, 2, 0);
    for (int pe : {0, 1, 2, 3}) reducing.contribute(pe == empty ? 2 : pe, 0, std::int64_t{1} << pe);
    EXPECT_EQ(reducing.job.run_until([&] { return reducing.least_results() == 1; }), "");
    for (const auto& one : reducing.results) EXPECT_EQ(one, std::vector<std::int64_t>{15}) << empty;
  }
}

TEST(Exchange, APeTakesPartInAReductionThatItHasSkipped) {
  ReducingJob reducing(4, 0, "loopback", Route::kMovingExchange);
  reducing.move(3, 2, 0);
  reducing.contribute(0, 0, 1);
  reducing.move(0, 3, 1);
  for (std::uint64_t i : {1, 2}) reducing.contribute(3, i, 1);  // it has nothing to give to the first
  reducing.settle();
  for (std::uint64_t i : {0, 1, 2}) {
    for (int pe : {1, 2, 2}) reducing.contribute(pe, i, 10);
  }
  EXPECT_EQ(reducing.job.run_until([&] { return reducing.least_results() == 3; }), "");
  for (const auto& one : reducing.results) EXPECT_EQ(one, std::vector<std::int64_t>(3, 31));
}

// PE 9 has given its part when a contributor comes there. Its late contribution reaches PE 1, the parent in the tree,
// before that has anything of the exchange.
TEST(Exchange, ALateContributionMayComeBeforeTheExchange) {
  ReducingJob reducing(16, 0, "loopback", Route::kMovingExchange);
  reducing.contribute(9, 0, std::int64_t{1} << 9);
  reducing.move(5, 9, 0);
  reducing.contribute(9, 0, std::int64_t{1} << 5);
  reducing.settle();
  for (int pe = 0; pe < 16; ++pe) {
    if (pe != 9 && pe != 5) reducing.contribute(pe, 0, std::int64_t{1} << pe);
  }
  EXPECT_EQ(reducing.job.run_until([&] { return reducing.least_results() == 1; }), "");
  for (const auto& one : reducing.results) EXPECT_EQ(one, std::vector<std::int64_t>{65535});
}

// Up the tree: PE 9 has a contributor that begins with the next reduction, and nothing to give to this one.
TEST(Exchange, APeWhoseContributorsBeginLaterHoldsNothingUp) {
  ReducingJob reducing(10);
  reducing.contribute(8, 0, 1 << 8, 0);
  reducing.move(8, 9, 1);
  reducing.move(9, 8, 0);
  reducing.contribute(8, 0, 1 << 9, 0);
  for (int pe = 0; pe < 8; ++pe) reducing.contribute(pe, 0, std::int64_t{1} << pe, 0);
  EXPECT_EQ(reducing.job.run_until([&] { return !reducing.results[0].empty(); }), "");
  EXPECT_EQ(reducing.results[0], std::vector<std::int64_t>{1023});
}

TEST(Exchange, DifferentTargetsEndTheJob) {
  for (int single : {0, 1}) {
    ReducingJob reducing(2);
    reducing.contribute(single, 0, 1, 0);
    reducing.contribute(1 - single, 0, 1);
    const std::string failure = reducing.job.run_until([] { return false; });
    EXPECT_NE(failure.find("name different targets"), std::string::npos) << failure;
  }
}

// A part of so many zeros, but for the scope, the step, and a byte at some place.
std::string exchange_with(std::size_t size_bytes, std::uint8_t step, std::size_t place = 0, int byte = 0) {
  constexpr std::size_t kStepPlace = 22;
  ReducingJob reducing(2);
  MessagePtr message = Message::create(reducing.job.runtime(1), kReductionExchangeHandler, size_bytes);
  std::memset(message->payload(), 0, size_bytes);
  std::memcpy(message->payload(), &kScope.id, std::min(size_bytes, sizeof kScope.id));
  if (kStepPlace < size_bytes) message->payload()[kStepPlace] = std::byte{step};
  if (place > 0) message->payload()[place] = static_cast<std::byte>(byte);
  reducing.job.runtime(1).send(0, std::move(message));
  return reducing.job.run_until([] { return false; });
}

TEST(Exchange, DamagedPartsAreRefused) {
  EXPECT_NE(exchange_with(12, 1).find("the handling of a message from PE 1"), std::string::npos);
  for (const std::uint8_t step : {0, 2, 3, 255}) {
    const std::string failure = exchange_with(40, step);
    EXPECT_NE(failure.find("does not fit the exchange"), std::string::npos) << failure;
  }
  for (const auto& [place, byte] :
       {std::pair{24, 9}, {31, 128}, {23, 128}}) {  // a value of 9 or 2^63 bytes; a target
    const std::string failure = exchange_with(48, 1, static_cast<std::size_t>(place), byte);
    EXPECT_NE(failure.find("the handling of a message from PE 1"), std::string::npos) << failure;
  }
}

struct Adder : Chare<Adder> {
  Task<std::vector<std::uint64_t>> sums() {
    std::vector<std::uint64_t> bits;
    for (int i = 0; i < 20; ++i) {
      const double mine = 1.0 / (1 + i + 7 * static_cast<int>(index()) * static_cast<int>(index()));
      bits.push_back(std::bit_cast<std::uint64_t>(co_await allreduce(mine, Reducer::kSum)));
    }
    co_return bits;
  }
};

TEST(Exchange, AllMembersGetTheSameSumToTheLastBit) {
  for (int num_pes : {2, 3, 5, 6, 8}) {
    std::vector<std::vector<std::uint64_t>> first;
    for (int run = 0; run < 3; ++run) {
      testing::InProcessJob job(num_pes);
      std::vector<std::vector<std::uint64_t>> bits;
      EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
        auto adders = Group<Adder>::create(runtime);
        bits = co_await adders.call<&Adder::sums>();
      }),
                "");
      if (run == 0) first = bits;
      EXPECT_EQ(bits, first);
      for (const auto& one : bits) EXPECT_EQ(one, bits[0]) << num_pes;
    }
  }
}

// Then the tree serves.
TEST(Exchange, PesThatShareProcessorsReduceAsWell) {
  RuntimeOptions options;
  options.processor_share = {.num_pes = 5, .num_processors = 2};
  testing::InProcessJob job(5, "loopback", options);
  std::vector<std::vector<std::uint64_t>> bits;
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto adders = Group<Adder>::create(runtime);
    bits = co_await adders.call<&Adder::sums>();
  }),
            "");
  ASSERT_EQ(bits.size(), 5U);
  for (const auto& one : bits) EXPECT_EQ(one, bits[0]);
}

}  // namespace
}  // namespace weft::runtime
