// Attachments that a peer announces wrongly, and callers that ask for what cannot be.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "machine/peer_memory/mapping/source_name.h"
#include "runtime/message/announcement.h"
#include "runtime/message/payload_tag.h"
#include "tests/unit/runtime/message/attachments_job.h"

namespace weft::runtime {
namespace {

// What a peer could send that no runtime would.
struct DamagedAttachmentsTest : ::testing::Test, AttachmentsJob {
  DamagedAttachmentsTest() : AttachmentsJob("loopback", MessagingPath::kTagged) {}
  Status read(const std::vector<std::byte>& header) {
    MessagePtr incoming = Message::pack(job.runtime(1), kHandler, std::uint64_t{7});
    return expect_tagged(*incoming, header);
  }
  Status read(const Announcement& announced) {
    auto bytes = std::as_bytes(std::span(&announced, 1));
    return read(std::vector<std::byte>(bytes.begin(), bytes.end()));
  }
  // Sends bytes as an active message of the runtime's; what PE 1 says to it.
  std::string deliver(machine::AmId id, std::span<const std::byte> header,
                      std::span<const std::byte> payload) {
    base::Completion completion([](base::Completion*, Status, std::size_t) {});
    static_cast<void>(job.runtime(0).machine().am_send(
        1, id, header, memory::ConstBuffer(payload.data(), payload.size()), &completion));
    for (int i = 0; i < 200 && job.runtime(1).failure().empty(); ++i) turns(1);
    return job.runtime(1).failure();
  }
};

TEST_F(DamagedAttachmentsTest, NonsenseHeadersAreRefused) {
  EXPECT_EQ(read(std::vector<std::byte>(15)).code(), StatusCode::kCorrupt);
  EXPECT_EQ(read(std::vector<std::byte>(sizeof(Announcement) * (Message::kMaxAttachments + 1))).code(),
            StatusCode::kCorrupt);
  EXPECT_TRUE(read(Announcement{2, 5, 100, Kind::kEmulated}).ok());
  EXPECT_EQ(read(Announcement{3, 5, 100, Kind::kHost}).code(), StatusCode::kCorrupt);
  EXPECT_EQ(read(Announcement{0, kPayloadCounterMask + 1, 100, Kind::kHost}).code(), StatusCode::kCorrupt);
  EXPECT_EQ(read(Announcement{0, 5, 100, static_cast<Kind>(memory::kNumKinds)}).code(), StatusCode::kCorrupt);
  EXPECT_EQ(read(Announcement{0, 5, ~std::uint64_t{0}, Kind::kHost}).code(), StatusCode::kCorrupt);
}

// A header of one announcement and a name.
std::vector<std::byte> with_name(Announcement announced, const machine::SourceName& source,
                                 std::size_t name_bytes) {
  announced.name_bytes = static_cast<std::uint16_t>(name_bytes);
  std::vector<std::byte> header(sizeof announced + name_bytes);
  std::memcpy(header.data(), &announced, sizeof announced);
  std::memcpy(header.data() + sizeof announced, &source, std::min(name_bytes, sizeof source));
  return header;
}

TEST_F(DamagedAttachmentsTest, NonsenseNamesAreRefused) {
  const Announcement host{0, 5, 100, Kind::kHost, 1};
  machine::SourceName source{};
  source.buffer.size_bytes = 100;
  source.pid = 1;
  constexpr std::size_t kBytes = machine::kLeastSourceNameBytes;
  EXPECT_TRUE(read(with_name(host, source, kBytes)).ok());
  EXPECT_EQ(read(with_name(host, source, kBytes - 1)).code(), StatusCode::kCorrupt);
  EXPECT_EQ(read(with_name(host, source, kBytes + 1)).code(), StatusCode::kCorrupt);
  EXPECT_EQ(read(with_name(host, source, sizeof source + 1)).code(), StatusCode::kCorrupt);
  EXPECT_EQ(read(with_name({0, 5, 100, Kind::kHost, 0}, source, kBytes)).code(), StatusCode::kCorrupt);
  EXPECT_EQ(read(with_name({0, 5, 99, Kind::kHost, 1}, source, kBytes)).code(), StatusCode::kCorrupt);
  EXPECT_TRUE(read(with_name({0, 5, 100, Kind::kEmulated, 1}, source, kBytes)).ok()) << "of a PE without it";
  source.buffer.place.kind = Kind::kEmulated;
  EXPECT_EQ(read(with_name({0, 5, 100, Kind::kEmulated, 1}, source, kBytes)).code(), StatusCode::kCorrupt);
  source.buffer.place.kind = Kind::kHost;
  source.buffer.exported_bytes = machine::kMaxExportedBytes + 1;
  EXPECT_EQ(read(with_name(host, source, kBytes)).code(), StatusCode::kCorrupt);
  source.buffer.exported_bytes = 0;
  source.pid = -1;
  EXPECT_EQ(read(with_name(host, source, kBytes)).code(), StatusCode::kCorrupt);
  std::vector<std::byte> cut = with_name(host, source, kBytes);
  cut.pop_back();
  EXPECT_EQ(read(cut).code(), StatusCode::kCorrupt);
}

TEST_F(DamagedAttachmentsTest, AnAnnouncedSizeThatNobodyHasEndsTheJob) {
  for (Kind kind : {Kind::kHost, Kind::kEmulated}) {
    AttachmentsJob fresh("loopback", MessagingPath::kTagged);
    Announcement announced{0, 5, std::uint64_t{1} << 60, kind};
    MessagePtr outgoing = fresh.message();
    base::Completion sent([](base::Completion*, Status, std::size_t) {});
    static_cast<void>(fresh.job.runtime(0).machine().am_send(
        1, kMessageAm, std::as_bytes(std::span(&announced, 1)),
        memory::ConstBuffer(outgoing->wire(), outgoing->wire_bytes()), &sent));
    fresh.turns(5);
    std::string failure = fresh.job.runtime(1).failure();
    EXPECT_NE(failure.find("no"), std::string::npos);
    EXPECT_NE(failure.find("memory for a buffer of 1152921504606846976 bytes"), std::string::npos) << failure;
  }
}

TEST_F(DamagedAttachmentsTest, ABroadcastWhoseRootDoesNotExistIsRefused) {
  MessagePtr outgoing = message();
  outgoing->envelope().flags = kBroadcastFlag;
  outgoing->envelope().root_pe = 3;
  Announcement announced{0, 5, 100, Kind::kHost};
  EXPECT_NE(
      deliver(kMessageAm, std::as_bytes(std::span(&announced, 1)), {outgoing->wire(), outgoing->wire_bytes()})
          .find("do all PEs run the same program?"),
      std::string::npos);
}

TEST_F(DamagedAttachmentsTest, ABroadcastForAHandlerWithAPosterIsRefused) {
  inbox(1).post_with([](MessagePtr&, std::span<ReceiveBuffer>) { return true; });
  MessagePtr outgoing = message();
  outgoing->envelope().flags = kBroadcastFlag;
  Announcement announced{0, 5, 100, Kind::kHost};
  EXPECT_NE(
      deliver(kMessageAm, std::as_bytes(std::span(&announced, 1)), {outgoing->wire(), outgoing->wire_bytes()})
          .find("a broadcast from PE 0 announces buffers for handler"),
      std::string::npos);
}

TEST_F(DamagedAttachmentsTest, AMessageThatIsShorterThanItsEnvelopeIsRefused) {
  std::vector<std::byte> header(sizeof(Announcement) + sizeof(Envelope) - 1);
  std::vector<std::byte> payload(8);
  EXPECT_NE(deliver(kBufferMessageAm, header, payload).find("shorter than its envelope"), std::string::npos);
}

// The machine announces what the sender named; the bytes are never touched.
TEST_F(DamagedAttachmentsTest, ASizeThatOverflowsWithTheMessagesOwnIsRefused) {
  std::byte nothing{};
  for (std::size_t size :
       {~std::size_t{0}, ~std::size_t{0} - 63, ~std::size_t{0} - 79, std::size_t{1} << 41}) {
    AttachmentsJob fresh("loopback", MessagingPath::kTagged);
    base::Completion completion([](base::Completion*, Status, std::size_t) {});
    static_cast<void>(fresh.job.runtime(0).machine().am_send(
        1, kMessageAm, {}, memory::ConstBuffer(&nothing, size), &completion));
    fresh.turns(5);
    const std::string failure = fresh.job.runtime(1).failure();
    EXPECT_NE(failure.find("a message has"), std::string::npos) << size << ": " << failure;
  }
}

TEST_F(DamagedAttachmentsTest, APayloadOfAnotherSizeThanAnnouncedIsRefused) {
  std::vector<std::byte> header(sizeof(Announcement) + sizeof(Envelope));
  std::vector<std::byte> payload(8);
  EXPECT_NE(deliver(kBufferMessageAm, header, payload).find("announces 0 bytes and carries 8"),
            std::string::npos);
}

TEST_F(DamagedAttachmentsTest, RandomHeadersNeverCrash) {
  const unsigned seed = std::random_device{}();
  RecordProperty("seed", static_cast<int>(seed));
  std::cout << "seed " << seed << "\n";
  std::mt19937 random(seed);
  for (int i = 0; i < 300; ++i) {
    AttachmentsJob fresh("loopback", MessagingPath::kTagged);
    std::vector<std::byte> header(random() % 200);
    for (std::byte& byte : header) byte = static_cast<std::byte>(random() % 3 == 0 ? random() : 0);
    std::vector<std::byte> payload(random() % 64);
    for (std::byte& byte : payload) byte = static_cast<std::byte>(random() % 3 == 0 ? random() : 0);
    base::Completion completion([](base::Completion*, Status, std::size_t) {});
    static_cast<void>(fresh.job.runtime(0).machine().am_send(
        1, random() % 2 == 0 ? kMessageAm : kBufferMessageAm, header,
        memory::ConstBuffer(payload.data(), payload.size()), &completion));
    fresh.turns(5);
  }
}

TEST_F(DamagedAttachmentsTest, TooManyBuffersAreTheCallersError) {
  TestMemory given(job.memory(0), {}, 8);
  MessagePtr outgoing = message();
  for (std::size_t i = 0; i < Message::kMaxAttachments; ++i) outgoing->attach(Attachment(given.buffer()));
  EXPECT_THROW(outgoing->attach(Attachment(given.buffer())), Error);
  job.runtime(0).send(1, std::move(outgoing));
  expect_arrival(1);
  EXPECT_EQ(inbox(1).messages[0]->attachments().size(), Message::kMaxAttachments);
}

}  // namespace
}  // namespace weft::runtime
