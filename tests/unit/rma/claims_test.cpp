// Messages that no PE would send: each is refused with a sentence or has no effect.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <random>
#include <typeindex>
#include <vector>

#include "rma/segment/segment_messages.h"
#include "rma/segment/shared_parts.h"
#include "tests/unit/rma/pgas_job.h"

namespace weft::rma {
namespace {

using test_support::says;
using testing::PgasJob;

enum ClaimHandler : runtime::HandlerId {
  kSegmentClaim,
  kQuestionClaim,
  kHookClaim,
  kCopyClaim,
  kAtomicClaim
};

struct ClaimsTest : ::testing::Test {
  PgasJob job{2};
  Segment segment = job.pgas(1).make_segment<std::uint64_t>(8);

  runtime::HandlerId handler(ClaimHandler which) {
    for (const auto& installed : job.runtime(0).models()) {
      if (installed.type == std::type_index(typeid(Pgas))) {
        return static_cast<runtime::HandlerId>(installed.range.first_handler + which);
      }
    }
    throw std::runtime_error("the model is not installed");
  }
  // Sends a message to PE 1 and returns what ends the job; "" if nothing does.
  std::string send(runtime::MessagePtr message, ClaimHandler which) {
    if (which == kAtomicClaim || which == kQuestionClaim) {
      message->envelope().flags |= runtime::kControlFlag | runtime::kUrgentFlag;
    }
    job.runtime(0).send(1, std::move(message));
    for (int turn = 0; turn < 50 && job.runtime(1).failure().empty(); ++turn) {
      job.runtime(0).step();
      job.runtime(1).step();
    }
    return job.runtime(1).failure();
  }
  template <class... Values>
  std::string claim(ClaimHandler which, const Values&... values) {
    return send(runtime::Message::pack(job.runtime(0), handler(which), values...), which);
  }
  std::string claim_bytes(ClaimHandler which, const std::vector<std::uint8_t>& bytes) {
    auto message = runtime::Message::create(job.runtime(0), handler(which), bytes.size());
    if (!bytes.empty()) std::memcpy(message->payload(), bytes.data(), bytes.size());
    return send(std::move(message), which);
  }
  SegmentDescription description() {
    SegmentDescription described;
    described.segment = 5;
    described.state = static_cast<std::uint8_t>(SegmentState::kLive);
    described.size_bytes = 100;
    return described;
  }
};

TEST_F(ClaimsTest, TheEndOfASegmentThatPe1Owns) {
  // PE 0 speaks for itself only: this is segment 1 of PE 0.
  EXPECT_EQ(claim(kSegmentClaim, SegmentMessage::kFreed, SegmentFreed{1, 0}), "");
  EXPECT_TRUE(job.pgas(1).put(1, segment.pointer<std::uint64_t>()).is_done());
}

TEST_F(ClaimsTest, AReleaseThatWasNotAskedFor) {
  EXPECT_TRUE(
      says(claim(kSegmentClaim, SegmentMessage::kReleased, SegmentReleased{1}), "PE 0 sent the release"));
}

TEST_F(ClaimsTest, ASegmentWithTheNumber0) {
  EXPECT_TRUE(says(claim(kSegmentClaim, SegmentMessage::kFreed, SegmentFreed{0, 1}), "PE 0 sent the end"));
}

TEST_F(ClaimsTest, ANumberThatIsTooLarge) {
  EXPECT_TRUE(
      says(claim(kSegmentClaim, SegmentMessage::kFreed, SegmentFreed{1U << 24, 1}), "PE 0 sent the end"));
}

TEST_F(ClaimsTest, AnUnknownMessage) {
  EXPECT_TRUE(
      says(claim(kSegmentClaim, static_cast<SegmentMessage>(9), SegmentFreed{1, 1}), "unknown message"));
}

TEST_F(ClaimsTest, AKindThatDoesNotExist) {
  SegmentDescription described = description();
  described.kind = 200;
  EXPECT_TRUE(says(claim(kSegmentClaim, SegmentMessage::kDescription, described), "without a kind"));
}

TEST_F(ClaimsTest, FilesThatDoNotExistAreNotMapped) {
  SegmentDescription described = description();
  described.mapping.file = {.inode = 1, .size_bytes = 4196, .pid = 1, .descriptor = 0};
  described.mapping_offset = 4096;
  described.states = described.mapping;
  EXPECT_EQ(claim(kSegmentClaim, SegmentMessage::kDescription, described), "");
  EXPECT_EQ(job.pgas(1).mapped(GlobalPtr<int>(GlobalAddress(0, 5, memory::Kind::kHost, 0))), nullptr);
}

TEST_F(ClaimsTest, APartThatLeavesItsFileIsNotMapped) {
  SharedParts parts;
  const SharedPart part = parts.allocate(100).value();
  SegmentDescription described = description();
  described.mapping = part.file->name();
  const std::uint64_t file_bytes = described.mapping.file.size_bytes;
  for (const std::uint64_t offset : {file_bytes - 99, file_bytes + 1, ~std::uint64_t{0}, std::uint64_t{0}}) {
    ++described.segment;
    described.mapping_offset = offset;
    EXPECT_EQ(claim(kSegmentClaim, SegmentMessage::kDescription, described), "");
    const GlobalAddress address(0, described.segment, memory::Kind::kHost, 0);
    EXPECT_EQ(job.pgas(1).mapped(GlobalPtr<int>(address)), nullptr);
  }
}

TEST_F(ClaimsTest, NonsenseExportsAreNotMapped) {
  SegmentDescription described = description();
  described.kind = static_cast<std::uint8_t>(memory::Kind::kEmulated);
  described.device = 77;
  described.exported.resize(40);
  EXPECT_EQ(claim(kSegmentClaim, SegmentMessage::kDescription, described), "");
  EXPECT_EQ(job.pgas(1).mapped(GlobalPtr<int>(GlobalAddress(0, 5, memory::Kind::kEmulated, 0))), nullptr);
}

TEST_F(ClaimsTest, APartThatLeavesItsExportedAllocation) {
  testing::TestMemory memory(job.memory(0), {memory::Kind::kEmulated, 0}, 100);
  SegmentDescription described = description();
  described.kind = static_cast<std::uint8_t>(memory::Kind::kEmulated);
  described.exported =
      job.memory(0).backend(memory::Kind::kEmulated)->export_allocation(memory.buffer().data).value();
  described.exported_offset = 1;
  EXPECT_TRUE(says(claim(kSegmentClaim, SegmentMessage::kDescription, described), "leaves its allocation"));
}

TEST_F(ClaimsTest, ARemoteCompletionThatNothingRuns) {
  EXPECT_TRUE(says(claim(kHookClaim, std::uint32_t{1'000'000}), "a packed call names function 1000000"));
}

TEST_F(ClaimsTest, ShortMessagesAreRefused) { EXPECT_NE(claim_bytes(kSegmentClaim, {}), ""); }

// Messages of random bytes; most are short or name what is not there. The segment between its guards must not change
// except by atomic operations, which random bytes can be.
TEST(Claims, RandomBytesDoNoHarm) {
  constexpr std::uint32_t kSeed = 20261124;
  std::printf("seed %u\n", kSeed);
  std::mt19937 random(kSeed);
  for (int round = 0; round < 300; ++round) {
    struct Fresh : ClaimsTest {
      void TestBody() override {}
    } fresh;
    const auto which = static_cast<ClaimHandler>(random() % 5);
    std::vector<std::uint8_t> bytes(random() % 120);
    for (std::uint8_t& byte : bytes)
      byte = static_cast<std::uint8_t>(random() % 3 == 0 ? random() : random() % 3);
    const std::string why = fresh.claim_bytes(which, bytes);
    if (!why.empty()) continue;
    EXPECT_TRUE(fresh.job.pgas(1).put(1, fresh.segment.pointer<std::uint64_t>()).is_done());
  }
}

}  // namespace
}  // namespace weft::rma
