// CUDA memory that other processes map, over the stand-in driver, which maps it a second time here.
#include <cstring>

#include "gtest/gtest.h"

#include "tests/unit/memory/fake_cuda_fixture.h"
#include "tests/unit/memory/places.h"

namespace weft::memory {
namespace {

using base::StatusCode;

constexpr std::size_t kSize = 10'000;

class CudaSharingTest : public FakeCudaTest {
 protected:
  void move(const Buffer& destination, const ConstBuffer& source) {
    Outcome outcome;
    ASSERT_TRUE(memory->copy(destination, source, &outcome).is_pending());
    poll_until_idle(*memory);
    EXPECT_TRUE(outcome.status.ok()) << outcome.status.to_string();
  }
};

TEST_F(CudaSharingTest, CopiesReachTheOwnersMemoryFromAnotherDevicesStreams) {
  const Buffer own = memory->allocate(kSize, kGpu0).value();
  const Buffer here = memory->allocate(kSize, kGpu1).value();
  const auto bytes = pattern(kSize, 4);
  move(here, ConstBuffer(bytes.data(), kSize));
  auto exported = cuda().export_allocation(static_cast<std::byte*>(own.data) + 100);
  ASSERT_TRUE(exported.ok()) << exported.status().to_string();
  const Buffer imported = cuda().import_allocation(*exported, 1).value();
  EXPECT_EQ(imported.place, kGpu1) << "the device whose streams reach it";
  EXPECT_EQ(imported.size_bytes, kSize);
  move(imported, here);
  EXPECT_EQ(std::memcmp(own.data, bytes.data(), kSize), 0);
  EXPECT_EQ(fake_cuda()->peer_copies, 0);

  EXPECT_TRUE(cuda().export_allocation(imported.data).status().failed());
  EXPECT_TRUE(cuda().release_import(imported.data).ok());
  EXPECT_EQ(cuda().release_import(imported.data).code(), StatusCode::kInvalidArgument);
  for (const Buffer& buffer : {own, here}) EXPECT_TRUE(memory->deallocate(buffer).ok());
}

// Bytes from a peer may hold anything.
TEST_F(CudaSharingTest, AnImportIsNoLargerThanWhatTheDriverMapped) {
  const Buffer own = memory->allocate(kSize, kGpu0).value();
  const auto exported = cuda().export_allocation(own.data).value();
  const auto said_to_have = [&](std::uint64_t size_bytes) {
    auto bytes = exported;
    std::memcpy(&bytes[bytes.size() - sizeof size_bytes], &size_bytes, sizeof size_bytes);
    return cuda().import_allocation(bytes, 0);
  };
  for (const std::uint64_t size_bytes : {std::uint64_t{kSize + 1}, ~std::uint64_t{0}}) {
    EXPECT_EQ(said_to_have(size_bytes).status().code(), StatusCode::kInvalidArgument) << size_bytes;
  }
  EXPECT_EQ(fake_cuda()->calls["cuIpcCloseMemHandle"], 2) << "refused, and still mapped";
  auto imported = said_to_have(kSize);
  ASSERT_TRUE(imported.ok()) << imported.status().to_string();
  EXPECT_TRUE(cuda().release_import(imported->data).ok());
  EXPECT_TRUE(memory->deallocate(own).ok());
}

TEST_F(CudaSharingTest, ImportsGoWithTheirMemory) {
  const std::uintptr_t other = fake_cuda()->add_block(kSize, 0);
  const auto exported = cuda().export_allocation(reinterpret_cast<void*>(other)).value();
  ASSERT_TRUE(cuda().import_allocation(exported, 0).ok());
  memory.reset();
  EXPECT_EQ(fake_cuda()->calls["cuIpcCloseMemHandle"], 1);
  fake_cuda()->remove_block(other);
}

TEST_F(CudaSharingTest, WhatTheDriverRefusesIsAStatus) {
  const Buffer own = memory->allocate(kSize, kGpu0).value();
  const auto exported = cuda().export_allocation(own.data).value();
  EXPECT_EQ(cuda().import_allocation(std::span(exported).first(3), 0).status().code(),
            StatusCode::kInvalidArgument);
  fake_cuda()->fail_next["cuIpcGetMemHandle"] = 1;
  const auto refused = cuda().export_allocation(own.data).status();
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(refused.message().find("only if cuMemAlloc or cudaMalloc made it"), std::string::npos);
  ASSERT_TRUE(memory->deallocate(own).ok());
  EXPECT_TRUE(cuda().import_allocation(exported, 0).status().failed()) << "freed meanwhile";
  // The driver is not asked for a handle, which takes long to refuse.
  const std::uintptr_t managed = fake_cuda()->add_block(kSize, 0);
  fake_cuda()->find(managed)->managed = true;
  const int before = fake_cuda()->calls["cuIpcGetMemHandle"];
  const auto impossible = cuda().export_allocation(reinterpret_cast<void*>(managed)).status();
  EXPECT_EQ(impossible.code(), StatusCode::kUnsupported) << impossible.to_string();
  EXPECT_EQ(fake_cuda()->calls["cuIpcGetMemHandle"], before);
  fake_cuda()->remove_block(managed);
  int on_stack = 0;
  EXPECT_TRUE(cuda().export_allocation(&on_stack).status().failed());
}

}  // namespace
}  // namespace weft::memory
