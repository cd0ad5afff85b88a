// Small puts whose messages wait to be sent, or will never be.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <span>
#include <string>

#include "machine/ucx/messages/small_put_messages.h"
#include "machine/ucx/messages/small_puts.h"
#include "tests/conformance/world.h"

namespace weft::machine::ucx {
namespace {

using base::StatusCode;
using conformance::CheckedOperation;
using conformance::World;
using memory::Buffer;
using memory::Kind;

// There are more puts than their messages have numbers.
class ManySmallPutsTest : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Machines, ManySmallPutsTest,
                         ::testing::Values(std::string("ucx"), std::string(conformance::kApart)),
                         [](const auto& info) { return std::string(info.index == 0 ? "ucx" : "ucx_apart"); });

// Until its message has left, UCX reads the buffer of a put, whatever an answer says.
TEST_P(ManySmallPutsTest, APutEndsWhenItsMessageHasLeft) {
  World world(GetParam(), 2);
  const Buffer target = world.buffer(1, Kind::kHost, SmallPuts::kMostBytes);
  const RemoteMemory remote = world.machine(1).register_memory(target).value();
  const Buffer local = world.buffer(0, Kind::kHost, SmallPuts::kMostBytes);
  CheckedOperation first;  // makes the connection
  first.start(world.machine(0).put_and_flush(1, local, remote, 0, &first));
  ASSERT_TRUE(world.finish(first));
  // More than the sockets or queues hold while PE 1 takes nothing from them.
  constexpr std::uint32_t kCount = 70'000;
  static_assert(kCount > SmallPutRequest::mask(SmallPutRequest::kNumberBits));
  std::deque<CheckedOperation> puts(kCount);
  for (CheckedOperation& put : puts) put.start(world.machine(0).put_and_flush(1, local, remote, 0, &put));
  std::deque<CheckedOperation> sendings;
  for (const std::uint32_t which : {0u, kCount - 1}) {
    const auto number =
        static_cast<std::uint32_t>(which & SmallPutRequest::mask(SmallPutRequest::kNumberBits));
    const MessageWords words = SmallPutAnswer{which, 1, number, 0}.pack();
    auto& sending = sendings.emplace_back();
    sending.start(
        dynamic_cast<TransportMachine&>(world.machine(1))
            .transport_am_send(0, kSmallPutAnswerAmId, std::as_bytes(std::span(words)), {}, &sending));
  }
  for (int round = 0; round < 100'000 && !puts.front().done(); ++round) world.machine(0).progress();
  for (int round = 0; round < 1000; ++round) world.machine(0).progress();
  EXPECT_TRUE(puts.front().done()) << "slots and numbers do not begin at 0 here";
  EXPECT_FALSE(puts.back().done());
  ASSERT_TRUE(world.finish_all(puts));
  for (const CheckedOperation& put : puts) ASSERT_TRUE(put.status().ok()) << put.status().to_string();
}

// Only a network tells that a peer is gone.
TEST(SmallPutsToAFailedPeerTest, EndWithAnError) {
  World world(std::string(conformance::kApart), 2);
  const Buffer target = world.buffer(1, Kind::kHost, 64);
  const RemoteMemory remote = world.machine(1).register_memory(target).value();
  const Buffer local = world.buffer(0, Kind::kHost, 8);
  CheckedOperation first;
  first.start(world.machine(0).put_and_flush(1, local, remote, 0, &first));
  ASSERT_TRUE(world.finish(first));
  std::deque<CheckedOperation> puts(5);
  std::deque<CheckedOperation> more;
  for (CheckedOperation& put : puts) {
    put.then = [&] {
      auto& further = more.emplace_back();
      further.start(world.machine(0).put_and_flush(1, local, remote, 0, &further));
    };
  }
  for (CheckedOperation& put : puts) put.start(world.machine(0).put_and_flush(1, local, remote, 0, &put));
  CheckedOperation flush;
  flush.start(world.machine(0).flush(1, &flush));
  world.destroy(1);
  ASSERT_TRUE(world.until([&] {
    world.machine(0).progress();
    return std::ranges::all_of(puts, &CheckedOperation::done) && flush.done();
  }));
  for (const CheckedOperation& put : puts) EXPECT_EQ(put.status().code(), StatusCode::kPeerFailed);
  EXPECT_EQ(flush.status().code(), StatusCode::kPeerFailed);
  ASSERT_EQ(more.size(), puts.size());
  for (const CheckedOperation& put : more) EXPECT_EQ(put.status().code(), StatusCode::kPeerFailed);
  CheckedOperation late;
  late.start(world.machine(0).put_and_flush(1, local, remote, 0, &late));
  EXPECT_EQ(late.status().code(), StatusCode::kPeerFailed);
}

}  // namespace
}  // namespace weft::machine::ucx
