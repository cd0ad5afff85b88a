// Messages between ranks on one PE, and between ranks of PEs that have several. Each rank of these jobs is driven from outside.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <deque>
#include <random>
#include <utility>
#include <vector>

#include "weft/mpi/mpi.h"

#include "tests/unit/mpi/mpi_job.h"

namespace weft::mpi {
namespace {

using testing::MpiJob;
using testing::RanksOn;

constexpr std::uint64_t kLocalContext = 12;

std::vector<char> local_bytes(std::size_t size, int seed) {
  std::vector<char> bytes(size);
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<char>(i * 17 + static_cast<std::size_t>(seed));
  return bytes;
}
DataView local_view(std::vector<char>& bytes) { return DataView::of_bytes(bytes.data(), bytes.size()); }

struct LocalSizes : ::testing::TestWithParam<std::size_t> {};

TEST_P(LocalSizes, AMessageLandsAtOnceInAPostedReceive) {
  MpiJob job(1, RanksOn{{0, 0}});
  std::vector<char> sent = local_bytes(GetParam(), 1);
  std::vector<char> received(GetParam());
  const auto receive = job.rank(0, 1).receive({kLocalContext, kAny, 5}, local_view(received));
  EXPECT_TRUE(job.rank(0, 0).send_at_once({kLocalContext, 0, 5, 1}, local_view(sent)));
  EXPECT_TRUE(receive->is_complete());
  EXPECT_EQ(received, sent);
  EXPECT_EQ(receive->outcome().source, 0);
}

TEST_P(LocalSizes, ASynchronousSendCompletesWhenAReceiveMatches) {
  MpiJob job(1, RanksOn{{0, 0}});
  std::vector<char> sent = local_bytes(GetParam(), 2);
  std::vector<char> received(GetParam());
  const auto send = job.rank(0, 0).send({kLocalContext, 0, 5, 1}, local_view(sent), SendMode::kSynchronous);
  job.settle();
  EXPECT_FALSE(send->is_complete());
  EXPECT_NE(job.rank(0, 1).probe({kLocalContext, 0, 5}), nullptr);
  const auto receive = job.rank(0, 1).receive({kLocalContext, 0, kAny}, local_view(received));
  EXPECT_TRUE(send->is_complete());
  EXPECT_TRUE(receive->is_complete());
  EXPECT_EQ(received, sent);
}

TEST_P(LocalSizes, ReceivesThatAreTooSmallGetTheLeadingBytes) {
  if (GetParam() < 2) return;
  for (const bool receive_first : {false, true}) {
    MpiJob job(1, RanksOn{{0, 0}});
    std::vector<char> sent = local_bytes(GetParam(), 3);
    std::vector<char> received(GetParam() / 2);
    Ref<ReceiveRequest> receive;
    if (receive_first) receive = job.rank(0, 1).receive({kLocalContext, 0, 5}, local_view(received));
    const auto send = job.rank(0, 0).send({kLocalContext, 0, 5, 1}, local_view(sent), SendMode::kStandard);
    if (!receive_first) receive = job.rank(0, 1).receive({kLocalContext, 0, 5}, local_view(received));
    job.wait(send, receive);
    EXPECT_EQ(receive->outcome().error, MPI_ERR_TRUNCATE);
    EXPECT_TRUE(std::equal(received.begin(), received.end(), sent.begin()));
  }
}

INSTANTIATE_TEST_SUITE_P(LocalSending, LocalSizes, ::testing::Values(0, 1, 4096, 4097, 1 << 20));

// Copies fill the window. Further sends wait for their match, and the room comes back.
TEST(LocalSending, TheWindowBoundsCopies) {
  MpiJob job(1, RanksOn{{0, 0}});
  std::vector<char> sent = local_bytes(4096, 4);
  std::vector<Ref<SendRequest>> sends;
  while (sends.empty() || sends.back()->is_complete()) {
    sends.push_back(job.rank(0, 0).send({kLocalContext, 0, 5, 1}, local_view(sent), SendMode::kStandard));
    ASSERT_LT(sends.size(), 100000U);
  }
  for (const auto& send : sends) {
    std::vector<char> received(4096);
    const auto receive = job.rank(0, 1).receive({kLocalContext, 0, 5}, local_view(received));
    EXPECT_TRUE(receive->is_complete());
    EXPECT_TRUE(send->is_complete());
    EXPECT_EQ(received, sent);
  }
  EXPECT_TRUE(job.rank(0, 0).send_at_once({kLocalContext, 0, 5, 1}, local_view(sent)));
}

// Device memory goes through the queue of the PE. Messages after it wait for their turn.
TEST(LocalSending, DeviceMemoryKeepsItsTurn) {
  MpiJob job(1, RanksOn{{0, 0}});
  memory::Memory& memory = job.memory(0);
  const memory::Place device = memory.default_place(memory::Kind::kEmulated);
  auto allocated = memory.allocate(100000, device);
  ASSERT_TRUE(allocated.ok());
  const memory::Buffer buffer = std::move(allocated).value();
  DataView on_device;
  on_device.data = static_cast<std::byte*>(buffer.data);
  on_device.size_bytes = buffer.size_bytes;
  on_device.place = buffer.place;
  std::vector<char> small = local_bytes(10, 6);
  const auto first = job.rank(0, 0).send({kLocalContext, 0, 5, 1}, on_device, SendMode::kStandard);
  const auto second = job.rank(0, 0).send({kLocalContext, 0, 5, 1}, local_view(small), SendMode::kStandard);
  std::vector<char> large(100000);
  std::vector<char> received(10);
  const auto receive_first = job.rank(0, 1).receive({kLocalContext, 0, 5}, local_view(large));
  const auto receive_second = job.rank(0, 1).receive({kLocalContext, 0, 5}, local_view(received));
  job.wait(first, second, receive_first, receive_second);
  EXPECT_EQ(receive_first->outcome().size_bytes, 100000);
  EXPECT_EQ(received, small);
  // From host memory into memory of the device, in both orders.
  for (const bool receive_comes_first : {false, true}) {
    std::vector<char> sent = local_bytes(100000, 7);
    Ref<ReceiveRequest> receive;
    if (receive_comes_first) receive = job.rank(0, 1).receive({kLocalContext, 0, 6}, on_device);
    const auto send = job.rank(0, 0).send({kLocalContext, 0, 6, 1}, local_view(sent), SendMode::kStandard);
    if (!receive_comes_first) receive = job.rank(0, 1).receive({kLocalContext, 0, 6}, on_device);
    job.wait(send, receive);
    EXPECT_EQ(receive->outcome().error, MPI_SUCCESS);
  }
  EXPECT_TRUE(memory.deallocate(buffer).ok());
}

TEST(LocalSending, TheEndOfTheJobCompletesSendsThatWait) {
  std::vector<char> sent = local_bytes(100000, 8);
  MpiJob job(1, RanksOn{{0, 0}});
  const auto send = job.rank(0, 0).send({kLocalContext, 0, 5, 1}, local_view(sent), SendMode::kStandard);
  EXPECT_FALSE(send->is_complete());
  job.runtime(0).model<Mpi>().close();
  EXPECT_TRUE(send->is_complete());
}

// Random messages among six ranks of two PEs are received in the order of each pair.
TEST(LocalSending, PairsOfRanksKeepTheirOrder) {
  const unsigned seed = std::random_device()();
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  const std::vector<int> pe_of_rank = {0, 1, 0, 0, 1, 1};
  MpiJob job(2, RanksOn{pe_of_rank});
  const auto engine = [&](int rank) -> PointToPoint& {
    return job.rank(pe_of_rank[static_cast<std::size_t>(rank)], rank);
  };
  struct Pair {
    std::deque<std::vector<char>> sent;
    std::deque<std::vector<char>> received;
    std::deque<Ref<SendRequest>> sends;
    std::deque<Ref<ReceiveRequest>> receives;
  };
  std::vector<Pair> pairs(36);
  const std::size_t sizes[] = {0, 8, 100, 4096, 5000, 200000};
  for (int i = 0; i < 600; ++i) {
    const int from = static_cast<int>(random() % 6);
    const int to = static_cast<int>(random() % 6);
    Pair& pair = pairs[static_cast<std::size_t>(from * 6 + to)];
    if (random() % 2 == 0 && pair.sends.size() < 15) {
      pair.sent.push_back(local_bytes(sizes[random() % 6], i));
      const auto mode = random() % 4 == 0 ? SendMode::kSynchronous : SendMode::kStandard;
      pair.sends.push_back(
          engine(from).send({kLocalContext, from, 1, to}, local_view(pair.sent.back()), mode));
    } else if (pair.receives.size() < 15) {
      pair.received.emplace_back(200000);
      pair.receives.push_back(engine(to).receive({kLocalContext, from, 1}, local_view(pair.received.back())));
    }
    if (random() % 3 == 0) job.runtime(static_cast<int>(random() % 2)).step();
  }
  for (int i = 0; i < 36; ++i) {
    Pair& pair = pairs[static_cast<std::size_t>(i)];
    while (pair.receives.size() < pair.sends.size()) {
      pair.received.emplace_back(200000);
      pair.receives.push_back(
          engine(i % 6).receive({kLocalContext, i / 6, 1}, local_view(pair.received.back())));
    }
    while (pair.sends.size() < pair.receives.size()) {
      pair.sent.push_back(local_bytes(8, i));
      pair.sends.push_back(engine(i / 6).send({kLocalContext, i / 6, 1, i % 6}, local_view(pair.sent.back()),
                                              SendMode::kStandard));
    }
  }
  for (Pair& pair : pairs) {
    for (std::size_t k = 0; k < pair.sends.size(); ++k) {
      job.wait(pair.sends[k], pair.receives[k]);
      pair.received[k].resize(static_cast<std::size_t>(pair.receives[k]->outcome().size_bytes));
      EXPECT_EQ(pair.received[k], pair.sent[k]);
    }
  }
}

}  // namespace
}  // namespace weft::mpi
