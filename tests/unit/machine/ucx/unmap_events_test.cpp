#include "machine/ucx/setup/unmap_events.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <vector>

#include "machine/factory/factory.h"
#include "memory/kinds/cuda/cuda_options.h"
#include "memory/memory.h"
#include "tests/unit/memory/fake_cuda.h"

namespace weft::machine::ucx {
namespace {

#ifdef __SANITIZE_ADDRESS__  // its allocator unmaps by system calls of its own

TEST(UnmapEventsTest, AreNotUsedIfTheAllocatorHidesUnmappings) { EXPECT_EQ(unmap_generation(), nullptr); }

#else

constexpr std::size_t kMappingBytes = std::size_t{64} << 20;

void* map_anonymous(void* where = nullptr) {
  return mmap(where, kMappingBytes, PROT_READ | PROT_WRITE,
              MAP_PRIVATE | MAP_ANONYMOUS | (where == nullptr ? 0 : MAP_FIXED), -1, 0);
}

// tests/unit/machine/CMakeLists.txt sets these variables.
TEST(UnmapEventsWithoutHooksTest, AreNotUsed) {
  if (std::getenv("UCX_MEM_EVENTS") == nullptr && std::getenv("UCX_MEM_MMAP_HOOK_MODE") == nullptr)
    GTEST_SKIP() << "NOT TESTED HERE: UCX has its hooks; ctest -R unmap_events runs this without them";
  EXPECT_EQ(unmap_generation(), nullptr);
}

template <class Body>
bool raises(const Body& body) {
  const std::uint64_t before = unmap_generation()->load();
  body();
  return unmap_generation()->load() > before;
}

class UnmapEventsTest : public ::testing::Test {
 protected:
  UnmapEventsTest() { EXPECT_NE(unmap_generation(), nullptr); }
};

TEST_F(UnmapEventsTest, MunmapRaisesTheCounter) {
  void* const page = map_anonymous();
  ASSERT_NE(page, MAP_FAILED);
  EXPECT_TRUE(raises([&] { munmap(page, kMappingBytes); }));
}

TEST_F(UnmapEventsTest, AMappingOverAnotherRaisesTheCounter) {
  void* const page = map_anonymous();
  ASSERT_NE(page, MAP_FAILED);
  EXPECT_TRUE(raises([&] { map_anonymous(page); }));
  munmap(page, kMappingBytes);
}

TEST_F(UnmapEventsTest, MremapRaisesTheCounter) {
  void* page = map_anonymous();
  ASSERT_NE(page, MAP_FAILED);
  EXPECT_TRUE(raises([&] { page = mremap(page, kMappingBytes, 2 * kMappingBytes, MREMAP_MAYMOVE); }));
  ASSERT_NE(page, MAP_FAILED);
  EXPECT_TRUE(raises([&] { mremap(page, 2 * kMappingBytes, kMappingBytes, 0); }));
  munmap(page, kMappingBytes);
}

TEST_F(UnmapEventsTest, FreeOfALargeBlockRaisesTheCounter) {
  void* volatile block = std::malloc(kMappingBytes);
  ASSERT_NE(block, nullptr);
  EXPECT_TRUE(raises([&] { std::free(block); }));
}

TEST_F(UnmapEventsTest, ReallocOfALargeBlockRaisesTheCounter) {
  void* volatile block = std::malloc(kMappingBytes);
  ASSERT_NE(block, nullptr);
  void* volatile larger = nullptr;
  EXPECT_TRUE(raises([&] { larger = std::realloc(block, 3 * kMappingBytes); }));
  ASSERT_NE(larger, nullptr);
  std::free(larger);
}

TEST_F(UnmapEventsTest, TheEndOfALargeStackRaisesTheCounter) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, kMappingBytes), 0);
  pthread_t thread{};
  ASSERT_EQ(pthread_create(&thread, &attributes, [](void* argument) { return argument; }, nullptr), 0);
  EXPECT_TRUE(raises([&] { pthread_join(thread, nullptr); }));
  pthread_attr_destroy(&attributes);
}

TEST_F(UnmapEventsTest, OtherCallsLeaveTheCounter) {
  void* page = nullptr;
  EXPECT_FALSE(raises([&] { page = map_anonymous(); }));
  EXPECT_FALSE(raises([&] { std::free(std::malloc(64)); }));
  munmap(page, kMappingBytes);
}

// The machine gives the counter to the memory layer, and the driver is asked once.
TEST_F(UnmapEventsTest, AMachineOverUcxRemembersHostPages) {
  fake_cuda_reset();
  memory::MemoryOptions options;
  options.of<memory::CudaOptions>().driver = FAKE_CUDA;
  memory::Memory with_driver(options);
  ASSERT_TRUE(with_driver.availability(memory::Kind::kCuda).ok());
  auto machines = make_in_process("ucx", {&with_driver}).value();
  auto* const page = static_cast<std::byte*>(map_anonymous());
  const auto ask = [&] {
    const int before = fake_cuda()->calls["cuPointerGetAttributes"];
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(with_driver.place_of(page + i).is_host());
    return fake_cuda()->calls["cuPointerGetAttributes"] - before;
  };
  EXPECT_EQ(ask(), 1);
  EXPECT_EQ(ask(), 0);
  munmap(map_anonymous(), kMappingBytes);
  EXPECT_EQ(ask(), 1);

  munmap(page, kMappingBytes);
  fake_cuda()->next_address = page;
  const std::uintptr_t block = fake_cuda()->add_block(kMappingBytes, 0);
  ASSERT_EQ(block, reinterpret_cast<std::uintptr_t>(page));
  EXPECT_EQ(with_driver.place_of(page).kind, memory::Kind::kCuda);
  fake_cuda()->remove_block(block);
  for (auto& machine : machines) machine->close();
}

#endif

}  // namespace
}  // namespace weft::machine::ucx
