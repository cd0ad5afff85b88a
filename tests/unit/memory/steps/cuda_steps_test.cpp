// Steps and reductions of kind cuda over the stand-in driver, which does what the kernels do. What the kernels' text does on a device,
// gpu_steps_test shows.
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "memory/kinds/cuda/cuda_backend.h"
#include "memory/kinds/cuda/message_kernel.h"
#include "tests/unit/memory/fake_cuda_fixture.h"
#include "tests/unit/memory/places.h"
#include "tests/unit/memory/steps/one_word_message.h"

namespace weft::memory {
namespace {

using base::Status;
using base::StatusCode;

// Words of the owner's memory, by number, and of the peer's.
enum : std::size_t { kArrived, kReceived, kLanding };
enum : std::size_t { kSent, kCredit, kData };

class CudaStepsTest : public FakeCudaTest {
 protected:
  void SetUp() override {
    ASSERT_TRUE(memory->backend(Kind::kCuda) != nullptr);
    own = memory->allocate(64, kGpu0).value();
    far = memory->allocate(64, kGpu1).value();
    own_at_peer = cuda().import_allocation(cuda().export_allocation(own.data).value(), 1).value();
    far_at_owner = cuda().import_allocation(cuda().export_allocation(far.data).value(), 0).value();
    receives = cuda().create_stream(0).value();
    sends = cuda().create_stream(1).value();
  }
  void TearDown() override {
    memory->close();
    for (const StreamHandle stream : {receives, sends}) EXPECT_TRUE(cuda().destroy_stream(stream).ok());
    for (const Buffer& import : {own_at_peer, far_at_owner})
      EXPECT_TRUE(cuda().release_import(import.data).ok());
    for (const Buffer& buffer : {own, far}) EXPECT_TRUE(memory->deallocate(buffer).ok());
    FakeCudaTest::TearDown();
  }

  static std::uint32_t* word(const Buffer& buffer, std::size_t number) {
    return static_cast<std::uint32_t*>(buffer.data) + number;
  }
  static std::byte* bytes(const Buffer& buffer, std::size_t number) {
    return reinterpret_cast<std::byte*>(word(buffer, number));
  }
  // The peer sends its word kData to the owner's kLanding, when the owner has received the one before.
  DeviceStep send() const {
    return send_word(word(far, kSent), word(far, kCredit), word(far, kData), word(own_at_peer, kLanding),
                     word(own_at_peer, kArrived));
  }
  DeviceStep receive() const {
    return receive_word(word(own, kReceived), word(far_at_owner, kCredit), word(own, kArrived));
  }
  DeviceReduction sum(std::size_t num_elements) const {
    DeviceReduction reduction;
    reduction.sources.add(bytes(own, 8));
    reduction.sources.add(bytes(far_at_owner, 8));
    reduction.out = bytes(own, 8);
    reduction.num_elements = num_elements;
    reduction.type = ElementType::kInt32;
    return reduction;
  }
  void poll(int times = 100) {
    for (int i = 0; i < times; ++i) memory->progress();
  }

