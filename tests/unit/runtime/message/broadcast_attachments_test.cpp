// Broadcasts that carry buffers: they land once on each PE and go on from there.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/unit/runtime/message/attachments_job.h"

namespace weft::runtime {
namespace {

// Seven PEs: the root has four children, and the first of those two.
struct BroadcastJob : AttachmentsJob {
  explicit BroadcastJob(const Way& way, int num_pes = 11)
      : AttachmentsJob(way.machine, way.path, num_pes), kind(way.kind) {}
  Place place() const { return {kind, 0}; }
  std::vector<TestMemory> given(int from, const std::vector<std::size_t>& sizes) {
    std::vector<TestMemory> made;
    for (std::size_t size : sizes) {
      made.emplace_back(job.memory(from), place(), size, static_cast<std::uint8_t>(size));
    }
    return made;
  }
  void expect_everywhere(std::size_t count) {
    EXPECT_EQ(job.run_until([&] {
      for (auto& inbox : inboxes) {
        if (inbox->messages.size() < count) return false;
      }
      return true;
    }),
              "");
    turns(20);
    for (auto& inbox : inboxes) EXPECT_EQ(inbox->messages.size(), count);
  }
  // What quiescence detection goes by.
  void expect_all_counted() {
    EXPECT_EQ(job.run_until([&] { return uncounted() == 0; }), "");
  }
  std::int64_t uncounted() {
    std::int64_t count = 0;
    for (int pe = 0; pe < job.num_pes(); ++pe) {
      count += static_cast<std::int64_t>(job.runtime(pe).sent() - job.runtime(pe).processed());
    }
    return count;
  }
  void fail_copy(int pe, int which) {
    memory::EmulatedFaults faults;
    faults.fail_copy = which;
    weft::testing::emulated(job.memory(pe)).set_faults(faults);
  }
  void reach_every_pe(int root, const std::vector<std::size_t>& sizes);

