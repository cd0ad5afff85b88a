// The kind cache must never give yesterday's answer: addresses go from kind to kind here in every direction.
// What a driver does behind our back is in memory_over_fake_cuda_test.cpp.
#include "memory/kinds/kind_cache.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "gtest/gtest.h"

#include "memory/kinds/emulated/emulated_backend.h"
#include "memory/kinds/host/host_backend.h"
#include "tests/unit/memory/places.h"

namespace weft::memory {
namespace {

constexpr std::size_t kSizeBytes = 8192;

// A driver whose answers the test sets and whose questions it counts.
class ScriptedKind final : public KindBackend {
 public:
  ScriptedKind() { widen_address_range(1 << 20, 1 << 20); }
  // As cuda: memory at any address but in host ranges.
  void be_anywhere_but_in_host_ranges() {
    be_anywhere();
    declare_in_own_mappings();
  }
  void be_anywhere() { widen_address_range(0, std::numeric_limits<std::uintptr_t>::max()); }

  Kind kind() const override { return Kind::kCuda; }
  int num_devices() const override { return 2; }
  std::string device_name(int) const override { return "scripted"; }
  bool cpu_accessible() const override { return false; }
  std::optional<Allocation> find_allocation(const void*) override {
    ++questions;
    if (during_question) during_question();
    return answer;
  }
  bool is_current(const Allocation& allocation, const void*) override {
    return answer.has_value() && answer->generation == allocation.generation;
  }
  base::Status deallocate(void* data) override {
    notify_release(reinterpret_cast<std::uintptr_t>(data));
    return {};
  }

  base::Result<void*> allocate(std::size_t, int) override { return unused(); }
  base::Result<StreamHandle> create_stream(int) override { return unused(); }
  base::Status destroy_stream(StreamHandle) override { return unused(); }
  base::Status copy_async(void*, Place, const void*, Place, std::size_t, StreamHandle) override {
    return unused();
  }
  base::Result<void*> allocate_host(std::size_t, int) override { return unused(); }
  void deallocate_host(void*) override {}
  bool host_copy_is_async(const void*, std::size_t) override { return false; }
  base::Result<EventHandle> record(StreamHandle, int) override { return unused(); }
  base::Status query(EventHandle) override { return unused(); }
  base::Status stream_wait(StreamHandle, int, EventHandle) override { return unused(); }
  void release_event(EventHandle) override {}

  std::optional<Allocation> answer;
  std::function<void()> during_question;
  int questions = 0;

 private:
  static base::Status unused() { return {base::StatusCode::kUnsupported, "not part of the test"}; }
};

Allocation made_at(const void* base) {
  return {reinterpret_cast<std::uintptr_t>(base), 64, Place{Kind::kCuda, 0}, 1};
}

void* address(std::uintptr_t number) { return reinterpret_cast<void*>(number); }

class KindCacheTest : public ::testing::Test {
 protected:
  KindCacheTest() { cache.add(&emulated); }

