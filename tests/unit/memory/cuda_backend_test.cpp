// Kind cuda over the fake driver: contexts, events, copies, what an address belongs to, and how calls fail.
#include "memory/kinds/cuda/cuda_backend.h"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "tests/unit/memory/fake_cuda.h"
#include "tests/unit/memory/places.h"

extern "C" int cuCtxGetCurrent(CudaContextTag** context);  // the stand-in driver's

namespace weft::memory {
namespace {

using base::Status;
using base::StatusCode;

class CudaBackendTest : public ::testing::Test {
 protected:
  CudaBackendTest() {
    fake_cuda_reset();
    auto driver = CudaDriver::load(FAKE_CUDA);
    EXPECT_TRUE(driver.ok()) << driver.status().to_string();
    driver_ = driver->get();
    backend = std::make_unique<CudaBackend>(std::move(*driver));
  }

  void TearDown() override {
    backend.reset();
    ::CudaContextTag* left = nullptr;
    EXPECT_EQ(cuCtxGetCurrent(&left), 0);
    EXPECT_EQ(left, nullptr) << "a context is current that nobody retains";
    EXPECT_EQ(fake_cuda()->wrong_context_calls, 0);
    EXPECT_TRUE(fake_cuda()->events.empty()) << "events leaked";
    for (const auto* stream : fake_cuda()->streams) {
      const bool is_default = &fake_cuda()->default_streams[stream->device] == stream;
      EXPECT_TRUE(is_default) << "a stream leaked";
    }
    for (const auto& context : fake_cuda()->contexts) EXPECT_EQ(context->retained, 0);
  }

  CudaContext current() {
    CudaContext context = nullptr;
    EXPECT_EQ(driver_->CtxGetCurrent(&context), cuda::kSuccess);
    return context;
  }

  void* make(std::size_t size_bytes, int device) {
    auto data = backend->allocate(size_bytes, device);
    EXPECT_TRUE(data.ok()) << data.status().to_string();
    return *data;
  }

  StreamHandle make_stream(int device) {
    auto stream = backend->create_stream(device);
    EXPECT_TRUE(stream.ok()) << stream.status().to_string();
    return *stream;
  }

  Status finish(StreamHandle stream, int device) {
    auto event = backend->record(stream, device);
    if (!event.ok()) return event.status();
    Status status = Status::pending();
    for (int i = 0; i < 1000 && status.is_pending(); ++i) status = backend->query(*event);
    backend->release_event(*event);
    return status;
  }

