#include "machine/peer_memory/mapping/exports.h"

#include <gtest/gtest.h>

#include <utility>

#include "machine/peer_memory/mapping/peer_buffer.h"
#include "tests/support/device_memory.h"

namespace weft::machine {
namespace {

using memory::Buffer;
using memory::Kind;

struct ExportsTest : ::testing::Test {
  Buffer allocate(std::size_t size_bytes) {
    return memory.allocate(size_bytes, {Kind::kEmulated, 0}).value();
  }
  static Buffer part(const Buffer& whole, std::size_t offset_bytes, std::size_t size_bytes) {
    return {static_cast<std::byte*>(whole.data) + offset_bytes, size_bytes, whole.place, nullptr};
  }

  // Exported at its second use.
  static std::shared_ptr<Exports::Export> find_twice(Exports& exports, const Buffer& buffer) {
    EXPECT_EQ(exports.find(buffer), nullptr);
    return exports.find(buffer);
  }

  memory::Memory memory;
  std::vector<std::pair<int, std::uint64_t>> forgotten;
  Exports exports{memory, [this](int pe, std::uint64_t number) { forgotten.emplace_back(pe, number); }};
};

TEST_F(ExportsTest, AnAllocationHasOneNumberWhereverTheBufferLies) {
  const Buffer first = allocate(1000);
  const Buffer second = allocate(1000);
  const auto exported = find_twice(exports, first);
  ASSERT_NE(exported, nullptr);
  const std::uint64_t number = exported->number;
  EXPECT_FALSE(exported->bytes.empty());
  EXPECT_LE(exported->bytes.size(), kMaxExportedBytes);
  EXPECT_EQ(exported->allocation.base, reinterpret_cast<std::uintptr_t>(first.data));
  EXPECT_EQ(exports.find(part(first, 300, 700))->number, number);
  EXPECT_NE(find_twice(exports, second)->number, number);
}

TEST_F(ExportsTest, WhatLeavesItsAllocationIsNotExported) {
  const Buffer buffer = allocate(1000);
  ASSERT_NE(find_twice(exports, buffer), nullptr);
  EXPECT_EQ(exports.find(part(buffer, 300, 701)), nullptr);
  EXPECT_EQ(exports.find(part(buffer, 1, ~std::size_t{0})), nullptr);
}

TEST_F(ExportsTest, HostAndImportedMemoryAreNot) {
  std::vector<char> host(100);
  EXPECT_EQ(exports.find({host.data(), host.size(), {}, nullptr}), nullptr);
  memory::Memory owner;
  const Buffer theirs = owner.allocate(100, {Kind::kEmulated, 0}).value();
  const auto bytes = owner.backend(Kind::kEmulated)->export_allocation(theirs.data);
  memory::KindBackend& kind = *memory.backend(Kind::kEmulated);
  const Buffer imported = kind.import_allocation(bytes.value(), 0).value();
  EXPECT_EQ(exports.find(imported), nullptr);
  EXPECT_NE(exports.first_failure().message().find("only its owner"), std::string_view::npos);
  EXPECT_EQ(exports.find(imported), nullptr) << "remembered";
  EXPECT_TRUE(kind.release_import(imported.data).ok());
}

TEST_F(ExportsTest, WhoWasToldHearsOfTheEndOnce) {
  const Buffer buffer = allocate(1000);
  const Buffer untold = allocate(1000);
  const auto exported = find_twice(exports, buffer);
  const std::uint64_t number = exported->number;
  exported->tell(3);
  exported->tell(5);
  exported->tell(3);
  ASSERT_NE(find_twice(exports, untold), nullptr);
  ASSERT_TRUE(memory.deallocate(untold).ok());
  EXPECT_TRUE(forgotten.empty());
  ASSERT_TRUE(memory.deallocate(buffer).ok());
  EXPECT_EQ(forgotten, (std::vector<std::pair<int, std::uint64_t>>{{3, number}, {5, number}}));
}

TEST_F(ExportsTest, AnotherAllocationAtTheSameAddressHasAnotherNumber) {
  const Buffer buffer = allocate(1000);
  const std::uint64_t number = find_twice(exports, buffer)->number;
  ASSERT_TRUE(memory.deallocate(buffer).ok());
  testing::emulated(memory).place_next_at(buffer.data);
  const Buffer again = allocate(1000);
  ASSERT_EQ(again.data, buffer.data);
  EXPECT_NE(find_twice(exports, again)->number, number);
}

TEST_F(ExportsTest, AnOldMappingEndsWhenAllPesHaveUnmappedIt) {
  const Buffer buffer = allocate(1000);
  const auto exported = find_twice(exports, buffer);
  exported->tell(3);
  exported->tell(5);
  EXPECT_FALSE(exports.overlaps_old_mapping(buffer)) << "the same allocation";
  ASSERT_TRUE(memory.deallocate(buffer).ok());
  testing::emulated(memory).place_next_at(buffer.data);
  const Buffer again = allocate(300);
  ASSERT_EQ(again.data, buffer.data);
  EXPECT_TRUE(exports.overlaps_old_mapping(part(again, 100, 8))) << "the allocation counts, not the buffer";
  EXPECT_FALSE(exports.overlaps_old_mapping(part(again, 100, 0)));
  EXPECT_FALSE(exports.overlaps_old_mapping(allocate(1000)));
  exports.forgotten(3, exported->number);
  exports.forgotten(3, exported->number);
  exports.forgotten(4, exported->number);
  exports.forgotten(5, exported->number + 1);
  EXPECT_TRUE(exports.overlaps_old_mapping(again));
  exports.forgotten(5, exported->number);
  EXPECT_FALSE(exports.overlaps_old_mapping(again));
}

// As with a library that frees memory without Weft: the address is used again before Weft hears of the end.
TEST_F(ExportsTest, AnotherAllocationThatOverlapsEndsTheExport) {
  memory::Memory owner;  // with another listener
  Exports unaware(owner, [this](int pe, std::uint64_t number) { forgotten.emplace_back(pe, number); });
  const Buffer buffer = owner.allocate(20000, {Kind::kEmulated, 0}).value();
  const auto exported = find_twice(unaware, buffer);
  exported->tell(3);
  owner.set_release_listener({});
  ASSERT_TRUE(owner.deallocate(buffer).ok());
  std::byte* const inside = static_cast<std::byte*>(buffer.data) + 8192;
  testing::emulated(owner).place_next_at(inside);
  const Buffer again = owner.allocate(1000, {Kind::kEmulated, 0}).value();
  ASSERT_EQ(again.data, inside);
  EXPECT_TRUE(unaware.overlaps_old_mapping(part(again, 400, 100)));
  EXPECT_EQ(forgotten, (std::vector<std::pair<int, std::uint64_t>>{{3, exported->number}}));
  unaware.forgotten(3, exported->number);
  EXPECT_FALSE(unaware.overlaps_old_mapping(again));
}

TEST_F(ExportsTest, TheLeastRecentlyUsedMakesRoom) {
  Exports few(memory, [this](int pe, std::uint64_t number) { forgotten.emplace_back(pe, number); }, 3);
  std::vector<Buffer> buffers;
  std::vector<std::uint64_t> numbers;
  for (int i = 0; i < 3; ++i) {
    buffers.push_back(allocate(100));
    const auto exported = find_twice(few, buffers.back());
    exported->tell(i);
    numbers.push_back(exported->number);
  }
  EXPECT_EQ(few.find(buffers[0])->number, numbers[0]);
  EXPECT_EQ(few.find(allocate(100)), nullptr);
  EXPECT_EQ(forgotten, (std::vector<std::pair<int, std::uint64_t>>{{1, numbers[1]}}));
  EXPECT_EQ(few.find(buffers[0])->number, numbers[0]);
  EXPECT_EQ(few.find(buffers[2])->number, numbers[2]);
  EXPECT_GT(find_twice(few, buffers[1])->number, numbers[2]) << "exported anew";
}

TEST_F(ExportsTest, WhatIsHeldDoesNotMakeRoom) {
  Exports few(memory, [this](int pe, std::uint64_t number) { forgotten.emplace_back(pe, number); }, 2);
  const Buffer first = allocate(100);
  const Buffer second = allocate(100);
  auto held = find_twice(few, first);
  held->tell(7);
  auto also_held = find_twice(few, second);
  EXPECT_NE(find_twice(few, allocate(100)), nullptr) << "more than two while all are held";
  EXPECT_TRUE(forgotten.empty());
  const std::uint64_t number = held->number;
  held.reset();
  EXPECT_EQ(few.find(allocate(100)), nullptr);
  EXPECT_EQ(forgotten, (std::vector<std::pair<int, std::uint64_t>>{{7, number}}));
  EXPECT_EQ(few.find(second), also_held);
}

}  // namespace
}  // namespace weft::machine
