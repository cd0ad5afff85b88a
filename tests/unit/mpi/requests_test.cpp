// Requests that the engine of a rank keeps: receives that have ended become others, and sends at once share one.
#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <vector>

#include "weft/mpi/mpi.h"

#include "models/mpi/p2p/point_to_point.h"
#include "models/mpi/rank.h"
#include "tests/unit/mpi/mpi_job.h"

namespace weft::mpi {
namespace {

using testing::MpiJob;

constexpr std::uint64_t kRequestContext = 4;

std::span<std::byte> writable(std::vector<char>& bytes) { return std::as_writable_bytes(std::span(bytes)); }
DataView request_view(std::vector<char>& bytes) { return DataView::of_bytes(bytes.data(), bytes.size()); }

TEST(Requests, AReceiveTakesThePlaceOfOneThatHasEnded) {
  MpiJob job(2, "ucx");
  std::vector<char> sent(8, 'a');
  std::vector<char> received(8);
  Request* ended = nullptr;
  {
    const auto receive = job.ranks(1).receive({kRequestContext, 0, 5}, request_view(received));
    receive->make_persistent();
    receive->set_scope(*this_rank().no_file);
    const auto send = job.ranks(0).send({kRequestContext, 0, 5, 1}, request_view(sent), SendMode::kStandard);
    job.wait(send, receive);
    ended = receive.get();
  }
  EXPECT_EQ(ended->kind(), ObjectKind::kFreed);  // so that its handle is found to be wrong

  const auto receive = job.ranks(1).receive_bytes({kRequestContext, 0, 6}, writable(received));
  EXPECT_EQ(receive.get(), ended);
  EXPECT_EQ(receive->kind(), ObjectKind::kRequest);
  EXPECT_EQ(receive->num_references(), 2U);  // the caller's, and the operation's
  EXPECT_TRUE(receive->is_active());
  EXPECT_FALSE(receive->is_complete());
  EXPECT_FALSE(receive->is_persistent());
  EXPECT_FALSE(receive->scope());
  EXPECT_EQ(receive->cancel(), MPI_SUCCESS);
  EXPECT_TRUE(receive->is_complete());
  EXPECT_TRUE(receive->outcome().cancelled);
}

// What was received into elements with gaps must not stay, and must not apply to what comes next.
TEST(Requests, AReceiveThatHasEndedKeepsNoLayout) {
  MpiJob job(2, "ucx");
  std::vector<char> sent(8, 'a');
  std::vector<char> received(8);
  DataView view = testing::TooLargeToPack::view();
  const std::weak_ptr<const ElementLayout> layout = view.layout;
  Request* ended = nullptr;
  {
    const auto receive = job.ranks(1).receive({kRequestContext, 0, 5}, view);
    view = {};
    EXPECT_EQ(receive->cancel(), MPI_SUCCESS);
    EXPECT_FALSE(layout.expired());
    ended = receive.get();
  }
  EXPECT_TRUE(layout.expired());
  const auto receive = job.ranks(1).receive_bytes({kRequestContext, 0, 5}, writable(received));
  EXPECT_EQ(receive.get(), ended);
  const auto send = job.ranks(0).send({kRequestContext, 0, 5, 1}, request_view(sent), SendMode::kStandard);
  job.wait(send, receive);
  EXPECT_EQ(received, sent);
}

TEST(Requests, AReceiveOfBytesTakesAMessageThatWaits) {
  MpiJob job(2, "ucx");
  std::vector<char> sent(8, 'a');
  std::vector<char> received(4);
  ASSERT_TRUE(job.ranks(0).send_bytes_at_once({kRequestContext, 0, 5, 1}, writable(sent)));
  job.settle();
  EXPECT_EQ(job.ranks(1).num_unexpected(), 1U);
  for (int round = 0; round < 2; ++round) {  // without, and with a request that was kept
    const auto receive = job.ranks(1).receive_bytes({kRequestContext, kAny, kAny}, writable(received));
    ASSERT_TRUE(job.ranks(0).send_bytes_at_once({kRequestContext, 0, 5, 1}, writable(sent)));
    job.wait(receive);
    EXPECT_EQ(receive->outcome().error, MPI_ERR_TRUNCATE);
    EXPECT_EQ(receive->outcome().size_bytes, 4);
    EXPECT_EQ(receive->outcome().source, 0);
    EXPECT_EQ(receive->outcome().tag, 5);
    EXPECT_EQ(received, std::vector<char>(4, 'a'));
    job.settle();
    EXPECT_EQ(job.ranks(1).num_unexpected(), 1U);
  }
}

TEST(Requests, SendsAtOnceShareARequestThatIsComplete) {
  MpiJob job(2, "ucx");
  Request* const one = job.ranks(0).sent_request();
  EXPECT_EQ(one, job.ranks(0).sent_request());
  EXPECT_NE(one, job.ranks(1).sent_request());
  EXPECT_TRUE(one->is_active());
  EXPECT_TRUE(one->is_complete());
  one->deactivate();
  one->release_handle();
  EXPECT_TRUE(one->is_active());
  EXPECT_EQ(one->kind(), ObjectKind::kRequest);
}

TEST(Requests, ThereIsNoWayAtOnceToARankOfThisPe) {
  MpiJob job(2, testing::RanksOn{{0, 0, 1}});
  std::vector<char> sent(8, 'a');
  EXPECT_FALSE(job.rank(0, 0).send_bytes_at_once({kRequestContext, 0, 5, 1}, writable(sent)));
}

}  // namespace
}  // namespace weft::mpi
