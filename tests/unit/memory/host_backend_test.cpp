#include "memory/kinds/host/host_backend.h"

#include <cstring>

#include "gtest/gtest.h"

#if defined(__SANITIZE_ADDRESS__)
// Running out of memory is tested here, so it must be an answer and not the end of the program.
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
#endif

namespace weft::memory {
namespace {

using base::StatusCode;

TEST(HostBackendTest, AllocatesForVectorRegisters) {
  HostBackend host;
  for (const std::size_t size_bytes : {std::size_t{1}, std::size_t{63}, std::size_t{100000}}) {
    auto data = host.allocate(size_bytes, 0);
    ASSERT_TRUE(data.ok());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(*data) % 64, 0u);
    std::memset(*data, 1, size_bytes);
    EXPECT_TRUE(host.deallocate(*data).ok());
  }
  EXPECT_EQ(host.allocate(SIZE_MAX / 2, 0).status().code(), StatusCode::kOutOfMemory);
  EXPECT_TRUE(host.cpu_accessible());
  EXPECT_EQ(host.num_devices(), 1);
}

TEST(HostBackendTest, IsWhatNoDeviceKindKnows) {
  HostBackend host;
  int value = 0;
  EXPECT_FALSE(host.find_allocation(&value).has_value());
  EXPECT_FALSE(host.address_range().contains(reinterpret_cast<std::uintptr_t>(&value)));
}

TEST(HostBackendTest, CopiesLater) {
  HostBackend host;
  char source[] = "bytes";
  char destination[sizeof source] = "";
  ASSERT_TRUE(host.copy_async(destination, Place(), source, Place(), sizeof source, nullptr).ok());
  auto event = host.record(nullptr, 0);
  ASSERT_TRUE(event.ok());
  EXPECT_STREQ(destination, "") << "done inside the call";
  base::Status status = base::Status::pending();
  for (int i = 0; i < 10 && status.is_pending(); ++i) status = host.query(*event);
  EXPECT_TRUE(status.ok());
  EXPECT_STREQ(destination, "bytes");
  host.release_event(*event);
}

TEST(HostBackendTest, RefusesDeviceMemory) {
  HostBackend host;
  char bytes[8] = "";
  EXPECT_EQ(host.copy_async(bytes, Place(), bytes, {Kind::kEmulated, 0}, 8, nullptr).code(),
            StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace weft::memory
