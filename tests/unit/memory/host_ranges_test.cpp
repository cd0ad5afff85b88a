#include "memory/kinds/host_ranges.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "gtest/gtest.h"

namespace weft::memory {
namespace {

constexpr std::size_t kPageBytes = 4096;

int g_host_ranges_with_value = 1;
int g_host_ranges_zero;

std::uintptr_t number_of(const volatile void* address) { return reinterpret_cast<std::uintptr_t>(address); }

void* map_page(void* where = nullptr) {
  return ::mmap(where, kPageBytes, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | (where == nullptr ? 0 : MAP_FIXED_NOREPLACE), -1, 0);
}

TEST(HostRangesTest, ContainNothingBeforeTheyAreRead) {
  const HostRanges ranges;
  EXPECT_FALSE(ranges.contains(0));
  EXPECT_FALSE(ranges.contains(number_of(&g_host_ranges_with_value)));
  EXPECT_FALSE(ranges.contains(number_of(__builtin_frame_address(0))));
  EXPECT_FALSE(ranges.contains(number_of(::sbrk(0)) - 1));
  EXPECT_FALSE(ranges.contains(~std::uintptr_t{0}));
}

TEST(HostRangesTest, ContainTheVariablesOfTheProgram) {
  const HostRanges ranges = HostRanges::of_process();
  EXPECT_TRUE(ranges.contains(number_of(&g_host_ranges_with_value)));
  EXPECT_TRUE(ranges.contains(number_of(&g_host_ranges_zero)));
}

// The frame: sanitizers may keep local variables elsewhere.
TEST(HostRangesTest, ContainTheStackOfTheMainThreadAndOfNoOther) {
  ASSERT_EQ(::getpid(), ::gettid()) << "the test is not on the main thread";
  const HostRanges ranges = HostRanges::of_process();
  EXPECT_TRUE(ranges.contains(number_of(__builtin_frame_address(0))));
  bool contains_other = true;
  bool read_there_contains_other = true;
  std::thread([&] {
    const std::uintptr_t frame = number_of(__builtin_frame_address(0));
    contains_other = ranges.contains(frame);
    read_there_contains_other = HostRanges::of_process().contains(frame);
  }).join();
  EXPECT_FALSE(contains_other);
  EXPECT_FALSE(read_there_contains_other);
}

#ifndef __SANITIZE_ADDRESS__  // its malloc() does not use the heap
TEST(HostRangesTest, ContainASmallBlockOfTheHeap) {
  const HostRanges ranges = HostRanges::of_process();
  const std::unique_ptr<void, void (*)(void*)> block(std::malloc(64), &std::free);
  EXPECT_TRUE(ranges.contains(number_of(block.get())));
  EXPECT_TRUE(ranges.contains(number_of(block.get()) + 63));
}
#endif

TEST(HostRangesTest, ContainNoMappedMemoryAndNoNullAddress) {
  const HostRanges ranges = HostRanges::of_process();
  void* const mapped = map_page();
  ASSERT_NE(mapped, MAP_FAILED);
  EXPECT_FALSE(ranges.contains(number_of(mapped)));
  EXPECT_FALSE(HostRanges::of_process().contains(number_of(mapped))) << "mapped before the ranges were read";
  EXPECT_FALSE(ranges.contains(0));
  EXPECT_FALSE(ranges.contains(~std::uintptr_t{0}));
  ::munmap(mapped, kPageBytes);
}

// Between the calls of sbrk() nothing allocates memory: malloc() would move the break too.
TEST(HostRangesTest, TheHeapIsAsLongAsItIsNow) {
  const HostRanges ranges = HostRanges::of_process();
  constexpr std::intptr_t kGrowth = 4 * kPageBytes;
  void* const old_break = ::sbrk(kGrowth);
  ASSERT_NE(old_break, reinterpret_cast<void*>(-1));
  const std::uintptr_t begin = number_of(old_break);
  const bool has_first = ranges.contains(begin);
  const bool has_last = ranges.contains(begin + kGrowth - 1);
  const bool has_end = ranges.contains(begin + kGrowth);
  const void* const lowered_from = ::sbrk(-kGrowth);
  const bool has_first_after = ranges.contains(begin);
  EXPECT_EQ(number_of(lowered_from), begin + kGrowth);
  EXPECT_TRUE(has_first);
  EXPECT_TRUE(has_last);
  EXPECT_FALSE(has_end);
  EXPECT_FALSE(has_first_after) << "the heap gave it back";
}

TEST(HostRangesTest, MemoryThatIsMappedWhereTheHeapWasIsOutside) {
  const HostRanges ranges = HostRanges::of_process();
  constexpr std::intptr_t kGrowth = 4 * kPageBytes;
  void* const old_break = ::sbrk(kGrowth);
  ASSERT_NE(old_break, reinterpret_cast<void*>(-1));
  const std::uintptr_t page = (number_of(old_break) + 2 * kPageBytes - 1) / kPageBytes * kPageBytes;
  const bool was_inside = ranges.contains(page);
  ::sbrk(-kGrowth);
  void* const mapped = map_page(reinterpret_cast<void*>(page));
  const bool is_inside = ranges.contains(page);
  const bool is_inside_when_read_now = HostRanges::of_process().contains(page);
  ::munmap(mapped, kPageBytes);
  ASSERT_EQ(number_of(mapped), page);
  EXPECT_TRUE(was_inside);
  EXPECT_FALSE(is_inside);
  EXPECT_FALSE(is_inside_when_read_now);
}

std::string stat_with(const std::string& name, const std::string& start_of_heap) {
  std::string text = "4711 (" + name + ") S";
  for (int field = 4; field <= 46; ++field) text += " " + std::to_string(field);
  return text + " " + start_of_heap + " 48 49\n";
}

TEST(HostRangesTest, ReadTheStartOfTheHeap) {
  EXPECT_EQ(start_of_heap(stat_with("program", "94139590340608")), 94139590340608u);
  EXPECT_EQ(start_of_heap(stat_with("a) 1 (b", "94139590340608")), 94139590340608u);
  EXPECT_EQ(start_of_heap(stat_with("program", "0")), 0u) << "no permission";
  EXPECT_EQ(start_of_heap(stat_with("program", "-1")), 0u);
  EXPECT_EQ(start_of_heap("4711 (program) S 1 2 3\n"), 0u);
  EXPECT_EQ(start_of_heap(""), 0u);
}

TEST(HostRangesTest, ReadTheStackOfTheMainThread) {
  const std::string library = "7f0000000000-7f0000001000 r--p 00000000 08:01 1234 /lib/a.so\n";
  const std::string stack =
      "7ffddff88000-7ffddffa9000 rw-p 00000000 00:00 0                          [stack]\n";
  const std::string after =
      "7ffddfff0000-7ffddfff2000 r-xp 00000000 00:00 0                          [vdso]\n";
  const std::string with_library = library + stack;
  for (const std::string& maps : {stack, with_library, with_library + after}) {
    const HostRanges::Range range = main_stack(maps);
    EXPECT_EQ(range.begin, 0x7ffddff88000u);
    EXPECT_EQ(range.size_bytes, 0x21000u);
  }
  for (const std::string& maps :
       {std::string(), library + after,
        std::string("7f0000000000-7f0000001000 rw-s 00000000 08:01 1234 /tmp/a [stack]\n"),
        std::string("7f0000000000-7f0000001000 rw-p 00000000 00:00 0 [stack:4711]\n"),
        std::string("7f0000001000-7f0000000000 rw-p 00000000 00:00 0 [stack]\n"),
        std::string("nothing of this [stack]\n")}) {
    EXPECT_EQ(main_stack(maps).size_bytes, 0u) << maps;
  }
}

}  // namespace
}  // namespace weft::memory
