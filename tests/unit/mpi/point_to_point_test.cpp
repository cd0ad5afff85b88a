#include "models/mpi/p2p/point_to_point.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "weft/mpi/mpi.h"
#include "weft/runtime/message.h"

#include "tests/unit/mpi/mpi_job.h"

namespace weft::mpi {
namespace {

using testing::MpiJob;

constexpr std::uint64_t kContext = 4;

std::vector<char> bytes_of_size(std::size_t size, int seed) {
  std::vector<char> bytes(size);
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<char>(i * 31 + static_cast<std::size_t>(seed));
  return bytes;
}

DataView view_of(std::vector<char>& bytes) { return DataView::of_bytes(bytes.data(), bytes.size()); }

// Every second element of `element_bytes`.
class EverySecond final : public ElementLayout {
 public:
  explicit EverySecond(std::size_t element_bytes) : element_bytes_(element_bytes) {}
  void pack(const std::byte* buffer, std::int64_t count, std::byte* packed) const override {
    for (std::int64_t i = 0; i < count; ++i) {
      std::memcpy(packed, buffer, element_bytes_);
      packed += element_bytes_;
      buffer += 2 * element_bytes_;
    }
  }
  void unpack(const std::byte* packed, std::size_t size_bytes, std::byte* buffer,
              std::int64_t count) const override {
    for (std::int64_t i = 0; i < count && size_bytes > 0; ++i) {
      const std::size_t part = std::min(size_bytes, element_bytes_);
      std::memcpy(buffer, packed, part);
      packed += part;
      size_bytes -= part;
      buffer += 2 * element_bytes_;
    }
  }
  void visit_runs(const std::byte*, std::int64_t, std::size_t, const RunVisitor&) const override {}

