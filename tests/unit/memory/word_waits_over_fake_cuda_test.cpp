// Waits of the CPU for words in device memory, over the stand-in driver: nothing blocks the CPU, and nothing is left.
#include <cstdint>

#include "gtest/gtest.h"

#include "tests/unit/memory/fake_cuda_fixture.h"
#include "tests/unit/memory/places.h"

namespace weft::memory {
namespace {

using base::StatusCode;

class WordWaitsOverFakeCudaTest : public FakeCudaTest {
 protected:
  static std::uint32_t* word(const Buffer& buffer) { return static_cast<std::uint32_t*>(buffer.data); }
  void poll(int times = 200) {
    for (int i = 0; i < times; ++i) memory->progress();
  }
};

TEST_F(WordWaitsOverFakeCudaTest, OnTwoDevices) {
  for (const Place place : {kGpu0, kGpu1}) {
    const Buffer buffer = memory->allocate(64, place).value();
    *word(buffer) = 0;
    Outcome outcome;
    ASSERT_TRUE(memory->when_word_reached(word(buffer), place, 2, &outcome).is_pending());
    *word(buffer) = 1;
    poll();
    EXPECT_EQ(outcome.calls, 0);
    *word(buffer) = 2;
    poll();
    EXPECT_EQ(outcome.calls, 1);
    EXPECT_TRUE(outcome.status.ok()) << outcome.status.to_string();
    ASSERT_TRUE(memory->deallocate(buffer).ok());
  }
}

TEST_F(WordWaitsOverFakeCudaTest, AtTheEnd) {
  const Buffer buffer = memory->allocate(64, kGpu1).value();
  *word(buffer) = 0;
  Outcome outcome;
  ASSERT_TRUE(memory->when_word_reached(word(buffer), kGpu1, 1, &outcome).is_pending());
  memory->progress();
  memory->close();
  EXPECT_EQ(outcome.calls, 1);
  EXPECT_EQ(outcome.status.code(), StatusCode::kClosed);
  EXPECT_TRUE(memory->hang().ok());
  ASSERT_TRUE(memory->deallocate(buffer).ok());
}

}  // namespace
}  // namespace weft::memory
