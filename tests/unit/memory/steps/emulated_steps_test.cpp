// Steps of emulated devices of two memories, as two processes have them.
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "tests/support/device_memory.h"
#include "tests/unit/memory/outcome.h"
#include "tests/unit/memory/places.h"
#include "tests/unit/memory/steps/one_word_message.h"

namespace weft::memory {
namespace {

using base::Status;
using base::StatusCode;

// Words of the owner's memory, by number.
enum : std::size_t { kArrived, kReceived, kLanding = 8 };
// Words of the peer's memory.
enum : std::size_t { kSent, kCredit, kData = 8 };

class EmulatedStepsTest : public ::testing::Test {
 protected:
  EmulatedStepsTest() {
    for (const Buffer& buffer : {own, far}) {
      Memory& memory = buffer.data == own.data ? owner : peer;
      std::memset(view(memory, buffer), 0, 64);
    }
  }
  ~EmulatedStepsTest() override {
    for (Memory* memory : {&owner, &peer}) memory->close();
  }

  static EmulatedBackend& emulated(Memory& memory) { return testing::emulated(memory); }
  static std::uint32_t* view(Memory& memory, const Buffer& buffer) {
    return static_cast<std::uint32_t*>(emulated(memory).device_view(buffer.data, 64).value());
  }
  static std::uint32_t* word(const Buffer& buffer, std::size_t number) {
    return static_cast<std::uint32_t*>(buffer.data) + number;
  }
  // The peer sends its word kData to the owner's kLanding, when the owner has received the one before.
  DeviceStep send() const {
    return send_word(word(far, kSent), word(far, kCredit), word(far, kData), word(own_at_peer, kLanding),
                     word(own_at_peer, kArrived));
  }
  DeviceStep receive() const {
    return receive_word(word(own, kReceived), word(far_at_owner, kCredit), word(own, kArrived));
  }
  void watch(Memory& memory, StreamHandle stream, Outcome& outcome) {
    ASSERT_TRUE(memory.when_queued_done(kDevice0, stream, &outcome).is_pending());
  }
  void poll(int times = 100) {
    for (int i = 0; i < times; ++i) {
      owner.progress();
      peer.progress();
    }
  }