  Buffer own;
  Buffer far;
  Buffer own_at_peer;
  Buffer far_at_owner;
  StreamHandle receives = nullptr;
  StreamHandle sends = nullptr;
};

TEST_F(CudaStepsTest, StepsCount) {
  constexpr std::uint32_t kRounds = 5;
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    ASSERT_TRUE(cuda().queue_step(send(), kGpu1, sends).ok());
    ASSERT_TRUE(cuda().queue_step(receive(), kGpu0, receives).ok());
  }
  Outcome sent;
  Outcome received;
  ASSERT_TRUE(memory->when_queued_done(kGpu1, sends, &sent).is_pending());
  ASSERT_TRUE(memory->when_queued_done(kGpu0, receives, &received).is_pending());
  *word(far, kData) = 77;
  poll();
  EXPECT_EQ(sent.calls, 1);
  EXPECT_EQ(received.calls, 1);
  EXPECT_EQ(*word(own, kLanding), 77U);
  EXPECT_EQ(*word(far, kSent), kRounds);
  EXPECT_EQ(*word(own, kReceived), kRounds);
}

TEST_F(CudaStepsTest, ReductionsInAStepAndAlone) {
  *word(own, 8) = 3;
  *word(far, 8) = 4;
  DeviceStep step = receive();
  step.reduction = sum(1);
  ASSERT_TRUE(cuda().queue_step(step, kGpu0, receives).ok());
  ASSERT_TRUE(cuda().queue_reduction(sum(2), kGpu0, receives).ok());
  Outcome done;
  ASSERT_TRUE(memory->when_queued_done(kGpu0, receives, &done).is_pending());
  poll();
  EXPECT_EQ(*word(own, 8), 3U) << "before the signal";
  ASSERT_TRUE(cuda().queue_step(send(), kGpu1, sends).ok());
  Outcome sent;
  ASSERT_TRUE(memory->when_queued_done(kGpu1, sends, &sent).is_pending());
  poll();
  EXPECT_EQ(done.calls, 1);
  EXPECT_EQ(*word(own, 8), 11U);
  EXPECT_TRUE(cuda().queue_reduction(DeviceReduction(), kGpu0, receives).ok());
  EXPECT_EQ(fake_cuda()->calls["cuModuleLoadData"], 3) << "two devices, and one reduction";
}

TEST_F(CudaStepsTest, StepsUsePlacesInTurn) {
  for (std::uint32_t i = 0; i < 4; ++i) *word(far, 8 + i) = 100 + i;
  *word(far, kSent) = 0xfffffffe;
  DeviceStep step = send();
  step.before = {};
  step.to = bytes(own_at_peer, 8);
  step.from = bytes(far, 8);
  step.rings = kRingOfTargets | kRingOfSources | kRingOfContributions;
  step.num_places = 4;
  step.place_bytes = 4;
  step.reduction.type = ElementType::kInt32;
  for (const std::size_t first : {4, 8}) step.reduction.sources.add(bytes(far, first));
  step.reduction.out = bytes(far, 3);
  step.reduction.num_elements = 1;
  for (std::uint32_t i = 0; i < 4; ++i) *word(far, 4 + i) = 10 * i;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(cuda().queue_step(step, kGpu1, sends).ok());
  Outcome sent;
  ASSERT_TRUE(memory->when_queued_done(kGpu1, sends, &sent).is_pending());
  poll();
  EXPECT_EQ(sent.calls, 1);
  EXPECT_EQ(std::vector<std::uint32_t>(word(own, 8), word(own, 12)),
            (std::vector<std::uint32_t>{100, 0, 102, 103}));
  EXPECT_EQ(*word(far, 3), 100U) << "of places 2, 3 and 0 in turn";
  step.num_places = 16;
  EXPECT_EQ(cuda().queue_step(step, kGpu1, sends).code(), StatusCode::kInvalidArgument);
}

// The driver would end the capture.
TEST_F(CudaStepsTest, WhatACaptureNeedsIsLoadedBefore) {
  static_cast<::CudaStreamTag*>(receives)->is_captured = true;
  EXPECT_TRUE(cuda().queue_step(receive(), kGpu0, receives).ok()) << "loaded with the import";
  DeviceStep step = receive();
  step.reduction = sum(1);
  for (const Status& refused :
       {cuda().queue_step(step, kGpu0, receives), cuda().queue_reduction(sum(1), kGpu0, receives)}) {
    EXPECT_EQ(refused.code(), StatusCode::kUnsupported);
    EXPECT_NE(refused.message().find("before the capture"), std::string::npos) << refused.to_string();
  }
  static_cast<::CudaStreamTag*>(receives)->is_captured = false;
  ASSERT_TRUE(cuda().prepare_reductions(0, ElementType::kInt32, Combination::kSum).ok());
  static_cast<::CudaStreamTag*>(receives)->is_captured = true;
  EXPECT_TRUE(cuda().queue_step(step, kGpu0, receives).ok());
  EXPECT_TRUE(cuda().queue_reduction(sum(1), kGpu0, receives).ok());
  static_cast<::CudaStreamTag*>(receives)->is_captured = false;
  cuda().abort_steps();
}

TEST_F(CudaStepsTest, AStepThatIsAbortedDoesNothingMore) {
  *word(far, kSent) = 1;
  DeviceStep step = receive();
  step.reduction = sum(1);
  *word(far, 8) = 4;
  ASSERT_TRUE(cuda().queue_step(send(), kGpu1, sends).ok());
  ASSERT_TRUE(cuda().queue_step(step, kGpu0, receives).ok());
  Outcome sent;
  Outcome received;
  ASSERT_TRUE(memory->when_queued_done(kGpu1, sends, &sent).is_pending());
  ASSERT_TRUE(memory->when_queued_done(kGpu0, receives, &received).is_pending());
  poll();
  EXPECT_EQ(sent.calls + received.calls, 0);
  memory->abort_steps();
  poll();
  for (const Outcome& outcome : {sent, received}) {
    EXPECT_EQ(outcome.calls, 1);
    EXPECT_EQ(outcome.status.code(), StatusCode::kClosed);
    EXPECT_NE(outcome.status.message().find("the end of the job has ended"), std::string::npos)
        << outcome.status.to_string();
  }
  EXPECT_EQ(*word(own, kArrived), 0U);
  EXPECT_EQ(*word(own, kReceived), 0U);
  EXPECT_EQ(*word(own, 8), 0U);
  EXPECT_EQ(*word(far, kSent), 1U);
}

TEST_F(CudaStepsTest, AFailedLoadIsNamedAndTriedAgain) {
  constexpr int kInvalidPtx = 218;
  for (const auto& [call, result, code] :
       {std::tuple{"cuModuleLoadData", kInvalidPtx, StatusCode::kUnsupported},
        {"cuModuleLoadData", 2, StatusCode::kOutOfMemory},
        {"cuModuleGetFunction", 500, StatusCode::kInternal},
        {"cuLaunchKernel", 2, StatusCode::kOutOfMemory}}) {
    fake_cuda()->fail_next[call] = result;
    const Status failed = cuda().queue_reduction(sum(1), kGpu0, receives);
    EXPECT_EQ(failed.code(), code) << failed.to_string();
    EXPECT_NE(failed.message().find(call), std::string::npos) << failed.to_string();
  }
  EXPECT_TRUE(cuda().queue_reduction(sum(1), kGpu0, receives).ok());
}

TEST_F(CudaStepsTest, ShortStepsShareLaunches) {
  const auto launches = [] { return fake_cuda()->calls["cuLaunchKernel"]; };
  ASSERT_TRUE(cuda().prepare_steps(0).ok());
  ASSERT_TRUE(cuda().prepare_steps(1).ok());
  const auto before = launches();
  const std::vector<DeviceStep> sending(6, send());
  std::vector<DeviceStep> receiving(6, receive());
  for (std::uint32_t value = 0; value < 2; ++value)  // more than a short one has: alone
    receiving[2].after.add({word(own, kArrived), value});
  ASSERT_TRUE(cuda().queue_steps(sending, kGpu1, sends).ok());
  EXPECT_EQ(launches() - before, 2) << "four and two";
  ASSERT_TRUE(cuda().queue_steps(receiving, kGpu0, receives).ok());
  EXPECT_EQ(launches() - before, 5) << "two, one and three";
  Outcome sent;
  Outcome received;
  ASSERT_TRUE(memory->when_queued_done(kGpu1, sends, &sent).is_pending());
  ASSERT_TRUE(memory->when_queued_done(kGpu0, receives, &received).is_pending());
  poll();
  EXPECT_EQ(sent.calls, 1);
  EXPECT_EQ(received.calls, 1);
  EXPECT_EQ(*word(own, kReceived), 6U);
  EXPECT_EQ(*word(far, kSent), 6U);
  fake_cuda()->fail_next["cuLaunchKernel"] = 2;
  EXPECT_EQ(cuda().queue_steps(sending, kGpu1, sends).code(), StatusCode::kOutOfMemory);
  EXPECT_EQ(launches() - before, 6) << "none behind the one that failed";
  EXPECT_TRUE(cuda().queue_steps({}, kGpu0, receives).ok());
  EXPECT_EQ(launches() - before, 6);
}

TEST(CudaStepsNoMemoryTest, AbortBeforeTheFirstStep) {
  fake_cuda_reset();
  auto driver = CudaDriver::load(FAKE_CUDA);
  ASSERT_TRUE(driver.ok());
  CudaBackend cuda(std::move(*driver));
  EXPECT_FALSE(cuda.abort_steps()) << "there has been none";
  const auto data = static_cast<std::uint32_t*>(cuda.allocate(4, 0).value());
  const StreamHandle stream = cuda.create_stream(0).value();
  ASSERT_TRUE(cuda.queue_wait(data, kGpu0, 1, stream).ok());
  const EventHandle event = cuda.record(stream, 0).value();
  for (int i = 0; i < 5; ++i) static_cast<void>(cuda.query(event));
  EXPECT_TRUE(cuda.query(event).ok());
  EXPECT_TRUE(cuda.deallocate(data).ok());
}

// What the driver compiles on a device, where the toolkit that could check it is not.
TEST(StepKernelsTest, EachModuleHasItsKernels) {
  for (std::size_t module = 0; module < kNumStepModules; ++module) {
    const std::string text = step_module_text(module);
    EXPECT_NE(text.find(std::string(".entry ") + kStepKernel), std::string::npos);
    for (const char* const kernel :
         {kShortStepKernel, kShortStepsKernel, kFewMessagesKernel, kMessagesKernel})
      EXPECT_EQ(text.find(std::string(".entry ") + kernel + "(") != std::string::npos, module == 0);
    EXPECT_EQ(text.find(std::string(".entry ") + kReductionKernel) != std::string::npos, module > 0);
    EXPECT_EQ(text.find('$'), std::string::npos);
  }
}

TEST(StepKernelsTest, AReductionReadsTheAddressesOfItsSources) {
  const std::string text = step_module_text(module_of(ElementType::kInt32, Combination::kSum));
  const std::size_t first = offsetof(DeviceReduction, sources) + offsetof(StepList<const std::byte*>, items);
  for (std::size_t source = 0; source < kMaxStepPeers; ++source) {
    const std::size_t offset = first + source * sizeof(std::byte*);
    const auto load = [](const char* parameter, std::size_t at) {
      return std::string("ld.param.u64 address, [") + parameter + "+" + std::to_string(at) + "];";
    };
    EXPECT_NE(text.find(load("step", offsetof(DeviceStep, reduction) + offset)), std::string::npos) << source;
    EXPECT_NE(text.find(load("reduction", offset)), std::string::npos) << source;
  }
}

TEST(StepKernelsTest, LaunchesFitTheWork) {
  alignas(16) static std::byte memory[64];
  DeviceStep step;
  EXPECT_EQ(step_threads(step), 32U);
  step.size_bytes = 1000;
  EXPECT_EQ(step_threads(step), 64U);
  step.size_bytes = 2000;
  EXPECT_EQ(step_threads(step), 128U);
  step.size_bytes = std::size_t{1} << 30;
  EXPECT_EQ(step_threads(step), 1024U);
  DeviceReduction reduction;
  EXPECT_EQ(reduction_blocks(reduction), 1U);
  reduction.sources.add(memory);
  reduction.out = memory + 16;
  reduction.num_elements = 5000;
  reduction.type = ElementType::kFloat32;
  EXPECT_EQ(num_vectors(reduction), 1250U);
  EXPECT_EQ(reduction_blocks(reduction), 3U);
  reduction.out = memory + 4;
  EXPECT_EQ(num_vectors(reduction), 0U) << "not aligned";
  EXPECT_EQ(reduction_blocks(reduction), 10U);
  reduction.out = memory + 16;
  step.reduction = reduction;
  for (const auto& [place_bytes, vectors] : {std::pair{32U, 1250U}, {8U, 0U}}) {
    step.rings = kRingOfTargets;
    step.place_bytes = place_bytes;
    EXPECT_EQ(num_vectors(step), 1250U);
    step.rings = kRingOfContributions;
    EXPECT_EQ(num_vectors(step), vectors) << "places of " << place_bytes << " bytes";
  }
}

}  // namespace
}  // namespace weft::memory