  const CudaDriver* driver_ = nullptr;
  std::unique_ptr<CudaBackend> backend;
};

// Rows go in one call, unless their distances are no pitches or the driver refuses them.
TEST_F(CudaBackendTest, RowsAreCopiedWithTheirDistances) {
  auto* const rows = static_cast<std::byte*>(make(100, 0));
  auto* const dense = static_cast<std::byte*>(make(30, 0));
  for (int i = 0; i < 100; ++i) rows[i] = static_cast<std::byte>(i);
  struct Case {
    StridedRows source;
    int refusal;
    int calls_2d;
    int calls_1d;
  };
  for (const Case& one : {Case{{rows, 20}, 0, 1, 0}, Case{{rows + 80, -20}, 0, 0, 5},
                          Case{{rows, 20}, cuda::kInvalidValue, 1, 5}, Case{{rows, 3}, 0, 0, 5}}) {
    std::memset(dense, 0xEE, 30);
    fake_cuda()->calls.clear();
    if (one.refusal != 0) fake_cuda()->fail_next["cuMemcpy2DAsync"] = one.refusal;
    ASSERT_TRUE(backend->copy_rows_async({dense, 6}, one.source, kGpu0, 6, 5, nullptr).ok());
    ASSERT_TRUE(finish(nullptr, 0).ok());
    for (std::ptrdiff_t row = 0; row < 5; ++row) {
      for (std::ptrdiff_t i = 0; i < 6; ++i)
        ASSERT_EQ(dense[row * 6 + i], one.source.data[row * one.source.stride + i]);
    }
    EXPECT_EQ(fake_cuda()->calls["cuMemcpy2DAsync"], one.calls_2d);
    EXPECT_EQ(fake_cuda()->calls["cuMemcpyAsync"], one.calls_1d);
  }
  EXPECT_TRUE(backend->deallocate(rows).ok());
  EXPECT_TRUE(backend->deallocate(dense).ok());
}

TEST_F(CudaBackendTest, ContextsAreMadeWhenNeeded) {
  EXPECT_EQ(backend->num_devices(), 2);
  EXPECT_EQ(backend->device_name(1), "Fake GPU");
  EXPECT_FALSE(backend->find_allocation(&backend).has_value());
  EXPECT_EQ(fake_cuda()->calls["cuDevicePrimaryCtxRetain"], 0);
  void* const data = make(64, 1);
  EXPECT_EQ(fake_cuda()->calls["cuDevicePrimaryCtxRetain"], 1);
  EXPECT_TRUE(backend->deallocate(data).ok());
  EXPECT_EQ(fake_cuda()->calls["cuDevicePrimaryCtxRetain"], 1);
}

TEST_F(CudaBackendTest, TheThreadsOwnContextIsLeftCurrent) {
  void* const data = make(64, 1);
  CudaContext mine = nullptr;
  ASSERT_EQ(driver_->DevicePrimaryCtxRetain(&mine, 0), cuda::kSuccess);
  ASSERT_EQ(driver_->CtxSetCurrent(mine), cuda::kSuccess);
  const StreamHandle stream = make_stream(1);
  EXPECT_EQ(current(), mine);
  EXPECT_TRUE(backend->copy_async(data, kGpu1, data, kGpu1, 8, stream).ok());
  EXPECT_EQ(current(), mine);
  EXPECT_TRUE(finish(stream, 1).ok());
  EXPECT_EQ(current(), mine);
  EXPECT_TRUE(backend->destroy_stream(stream).ok());
  EXPECT_TRUE(backend->deallocate(data).ok());
  EXPECT_EQ(current(), mine);
  ASSERT_EQ(driver_->CtxSetCurrent(nullptr), cuda::kSuccess);
  ASSERT_EQ(driver_->DevicePrimaryCtxRelease(0), cuda::kSuccess);
}

TEST_F(CudaBackendTest, ALibraryIsShownTheDeviceThatItIsAskedAbout) {
  void* const data = make(64, 0);  // and its context is current from now on
  CudaContext before = current();
  CudaContext within = nullptr;
  EXPECT_TRUE(backend->with_current(1, [&] { within = current(); }).ok());
  EXPECT_NE(within, nullptr);
  EXPECT_NE(within, before);
  EXPECT_EQ(current(), before);
  EXPECT_THROW(static_cast<void>(backend->with_current(1, [] { throw 5; })), int);
  EXPECT_EQ(current(), before);
  EXPECT_EQ(backend->with_current(2, [] { ADD_FAILURE(); }).code(), base::StatusCode::kOutOfRange);
  EXPECT_TRUE(backend->deallocate(data).ok());
}

TEST_F(CudaBackendTest, DevicesReachEachOthersMemoryBeforeTheFirstCopyBetweenThem) {
  void* const first = make(64, 0);
  void* const second = make(64, 1);
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(backend->copy_async(second, kGpu1, first, kGpu0, 8, nullptr).ok());
    EXPECT_EQ(fake_cuda()->calls["cuCtxEnablePeerAccess"], 1);
  }
  fake_cuda()->fail_next["cuCtxEnablePeerAccess"] = 704;  // another library has enabled it
  EXPECT_TRUE(backend->copy_async(first, kGpu0, second, kGpu1, 8, nullptr).ok());
  EXPECT_EQ(fake_cuda()->calls["cuCtxEnablePeerAccess"], 2);
  EXPECT_TRUE(finish(nullptr, 0).ok());
  EXPECT_TRUE(finish(nullptr, 1).ok());
  EXPECT_TRUE(backend->deallocate(first).ok());
  EXPECT_TRUE(backend->deallocate(second).ok());
}

TEST_F(CudaBackendTest, APEsOwnDeviceIsMadeTheCurrentOne) {
  EXPECT_TRUE(backend->make_current(1).ok());
  ASSERT_NE(current(), nullptr);
  EXPECT_EQ(reinterpret_cast<::CudaContextTag*>(current())->device, 1);
  // The backend uses another device first, and the thread has lost its context: it gets one again.
  ASSERT_EQ(driver_->CtxSetCurrent(nullptr), cuda::kSuccess);
  EXPECT_TRUE(backend->make_current(1).ok());
  ASSERT_NE(current(), nullptr);
  EXPECT_EQ(fake_cuda()->calls["cuDevicePrimaryCtxRetain"], 1);
}

TEST_F(CudaBackendTest, ADeviceThatTheProgramChoseStaysTheCurrentOne) {
  CudaContext mine = nullptr;
  ASSERT_EQ(driver_->DevicePrimaryCtxRetain(&mine, 0), cuda::kSuccess);
  ASSERT_EQ(driver_->CtxSetCurrent(mine), cuda::kSuccess);
  EXPECT_TRUE(backend->make_current(1).ok());
  EXPECT_EQ(current(), mine);
  EXPECT_EQ(fake_cuda()->calls["cuDevicePrimaryCtxRetain"], 1) << "a context was made for nothing";
  ASSERT_EQ(driver_->CtxSetCurrent(nullptr), cuda::kSuccess);
  ASSERT_EQ(driver_->DevicePrimaryCtxRelease(0), cuda::kSuccess);
}

TEST_F(CudaBackendTest, ADeviceThatCannotBeMadeCurrentIsNamed) {
  EXPECT_EQ(backend->make_current(2).code(), StatusCode::kOutOfRange);
  fake_cuda()->fail_next["cuDevicePrimaryCtxRetain"] = 2;
  const Status status = backend->make_current(1);
  EXPECT_EQ(status.code(), StatusCode::kOutOfMemory);
  EXPECT_NE(status.message().find("cuda:1"), std::string::npos) << status.message();
  EXPECT_EQ(current(), nullptr);
  fake_cuda()->fail_next["cuCtxSetCurrent"] = 1;
  EXPECT_TRUE(backend->make_current(1).ok()) << "use() failed to set it, make_current() sets it";
  EXPECT_NE(current(), nullptr);
}

// UCX takes memory for unreachable that it looks at without a current context.
TEST_F(CudaBackendTest, AThreadWithoutAContextGetsTheFirstOneUsed) {
  EXPECT_EQ(current(), nullptr);
  void* const data = make(64, 1);
  const CudaContext first = current();
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(reinterpret_cast<::CudaContextTag*>(first)->device, 1);
  void* const other = make(64, 0);
  EXPECT_EQ(current(), first);
  for (void* each : {data, other}) EXPECT_TRUE(backend->deallocate(each).ok());
}

TEST_F(CudaBackendTest, FindsTheAllocationOfAnAddress) {
  auto* const data = static_cast<std::byte*>(make(1000, 1));
  const auto found = backend->find_allocation(data + 999);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->base, reinterpret_cast<std::uintptr_t>(data));
  EXPECT_EQ(found->size_bytes, 1000u);
  EXPECT_EQ(found->place, kGpu1);
  EXPECT_NE(found->generation, 0u);
  EXPECT_TRUE(backend->is_current(*found, data));
  EXPECT_FALSE(backend->find_allocation(data + 1000).has_value());

