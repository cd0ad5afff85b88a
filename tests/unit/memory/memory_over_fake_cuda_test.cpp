// Memory with kind cuda in it: staged copies, which never block the CPU, and the kind cache where memory is
// freed and made behind our back.
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

#include "memory/copy/staging_pool.h"
#include "memory/kinds/cuda/cuda_options.h"
#include "memory/kinds/emulated/emulated_backend.h"
#include "memory/memory.h"
#include "tests/unit/memory/fake_cuda_fixture.h"
#include "tests/unit/memory/outcome.h"
#include "tests/unit/memory/places.h"

extern "C" int cuCtxGetCurrent(::CudaContextTag** context);  // the stand-in driver's

namespace weft::memory {
namespace {

using base::StatusCode;

constexpr Place kEmulated{Kind::kEmulated, 1};

int current_device() {
  ::CudaContextTag* context = nullptr;
  EXPECT_EQ(cuCtxGetCurrent(&context), 0);
  return context == nullptr ? -1 : context->device;
}

MemoryOptions options_of_pe(int local_rank, std::vector<int> devices = {}) {
  MemoryOptions options;
  options.local_rank = local_rank;
  options.of<CudaOptions>().driver = FAKE_CUDA;
  options.of<CudaOptions>().devices = std::move(devices);
  return options;
}

TEST(MemoryOfAPE, MakesItsOwnDeviceCurrent) {
  fake_cuda_reset();
  for (const int pe : {0, 1, 2, 3}) {  // more PEs than devices
    Memory memory(options_of_pe(pe));
    EXPECT_EQ(current_device(), -1) << "no context without need";
    EXPECT_TRUE(memory.make_own_devices_current().ok());
    EXPECT_EQ(current_device(), pe % 2);
  }
  EXPECT_EQ(current_device(), -1) << "the context of a job that is over";
}

TEST(MemoryOfAPE, ExpectsTheUseOfDevicesThatTheUserNames) {
  fake_cuda_reset();
  Memory memory(options_of_pe(0, {1, 0}));
  EXPECT_TRUE(memory.make_expected_devices_current().ok());
  EXPECT_EQ(current_device(), 1);
}

TEST(MemoryOfAPE, SaysWhyItsDeviceIsNotCurrent) {
  fake_cuda_reset();
  Memory memory(options_of_pe(1));
  fake_cuda()->fail_next["cuDevicePrimaryCtxRetain"] = 2;
  EXPECT_EQ(memory.make_own_devices_current().code(), StatusCode::kOutOfMemory);
  EXPECT_EQ(current_device(), -1);
}

TEST(MemoryOfAPE, NamesOtherDevicesThatItsBuffersAreOnOnce) {
  fake_cuda_reset();
  Memory memory(options_of_pe(1));
  EXPECT_TRUE(memory.uses_of_other_devices().empty());
  const auto own = fake_cuda()->add_block(64, 1);
  const auto elsewhere = fake_cuda()->add_block(96, 0);
  const auto again = fake_cuda()->add_block(128, 0);
  for (const auto block : {own, elsewhere, again, elsewhere}) {
    static_cast<void>(memory.place_of(reinterpret_cast<void*>(block)));
  }
  auto allocated = memory.allocate(32, kEmulated);
  ASSERT_TRUE(allocated.ok());
  EXPECT_TRUE(memory.deallocate(*allocated).ok());
  const auto sentences = memory.uses_of_other_devices();
  ASSERT_EQ(sentences.size(), 1u);
  EXPECT_NE(sentences[0].find("cuda:0 was used, first an allocation of 96 bytes"), std::string::npos)
      << sentences[0];
  EXPECT_NE(sentences[0].find("own device is cuda:1"), std::string::npos) << sentences[0];
  for (const auto block : {own, elsewhere, again}) fake_cuda()->remove_block(block);
}

class MemoryOverFakeCudaTest : public FakeCudaTest {
 protected:
  MemoryOverFakeCudaTest() { EXPECT_TRUE(memory->availability(Kind::kCuda).ok()); }

