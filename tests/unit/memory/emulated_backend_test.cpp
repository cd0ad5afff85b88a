#include "memory/kinds/emulated/emulated_backend.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "tests/unit/memory/places.h"

namespace weft::memory {
namespace {

using base::Status;
using base::StatusCode;

class EmulatedBackendTest : public ::testing::Test {
 protected:
  std::byte* make(std::size_t size_bytes, int device = 0) {
    auto data = backend.allocate(size_bytes, device);
    EXPECT_TRUE(data.ok()) << data.status().to_string();
    return static_cast<std::byte*>(*data);
  }
  Status finish(int device = 0) {
    EventHandle event = backend.record(nullptr, device).value();
    Status status = Status::pending();
    for (int i = 0; i < 1000 && status.is_pending(); ++i) status = backend.query(event);
    backend.release_event(event);
    return status;
  }

  EmulatedBackend backend{2};
};

using EmulatedBackendDeathTest = EmulatedBackendTest;

// Under AddressSanitizer its own report takes the place of the signal; a plain build dies of SIGSEGV.
#if defined(__SANITIZE_ADDRESS__)
#define EXPECT_FAULT(statement) EXPECT_DEATH(statement, "SEGV")
#else
#define EXPECT_FAULT(statement) EXPECT_EXIT(statement, ::testing::KilledBySignal(SIGSEGV), "")
#endif

TEST_F(EmulatedBackendDeathTest, ACpuAccessFaultsAtOnce) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  auto* const data = reinterpret_cast<volatile char*>(make(100000));
  EXPECT_FAULT({ [[maybe_unused]] const char c = data[0]; });
  EXPECT_FAULT({ [[maybe_unused]] const char c = data[99999]; });
  EXPECT_FAULT(data[50000] = 1);
  EXPECT_FALSE(backend.cpu_accessible());
}

TEST_F(EmulatedBackendTest, TheKernelDoesNotReachItEither) {
  std::byte* const data = make(4096);
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe(ends), 0);
  EXPECT_EQ(::write(ends[1], data, 16), -1);
  EXPECT_EQ(errno, EFAULT);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(EmulatedBackendTest, FindsTheAllocationOfAnAddress) {
  std::byte* const data = make(5000, 1);
  for (std::byte* address : {data, data + 4999}) {
    const auto found = backend.find_allocation(address);
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->base, reinterpret_cast<std::uintptr_t>(data));
    EXPECT_EQ(found->size_bytes, 5000u);
    EXPECT_EQ(found->place, kDevice1);
    EXPECT_TRUE(backend.address_range().contains(reinterpret_cast<std::uintptr_t>(address)));
  }
  EXPECT_FALSE(backend.find_allocation(data + 5000).has_value());
  EXPECT_FALSE(backend.find_allocation(data - 1).has_value());
  EXPECT_FALSE(backend.find_allocation(nullptr).has_value());
}

TEST_F(EmulatedBackendTest, TheSameAddressAgainIsAnotherGeneration) {
  std::byte* const data = make(4096);
  const auto first = backend.find_allocation(data);
  std::vector<std::uintptr_t> released;
  backend.set_release_listener([&](std::uintptr_t base) { released.push_back(base); });
  ASSERT_TRUE(backend.deallocate(data).ok());
  EXPECT_EQ(released, (std::vector<std::uintptr_t>{first->base}));
  EXPECT_FALSE(backend.find_allocation(data).has_value());
  backend.place_next_at(data);
  ASSERT_EQ(make(4096), data);
  EXPECT_NE(backend.find_allocation(data)->generation, first->generation);
}

TEST_F(EmulatedBackendTest, ATakenAddressIsRefused) {
  std::byte* const data = make(4096);
  backend.place_next_at(data);
  EXPECT_EQ(backend.allocate(4096, 0).status().code(), StatusCode::kOutOfMemory);
  make(4096);  // the wish was for one allocation
}

TEST_F(EmulatedBackendTest, NewMemoryIsZero) {
  std::byte* const data = make(4096);
  std::vector<char> bytes(4096, 1);
  ASSERT_TRUE(backend.copy_async(bytes.data(), Place(), data, kDevice0, 4096, nullptr).ok());
  ASSERT_TRUE(finish().ok());
  EXPECT_EQ(bytes, std::vector<char>(4096, 0));
}

