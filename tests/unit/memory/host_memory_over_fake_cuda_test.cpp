// What host memory costs in questions to the driver, over the stand-in driver, which counts them.
#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

#include "memory/kinds/host_pages.h"
#include "memory/memory.h"
#include "tests/unit/memory/fake_cuda_fixture.h"
#include "tests/unit/memory/places.h"

namespace weft::memory {
namespace {

using HostRangesOverFakeCudaTest = FakeCudaTest;

int g_fake_cuda_variable = 0;

TEST_F(HostRangesOverFakeCudaTest, TheDriverIsNotAskedAboutHostRanges) {
  std::vector<const void*> addresses = {&g_fake_cuda_variable, __builtin_frame_address(0)};
#ifndef __SANITIZE_ADDRESS__  // its malloc() does not use the heap
  const std::vector<std::byte> on_heap(64);
  addresses.push_back(on_heap.data());
#endif
  for (const void* address : addresses) {
    EXPECT_EQ(memory->place_of(address), kHostPlace);
    EXPECT_EQ(memory->allocation_of(address).size_bytes, 0u);
  }
  EXPECT_EQ(fake_cuda()->calls["cuPointerGetAttributes"], 0);

  // A mapped block may be memory of another library's, which can free it and allocate device memory there.
  constexpr std::size_t kSizeBytes = 4096;
  void* const mapped =
      ::mmap(nullptr, kSizeBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  EXPECT_EQ(memory->place_of(mapped), kHostPlace);
  EXPECT_EQ(memory->place_of(mapped), kHostPlace);
  EXPECT_EQ(fake_cuda()->calls["cuPointerGetAttributes"], 2);
  ::munmap(mapped, kSizeBytes);
}

std::atomic<std::uint64_t> g_fake_cuda_unmappings{0};

class HostPagesOverFakeCudaTest : public FakeCudaTest {
 protected:
  HostPagesOverFakeCudaTest() {
    memory->use_unmap_generation(
        []() -> const std::atomic<std::uint64_t>* { return &g_fake_cuda_unmappings; });
  }

  static void* map(void* where = nullptr) {
    return ::mmap(where, HostPages::kPageBytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | (where == nullptr ? 0 : MAP_FIXED_NOREPLACE), -1, 0);
  }
  static void unmap(void* page) {
    ++g_fake_cuda_unmappings;
    ::munmap(page, HostPages::kPageBytes);
  }
  static int questions() { return fake_cuda()->calls["cuPointerGetAttributes"]; }
};

TEST_F(HostPagesOverFakeCudaTest, TheDriverIsAskedOncePerPageUntilMemoryIsUnmapped) {
  void* const page = map();
  ASSERT_NE(page, MAP_FAILED);
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(memory->place_of(static_cast<std::byte*>(page) + 8 * i), kHostPlace);
  EXPECT_EQ(questions(), 1);
  ++g_fake_cuda_unmappings;
  EXPECT_EQ(memory->place_of(page), kHostPlace);
  EXPECT_EQ(questions(), 2);

  unmap(page);
  fake_cuda()->next_address = page;
  const std::uintptr_t block = fake_cuda()->add_block(HostPages::kPageBytes, 1);
  ASSERT_EQ(block, reinterpret_cast<std::uintptr_t>(page));
  EXPECT_EQ(memory->place_of(page), kGpu1);
  fake_cuda()->remove_block(block);
  ++g_fake_cuda_unmappings;
  ASSERT_EQ(map(page), page);
  EXPECT_EQ(memory->place_of(page), kHostPlace);
  unmap(page);
}

// cuMemFreeHost() and what follows it may be calls that no hook sees.
TEST_F(HostPagesOverFakeCudaTest, HostMemoryOfTheDriversIsNotRemembered) {
  auto locked = cuda().allocate_host(HostPages::kPageBytes, 0);
  ASSERT_TRUE(locked.ok());
  EXPECT_EQ(memory->place_of(*locked), kHostPlace);
  EXPECT_EQ(memory->place_of(*locked), kHostPlace);
  EXPECT_EQ(questions(), 2);
  cuda().deallocate_host(*locked);
  fake_cuda()->next_address = *locked;
  const std::uintptr_t block = fake_cuda()->add_block(HostPages::kPageBytes, 0);
  ASSERT_EQ(block, reinterpret_cast<std::uintptr_t>(*locked));
  EXPECT_EQ(memory->place_of(*locked), kGpu0);
  fake_cuda()->remove_block(block);
}

TEST_F(HostPagesOverFakeCudaTest, AQuestionThatFailsIsNotRemembered) {
  void* const page = map();
  ASSERT_NE(page, MAP_FAILED);
  fake_cuda()->fail_next["cuPointerGetAttributes"] = 1;
  EXPECT_EQ(memory->place_of(page), kHostPlace);
  EXPECT_EQ(memory->place_of(page), kHostPlace);
  EXPECT_EQ(questions(), 2);
  unmap(page);
}

// cuMemAddressReserve() and cuMemMap(): an address that is asked about before there is memory.
TEST_F(HostPagesOverFakeCudaTest, AQuestionForAnAllocationIsNotRemembered) {
  void* const page = map();
  ASSERT_NE(page, MAP_FAILED);
  EXPECT_EQ(memory->allocation_of(page).size_bytes, 0u);
  EXPECT_EQ(memory->place_of(page), kHostPlace);
  EXPECT_EQ(questions(), 2);
  ++g_fake_cuda_unmappings;
  EXPECT_EQ(memory->allocation_of(page).size_bytes, 0u);
  ::munmap(page, HostPages::kPageBytes);  // as if it had only been reserved
  fake_cuda()->next_address = page;
  const std::uintptr_t block = fake_cuda()->add_block(HostPages::kPageBytes, 0);
  ASSERT_EQ(block, reinterpret_cast<std::uintptr_t>(page));
  EXPECT_EQ(memory->place_of(page), kGpu0);
  fake_cuda()->remove_block(block);
}

TEST_F(HostPagesOverFakeCudaTest, RegisteredMemoryStaysHostMemory) {
  void* const page = map();
  ASSERT_NE(page, MAP_FAILED);
  EXPECT_EQ(memory->place_of(page), kHostPlace);
  ASSERT_TRUE(cuda().lock_host(page, HostPages::kPageBytes, 0).ok());
  EXPECT_EQ(memory->place_of(page), kHostPlace);
  cuda().unlock_host(page);
  EXPECT_EQ(memory->place_of(page), kHostPlace);
  EXPECT_EQ(questions(), 1);
  unmap(page);
}

TEST_F(HostRangesOverFakeCudaTest, RegisteredMemoryOfHostRangesStaysHostMemory) {
  ASSERT_TRUE(cuda().lock_host(&g_fake_cuda_variable, sizeof g_fake_cuda_variable, 0).ok());
  EXPECT_EQ(memory->place_of(&g_fake_cuda_variable), kHostPlace);
  const auto known = cuda().find_allocation(&g_fake_cuda_variable);
  ASSERT_TRUE(known.has_value());
  EXPECT_TRUE(known->place.is_host()) << "the driver says the same";
  EXPECT_TRUE(cuda().host_copy_is_async(&g_fake_cuda_variable, sizeof g_fake_cuda_variable));
  cuda().unlock_host(&g_fake_cuda_variable);
}

}  // namespace
}  // namespace weft::memory