  std::uintptr_t released = 0;
  backend->set_release_listener([&](std::uintptr_t base) { released = base; });
  EXPECT_TRUE(backend->deallocate(data).ok());
  EXPECT_EQ(released, found->base);
  EXPECT_FALSE(backend->is_current(*found, data));
  EXPECT_FALSE(backend->find_allocation(data).has_value());

  fake_cuda()->next_address = data;
  void* const again = make(1000, 1);
  ASSERT_EQ(again, data);
  EXPECT_FALSE(backend->is_current(*found, data)) << "another allocation at the same address";
  EXPECT_TRUE(backend->deallocate(again).ok());
}

TEST_F(CudaBackendTest, ManagedMemoryIsDeviceMemoryAndPageLockedMemoryIsNot) {
  const std::uintptr_t managed = fake_cuda()->add_block(64, -2, 1, true);
  const auto found = backend->find_allocation(reinterpret_cast<void*>(managed));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->place, kGpu0) << "it names no device while it is on the host";
  fake_cuda()->remove_block(managed);

  auto locked = backend->allocate_host(4096, 0);
  ASSERT_TRUE(locked.ok());
  const auto known = backend->find_allocation(*locked);
  ASSERT_TRUE(known.has_value()) << "the driver may use its address again";
  EXPECT_TRUE(known->place.is_host());
  EXPECT_EQ(known->size_bytes, 0u);
  EXPECT_TRUE(backend->host_copy_is_async(*locked, 4096));
  EXPECT_FALSE(backend->host_copy_is_async(*locked, 4097)) << "its last byte is not page-locked";
  int ordinary = 0;
  EXPECT_FALSE(backend->host_copy_is_async(&ordinary, sizeof ordinary));
  backend->deallocate_host(*locked);
  EXPECT_TRUE(fake_cuda()->blocks.empty());
}

