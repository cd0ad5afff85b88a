#include "models/mpi/p2p/buffer_space.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "models/mpi/p2p/matching/answers.h"
#include "tests/unit/mpi/mpi_job.h"

namespace weft::mpi {
namespace {

// A send that does not complete before a receive matches.
Ref<Request> unmatched_send(testing::MpiJob& job) {
  Ref<SendRequest> send = job.ranks(0).send({4, 0, 5, 0}, {}, SendMode::kSynchronous);
  return Ref<Request>::adopt(send.leave());
}

TEST(BufferSpace, PiecesDoNotOverlapAndAreUsedAgain) {
  testing::MpiJob job(1);
  std::vector<std::byte> memory(256);
  BufferSpace space;
  space.attach(memory.data(), memory.size());
  std::byte* const first = space.take(100);
  std::byte* const second = space.take(100);
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr);
  EXPECT_TRUE(second >= first + 100 || first >= second + 100);
  EXPECT_EQ(space.take(100), nullptr);
  const Ref<Request> one = unmatched_send(job);
  const Ref<Request> other = unmatched_send(job);
  space.keep(first, one);
  space.keep(second, other);
  EXPECT_TRUE(space.is_in_use());
  const auto receive = job.ranks(0).receive({4, 0, 5}, {});
  job.wait(receive, one);
  EXPECT_EQ(space.take(100), first);
  EXPECT_TRUE(space.is_in_use());
}

TEST(BufferSpace, AutomaticMemoryHasNoLimit) {
  BufferSpace space;
  EXPECT_FALSE(space.is_attached());
  space.attach_automatic();
  testing::MpiJob job(1);
  for (int i = 0; i < 10; ++i) {
    std::byte* const piece = space.take(1 << 20);
    ASSERT_NE(piece, nullptr);
    space.keep(piece, Ref<Request>(*Request::make<ReceiveRequest>(job.runtime(0), job.ranks(0), MatchKey{},
                                                                  DataView{})));
  }
  EXPECT_FALSE(space.is_in_use());  // those requests were never started
}

TEST(AwaitedAnswers, ANumberIsValidOnceAndForOnePe) {
  AwaitedAnswers<int> answers;
  int first = 1;
  int second = 2;
  const std::uint64_t number = answers.add(&first, 3);
  EXPECT_NE(number, 0U);
  EXPECT_EQ(answers.take(number, 2), nullptr);
  EXPECT_EQ(answers.take(number, 3), &first);
  EXPECT_EQ(answers.take(number, 3), nullptr);
  const std::uint64_t next = answers.add(&second, 3);
  EXPECT_NE(next, number);
  EXPECT_EQ(answers.take(number, 3), nullptr);
  EXPECT_EQ(answers.take(next + 1000, 3), nullptr);
  EXPECT_EQ(answers.take(next, 3), &second);
}

}  // namespace
}  // namespace weft::mpi
