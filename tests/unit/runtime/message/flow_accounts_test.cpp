// The accounts of flow control: what the sender of a message charges is what its receiver reports, whatever way the
// message and its buffers go. A difference ends a job sooner or later, or holds up its calls.
#include "tests/support/flow_accounts.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "tests/unit/runtime/message/attachments_job.h"

namespace weft::runtime {
namespace {

using weft::testing::expect_equal_accounts;

// No buffer, active and tagged buffers, shared copies, announced ones, and copies that stay at the sender.
constexpr std::size_t kSizes[] = {0, 1, 1000, 4096, 70'000, 599'999, 600'000, 1'000'000};

struct FlowAccountsTest : AttachmentsTest {
  FlowAccountsTest() { expect_equal_accounts(job); }
  ~FlowAccountsTest() override { expect_equal_accounts(job); }
};

INSTANTIATE_TEST_SUITE_P(Ways, FlowAccountsTest, ::testing::ValuesIn(kEveryWay), name_of);

TEST_P(FlowAccountsTest, MessagesWithoutBuffers) {
  for (int i = 0; i < 100; ++i) {
    job.runtime(0).send(i % 3, message());
    job.runtime(1).broadcast(message(1));
    job.runtime(2).send_call(i % 3, message(2));
    job.runtime(2).broadcast_call(message(2));
  }
  for (int pe = 0; pe < 3; ++pe) expect_arrival(pe, 200 + (pe == 0 ? 68 : 66));
}

TEST_P(FlowAccountsTest, BuffersOfEachSize) {
  for (std::size_t size_bytes : kSizes) {
    for (int pe = 0; pe < 3; ++pe) {
      std::vector<TestMemory> sent = one(size_bytes);
      sent.push_back(given(100));
      Operation operation = send(pe, sent);
      expect_arrival(pe);
      inbox(pe).messages.clear();
      EXPECT_TRUE(outcome(std::move(operation)).ok());
    }
    expect_equal_accounts(job);
  }
}

TEST_P(FlowAccountsTest, CopiesThatTheSenderHasGivenAway) {
  for (std::size_t size_bytes : kSizes) {
    std::vector<TestMemory> sent = one(size_bytes);
    MessagePtr made = message();
    made->attach(attachment(sent[0]));
    made->attachments()[0].give_away();
    job.runtime(0).send_call(1, std::move(made));
    expect_arrival(1);
    inbox(1).messages.clear();
    EXPECT_EQ(job.run_until([&] { return released == 1; }), "");
    released = 0;
    expect_equal_accounts(job);
  }
}

TEST_P(FlowAccountsTest, BuffersThatTheSenderSharesWithOthers) {
  std::vector<TestMemory> memory = one(5000);
  Attachment kept = attachment(memory[0]);
  for (int pe = 0; pe < 3; ++pe) {
    MessagePtr made = message();
    made->attach(kept.share());
    job.runtime(0).send(pe, std::move(made));
    expect_arrival(pe);
  }
}

TEST_P(FlowAccountsTest, Broadcasts) {
  for (std::size_t size_bytes : kSizes) {
    std::vector<TestMemory> sent = one(size_bytes);
    Operation operation = broadcast(0, sent);
    for (int pe = 0; pe < 3; ++pe) {
      expect_arrival(pe);
      inbox(pe).messages.clear();
    }
    EXPECT_TRUE(outcome(std::move(operation)).ok());
    expect_equal_accounts(job);
  }
}

TEST_P(FlowAccountsTest, ABroadcastThatIsRefused) {
  inbox(0).post_with([](MessagePtr&, std::span<ReceiveBuffer>) { return true; });
  std::vector<TestMemory> sent = one(100);
  const std::uint64_t before = job.runtime(0).sent();
  MessagePtr made = message();
  made->attach(attachment(sent[0]));
  EXPECT_THROW(job.runtime(0).broadcast(std::move(made)), Error);
  EXPECT_EQ(job.runtime(0).sent(), before);
}

TEST_P(FlowAccountsTest, ForwardedMessages) {
  for (std::size_t size_bytes : kSizes) {
    std::vector<TestMemory> sent = one(size_bytes);
    Operation operation = send(1, sent);
    expect_arrival(1);
    MessagePtr passed = std::move(inbox(1).messages[0]);
    inbox(1).messages.clear();
    job.runtime(1).send(2, std::move(passed));
    expect_arrival(2);
    passed = std::move(inbox(2).messages[0]);
    inbox(2).messages.clear();
    job.runtime(2).send(2, std::move(passed));  // as one that waits for its element
    expect_arrival(2);
    inbox(2).messages.clear();
    EXPECT_TRUE(outcome(std::move(operation)).ok());
    expect_equal_accounts(job);
  }
}

// Its buffers may still be on their way to other PEs.
TEST_P(FlowAccountsTest, AForwardedPartOfABroadcast) {
  std::vector<TestMemory> sent = one(5000);
  Operation operation = broadcast(0, sent);
  for (int pe = 0; pe < 3; ++pe) expect_arrival(pe);
  for (int pe = 0; pe < 3; ++pe) {
    MessagePtr passed = std::move(inbox(pe).messages[0]);
    inbox(pe).messages.clear();
    job.runtime(pe).send((pe + 1) % 3, std::move(passed));
  }
  for (int pe = 0; pe < 3; ++pe) expect_arrival(pe);
  EXPECT_TRUE(outcome(std::move(operation)).ok());
}

TEST_P(FlowAccountsTest, MessagesThatPostersRefuseOrDefer) {
  std::vector<MessagePtr> deferred;
  inbox(1).post_with([](MessagePtr&, std::span<ReceiveBuffer>) { return false; });
  inbox(2).post_with([&](MessagePtr& message, std::span<ReceiveBuffer>) {
    deferred.push_back(std::move(message));
    return true;
  });
  for (std::size_t size_bytes : kSizes) {
    for (int pe : {1, 2, 2}) {
      std::vector<TestMemory> sent = one(size_bytes);
      Operation operation = send(pe, sent);
      if (pe == 2) {
        EXPECT_EQ(job.run_until([&] { return !deferred.empty(); }), "");
        MessagePtr waited = std::move(deferred[0]);
        deferred.clear();
        std::vector<ReceiveBuffer> receive_buffers(1);
        receive_buffers[0].size_bytes = size_bytes;
        receive_buffers[0].place = waited->attachments()[0].buffer().place;
        job.runtime(2).place(std::move(waited), receive_buffers);
        expect_arrival(2);
        inbox(2).messages.clear();
      }
      EXPECT_TRUE(outcome(std::move(operation)).ok());
    }
    expect_equal_accounts(job);
  }
}

TEST_P(FlowAccountsTest, ADeferredMessageThatIsReleased) {
  MessagePtr deferred;
  inbox(1).post_with([&](MessagePtr& message, std::span<ReceiveBuffer>) {
    deferred = std::move(message);
    return true;
  });
  std::vector<TestMemory> sent = one(5000);
  Operation operation = send(1, sent);
  EXPECT_EQ(job.run_until([&] { return deferred != nullptr; }), "");
  deferred = nullptr;
  EXPECT_TRUE(outcome(std::move(operation)).ok());
}

// Numbers for observers travel behind the payload and do not count.
TEST(FlowAccounts, MessagesWhoseNumbersObserversSee) {
  struct Watching final : Observer {
    bool observes_communication() const override { return true; }
  } observer;
  AttachmentsJob three("loopback", MessagingPath::kAuto);
  three.job.runtime(0).set_observer(&observer);
  for (int i = 0; i < 10; ++i) {
    for (int pe = 0; pe < 3; ++pe) three.job.runtime(0).send(pe, three.message());
    three.job.runtime(0).broadcast(three.message());
    three.job.runtime(1).broadcast(three.message(1));
  }
  for (int pe = 0; pe < 3; ++pe) three.expect_arrival(pe, 30);
  expect_equal_accounts(three.job);
  three.job.runtime(0).set_observer(nullptr);
}

// A buffer whose copy fails at the sender is revoked, and an empty message takes its place.
struct FlowAccountsDeviceTest : FlowAccountsTest {};

INSTANTIATE_TEST_SUITE_P(Ways, FlowAccountsDeviceTest, ::testing::ValuesIn(kDeviceWays), name_of);

TEST_P(FlowAccountsDeviceTest, ABufferThatCannotBeSent) {
  for (std::size_t size_bytes : {std::size_t{100}, std::size_t{5000}, std::size_t{1'000'000}}) {
    memory::EmulatedFaults faults;
    faults.fail_copy = 1;
    weft::testing::emulated(job.memory(0)).set_faults(faults);
    std::vector<TestMemory> sent = one(size_bytes);
    EXPECT_TRUE(outcome(send(1, sent)).failed());
    weft::testing::emulated(job.memory(0)).set_faults({});
    expect_equal_accounts(job);
  }
}

}  // namespace
}  // namespace weft::runtime