 private:
  std::size_t element_bytes_;
};

DataView strided(std::vector<char>& bytes, std::size_t element_bytes, std::int64_t count) {
  DataView view = DataView::of_bytes(bytes.data(), element_bytes * static_cast<std::size_t>(count));
  view.layout = std::make_shared<EverySecond>(element_bytes);
  view.count = count;
  return view;
}

// On a machine whose messages all have a block, and on one where small ones need none.
struct Sizes : ::testing::TestWithParam<std::tuple<const char*, std::size_t>> {
  static const char* machine() { return std::get<0>(GetParam()); }
  static std::size_t size() { return std::get<1>(GetParam()); }
};

TEST_P(Sizes, AMessageLandsInAPostedReceive) {
  MpiJob job(2, machine());
  std::vector<char> sent = bytes_of_size(size(), 1);
  std::vector<char> received(size());
  const auto receive = job.ranks(1).receive({kContext, 0, 5}, view_of(received));
  job.settle();
  const auto send = job.ranks(0).send({kContext, 0, 5, 1}, view_of(sent), SendMode::kStandard);
  job.wait(send, receive);
  EXPECT_EQ(received, sent);
  EXPECT_EQ(receive->outcome().source, 0);
  EXPECT_EQ(receive->outcome().tag, 5);
  EXPECT_EQ(receive->outcome().error, MPI_SUCCESS);
  EXPECT_EQ(receive->outcome().size_bytes, static_cast<std::int64_t>(size()));
}

TEST_P(Sizes, AMessageWaitsForItsReceive) {
  MpiJob job(2, machine());
  std::vector<char> sent = bytes_of_size(size(), 2);
  std::vector<char> received(size());
  const auto send = job.ranks(0).send({kContext, 3, 5, 1}, view_of(sent), SendMode::kStandard);
  ASSERT_EQ(job.run_until([&] { return job.ranks(1).num_unexpected() == 1; }), "");
  const ArrivedMessage* const probed = job.ranks(1).probe({kContext, kAny, kAny});
  ASSERT_NE(probed, nullptr);
  EXPECT_EQ(probed->outcome().size_bytes, static_cast<std::int64_t>(size()));
  EXPECT_EQ(probed->outcome().source, 3);
  const auto receive = job.ranks(1).receive({kContext, kAny, kAny}, view_of(received));
  job.wait(send, receive);
  EXPECT_EQ(received, sent);
  EXPECT_EQ(receive->outcome().source, 3);
  EXPECT_EQ(receive->outcome().tag, 5);
}

TEST_P(Sizes, ASynchronousSendWaitsForAMatch) {
  MpiJob job(2, machine());
  std::vector<char> sent = bytes_of_size(size(), 3);
  std::vector<char> received(size());
  const auto send = job.ranks(0).send({kContext, 0, 5, 1}, view_of(sent), SendMode::kSynchronous);
  job.settle();
  EXPECT_FALSE(send->is_complete());
  const auto receive = job.ranks(1).receive({kContext, 0, 5}, view_of(received));
  job.wait(send, receive);
  EXPECT_EQ(received, sent);
}

TEST_P(Sizes, ARankSendsToItself) {
  MpiJob job(1, machine());
  std::vector<char> sent = bytes_of_size(size(), 4);
  std::vector<char> received(size());
  for (const SendMode mode : {SendMode::kStandard, SendMode::kSynchronous}) {
    const auto send = job.ranks(0).send({kContext, 0, 5, 0}, view_of(sent), mode);
    job.settle();
    const auto receive = job.ranks(0).receive({kContext, 0, 5}, view_of(received));
    job.wait(send, receive);
    EXPECT_EQ(received, sent);
    std::fill(received.begin(), received.end(), 0);
  }
}

TEST_P(Sizes, AReceiveThatIsTooSmallIsTruncated) {
  if (size() == 0) return;
  MpiJob job(2, machine());
  for (const bool posted : {true, false}) {
    std::vector<char> sent = bytes_of_size(size(), 5);
    std::vector<char> received(size() + 64, 'x');
    const std::size_t room = size() / 2;
    Ref<ReceiveRequest> receive;
    const auto post = [&] {
      receive = job.ranks(1).receive({kContext, 0, 5}, DataView::of_bytes(received.data(), room));
    };
    if (posted) post();
    job.settle();
    const auto send = job.ranks(0).send({kContext, 0, 5, 1}, view_of(sent), SendMode::kStandard);
    job.settle();
    if (!posted) post();
    job.wait(send, receive);
    EXPECT_EQ(receive->outcome().error, MPI_ERR_TRUNCATE);
    EXPECT_EQ(receive->outcome().size_bytes, static_cast<std::int64_t>(room));
    EXPECT_TRUE(std::all_of(received.begin() + static_cast<std::ptrdiff_t>(room), received.end(),
                            [](char c) { return c == 'x'; }));
  }
}

TEST_P(Sizes, ElementsThatAreNotDenseArePackedAndUnpacked) {
  MpiJob job(2, machine());
  const std::size_t element = 4;
  const auto count = static_cast<std::int64_t>(size() / element);
  std::vector<char> sent = bytes_of_size(size() * 2, 6);
  std::vector<char> received(size() * 2, 'x');
  const auto send =
      job.ranks(0).send({kContext, 0, 5, 1}, strided(sent, element, count), SendMode::kStandard);
  const auto receive = job.ranks(1).receive({kContext, 0, 5}, strided(received, element, count));
  job.wait(send, receive);
  for (std::size_t i = 0; i < static_cast<std::size_t>(count) * 2 * element; ++i) {
    ASSERT_EQ(received[i], i / element % 2 == 0 ? sent[i] : 'x') << i;
  }
}

INSTANTIATE_TEST_SUITE_P(PointToPoint, Sizes,
                         ::testing::Combine(::testing::Values("loopback", "ucx"),
                                            ::testing::Values(0, 8, 200, 4096, 4100, 70'000, 2'000'000)));

TEST(PointToPoint, MessagesOfAPairAreMatchedInOrderWhateverTheirSizes) {
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  MpiJob job(2, "ucx");
  constexpr int kMessages = 300;
  std::deque<std::vector<char>> sent;
  std::deque<std::vector<char>> received;
  std::deque<RequestRef> requests;
  for (int i = 0; i < kMessages; ++i) {
    constexpr std::size_t kSizes[] = {0, 8, 300, 4096, 5000, 66'000, 300'000};
    sent.push_back(bytes_of_size(kSizes[random() % 7], i));
    received.emplace_back(300'000);
  }
  int num_received = 0;
  const auto receive = [&] {
    const std::size_t i = static_cast<std::size_t>(num_received++);
    requests.emplace_back(
        *job.ranks(1).receive({kContext, random() % 2 == 0 ? kAny : 0, 5}, view_of(received[i])));
  };
  for (std::size_t i = 0; i < kMessages; ++i) {
    requests.emplace_back(*job.ranks(0).send({kContext, 0, 5, 1}, view_of(sent[i]), SendMode::kStandard));
    if (random() % 3 == 0) receive();
    if (random() % 5 == 0) job.settle();
  }
  while (num_received < kMessages) receive();
  ASSERT_EQ(job.run_until([&] {
    return std::all_of(requests.begin(), requests.end(), [](auto& one) { return one->is_complete(); });
  }),
            "");
  for (std::size_t i = 0; i < kMessages; ++i) {
    ASSERT_TRUE(std::equal(sent[i].begin(), sent[i].end(), received[i].begin())) << i;
  }
}

// A number that a failed send had taken would hold up all later messages of the pair.
TEST(PointToPoint, ASendWithoutMemoryFailsAndLaterOnesArrive) {
  for (const char* const machine : {"loopback", "ucx"}) {
    for (const SendMode mode : {SendMode::kStandard, SendMode::kSynchronous}) {
      MpiJob job(2, machine);
      const auto failed = job.ranks(0).send({kContext, 0, 5, 1}, testing::TooLargeToPack::view(), mode);
      EXPECT_TRUE(failed->is_complete());
      EXPECT_EQ(failed->outcome().error, MPI_ERR_NO_MEM);
      EXPECT_EQ(job.ranks(0).num_sent_to(1), 0U);
      std::vector<char> sent = bytes_of_size(8, 1);
      std::vector<char> received(8);
      const auto receive = job.ranks(1).receive({kContext, 0, 5}, view_of(received));
      const auto send = job.ranks(0).send({kContext, 0, 5, 1}, view_of(sent), mode);
      job.wait(send, receive);
      EXPECT_EQ(received, sent);
    }
  }
}

TEST(PointToPoint, ACancelledReceiveTakesNoMessage) {
  MpiJob job(2);
  std::vector<char> sent = bytes_of_size(8, 7);
  std::vector<char> received(8);
  const auto cancelled = job.ranks(1).receive({kContext, 0, 5}, view_of(received));
  cancelled->cancel();
  EXPECT_TRUE(cancelled->is_complete());
  EXPECT_TRUE(cancelled->outcome().cancelled);
  const auto send = job.ranks(0).send({kContext, 0, 5, 1}, view_of(sent), SendMode::kStandard);
  job.settle();
  EXPECT_EQ(job.ranks(1).num_unexpected(), 1U);
  const auto receive = job.ranks(1).receive({kContext, 0, 5}, view_of(received));
  job.wait(send, receive);
  receive->cancel();  // too late
  EXPECT_FALSE(receive->outcome().cancelled);
  EXPECT_EQ(received, sent);
}

TEST(PointToPoint, AMatchedProbeTakesTheMessage) {
  MpiJob job(2);
  for (const std::size_t size : {std::size_t{8}, std::size_t{70'000}}) {
    std::vector<char> sent = bytes_of_size(size, 8);
    std::vector<char> received(size);
    const auto send = job.ranks(0).send({kContext, 0, 5, 1}, view_of(sent), SendMode::kStandard);
    job.settle();
    ArrivedMessage* const message = job.ranks(1).take_probed({kContext, kAny, kAny});
    ASSERT_NE(message, nullptr);
    EXPECT_EQ(job.ranks(1).probe({kContext, kAny, kAny}), nullptr);
    const auto receive = job.ranks(1).make_receive(message->key, view_of(received));
    job.ranks(1).start_probed(*receive, message);
    job.wait(send, receive);
    EXPECT_EQ(received, sent);
  }
}

// The window bounds what unmatched messages take here; sends past it wait for their match.
TEST(PointToPoint, SendsPastTheWindowWaitForTheirMatch) {
  MpiJob job(2);
  std::vector<char> sent = bytes_of_size(1000, 9);
  std::deque<Ref<SendRequest>> sends;
  do {
    sends.push_back(job.ranks(0).send({kContext, 0, 5, 1}, view_of(sent), SendMode::kStandard));
    ASSERT_LT(sends.size(), 100'000U);
    if (sends.size() % 1000 == 0) job.settle();
  } while (sends.back()->is_complete());
  std::vector<char> received(1000);
  for (std::size_t i = 0; i < sends.size(); ++i) {
    const auto receive = job.ranks(1).receive({kContext, 0, 5}, view_of(received));
    job.wait(receive);
    ASSERT_EQ(received, sent);
  }
  job.wait(sends.back());
  job.settle();
  // The room is back.
  EXPECT_TRUE(job.ranks(0).send({kContext, 0, 5, 1}, view_of(sent), SendMode::kStandard)->is_complete());
}

TEST(PointToPoint, ACoroutineAwaitsRequests) {
  MpiJob job(2);
  std::vector<char> sent = bytes_of_size(5000, 10);
  std::vector<char> received(5000);
  const auto receive = job.ranks(1).receive({kContext, 0, 5}, view_of(received));
  bool done = false;
  const auto sender = [](MpiJob& the_job, std::vector<char>& data, bool& flag) -> Task<> {
    const auto send = the_job.ranks(0).send({kContext, 0, 5, 1}, view_of(data), SendMode::kSynchronous);
    const Outcome outcome = co_await Completed(*send, the_job.runtime(0));
    flag = outcome.error == MPI_SUCCESS;
  };
  job.runtime(0).spawn(sender(job, sent, done), "the sender");
  ASSERT_EQ(job.run_until([&] { return done; }), "");
  job.wait(receive);
  EXPECT_EQ(received, sent);
}

// --- What a peer sends is a claim

struct WrongMessage {
  const char* what;
  MessageHeader header;
  runtime::HandlerId handler;
  std::size_t size_bytes;
};

TEST(PointToPoint, AMessageThatCannotBeRightEndsTheJob) {
  const WrongMessage wrong[] = {
      {"a short header", {}, PointToPoint::kBlock, 12},
      {"a negative tag",
       {.context = kContext, .tag = -3, .to = 1},
       PointToPoint::kBlock,
       sizeof(MessageHeader)},
      {"a negative rank",
       {.context = kContext, .source = -1, .to = 1},
       PointToPoint::kBlock,
       sizeof(MessageHeader)},
      {"unknown flags",
       {.context = kContext, .to = 1, .flags = 64},
       PointToPoint::kBlock,
       sizeof(MessageHeader)},
      {"no number for the answer",
       {.context = kContext, .to = 1, .flags = kWantsAnswer},
       PointToPoint::kBlock,
       sizeof(MessageHeader)},
      {"a number far ahead",
       {.context = kContext, .sequence = 1U << 30, .to = 1},
       PointToPoint::kBlock,
       sizeof(MessageHeader)},
      {"a rank that is elsewhere", {.context = kContext}, PointToPoint::kBlock, sizeof(MessageHeader)},
      {"a rank that does not exist",
       {.context = kContext, .to = 2},
       PointToPoint::kBlock,
       sizeof(MessageHeader)},
      {"a sender on another PE",
       {.context = kContext, .from = 1, .to = 1},
       PointToPoint::kBlock,
       sizeof(MessageHeader)},
      {"a sender that does not exist",
       {.context = kContext, .from = -1, .to = 1},
       PointToPoint::kBlock,
       sizeof(MessageHeader)},
      {"no buffer", {.context = kContext, .to = 1}, PointToPoint::kAnnounced, sizeof(MessageHeader)},
      {"an answer to nothing", {.context = 77, .from = 1}, PointToPoint::kAnswer, sizeof(Answer)},
      {"an answer to a rank that is elsewhere", {.context = 77}, PointToPoint::kAnswer, sizeof(Answer)},
      {"an answer of a wrong size", {}, PointToPoint::kAnswer, 3},
  };
  for (const WrongMessage& one : wrong) {
    SCOPED_TRACE(one.what);
    MpiJob job(2);
    auto message =
        runtime::Message::create(job.runtime(0), job.ranks(0).first_handler() + one.handler, one.size_bytes);
    std::memcpy(message->payload(), &one.header, std::min(one.size_bytes, sizeof one.header));
    if (one.handler == PointToPoint::kAnswer)
      message->envelope().flags |= runtime::kControlFlag | runtime::kUrgentFlag;
    job.runtime(0).send(1, std::move(message));
    int turns = 0;
    const std::string failure = job.run_until([&] { return ++turns > 100; });
    EXPECT_NE(failure.find("an MPI message from PE 0"), std::string::npos) << failure;
  }
}

}  // namespace
}  // namespace weft::mpi