  void* allocate(int device = 0) { return emulated.allocate(kSizeBytes, device).value(); }
  void* allocate_at(void* where, int device = 0) {
    emulated.place_next_at(where);
    return emulated.allocate(kSizeBytes, device).value();
  }
  static void* map_host(void* where) {
    return ::mmap(where, kSizeBytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  }
  static void unmap_host(void* where) { ::munmap(where, kSizeBytes); }

  KindCache cache;
  EmulatedBackend emulated{2};
};

TEST_F(KindCacheTest, BeforeAnyDeviceMemoryEverythingIsHost) {
  int on_stack = 0;
  EXPECT_EQ(cache.find(&on_stack).place, Place());
  EXPECT_EQ(cache.find(nullptr).place, Place());
  EXPECT_EQ(cache.find(&on_stack).size_bytes, 0u);
  EXPECT_EQ(cache.size(), 0u);
}

TEST_F(KindCacheTest, KnowsEveryByteOfAnAllocationAndNoOther) {
  auto* const data = static_cast<std::byte*>(allocate(1));
  EXPECT_EQ(cache.find(data).place, kDevice1);
  EXPECT_EQ(cache.find(data + kSizeBytes - 1).place, kDevice1);
  EXPECT_EQ(cache.find(data + kSizeBytes).place, Place());
  EXPECT_EQ(cache.find(data - 1).place, Place());
  EXPECT_EQ(cache.size(), 1u);
}

TEST_F(KindCacheTest, DeviceThenHostAtTheSameAddress) {
  void* const data = allocate();
  ASSERT_EQ(cache.find(data).place, kDevice0);
  ASSERT_TRUE(emulated.deallocate(data).ok());
  EXPECT_EQ(cache.find(data).place, Place()) << "freed";
  ASSERT_EQ(map_host(data), data);
  EXPECT_EQ(cache.find(data).place, Place()) << "now host memory";
  unmap_host(data);
}

TEST_F(KindCacheTest, HostThenDeviceAtTheSameAddress) {
  void* const data = allocate();
  ASSERT_TRUE(emulated.deallocate(data).ok());
  ASSERT_EQ(map_host(data), data);
  ASSERT_EQ(cache.find(data).place, Place());
  unmap_host(data);
  ASSERT_EQ(allocate_at(data, 1), data);
  EXPECT_EQ(cache.find(data).place, kDevice1);
}

TEST_F(KindCacheTest, HostThenDeviceWhereNoDeviceMemoryEverWas) {
  void* const data = ::mmap(nullptr, kSizeBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(data, MAP_FAILED);
  ASSERT_EQ(cache.find(data).place, Place());
  unmap_host(data);
  ASSERT_EQ(allocate_at(data), data);
  EXPECT_EQ(cache.find(data).place, kDevice0);
}

TEST_F(KindCacheTest, DeviceThenOtherDeviceAtTheSameAddress) {
  void* const data = allocate(0);
  const Allocation first = cache.find(data);
  ASSERT_EQ(first.place, kDevice0);
  ASSERT_TRUE(emulated.deallocate(data).ok());
  ASSERT_EQ(allocate_at(data, 1), data);
  EXPECT_EQ(cache.find(data).place, kDevice1);
  EXPECT_NE(cache.find(data).generation, first.generation);
}

TEST_F(KindCacheTest, BackAndForthManyTimes) {
  void* const data = allocate(0);
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(cache.find(data).place, (Place{Kind::kEmulated, static_cast<std::int16_t>(i % 2)}));
    ASSERT_TRUE(emulated.deallocate(data).ok());
    ASSERT_EQ(cache.find(data).place, Place());
    ASSERT_EQ(map_host(data), data);
    ASSERT_EQ(cache.find(data).place, Place());
    unmap_host(data);
    ASSERT_EQ(allocate_at(data, (i + 1) % 2), data);
  }
  EXPECT_LE(cache.size(), 1u);
}

class ScriptedCacheTest : public ::testing::Test {
 protected:
  ScriptedCacheTest() { cache.add(&kind); }

  static Allocation made(std::uintptr_t base, std::size_t size_bytes, std::uint64_t generation,
                         std::int16_t device) {
    return {base, size_bytes, Place{Kind::kCuda, device}, generation};
  }