  Kind kind;
};

void BroadcastJob::reach_every_pe(int root, const std::vector<std::size_t>& sizes) {
  std::vector<TestMemory> sent = given(root, sizes);
  Operation operation = broadcast(root, sent);
  expect_everywhere(1);
  for (int pe = 0; pe < job.num_pes(); ++pe) {
    std::uint64_t payload = 0;
    inbox(pe).messages[0]->unpacker() | payload;
    EXPECT_EQ(payload, 7u);
    ASSERT_EQ(inbox(pe).messages[0]->attachments().size(), sizes.size());
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      EXPECT_EQ(inbox(pe).bytes(0, i), sent[i].filled()) << "buffer " << i << " on PE " << pe;
      if (sizes[i] == 0) continue;
      EXPECT_EQ(inbox(pe).buffer(0, i).place, place());
      EXPECT_EQ(inbox(pe).buffer(0, i).data == sent[i].buffer().data, pe == root);
    }
  }
  EXPECT_FALSE(operation.is_done()) << "this PE's handler still has the sender's memory";
  EXPECT_EQ(released, 0);
  inbox(root).messages.clear();
  EXPECT_TRUE(outcome(std::move(operation)).ok());
  EXPECT_EQ(job.run_until([&] { return released == static_cast<int>(sizes.size()); }), "");
  expect_all_counted();
  for (auto& one : inboxes) one->messages.clear();
  released = 0;
}

struct BroadcastAttachmentsTest : ::testing::TestWithParam<Way>, BroadcastJob {
  BroadcastAttachmentsTest() : BroadcastJob(GetParam()) {}
};

INSTANTIATE_TEST_SUITE_P(Ways, BroadcastAttachmentsTest, ::testing::ValuesIn(kEveryWay), name_of);

TEST_P(BroadcastAttachmentsTest, ReachEveryPeAndAreGivenBackOnce) {
  for (int num_pes = 1; num_pes <= 11; ++num_pes) {
    BroadcastJob fresh(GetParam(), num_pes);
    for (int root : {0, num_pes - 1}) {
      for (const std::vector<std::size_t>& sizes :
           {std::vector<std::size_t>{1, 0, 4096, 200'003}, {0}, {64}, {100'000}}) {
        fresh.reach_every_pe(root, sizes);
        if (HasFailure()) FAIL() << num_pes << " PEs, root " << root;
      }
    }
  }
}

TEST_P(BroadcastAttachmentsTest, TheOperationEndsWithTheNumberOfBytes) {
  std::vector<TestMemory> sent = given(0, {3000, 500});
  Operation operation = broadcast(0, sent);
  expect_everywhere(1);
  inbox(0).messages.clear();
  expect_end(operation);
  OperationState* state = std::move(operation).release();
  EXPECT_EQ(state->size_bytes(), 3500u);
  state->drop_handle();
}

TEST_P(BroadcastAttachmentsTest, MayChangeWhenTheOperationHasEnded) {
  std::vector<TestMemory> sent = given(0, {300'000});
  Operation operation = broadcast(0, sent);
  expect_arrival(0);
  inbox(0).messages.clear();
  expect_end(operation);
  auto* bytes = weft::testing::view(job.memory(0), sent[0].buffer());
  std::memset(bytes, 0, 300'000);
  for (int pe = 1; pe < 7; ++pe) {
    expect_arrival(pe);
    EXPECT_EQ(inbox(pe).bytes(0, 0), sent[0].filled());
  }
}

// In the tree of PE 6, PEs 4 and 5 are below PE 0.
TEST_P(BroadcastAttachmentsTest, IsNotSentOnByAPeThatIsEnding) {
  std::vector<TestMemory> sent = given(6, {300'000});
  job.runtime(0).exit(0);
  for (int i = 0; i < 20; ++i) job.runtime(0).step();
  Operation operation = broadcast(6, sent);  // the news is not there yet
  EXPECT_EQ(job.run_until([&] {
    for (int pe = 0; pe < 7; ++pe) {
      if (!job.runtime(pe).stopped()) return false;
    }
    return true;
  }),
            "");
  for (const machine::TransportUse& use : job.runtime(0).machine().transport_use()) {
    if (use.type == machine::TransferType::kReceive) continue;
    EXPECT_LT(use.bytes, 300'000u) << "they may have stopped, and it would wait for them for ever";
  }
}

TEST_P(BroadcastAttachmentsTest, WhatHasLandedIsTheHandlersOnceNobodyIsSentIt) {
  std::vector<TestMemory> sent = given(0, {3000});
  Operation operation = broadcast(0, sent);
  expect_everywhere(1);
  EXPECT_FALSE(inbox(0).messages[0]->owns_attachments()) << "the sender's";
  for (int pe = 1; pe < 7; ++pe) {
    EXPECT_EQ(job.run_until([&] { return inbox(pe).messages[0]->owns_attachments(); }), "");
  }
  MessagePtr other = message(6);
  inbox(6).messages[0]->share_attachments(*other);
  EXPECT_FALSE(inbox(6).messages[0]->owns_attachments());
  other = nullptr;
  EXPECT_TRUE(inbox(6).messages[0]->owns_attachments());
}

TEST_P(BroadcastAttachmentsTest, AMessageThatWaitsWhereItHasLandedDoesNotGoDownTheTreeAgain) {
  std::vector<TestMemory> sent = given(0, {70'000});
  Operation operation = broadcast(0, sent);
  expect_everywhere(1);
  const void* where = inbox(1).buffer(0, 0).data;
  MessagePtr waited = std::move(inbox(1).messages[0]);
  inbox(1).messages.clear();
  job.runtime(1).send(1, std::move(waited));
  expect_everywhere(1);
  EXPECT_EQ(inbox(1).buffer(0, 0).data, where) << "what has landed is not copied again";
  EXPECT_EQ(inbox(1).bytes(0, 0), sent[0].filled());
  inbox(0).messages.clear();
  EXPECT_TRUE(outcome(std::move(operation)).ok());
  expect_all_counted();
}

TEST_P(BroadcastAttachmentsTest, AHandlerWithAPosterTakesNone) {
  inbox(0).post_with([](MessagePtr&, std::span<ReceiveBuffer>) { return true; });
  std::vector<TestMemory> sent = given(0, {100});
  EXPECT_THROW(broadcast(0, sent).detach(), Error);
  EXPECT_EQ(released, 1);
  turns(20);
  for (auto& one : inboxes) EXPECT_TRUE(one->messages.empty());
}

TEST_P(BroadcastAttachmentsTest, ASendersOwnMessageThatWaitsLandsWithoutGoingDownTheTreeAgain) {
  std::vector<TestMemory> sent = given(0, {70'000});
  Operation operation = broadcast(0, sent);
  expect_everywhere(1);
  MessagePtr waited = std::move(inbox(0).messages[0]);
  inbox(0).messages.clear();
  job.runtime(0).send(0, std::move(waited));
  expect_everywhere(1);
  EXPECT_TRUE(outcome(std::move(operation)).ok()) << "it has landed";
  EXPECT_EQ(inbox(0).bytes(0, 0), sent[0].filled());
  EXPECT_NE(inbox(0).buffer(0, 0).data, sent[0].buffer().data);
  expect_all_counted();
}

TEST_P(BroadcastAttachmentsTest, ThoseOfSeveralRootsKeepApart) {
  std::vector<std::vector<TestMemory>> all;
  std::vector<Operation> operations;
  for (std::size_t i = 0; i < 20; ++i) {
    int from = i % 2 == 0 ? 0 : 5;
    all.push_back(given(from, std::vector<std::size_t>(1 + i % 3, 1000 + i)));
    operations.push_back(broadcast(from, all.back()));
  }
  expect_everywhere(20);
  for (auto& one : inboxes) {
    for (std::size_t m = 0; m < 20; ++m) {
      std::size_t which = one->bytes(m, 0).size() - 1000;  // their order is not promised
      ASSERT_EQ(one->messages[m]->attachments().size(), all[which].size());
      for (std::size_t k = 0; k < all[which].size(); ++k) EXPECT_EQ(one->bytes(m, k), all[which][k].filled());
    }
  }
  for (auto& one : inboxes) one->messages.clear();
  for (Operation& operation : operations) EXPECT_TRUE(outcome(std::move(operation)).ok());
}

TEST_P(BroadcastAttachmentsTest, AreGivenBackWhenTheRuntimeClosesFirst) {
  for (int num_turns : {0, 1, 2}) {
    for (bool handler_keeps : {false, true}) {
      BroadcastJob fresh(GetParam());
      std::vector<TestMemory> sent = fresh.given(0, {1'000'000});
      Operation operation = fresh.broadcast(0, sent);
      fresh.turns(num_turns);
      if (!handler_keeps) fresh.inbox(0).messages.clear();
      for (int pe = 6; pe >= 0; --pe) fresh.job.runtime(pe).close();
      fresh.inbox(0).messages.clear();
      EXPECT_EQ(fresh.released, 1);
      EXPECT_TRUE(operation.is_done());
      if (handler_keeps || num_turns == 0) {
        EXPECT_TRUE(fresh.outcome(std::move(operation)).failed());
      }
    }
  }
}

TEST_P(BroadcastAttachmentsTest, WithoutAnOperationAreGivenBackOnceToo) {
  std::vector<TestMemory> sent = given(0, {5000});
  MessagePtr outgoing = message();
  outgoing->attach(attachment(sent[0]));
  job.runtime(0).broadcast(std::move(outgoing));
  expect_everywhere(1);
  inbox(0).messages.clear();
  EXPECT_EQ(job.run_until([&] { return released == 1; }), "");
}

// Only device memory has copies that fail.
struct DeviceBroadcastTest : BroadcastAttachmentsTest {};

INSTANTIATE_TEST_SUITE_P(Ways, DeviceBroadcastTest, ::testing::ValuesIn(kDeviceWays), name_of);

TEST_P(DeviceBroadcastTest, ACopyThatFailsAtTheSenderIsToldToItAndThoseBehindItAreLeftOut) {
  for (int which = 1; which <= 4; ++which) {
    // The sender copies what others cannot map.
    memory::EmulatedFaults faults;
    faults.refuse_exports = true;
    weft::testing::emulated(job.memory(0)).set_faults(faults);
    std::vector<TestMemory> sent = given(0, {5000});
    released = 0;
    fail_copy(0, which);
    Operation operation = broadcast(0, sent);
    expect_arrival(0);
    inbox(0).messages.clear();
    EXPECT_TRUE(outcome(std::move(operation)).failed());
    expect_all_counted();
    EXPECT_EQ(released, 1);
    weft::testing::emulated(job.memory(0)).set_faults({});
    std::size_t num_arrived = 0;
    for (auto& one : inboxes) num_arrived += one->messages.size();
    EXPECT_EQ(num_arrived, which == 1 ? 7u : 9u) << "the first child sends it on to two others";
    for (auto& one : inboxes) one->messages.clear();
  }
  std::vector<TestMemory> next = given(0, {5000});  // the job goes on
  Operation operation = broadcast(0, next);
  expect_everywhere(1);
  inbox(0).messages.clear();
  EXPECT_TRUE(outcome(std::move(operation)).ok());
}

TEST_P(DeviceBroadcastTest, ACopyThatFailsUnseenEndsTheJob) {
  std::vector<TestMemory> sent = given(0, {5000});
  fail_copy(0, 1);
  broadcast(0, sent).detach();
  EXPECT_NE(job.run_until([&] {
    inbox(0).messages.clear();
    return false;
  }),
            "");
}

TEST_P(DeviceBroadcastTest, ACopyThatFailsOnTheWayEndsTheJob) {
  std::vector<TestMemory> sent = given(0, {5000});
  fail_copy(1, 1);
  Operation operation = broadcast(0, sent);
  std::string failure = job.run_until([] { return false; });
  EXPECT_NE(failure.find("could not be"), std::string::npos) << failure;
  EXPECT_NE(job.runtime(1).failure(), "");
}

TEST_P(DeviceBroadcastTest, WaitsForTheSendersStream) {
  bool done = false;
  auto& device = weft::testing::emulated(job.memory(0));
  memory::StreamHandle stream = device.create_stream(0).value();
  EXPECT_TRUE(device.launch(stream, 0, [&done] { return done ? Status() : Status::pending(); }).ok());
  std::vector<TestMemory> sent = given(0, {50'000});
  sent[0].buffer().stream = stream;
  Operation operation = broadcast(0, sent);
  turns(100);
  for (int pe = 1; pe < 7; ++pe) EXPECT_TRUE(inbox(pe).messages.empty());
  done = true;
  expect_everywhere(1);
  for (int pe = 0; pe < 7; ++pe) EXPECT_EQ(inbox(pe).bytes(0, 0), sent[0].filled());
}

}  // namespace
}  // namespace weft::runtime