TEST_F(EmulatedBackendTest, RowsAreCopiedWithTheirDistances) {
  std::byte* const rows = make(100);
  std::byte* const dense = make(30);
  auto* const from = static_cast<std::byte*>(backend.device_view(rows, 100).value());
  auto* const to = static_cast<std::byte*>(backend.device_view(dense, 30).value());
  for (int i = 0; i < 100; ++i) from[i] = static_cast<std::byte>(i);
  ASSERT_TRUE(backend.copy_rows_async({dense, 6}, {rows + 80, -20}, kDevice0, 6, 5, nullptr).ok());
  ASSERT_TRUE(finish().ok());
  for (int row = 0; row < 5; ++row) {
    for (int i = 0; i < 6; ++i) ASSERT_EQ(to[row * 6 + i], static_cast<std::byte>(80 - 20 * row + i));
  }
}

TEST_F(EmulatedBackendTest, KernelsReachMemoryThroughTheView) {
  std::byte* const data = make(64);
  ASSERT_TRUE(backend
                  .launch(nullptr, 0,
                          [&] {
                            std::memset(backend.device_view(data, 64).value(), 7, 64);
                            return Status();
                          })
                  .ok());
  char last = 0;
  ASSERT_TRUE(backend.copy_async(&last, Place(), data + 63, kDevice0, 1, nullptr).ok());
  ASSERT_TRUE(finish().ok());
  EXPECT_EQ(last, 7);
  EXPECT_EQ(backend.device_view(data + 1, 64).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(backend.device_view(&last, 1).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(EmulatedBackendTest, FaultsCountFromTheirSetting) {
  std::byte* const data = make(64);
  char byte = 0;
  const auto copy = [&] {
    EXPECT_TRUE(backend.copy_async(&byte, Place(), data, kDevice0, 1, nullptr).ok());
    return finish();
  };
  EmulatedFaults faults;
  faults.fail_copy = 2;
  backend.set_faults(faults);
  EXPECT_TRUE(copy().ok());
  const Status failed = copy();
  EXPECT_EQ(failed.code(), StatusCode::kInternal);
  EXPECT_NE(failed.message().find("fault injection"), std::string::npos);
  EXPECT_TRUE(copy().ok());
  backend.set_faults(faults);
  EXPECT_TRUE(copy().ok());
  EXPECT_TRUE(copy().failed());
  backend.set_faults({});
  EXPECT_TRUE(copy().ok());
  EXPECT_TRUE(copy().ok());
}

TEST_F(EmulatedBackendTest, AFullDeviceHasRoomAgainAfterDeallocation) {
  EmulatedFaults faults;
  faults.device_bytes = 100;
  backend.set_faults(faults);
  std::byte* const data = make(60);
  const Status full = backend.allocate(60, 0).status();
  EXPECT_EQ(full.code(), StatusCode::kOutOfMemory);
  EXPECT_NE(full.message().find("60 of 100 bytes in use"), std::string::npos) << full.to_string();
  ASSERT_TRUE(backend.deallocate(data).ok());
  make(100);
  make(100, 1);
}

TEST_F(EmulatedBackendTest, WrongUse) {
  std::byte* const data = make(64);
  EXPECT_EQ(backend.allocate(8, 2).status().code(), StatusCode::kOutOfRange);
  EXPECT_EQ(backend.deallocate(data + 8).code(), StatusCode::kInvalidArgument);
  ASSERT_TRUE(backend.deallocate(data).ok());
  EXPECT_EQ(backend.deallocate(data).code(), StatusCode::kInvalidArgument) << "freed twice";
  EXPECT_TRUE(backend.deallocate(nullptr).ok());
  char byte = 0;
  EXPECT_EQ(backend.copy_async(&byte, Place(), data, kDevice0, 1, nullptr).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(backend.copy_async(data, kDevice0, &byte, Place(), 1, nullptr).code(),
            StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace weft::memory