  KindCache cache;
  ScriptedKind kind;
};

constexpr std::uintptr_t kBase = (1 << 20) + 4096;

TEST_F(ScriptedCacheTest, AsksOncePerAllocation) {
  kind.answer = made(kBase, 4096, 1, 1);
  for (std::uintptr_t i = 0; i < 4096; i += 64) EXPECT_EQ(cache.find(address(kBase + i)).place.device, 1);
  EXPECT_EQ(kind.questions, 1);
}

TEST_F(ScriptedCacheTest, NeverAsksAboutAddressesOutOfRange) {
  int on_stack = 0;
  EXPECT_TRUE(cache.find(&on_stack).place.is_host());
  EXPECT_TRUE(cache.find(address((1 << 20) - 1)).place.is_host());
  EXPECT_TRUE(cache.find(address(2 << 20)).place.is_host());
  EXPECT_EQ(kind.questions, 0);
}

TEST_F(ScriptedCacheTest, HostMemoryInRangeIsAskedForEveryTime) {
  EXPECT_TRUE(cache.find(address(kBase)).place.is_host());
  EXPECT_TRUE(cache.find(address(kBase)).place.is_host());
  EXPECT_EQ(kind.questions, 2);
  kind.answer = made(kBase, 64, 1, 0);
  EXPECT_EQ(cache.find(address(kBase)).place.kind, Kind::kCuda);
}

int g_kind_cache_variable = 0;

TEST(HostRangesOfTheCacheTest, AKindThatIsNeverThereIsNotAsked) {
  KindCache cache;
  ScriptedKind kind;
  kind.be_anywhere_but_in_host_ranges();
  cache.add(&kind);
  kind.answer = made_at(&g_kind_cache_variable);
  EXPECT_FALSE(cache.may_be_device(&g_kind_cache_variable));
  EXPECT_TRUE(cache.find(&g_kind_cache_variable).place.is_host());
  EXPECT_FALSE(cache.may_be_device(__builtin_frame_address(0)));
  EXPECT_TRUE(cache.find(__builtin_frame_address(0)).place.is_host());
  EXPECT_EQ(kind.questions, 0);

  void* const mapped =
      ::mmap(nullptr, kSizeBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  kind.answer.reset();
  EXPECT_TRUE(cache.may_be_device(mapped));
  EXPECT_TRUE(cache.find(mapped).place.is_host());
  EXPECT_TRUE(cache.find(mapped).place.is_host());
  EXPECT_EQ(kind.questions, 2);
  kind.answer = made_at(mapped);
  EXPECT_EQ(cache.find(mapped).place.kind, Kind::kCuda);
  EXPECT_EQ(kind.questions, 3);
  ::munmap(mapped, kSizeBytes);
}

TEST(HostRangesOfTheCacheTest, AKindThatDoesNotSayItIsNeverThereIsAsked) {
  KindCache cache;
  ScriptedKind never_there;
  ScriptedKind anywhere;
  never_there.be_anywhere_but_in_host_ranges();
  anywhere.be_anywhere();
  cache.add(&never_there);
  cache.add(&anywhere);
  anywhere.answer = made_at(&g_kind_cache_variable);
  EXPECT_TRUE(cache.may_be_device(&g_kind_cache_variable));
  EXPECT_EQ(cache.find(&g_kind_cache_variable).place.kind, Kind::kCuda);
  EXPECT_EQ(never_there.questions, 0);
  EXPECT_EQ(anywhere.questions, 1);
}

class HostPagesOfTheCacheTest : public ::testing::Test {
 protected:
  HostPagesOfTheCacheTest() {
    kind.be_anywhere_but_in_host_ranges();
    cache.add(&kind);
    cache.set_unmap_generation(&unmappings);
    page = ::mmap(nullptr, kSizeBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(page, MAP_FAILED);
  }
  ~HostPagesOfTheCacheTest() override { ::munmap(page, kSizeBytes); }

  std::atomic<std::uint64_t> unmappings = 0;
  KindCache cache;
  ScriptedKind kind;
  void* page;
};

TEST_F(HostPagesOfTheCacheTest, AsksOncePerPage) {
  EXPECT_TRUE(cache.wants_unmap_generation());
  EXPECT_TRUE(cache.may_be_device(page));
  EXPECT_TRUE(cache.find_of_buffer(page).place.is_host());
  EXPECT_FALSE(cache.may_be_device(page));
  EXPECT_FALSE(cache.may_be_device(static_cast<std::byte*>(page) + 4095));
  EXPECT_TRUE(cache.may_be_device(static_cast<std::byte*>(page) + 4096));
  EXPECT_TRUE(cache.find_of_buffer(page).place.is_host());
  EXPECT_TRUE(cache.find(page).place.is_host());
  EXPECT_EQ(kind.questions, 1);
}

TEST_F(HostPagesOfTheCacheTest, AsksAgainAfterAnUnmapping) {
  EXPECT_TRUE(cache.find_of_buffer(page).place.is_host());
  ++unmappings;
  kind.answer = made_at(page);
  EXPECT_TRUE(cache.may_be_device(page));
  EXPECT_EQ(cache.find_of_buffer(page).place.kind, Kind::kCuda);
  EXPECT_TRUE(cache.may_be_device(page)) << "device memory is no host page";
}

TEST_F(HostPagesOfTheCacheTest, AnUnmappingDuringTheQuestionCounts) {
  kind.during_question = [this] { ++unmappings; };
  EXPECT_TRUE(cache.find_of_buffer(page).place.is_host());
  EXPECT_TRUE(cache.may_be_device(page));
}

TEST_F(HostPagesOfTheCacheTest, OnlyQuestionsForBuffersAreRemembered) {
  EXPECT_TRUE(cache.find(page).place.is_host());
  EXPECT_TRUE(cache.may_be_device(page));
}

TEST_F(HostPagesOfTheCacheTest, HostMemoryThatTheDriverKnowsIsNotRemembered) {
  kind.answer = Allocation{};
  EXPECT_TRUE(cache.find_of_buffer(page).place.is_host());
  EXPECT_TRUE(cache.find_of_buffer(page).place.is_host());
  EXPECT_EQ(kind.questions, 2);
  EXPECT_EQ(cache.size(), 0u);
}

TEST_F(HostPagesOfTheCacheTest, AnotherKindIsAskedNevertheless) {
  ScriptedKind anywhere;
  anywhere.be_anywhere();
  cache.add(&anywhere);
  EXPECT_TRUE(cache.find_of_buffer(page).place.is_host());
  anywhere.answer = made_at(page);
  EXPECT_TRUE(cache.may_be_device(page));
  EXPECT_EQ(cache.find_of_buffer(page).place.kind, Kind::kCuda);
  EXPECT_EQ(kind.questions, 1);
  EXPECT_EQ(anywhere.questions, 2);
}

TEST_F(HostPagesOfTheCacheTest, WithoutACounterNothingIsRemembered) {
  EXPECT_TRUE(cache.find_of_buffer(page).place.is_host());
  cache.set_unmap_generation(nullptr);
  EXPECT_TRUE(cache.may_be_device(page));
  EXPECT_TRUE(cache.find_of_buffer(page).place.is_host());
  EXPECT_TRUE(cache.may_be_device(page));
}

TEST_F(ScriptedCacheTest, AKindThatDoesNotMapItsMemoryItselfWantsNoHostPages) {
  const std::atomic<std::uint64_t> unmappings = 0;
  cache.set_unmap_generation(&unmappings);
  EXPECT_FALSE(cache.wants_unmap_generation());
  EXPECT_TRUE(cache.find_of_buffer(address(kBase)).place.is_host());
  EXPECT_TRUE(cache.find_of_buffer(address(kBase)).place.is_host());
  EXPECT_EQ(kind.questions, 2);
}

// A driver may map memory where the heap ended before.
TEST(HostRangesOfTheCacheTest, TheKindIsAskedAgainAboutMemoryThatTheHeapGaveBack) {
  KindCache cache;
  ScriptedKind kind;
  kind.be_anywhere_but_in_host_ranges();
  cache.add(&kind);
  // Nothing allocates between the calls of sbrk().
  constexpr std::intptr_t kGrowth = 4096;
  void* const above_heap = ::sbrk(0);
  const bool may_be_device_before = cache.may_be_device(above_heap);
  ASSERT_EQ(::sbrk(kGrowth), above_heap);
  const bool may_be_device_in_heap = cache.may_be_device(above_heap);
  ::sbrk(-kGrowth);
  const bool may_be_device_after = cache.may_be_device(above_heap);
  EXPECT_TRUE(may_be_device_before);
  EXPECT_FALSE(may_be_device_in_heap);
  EXPECT_TRUE(may_be_device_after);
}

TEST_F(ScriptedCacheTest, AnotherGenerationIsAskedForAgain) {
  kind.answer = made(kBase, 4096, 1, 0);
  EXPECT_EQ(cache.find(address(kBase)).place.device, 0);
  kind.answer = made(kBase, 4096, 2, 1);
  EXPECT_EQ(cache.find(address(kBase)).place.device, 1);
  kind.answer.reset();
  EXPECT_TRUE(cache.find(address(kBase)).place.is_host());
  EXPECT_EQ(cache.size(), 0u);
}

TEST_F(ScriptedCacheTest, GenerationZeroIsNotRemembered) {
  kind.answer = made(kBase, 4096, 0, 0);
  EXPECT_EQ(cache.find(address(kBase)).place.kind, Kind::kCuda);
  kind.answer = made(kBase, 4096, 0, 1);
  EXPECT_EQ(cache.find(address(kBase)).place.device, 1);
  EXPECT_EQ(cache.size(), 0u);
}

TEST_F(ScriptedCacheTest, ANewAllocationRemovesTheOnesItCovers) {
  kind.answer = made(kBase, 1024, 1, 0);
  EXPECT_EQ(cache.find(address(kBase)).place.device, 0);
  kind.answer = made(kBase + 1024, 1024, 2, 0);
  EXPECT_EQ(cache.find(address(kBase + 1024)).place.device, 0);
  kind.answer = made(kBase + 4096, 1024, 3, 0);
  EXPECT_EQ(cache.find(address(kBase + 4096)).place.device, 0);
  EXPECT_EQ(cache.size(), 3u);
  // It starts inside the first and ends inside the third, and is asked for where neither was known.
  kind.answer = made(kBase + 512, 4096, 4, 1);
  EXPECT_EQ(cache.find(address(kBase + 3000)).place.device, 1);
  EXPECT_EQ(cache.size(), 1u);
  EXPECT_EQ(cache.find(address(kBase + 1024)).place.device, 1);
}

TEST_F(ScriptedCacheTest, ReleaseRemovesTheEntry) {
  kind.answer = made(kBase, 4096, 1, 0);
  EXPECT_EQ(cache.find(address(kBase + 9)).place.device, 0);
  ASSERT_TRUE(kind.deallocate(address(kBase)).ok());
  EXPECT_EQ(cache.size(), 0u);
}

TEST_F(ScriptedCacheTest, StaysBoundedWhenOthersFreeWithoutTelling) {
  for (std::uintptr_t i = 0; i < 10000; ++i) {
    kind.answer = made((1 << 20) + i * 64, 64, i + 1, 0);
    EXPECT_EQ(cache.find(address((1 << 20) + i * 64)).place.kind, Kind::kCuda);
  }
  EXPECT_LE(cache.size(), 4096u);
}

}  // namespace
}  // namespace weft::memory
