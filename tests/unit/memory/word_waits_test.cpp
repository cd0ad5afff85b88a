// Waits of the CPU for words in host memory and in memory of emulated devices.
#include "memory/copy/word_waits.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

#include "tests/support/busy_stream.h"
#include "tests/support/device_memory.h"
#include "tests/unit/memory/outcome.h"
#include "tests/unit/memory/places.h"

namespace weft::memory {
namespace {

using base::Status;
using base::StatusCode;

constexpr std::size_t kManyWords = 5 * WordWaits::kMostCopies;

class WordWaitsTest : public ::testing::TestWithParam<Place> {
 public:
  ~WordWaitsTest() override {
    memory.close();
    EXPECT_TRUE(memory.deallocate(buffer).ok());
  }

  std::uint32_t* address(std::size_t number) const {
    return static_cast<std::uint32_t*>(buffer.data) + number;
  }
  void set(std::size_t number, std::uint32_t value) {
    std::atomic_ref(reinterpret_cast<std::uint32_t*>(testing::view(memory, buffer))[number]).store(value);
  }
  Status start(std::size_t number, std::uint32_t value, Outcome& outcome) {
    return memory.when_word_reached(address(number), GetParam(), value, &outcome);
  }
  void poll(int times = 400) {
    for (int i = 0; i < times; ++i) memory.progress();
  }

  Memory memory;
  Buffer buffer = [this] {
    Buffer made = memory.allocate(kManyWords * sizeof(std::uint32_t), GetParam()).value();
    std::memset(testing::view(memory, made), 0, made.size_bytes);
    return made;
  }();
};

TEST_P(WordWaitsTest, EndWhenTheWordIsAtLeastTheValue) {
  Outcome outcome;
  ASSERT_TRUE(start(0, 3, outcome).is_pending());
  EXPECT_TRUE(memory.has_pending()) << "the PE would sleep";
  bool was_busy = false;
  for (int i = 0; i < 400; ++i) was_busy |= memory.progress();
  EXPECT_FALSE(was_busy) << "the PE would not yield its processor";
  set(0, 2);
  poll();
  EXPECT_EQ(outcome.calls, 0);
  set(0, 5);
  poll();
  EXPECT_EQ(outcome.calls, 1);
  EXPECT_TRUE(outcome.status.ok()) << outcome.status.to_string();
  EXPECT_FALSE(memory.has_pending());
}

TEST_P(WordWaitsTest, CompareCyclically) {
  set(0, 0xfffffffe);
  Outcome outcome;
  ASSERT_TRUE(start(0, 1, outcome).is_pending());
  poll();
  EXPECT_EQ(outcome.calls, 0);
  set(0, 2);
  poll();
  EXPECT_EQ(outcome.calls, 1);
  Outcome passed;
  const Status started = start(0, 0xffffffff, passed);
  poll();
  EXPECT_TRUE(GetParam().is_host() ? started.ok() : passed.calls == 1);
}

// More than are copied at a time, and set in another order than that of the waits.
TEST_P(WordWaitsTest, ManyAtOnceEndOneByOne) {
  std::vector<Outcome> outcomes(kManyWords);
  for (std::size_t i = 0; i < kManyWords; ++i) ASSERT_TRUE(start(i, 1, outcomes[i]).is_pending());
  for (std::size_t n = 0; n < kManyWords; ++n) {
    const std::size_t number = n * 7 % kManyWords;
    EXPECT_EQ(outcomes[number].calls, 0);
    set(number, 1);
    poll(200);
    EXPECT_EQ(outcomes[number].calls, 1) << number;
  }
  EXPECT_FALSE(memory.has_pending());
}

TEST_P(WordWaitsTest, ACompletionMayBeginAWait) {
  struct Next : base::Completion {
    explicit Next(WordWaitsTest& test_in) : base::Completion(&Next::ended), test(test_in) {}
    static void ended(base::Completion* self, Status, std::size_t) {
      Next& next = static_cast<Next&>(*self);
      EXPECT_TRUE(next.test.start(1, 1, next.second).is_pending());
    }
    WordWaitsTest& test;
    Outcome second;
  } next(*this);
  ASSERT_TRUE(memory.when_word_reached(address(0), GetParam(), 1, &next).is_pending());
  set(0, 1);
  poll();
  set(1, 1);
  poll();
  EXPECT_EQ(next.second.calls, 1);
}

TEST_P(WordWaitsTest, CloseEndsThemWithASentence) {
  std::vector<Outcome> outcomes(kManyWords);
  for (std::size_t i = 0; i < kManyWords; ++i) ASSERT_TRUE(start(i, 1, outcomes[i]).is_pending());
  poll(3);
  memory.close();
  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.calls, 1);
    EXPECT_EQ(outcome.status.code(), StatusCode::kClosed);
    EXPECT_NE(outcome.status.message().find("before the word had reached 1"), std::string::npos);
  }
  EXPECT_TRUE(memory.hang().ok());
  Outcome late;
  EXPECT_EQ(start(0, 1, late).code(), StatusCode::kClosed);
}

INSTANTIATE_TEST_SUITE_P(Places, WordWaitsTest, ::testing::Values(kHostPlace, kDevice0, kDevice1));

TEST(WordWaitsOnDevices, GoOnWhileAKernelOfTheProgramRuns) {
  Memory memory;
  const Buffer buffer = memory.allocate(4, kDevice0).value();
  auto* const view = reinterpret_cast<std::uint32_t*>(testing::view(memory, buffer));
  *view = 0;
  bool may_go = false;
  EmulatedBackend& kind = testing::emulated(memory);
  const StreamHandle busy = kind.create_stream(0).value();
  ASSERT_TRUE(kind.launch(busy, 0, testing::until(may_go)).ok());
  Outcome outcome;
  ASSERT_TRUE(
      memory.when_word_reached(static_cast<std::uint32_t*>(buffer.data), kDevice0, 1, &outcome).is_pending());
  *view = 1;
  for (int i = 0; i < 100; ++i) memory.progress();
  EXPECT_EQ(outcome.calls, 1);
  EXPECT_FALSE(kind.is_idle(busy, 0));
  may_go = true;
  memory.close();
}

TEST(WordWaitsOnDevices, ACopyThatFailsEndsTheWaitsThatItServes) {
  Memory memory;
  const Buffer buffer = memory.allocate(8, kDevice0).value();
  std::memset(testing::view(memory, buffer), 0, 8);
  ASSERT_TRUE(testing::emulated(memory).inject_faults("polls=2,fail_copy=3").ok());
  std::array<Outcome, 2> outcomes;
  for (std::size_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(
        memory.when_word_reached(static_cast<std::uint32_t*>(buffer.data) + i, kDevice0, 1, &outcomes[i])
            .is_pending());
  }
  poll_until_idle(memory);
  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.calls, 1);
    EXPECT_TRUE(outcome.status.failed());
  }
}

TEST(WordWaitsOnDevices, RefuseAPlaceThatThereIsNot) {
  Memory memory;
  std::uint32_t word = 0;
  Outcome outcome;
  EXPECT_EQ(memory.when_word_reached(&word, {Kind::kEmulated, 1000}, 1, &outcome).code(),
            StatusCode::kOutOfRange);
}

}  // namespace
}  // namespace weft::memory