  void TearDown() override {
    memory->close();
    for (const Buffer& buffer : owned) EXPECT_TRUE(memory->deallocate(buffer).ok());
    FakeCudaTest::TearDown();
    EXPECT_TRUE(fake_cuda()->events.empty());
  }

  EmulatedBackend& emulated() { return static_cast<EmulatedBackend&>(*memory->backend(Kind::kEmulated)); }

  Buffer make(std::size_t size_bytes, Place place) {
    auto buffer = memory->allocate(size_bytes, place);
    EXPECT_TRUE(buffer.ok()) << buffer.status().to_string();
    owned.push_back(*buffer);
    return *buffer;
  }

  base::Status move(const Buffer& destination, const ConstBuffer& source) {
    Outcome outcome;
    base::Status started = memory->copy(destination, source, &outcome);
    if (!started.is_pending()) return started;
    poll_until_idle(*memory);
    EXPECT_EQ(outcome.calls, 1);
    if (outcome.status.ok()) {
      EXPECT_EQ(outcome.size_bytes, source.size_bytes);
    }
    return outcome.status;
  }

  std::vector<Buffer> owned;
};

// The driver would wait for the device in each of these, and the device writes to what they free.
TEST_F(MemoryOverFakeCudaTest, WhatADeviceThatHangsUsesIsNotGivenBack) {
  MemoryOptions options;
  options.of<CudaOptions>().driver = FAKE_CUDA;
  options.device_timeout = std::chrono::milliseconds(1);
  auto impatient = std::make_unique<Memory>(options);
  KindBackend& cuda = *impatient->backend(Kind::kCuda);
  Buffer device = impatient->allocate(64, kGpu0).value();
  device.stream = cuda.create_stream(0).value();
  static_cast<::CudaStreamTag*>(device.stream)->queue.emplace_back([] { return false; });
  std::vector<unsigned char> bytes(64);
  Outcome through_chunk;
  ASSERT_TRUE(impatient->copy(host_buffer(bytes), device, &through_chunk).is_pending());
  impatient->close();
  EXPECT_EQ(through_chunk.calls, 1);
  EXPECT_EQ(through_chunk.status.code(), StatusCode::kClosed);
  EXPECT_TRUE(cuda.destroy_stream(device.stream).ok());
  EXPECT_TRUE(impatient->deallocate(device).ok());
  impatient.reset();
  for (const char* call :
       {"cuMemFree", "cuMemFreeHost", "cuStreamDestroy", "cuEventDestroy", "cuDevicePrimaryCtxRelease"}) {
    EXPECT_EQ(fake_cuda()->calls[call], 0) << call;
  }
  // The system's part.
  for (::CudaStreamTag* stream : fake_cuda()->streams) delete stream;
  for (::CudaEventTag* event : fake_cuda()->events) delete event;
  while (!fake_cuda()->blocks.empty()) fake_cuda()->remove_block(fake_cuda()->blocks.begin()->first);
  fake_cuda_reset();
}

class StagedTest : public MemoryOverFakeCudaTest,
                   public ::testing::WithParamInterface<std::pair<Place, Place>> {};

TEST_P(StagedTest, MovesTheBytesWithoutBlocking) {
  // From one byte to more than all chunks together.
  for (const std::size_t size_bytes :
       {std::size_t{1}, std::size_t{4097}, StagingPool::kChunkBytes, StagingPool::kChunkBytes * 20 + 5}) {
    const auto bytes = pattern(size_bytes, 1);
    std::vector<unsigned char> result(size_bytes);
    const Buffer source = make(size_bytes, GetParam().first);
    const Buffer destination = make(size_bytes, GetParam().second);
    ASSERT_TRUE(move(source, ConstBuffer(bytes.data(), size_bytes)).ok());
    ASSERT_TRUE(move(destination, source).ok());
    ASSERT_TRUE(move(host_buffer(result), destination).ok());
    EXPECT_EQ(result, bytes) << size_bytes;
  }
}

TEST_P(StagedTest, AFailureInTheMiddleEndsTheCopyOnceAndNothingElse) {
  const std::size_t size_bytes = StagingPool::kChunkBytes * 40;
  const Buffer source = make(size_bytes, GetParam().first);
  const Buffer destination = make(size_bytes, GetParam().second);
  Outcome fails;
  ASSERT_TRUE(memory->copy(destination, source, &fails).is_pending());
  Outcome works;
  std::vector<unsigned char> result(64);
  const Buffer start{make(64, kGpu0)};
  ASSERT_TRUE(memory->copy(host_buffer(result), start, &works).is_pending());
  memory->progress();
  fake_cuda()->fail_next["cuMemcpyAsync"] = 2;
  fake_cuda()->fail_next["cuMemcpyPeerAsync"] = 2;
  poll_until_idle(*memory);
  EXPECT_EQ(fails.calls, 1);
  EXPECT_EQ(fails.status.ok(), GetParam().first == kGpu0 && GetParam().second == kGpu1)
      << "a peer copy is one piece";
  EXPECT_EQ(works.calls, 1);
  fake_cuda()->fail_next.clear();
  EXPECT_TRUE(move(destination, source).ok()) << "chunks were lost";
}

// The copy is under way then: an end at once would give memory back that the device still writes to.
TEST_P(StagedTest, AnEventThatCouldNotBeRecordedIsRecordedLater) {
  const std::size_t size_bytes = StagingPool::kChunkBytes * 3;
  const auto bytes = pattern(size_bytes, 1);
  std::vector<unsigned char> result(size_bytes);
  const Buffer source = make(size_bytes, GetParam().first);
  const Buffer destination = make(size_bytes, GetParam().second);
  ASSERT_TRUE(move(source, ConstBuffer(bytes.data(), size_bytes)).ok());
  fake_cuda()->fail_next["cuEventRecord"] = 2;
  ASSERT_TRUE(move(destination, source).ok());
  EXPECT_TRUE(fake_cuda()->fail_next.empty()) << "no event was recorded";
  ASSERT_TRUE(move(host_buffer(result), destination).ok());
  EXPECT_EQ(result, bytes);
}

TEST_F(MemoryOverFakeCudaTest, ACopyWhoseEventIsRefusedWaitsUnlessItsDeviceIsBroken) {
  constexpr int kOutOfMemory = 2;
  constexpr int kIllegalAddress = 700;
  const Buffer source = make(64, kGpu0);
  const Buffer destination = make(64, kGpu1);
  Outcome outcome;
  fake_cuda()->fail_next["cuEventRecord"] = kOutOfMemory;
  ASSERT_TRUE(memory->copy(destination, source, &outcome).is_pending());
  for (int i = 0; i < 10; ++i) {
    fake_cuda()->fail_next["cuEventRecord"] = kOutOfMemory;
    memory->progress();
    EXPECT_EQ(outcome.calls, 0);
  }
  fake_cuda()->fail_next["cuEventRecord"] = kIllegalAddress;
  poll_until_idle(*memory);
  EXPECT_EQ(outcome.calls, 1);
  EXPECT_NE(outcome.status.to_string().find("cuEventRecord"), std::string::npos);
}

TEST_P(StagedTest, CloseInTheMiddle) {
  const std::size_t size_bytes = StagingPool::kChunkBytes * 40;
  const Buffer source = make(size_bytes, GetParam().first);
  const Buffer destination = make(size_bytes, GetParam().second);
  for (const int polls : {0, 1, 2, 5}) {
    Outcome first;
    Outcome second;
    ASSERT_TRUE(memory->copy(destination, source, &first).is_pending());
    ASSERT_TRUE(memory->copy(destination, source, &second).is_pending());
    for (int i = 0; i < polls; ++i) memory->progress();
    if (polls < 5) {
      poll_until_idle(*memory);
      continue;
    }
    const int early = first.calls;
    memory->close();
    EXPECT_EQ(first.calls, 1);
    EXPECT_EQ(second.calls, 1);
    if (early == 0) {
      EXPECT_EQ(first.status.code(), StatusCode::kClosed);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Places, StagedTest,
                         ::testing::Values(std::pair{kHostPlace, kGpu0}, std::pair{kGpu0, kHostPlace},
                                           std::pair{kGpu0, kGpu1}, std::pair{kGpu1, kEmulated},
                                           std::pair{kEmulated, kGpu1}),
                         [](const auto& param_info) {
                           std::string name = place_name(param_info.param.first) + "_to_" +
                                              place_name(param_info.param.second);
                           for (char& c : name) c = c == ':' ? '_' : c;
                           return name;
                         });

TEST_F(MemoryOverFakeCudaTest, PageLockedMemoryIsCopiedDirectly) {
  auto locked = memory->backend(Kind::kCuda)->allocate_host(4096, 0);
  ASSERT_TRUE(locked.ok());
  const int chunks = fake_cuda()->calls["cuMemHostAlloc"];
  const Buffer device = make(4096, kGpu0);
  ASSERT_TRUE(move(device, ConstBuffer(*locked, 4096)).ok());
  EXPECT_EQ(fake_cuda()->calls["cuMemHostAlloc"], chunks) << "it was staged";
  memory->backend(Kind::kCuda)->deallocate_host(*locked);
}

TEST_F(MemoryOverFakeCudaTest, NoPageLockedMemoryIsAFailureOfTheCopy) {
  const Buffer device = make(64, kGpu0);
  std::vector<unsigned char> bytes(64);
  fake_cuda()->fail_next["cuMemHostAlloc"] = 2;
  EXPECT_EQ(move(device, host_buffer(bytes)).code(), StatusCode::kOutOfMemory);
  EXPECT_TRUE(move(device, host_buffer(bytes)).ok());
}

TEST_F(MemoryOverFakeCudaTest, StagedCopiesFollowTheStreamsOfBothSides) {
  const Buffer on_gpu = make(64, kGpu0);
  const Buffer on_emulated = make(64, kEmulated);
  std::vector<unsigned char> ones(64, 1);
  ASSERT_TRUE(move(on_emulated, host_buffer(ones)).ok());
  const StreamHandle producer = emulated().create_stream(1).value();
  bool go = false;
  ASSERT_TRUE(emulated()
                  .launch(producer, 1,
                          [&] {
                            if (!go) return base::Status::pending();
                            std::memset(emulated().device_view(on_emulated.data, 64).value(), 2, 64);
                            return base::Status();
                          })
                  .ok());
  Buffer source = on_emulated;
  source.stream = producer;
  Buffer destination = on_gpu;
  destination.stream = reinterpret_cast<StreamHandle>(1);
  Outcome outcome;
  ASSERT_TRUE(memory->copy(destination, source, &outcome).is_pending());
  for (int i = 0; i < 100; ++i) memory->progress();
  EXPECT_EQ(outcome.calls, 0);
  go = true;
  poll_until_idle(*memory);
  ASSERT_TRUE(outcome.status.ok()) << outcome.status.to_string();
  std::vector<unsigned char> result(64);
  ASSERT_TRUE(move(host_buffer(result), on_gpu).ok());
  EXPECT_EQ(result, std::vector<unsigned char>(64, 2));
}

TEST_F(MemoryOverFakeCudaTest, CopiesBehindABusyStreamHoldUpNoOthers) {
  constexpr std::size_t kSizeBytes = StagingPool::kChunkBytes * 2;
  const Buffer device = make(kSizeBytes, kGpu0);
  const StreamHandle stream = memory->backend(Kind::kCuda)->create_stream(0).value();
  auto open = std::make_shared<bool>(false);
  static_cast<::CudaStreamTag*>(stream)->queue.emplace_back([open] { return *open; });
  Buffer busy = device;
  busy.stream = stream;
  std::vector<unsigned char> bytes(kSizeBytes);
  std::vector<Outcome> waiting(100);
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    ASSERT_TRUE((i % 2 == 0 ? memory->copy(host_buffer(bytes), busy, &waiting[i])
                            : memory->copy(busy, host_buffer(bytes), &waiting[i]))
                    .is_pending());
  }
  std::vector<Outcome> others(100);
  for (Outcome& other : others) ASSERT_TRUE(memory->copy(host_buffer(bytes), device, &other).is_pending());
  // Behind all of them, a copy whose stream is not busy.
  Buffer ready = device;
  ready.stream = memory->backend(Kind::kCuda)->create_stream(0).value();
  Outcome named;
  ASSERT_TRUE(memory->copy(host_buffer(bytes), ready, &named).is_pending());
  for (int i = 0; i < 5000; ++i) memory->progress();
  for (const Outcome& other : others) EXPECT_EQ(other.calls, 1);
  EXPECT_EQ(named.calls, 1);
  for (const Outcome& outcome : waiting) EXPECT_EQ(outcome.calls, 0);
  *open = true;
  poll_until_idle(*memory);
  for (const Outcome& outcome : waiting) {
    EXPECT_EQ(outcome.calls, 1);
    EXPECT_TRUE(outcome.status.ok()) << outcome.status.to_string();
  }
}

TEST_F(MemoryOverFakeCudaTest, ADeferredCopyWhoseFirstChunkFailsEndsOnce) {
  const Buffer device = make(64, kGpu0);
  std::vector<unsigned char> bytes(64);
  auto open = std::make_shared<bool>(false);
  const auto busy_with = [&](const std::shared_ptr<bool>& until) {
    Buffer busy = device;
    busy.stream = memory->backend(Kind::kCuda)->create_stream(0).value();
    static_cast<::CudaStreamTag*>(busy.stream)->queue.emplace_back([until] { return *until; });
    return busy;
  };
  const Buffer busy = busy_with(open);
  std::vector<Outcome> have_lanes(30);
  for (Outcome& outcome : have_lanes)
    ASSERT_TRUE(memory->copy(host_buffer(bytes), busy, &outcome).is_pending());
  auto go = std::make_shared<bool>(false);
  Outcome deferred;
  ASSERT_TRUE(memory->copy(host_buffer(bytes), busy_with(go), &deferred).is_pending());
  *go = true;
  fake_cuda()->fail_next["cuMemcpyAsync"] = 2;
  for (int i = 0; i < 100 && deferred.calls == 0; ++i) memory->progress();
  EXPECT_EQ(deferred.calls, 1);
  EXPECT_TRUE(deferred.status.failed());
  fake_cuda()->fail_next.clear();
  *open = true;
  poll_until_idle(*memory);
  for (const Outcome& outcome : have_lanes) EXPECT_EQ(outcome.calls, 1);
}

TEST_F(MemoryOverFakeCudaTest, EitherHalfOfABounceMayFail) {
  const std::size_t size_bytes = StagingPool::kChunkBytes * 40;  // so that some have no chunk yet
  const Buffer on_gpu = make(size_bytes, kGpu0);
  const Buffer on_emulated = make(size_bytes, kEmulated);
  for (const auto& [source, destination] : {std::pair{on_gpu, on_emulated}, std::pair{on_emulated, on_gpu}}) {
    EmulatedFaults faults;
    faults.fail_copy = 3;
    emulated().set_faults(faults);
    const base::Status status = move(destination, source);
    EXPECT_NE(status.message().find("fault injection"), std::string::npos) << status.to_string();
    emulated().set_faults({});
    EXPECT_TRUE(move(destination, source).ok()) << "chunks were lost";
  }
}

TEST_F(MemoryOverFakeCudaTest, AStreamOfAnotherDeviceIsRefusedAtTheCall) {
  Buffer device = make(64, kGpu0);
  device.stream = memory->backend(Kind::kCuda)->create_stream(1).value();
  std::vector<unsigned char> bytes(64);
  Outcome outcome;
  EXPECT_TRUE(memory->copy(host_buffer(bytes), device, &outcome).failed());
  EXPECT_FALSE(memory->has_pending());
}

TEST_F(MemoryOverFakeCudaTest, TheDriverIsAskedOncePerAllocation) {
  auto* const data = reinterpret_cast<std::byte*>(fake_cuda()->add_block(4096, 1));
  EXPECT_EQ(memory->place_of(data), kGpu1);
  EXPECT_EQ(fake_cuda()->calls["cuPointerGetAttributes"], 1);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(memory->place_of(data + i), kGpu1);
  EXPECT_EQ(fake_cuda()->calls["cuPointerGetAttributes"], 1);
  fake_cuda()->remove_block(reinterpret_cast<std::uintptr_t>(data));
}

TEST_F(MemoryOverFakeCudaTest, CopiesThatTheProgramMadeBeforeAreOver) {
  const std::uintptr_t base = fake_cuda()->add_block(4096, 1);
  auto* const data = reinterpret_cast<std::byte*>(base);
  fake_cuda()->busy_queries = 5;
  EXPECT_EQ(memory->place_of(data + 100), kGpu1);
  EXPECT_EQ(fake_cuda()->busy_queries, 0) << "a copy from pageable memory may be on its way";
  EXPECT_TRUE(fake_cuda()->blocks.at(base).copies_are_synchronous);
  // Known memory costs nothing, and a kernel that runs on is not waited for.
  fake_cuda()->busy_queries = 1 << 30;
  EXPECT_EQ(memory->place_of(data), kGpu1);
  EXPECT_EQ(fake_cuda()->busy_queries, 1 << 30);
  const std::uintptr_t other = fake_cuda()->add_block(64, 0);
  EXPECT_EQ(memory->place_of(reinterpret_cast<void*>(other)), kGpu0);
  EXPECT_LT(fake_cuda()->busy_queries, 1 << 30);
  fake_cuda()->busy_queries = 0;
  for (const std::uintptr_t block : {base, other}) fake_cuda()->remove_block(block);
}

TEST_F(MemoryOverFakeCudaTest, FreedBehindOurBack) {
  const std::uintptr_t base = fake_cuda()->add_block(8192, 1);
  auto* const data = reinterpret_cast<std::byte*>(base);
  EXPECT_EQ(memory->place_of(data + 5000), kGpu1);
  // Device to nothing, to host memory, to another device, and to a smaller allocation.
  fake_cuda()->remove_block(base);
  EXPECT_EQ(memory->place_of(data + 5000), kHostPlace);
  fake_cuda()->next_address = data;
  ASSERT_EQ(fake_cuda()->add_block(8192, 0), base);
  EXPECT_EQ(memory->place_of(data + 5000), kGpu0);
  const std::uint64_t generation = memory->allocation_of(data).generation;
  fake_cuda()->remove_block(base);
  fake_cuda()->next_address = data;
  ASSERT_EQ(fake_cuda()->add_block(8192, 0), base);
  EXPECT_NE(memory->allocation_of(data).generation, generation)
      << "the same place is not the same allocation";
  fake_cuda()->remove_block(base);
  fake_cuda()->next_address = data;
  ASSERT_EQ(fake_cuda()->add_block(4096, 0), base);
  EXPECT_EQ(memory->place_of(data), kGpu0);
  EXPECT_EQ(memory->place_of(data + 5000), kHostPlace);
  fake_cuda()->remove_block(base);
}

TEST_F(MemoryOverFakeCudaTest, OneAddressGoesFromKindToKind) {
  const std::uintptr_t base = fake_cuda()->add_block(8192, 1);
  auto* const data = reinterpret_cast<std::byte*>(base);
  EXPECT_EQ(memory->place_of(data + 4096), kGpu1);
  fake_cuda()->remove_block(base);
  emulated().place_next_at(data);
  const Buffer buffer = memory->allocate(8192, kEmulated).value();
  ASSERT_EQ(buffer.data, data);
  EXPECT_EQ(memory->place_of(data + 4096), kEmulated);
  ASSERT_TRUE(memory->deallocate(buffer).ok());
  fake_cuda()->next_address = data;
  ASSERT_EQ(fake_cuda()->add_block(8192, 0), base);
  EXPECT_EQ(memory->place_of(data + 4096), kGpu0);
  fake_cuda()->remove_block(base);
  EXPECT_EQ(memory->place_of(data + 4096), kHostPlace);
}

TEST_F(MemoryOverFakeCudaTest, OurOwnDeallocationIsSeenAtOnce) {
  const Buffer buffer = memory->allocate(4096, kGpu1).value();
  EXPECT_EQ(memory->place_of(buffer.data), kGpu1);
  ASSERT_TRUE(memory->deallocate(buffer).ok());
  EXPECT_EQ(memory->place_of(buffer.data), kHostPlace);
}

}  // namespace
}  // namespace weft::memory