TEST_F(CudaBackendTest, CopiesAndEventsFollowTheStream) {
  auto locked = backend->allocate_host(128, 0);
  ASSERT_TRUE(locked.ok());
  auto* const host = static_cast<char*>(*locked);
  std::strcpy(host, "over and back");
  void* const on0 = make(64, 0);
  void* const on1 = make(64, 1);
  const StreamHandle stream0 = make_stream(0);
  const StreamHandle stream1 = make_stream(1);

  ASSERT_TRUE(backend->copy_async(on0, kGpu0, host, Place(), 64, stream0).ok());
  ASSERT_TRUE(backend->copy_async(on1, kGpu1, on0, kGpu0, 64, stream0).ok());
  auto arrived = backend->record(stream0, 0);
  ASSERT_TRUE(arrived.ok());
  ASSERT_TRUE(backend->stream_wait(stream1, 1, *arrived).ok());
  ASSERT_TRUE(backend->copy_async(host + 64, Place(), on1, kGpu1, 64, stream1).ok());
  auto back = backend->record(stream1, 1);
  ASSERT_TRUE(back.ok());

  EXPECT_TRUE(backend->query(*back).is_pending());
  Status status = Status::pending();
  for (int i = 0; i < 100 && status.is_pending(); ++i) status = backend->query(*back);
  EXPECT_TRUE(status.ok());
  EXPECT_TRUE(backend->query(*arrived).ok());
  EXPECT_STREQ(host + 64, "over and back");
  EXPECT_EQ(fake_cuda()->peer_copies, 1);
  EXPECT_EQ(fake_cuda()->blocking_copies, 0);

  backend->release_event(*arrived);
  backend->release_event(*back);
  EXPECT_TRUE(backend->destroy_stream(stream0).ok());
  EXPECT_TRUE(backend->destroy_stream(stream1).ok());
  EXPECT_TRUE(backend->deallocate(on0).ok());
  EXPECT_TRUE(backend->deallocate(on1).ok());
  backend->deallocate_host(*locked);
}

TEST_F(CudaBackendTest, EventsAreReused) {
  const StreamHandle stream = make_stream(0);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(finish(stream, 0).ok());
  EXPECT_EQ(fake_cuda()->calls["cuEventCreate"], 1);
}

