// A new memory kind is one folder (throw_away/) and one line (weft/memory/kinds.h): the memory layer, compiled
// with these two, has the kind everywhere. No other file of the layer knows it.
#include <cstdlib>
#include <vector>

#include "gtest/gtest.h"

#include "memory/kinds/cuda/cuda_options.h"
#include "memory/kinds/native_api.h"
#include "memory/memory.h"
#include "memory/report.h"
#include "tests/unit/memory/new_kind/throw_away/throw_away_options.h"
#include "tests/unit/memory/outcome.h"

namespace weft::memory {
namespace {

using base::StatusCode;

constexpr Place kNew{Kind::kThrowAway, 1};
constexpr std::size_t kSize = 1'300'000;  // more than one chunk of a staged copy

class NewKindTest : public ::testing::Test {
 protected:
  static MemoryOptions without_cuda() {
    MemoryOptions options;
    options.of<CudaOptions>().driver = "";
    options.local_rank = 4;
    return options;
  }

  Buffer make(Place place) {
    owned.push_back(memory.allocate(kSize, place).value());
    return owned.back();
  }
  void move(const Buffer& destination, const ConstBuffer& source) {
    Outcome outcome;
    ASSERT_TRUE(memory.copy(destination, source, &outcome).is_pending());
    poll_until_idle(memory);
    ASSERT_EQ(outcome.calls, 1);
    ASSERT_TRUE(outcome.status.ok()) << outcome.status.to_string();
  }
  void TearDown() override {
    memory.close();
    for (const Buffer& buffer : owned) EXPECT_TRUE(memory.deallocate(buffer).ok());
  }

  Memory memory{without_cuda()};
  std::vector<Buffer> owned;
};

TEST_F(NewKindTest, HasItsNameAndNumber) {
  EXPECT_EQ(kNumKinds, 4);
  EXPECT_EQ(kind_name(Kind::kThrowAway), "throw_away");
  EXPECT_EQ(kind_from_name("throw_away"), Kind::kThrowAway);
  EXPECT_EQ(place_name(kNew), "throw_away:1");
  EXPECT_EQ(native_api_of(Kind::kThrowAway), NativeApi::kNone);
}

TEST_F(NewKindTest, ItsMemoryIsFoundByItsAddress) {
  const Buffer buffer = make(kNew);
  auto* const bytes = static_cast<std::byte*>(buffer.data);
  EXPECT_EQ(memory.place_of(bytes + kSize - 1), kNew);
  EXPECT_EQ(memory.place_of(bytes + kSize), Place());
  EXPECT_EQ(memory.allocation_of(bytes).size_bytes, kSize);
  EXPECT_TRUE(memory.deallocate(buffer).ok());
  owned.clear();
  EXPECT_EQ(memory.place_of(bytes), Place());
}

TEST_F(NewKindTest, CopiesReachEveryOtherKind) {
  const std::vector<unsigned char> sent = pattern(kSize, 1);
  const Buffer first = make(kNew);
  const Buffer second = make({Kind::kThrowAway, 2});
  const Buffer other = make({Kind::kEmulated, 0});
  move(first, ConstBuffer(sent.data(), kSize));
  move(second, first);
  move(other, second);
  move(first, other);
  std::vector<unsigned char> seen(kSize);
  move(host_buffer(seen), first);
  EXPECT_EQ(seen, sent);
}

TEST_F(NewKindTest, ACopyWaitsForItsStreams) {
  KindBackend& kind = *memory.backend(Kind::kThrowAway);
  Buffer buffer = make(kNew);
  buffer.stream = kind.create_stream(kNew.device).value();
  const std::vector<unsigned char> sent = pattern(kSize, 2);
  ASSERT_TRUE(kind.copy_async(buffer.data, kNew, sent.data(), Place(), kSize, buffer.stream).ok());
  std::vector<unsigned char> seen(kSize);
  move(host_buffer(seen), buffer);
  EXPECT_EQ(seen, sent);
}

TEST_F(NewKindTest, PesTakeTurnsOnItsDevices) {
  EXPECT_EQ(memory.default_place(Kind::kThrowAway), kNew) << "rank 4 of 3 devices";
}

TEST_F(NewKindTest, TheReportListsIt) {
  EXPECT_TRUE(report(memory).back().starts_with("memory throw_away: 3 devices: 0 inverting device,"))
      << report(memory).back();
}

TEST_F(NewKindTest, ReadsItsOwnEnvironment) {
  setenv("WEFT_THROW_AWAY_DEVICES", "7", 1);
  EXPECT_EQ(MemoryOptions::from_environment(0).value().of<ThrowAwayOptions>().num_devices, 7);
  setenv("WEFT_THROW_AWAY_DEVICES", "none", 1);
  EXPECT_EQ(MemoryOptions::from_environment(0).status().code(), StatusCode::kInvalidArgument);
  unsetenv("WEFT_THROW_AWAY_DEVICES");
}

}  // namespace
}  // namespace weft::memory
