#include "memory/kinds/host_pages.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include <cstdlib>
#include <string>

#include "gtest/gtest.h"

namespace weft::memory {
namespace {

int g_host_pages_variable = 1;

class HostPagesTest : public ::testing::Test {
 protected:
  HostPagesTest() {
    pages.use_generation(&unmappings);
    mapped =
        ::mmap(nullptr, HostPages::kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(mapped, MAP_FAILED);
    address = reinterpret_cast<std::uintptr_t>(mapped);
  }
  ~HostPagesTest() override { ::munmap(mapped, HostPages::kPageBytes); }

  void remember(std::uintptr_t number) { pages.remember(number, pages.generation()); }

  std::atomic<std::uint64_t> unmappings = 0;
  HostPages pages;
  void* mapped;
  std::uintptr_t address;
};

TEST_F(HostPagesTest, ContainNothingAtFirst) {
  EXPECT_FALSE(pages.contains(address));
  EXPECT_FALSE(pages.contains(0));
  EXPECT_FALSE(pages.contains(~std::uintptr_t{0}));
}

TEST_F(HostPagesTest, ContainAllOfAPageAndNoOtherPage) {
  remember(address + 100);
  EXPECT_TRUE(pages.contains(address));
  EXPECT_TRUE(pages.contains(address + HostPages::kPageBytes - 1));
  EXPECT_FALSE(pages.contains(address - 1));
  EXPECT_FALSE(pages.contains(address + HostPages::kPageBytes));
}

TEST_F(HostPagesTest, TheCounterMakesThemForgetAll) {
  remember(address);
  ++unmappings;
  EXPECT_FALSE(pages.contains(address));
  remember(address);
  EXPECT_TRUE(pages.contains(address));
}

TEST_F(HostPagesTest, AnUnmappingBetweenQuestionAndAnswerCounts) {
  const std::uint64_t before = pages.generation();
  ++unmappings;
  pages.remember(address, before);
  EXPECT_FALSE(pages.contains(address));
}

TEST_F(HostPagesTest, WithoutACounterNothingIsRemembered) {
  remember(address);
  pages.use_generation(nullptr);
  EXPECT_FALSE(pages.contains(address)) << "remembered with another counter";
  remember(address);
  EXPECT_FALSE(pages.contains(address));
  pages.use_generation(&unmappings);
  EXPECT_FALSE(pages.contains(address));
  HostPages never;
  never.remember(address, never.generation());
  EXPECT_FALSE(never.contains(address));
}

TEST_F(HostPagesTest, ThePageOfTheNullAddressIsNeverInThem) {
  remember(0);
  remember(HostPages::kPageBytes - 1);
  EXPECT_FALSE(pages.contains(0));
}

TEST_F(HostPagesTest, APageTakesTheEntryOfAnother) {
  constexpr std::size_t kSpan = HostPages::kNumEntries * HostPages::kPageBytes;
  auto* const region = ::mmap(nullptr, 2 * kSpan, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(region, MAP_FAILED);
  const auto begin = reinterpret_cast<std::uintptr_t>(region);
  for (std::size_t i = 0; i < HostPages::kNumEntries; ++i) remember(begin + i * HostPages::kPageBytes);
  for (std::size_t i = 0; i < HostPages::kNumEntries; ++i)
    EXPECT_TRUE(pages.contains(begin + i * HostPages::kPageBytes)) << i;
  remember(begin + kSpan);
  EXPECT_TRUE(pages.contains(begin + kSpan));
  EXPECT_FALSE(pages.contains(begin));
  EXPECT_TRUE(pages.contains(begin + HostPages::kPageBytes));
  ::munmap(region, 2 * kSpan);
}

// dlclose() unmaps them without the functions of the C library.
TEST_F(HostPagesTest, LoadedObjectsAreNotRemembered) {
  auto* const of_library = ::dlsym(RTLD_DEFAULT, "environ");
  ASSERT_NE(of_library, nullptr);
  for (const void* data :
       {static_cast<const void*>(&g_host_pages_variable), static_cast<const void*>(of_library),
        reinterpret_cast<const void*>(&std::abort)}) {
    const auto number = reinterpret_cast<std::uintptr_t>(data);
    EXPECT_TRUE(may_be_in_loaded_object(number));
    remember(number);
    EXPECT_FALSE(pages.contains(number));
  }
  EXPECT_FALSE(may_be_in_loaded_object(address));
}

}  // namespace
}  // namespace weft::memory