TEST_F(CudaBackendTest, AnEventMayBeReusedOnceAStreamWaitsForIt) {
  const StreamHandle first = make_stream(0);
  const StreamHandle second = make_stream(0);
  void* const data = make(64, 0);
  ASSERT_TRUE(backend->copy_async(data, kGpu0, data, kGpu0, 8, first).ok());
  auto event = backend->record(first, 0);
  ASSERT_TRUE(event.ok());
  ASSERT_TRUE(backend->stream_wait(second, 0, *event).ok());
  backend->release_event(*event);
  EXPECT_TRUE(finish(second, 0).ok());
  EXPECT_TRUE(backend->deallocate(data).ok());
}

TEST_F(CudaBackendTest, NullAndDefaultStreams) {
  void* const data = make(64, 1);
  for (const std::uintptr_t handle : {0, 1, 2}) {
    const auto stream = reinterpret_cast<StreamHandle>(handle);
    EXPECT_TRUE(backend->copy_async(data, kGpu1, data, kGpu1, 8, stream).ok()) << handle;
    EXPECT_FALSE(backend->is_idle(stream, 1)) << handle;
    EXPECT_TRUE(finish(stream, 1).ok()) << handle;
    EXPECT_TRUE(backend->is_idle(stream, 1)) << handle;
  }
  // An event in a stream that synchronizes with the legacy default stream waits for that one.
  const auto legacy = reinterpret_cast<StreamHandle>(std::uintptr_t{1});
  const StreamHandle other = make_stream(1);
  EXPECT_TRUE(backend->is_idle(other, 1));
  EXPECT_TRUE(backend->copy_async(data, kGpu1, data, kGpu1, 8, legacy).ok());
  EXPECT_FALSE(backend->is_idle(other, 1));
  EXPECT_TRUE(finish(legacy, 1).ok());
  EXPECT_TRUE(backend->is_idle(other, 1));
  EXPECT_FALSE(backend->is_idle(other, 0)) << "a stream of another device";
  EXPECT_TRUE(backend->deallocate(data).ok());
}

TEST_F(CudaBackendTest, FailuresSayWhatAndWhere) {
  EXPECT_EQ(backend->allocate(8, 2).status().code(), StatusCode::kOutOfRange);
  EXPECT_EQ(backend->create_stream(-1).status().code(), StatusCode::kOutOfRange);
  fake_cuda()->fail_next["cuMemAlloc"] = 2;
  const Status full = backend->allocate(4096, 1).status();
  EXPECT_EQ(full.code(), StatusCode::kOutOfMemory);
  EXPECT_NE(full.message().find("4096 bytes on cuda:1"), std::string::npos) << full.to_string();
  for (const char* call : {"cuDeviceGet", "cuDevicePrimaryCtxRetain"}) {
    fake_cuda()->fail_next[call] = 2;
    EXPECT_EQ(backend->allocate(8, 0).status().code(), StatusCode::kOutOfMemory) << call;
  }
  fake_cuda()->fail_next["cuMemHostAlloc"] = 2;
  EXPECT_EQ(backend->allocate_host(8, 0).status().code(), StatusCode::kOutOfMemory);

  void* const data = make(64, 0);
  fake_cuda()->fail_next["cuMemcpyAsync"] = 1;
  EXPECT_EQ(backend->copy_async(data, kGpu0, data, kGpu0, 8, nullptr).code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(backend->record(make_stream(1), 0).status().failed()) << "a stream of another device";
  fake_cuda()->fail_next["cuEventCreate"] = 2;
  EXPECT_TRUE(backend->record(nullptr, 1).status().failed());
  fake_cuda()->broken = 700;
  EXPECT_EQ(finish(nullptr, 0).code(), StatusCode::kInternal);
  fake_cuda()->broken = 0;

  EXPECT_EQ(backend->deallocate(static_cast<std::byte*>(data) + 8).code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(backend->deallocate(data).ok());
  EXPECT_EQ(backend->deallocate(data).code(), StatusCode::kInvalidArgument) << "freed twice";
  EXPECT_EQ(backend->destroy_stream(reinterpret_cast<StreamHandle>(0x1234)).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(fake_cuda()->wrong_context_calls, 0);
}

}  // namespace
}  // namespace weft::memory