  Memory owner;
  Memory peer;
  Buffer own = owner.allocate(64, kDevice0).value();
  Buffer far = peer.allocate(64, kDevice0).value();
  std::vector<std::byte> own_exported = emulated(owner).export_allocation(own.data).value();
  std::vector<std::byte> far_exported = emulated(peer).export_allocation(far.data).value();
  Buffer own_at_peer = emulated(peer).import_allocation(own_exported, 0).value();
  Buffer far_at_owner = emulated(owner).import_allocation(far_exported, 0).value();
  StreamHandle sends = emulated(peer).create_stream(0).value();
  StreamHandle receives = emulated(owner).create_stream(0).value();
};

TEST_F(EmulatedStepsTest, ALoopOfSendsAndReceivesNeedsNoCpuBetweenThem) {
  constexpr std::uint32_t kRounds = 5;
  for (const std::uint32_t first : {0U, 0xfffffffdU}) {  // counters wrap
    *view(peer, far) = first;
    *(view(peer, far) + kCredit) = first - 1;
    *view(owner, own) = first;
    *(view(owner, own) + kReceived) = first;
    std::vector<std::uint32_t> got;
    for (std::uint32_t round = 0; round < kRounds; ++round) {
      ASSERT_TRUE(emulated(peer)
                      .launch(sends, 0,
                              [this, round] {
                                *(view(peer, far) + kData) = 10 + round;
                                return Status();
                              })
                      .ok());
      ASSERT_TRUE(emulated(peer).queue_step(send(), kDevice0, sends).ok());
      ASSERT_TRUE(emulated(owner).queue_step(receive(), kDevice0, receives).ok());
      ASSERT_TRUE(emulated(owner)
                      .launch(receives, 0,
                              [this, &got] {
                                got.push_back(*(view(owner, own) + kLanding));
                                return Status();
                              })
                      .ok());
    }
    Outcome sent;
    Outcome received;
    watch(peer, sends, sent);
    watch(owner, receives, received);
    poll();
    EXPECT_EQ(sent.calls, 1);
    EXPECT_EQ(received.calls, 1);
    EXPECT_EQ(got, (std::vector<std::uint32_t>{10, 11, 12, 13, 14}));
    EXPECT_EQ(*view(peer, far), first + kRounds);
  }
}

TEST_F(EmulatedStepsTest, ASendWaitsForTheReceiver) {
  Outcome first;
  Outcome second;
  ASSERT_TRUE(emulated(peer).queue_step(send(), kDevice0, sends).ok());
  watch(peer, sends, first);
  ASSERT_TRUE(emulated(peer).queue_step(send(), kDevice0, sends).ok());
  watch(peer, sends, second);
  poll();
  EXPECT_EQ(first.calls, 1) << "the landing is free at the begin";
  EXPECT_EQ(second.calls, 0);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(emulated(owner).queue_step(receive(), kDevice0, receives).ok());
  Outcome received;
  watch(owner, receives, received);
  poll();
  EXPECT_EQ(second.calls, 1);
  EXPECT_EQ(received.calls, 1);
}

TEST_F(EmulatedStepsTest, AStepThatIsAbortedTouchesNothing) {
  *(view(peer, far) + kSent) = 1;
  *(view(peer, far) + kData) = 77;
  ASSERT_TRUE(emulated(peer).queue_step(send(), kDevice0, sends).ok());
  ASSERT_TRUE(emulated(owner).queue_step(receive(), kDevice0, receives).ok());
  Outcome sent;
  Outcome received;
  watch(peer, sends, sent);
  watch(owner, receives, received);
  poll();
  EXPECT_EQ(sent.calls + received.calls, 0);
  emulated(peer).abort_steps();
  emulated(owner).abort_steps();
  poll();
  EXPECT_EQ(sent.calls, 1);
  EXPECT_EQ(received.calls, 1);
  EXPECT_EQ(sent.status.code(), StatusCode::kClosed);
  EXPECT_EQ(received.status.code(), StatusCode::kClosed);
  EXPECT_EQ(*(view(owner, own) + kLanding), 0U);
  EXPECT_EQ(*(view(owner, own) + kArrived), 0U);
  EXPECT_EQ(*(view(peer, far) + kSent), 1U);
}

TEST_F(EmulatedStepsTest, WhatAStepUsesIsCheckedWhenItIsQueuedAndWhenItRuns) {
  DeviceStep on_host = send();
  std::uint32_t somewhere = 0;
  on_host.from = reinterpret_cast<const std::byte*>(&somewhere);
  EXPECT_EQ(emulated(peer).queue_step(on_host, kDevice0, sends).code(), StatusCode::kInvalidArgument);
  DeviceStep too_large = send();
  too_large.size_bytes = 64;
  EXPECT_EQ(emulated(peer).queue_step(too_large, kDevice0, sends).code(), StatusCode::kOutOfRange);
  EXPECT_EQ(emulated(peer).queue_step(send(), kDevice1, sends).code(), StatusCode::kInvalidArgument);
  ASSERT_TRUE(emulated(peer).queue_step(send(), kDevice0, sends).ok());
  ASSERT_TRUE(owner.deallocate(own).ok());
  Outcome sent;
  watch(peer, sends, sent);
  poll();
  EXPECT_NE(sent.status.message().find("which has freed it"), std::string::npos) << sent.status.to_string();
}

TEST_F(EmulatedStepsTest, StepsUsePlacesInTurn) {
  for (std::uint32_t i = 0; i < 4; ++i) *(view(peer, far) + kData + i) = 100 + i;
  DeviceStep step = send();
  step.before = {};
  step.rings = kRingOfTargets | kRingOfSources;
  step.num_places = 4;
  step.place_bytes = 4;
  *(view(peer, far) + kSent) = 0xfffffffe;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(emulated(peer).queue_step(step, kDevice0, sends).ok());
  Outcome sent;
  watch(peer, sends, sent);
  poll();
  EXPECT_EQ(sent.calls, 1);
  const std::uint32_t* const landing = view(owner, own) + kLanding;
  EXPECT_EQ((std::vector<std::uint32_t>{landing[0], landing[1], landing[2], landing[3]}),
            (std::vector<std::uint32_t>{100, 0, 102, 103}));
  step.num_places = 16;
  EXPECT_EQ(emulated(peer).queue_step(step, kDevice0, sends).code(), StatusCode::kOutOfRange);
}

TEST_F(EmulatedStepsTest, AllSignalThenAllCombine) {
  *(view(owner, own) + kLanding) = 3;
  *(view(peer, far) + kData) = 4;
  const auto all_reduce = [](const Buffer& here, std::uint32_t* signal, std::uint32_t* wait,
                             std::uint32_t* count, const Buffer& first, const Buffer& second) {
    DeviceStep step;
    step.count = count;
    step.signals.add({signal, 1});
    step.after.add({wait, 1});
    step.reduction.type = ElementType::kInt32;
    for (const Buffer& buffer : {first, second})
      step.reduction.sources.add(reinterpret_cast<const std::byte*>(word(buffer, kLanding)));
    step.reduction.out = reinterpret_cast<std::byte*>(word(here, 12));
    step.reduction.num_elements = 1;
    return step;
  };
  ASSERT_TRUE(emulated(owner)
                  .queue_step(all_reduce(own, word(far_at_owner, kCredit), word(own, kArrived),
                                         word(own, kReceived), own, far_at_owner),
                              kDevice0, receives)
                  .ok());
  ASSERT_TRUE(emulated(peer)
                  .queue_step(all_reduce(far, word(own_at_peer, kArrived), word(far, kCredit),
                                         word(far, kSent), own_at_peer, far),
                              kDevice0, sends)
                  .ok());
  Outcome left;
  Outcome right;
  watch(owner, receives, left);
  watch(peer, sends, right);
  poll();
  EXPECT_EQ(*(view(owner, own) + 12), 7U);
  EXPECT_EQ(*(view(peer, far) + 12), 7U);
}

}  // namespace
}  // namespace weft::memory
