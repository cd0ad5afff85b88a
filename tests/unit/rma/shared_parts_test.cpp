#include "rma/segment/shared_parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

namespace weft::rma {
namespace {

constexpr std::size_t kSmall = 1000;

TEST(SharedParts, SmallPartsShareAFile) {
  SharedParts parts;
  std::vector<SharedPart> made;
  for (int i = 0; i < 3000; ++i) made.push_back(parts.allocate(kSmall).value());
  EXPECT_LT(parts.num_files(), 5U);
  for (const SharedPart& part : made) EXPECT_EQ(part.offset_bytes % SharedParts::kAlignment, 0U);
  for (const SharedPart& part : made) parts.free(part, kSmall);
  EXPECT_EQ(parts.num_files(), 1U);
}

TEST(SharedParts, LargePartsHaveAFileOfTheirOwn) {
  SharedParts parts;
  const SharedPart part = parts.allocate(SharedParts::kLargestSharedBytes + 1).value();
  EXPECT_EQ(parts.num_files(), 0U);
  EXPECT_EQ(part.data()[SharedParts::kLargestSharedBytes], std::byte{0});
  parts.free(part, SharedParts::kLargestSharedBytes + 1);
}

TEST(SharedParts, APartThatIsUsedAgainHoldsZeros) {
  SharedParts parts;
  const SharedPart first = parts.allocate(kSmall).value();
  std::memset(first.data(), 7, kSmall);
  parts.free(first, kSmall);
  const SharedPart second = parts.allocate(kSmall).value();
  EXPECT_EQ(second.offset_bytes, first.offset_bytes);
  EXPECT_TRUE(
      std::all_of(second.data(), second.data() + kSmall, [](std::byte b) { return b == std::byte{0}; }));
}

TEST(SharedParts, PartsNeverOverlap) {
  constexpr std::uint32_t kSeed = 4;
  std::printf("seed %u\n", kSeed);
  std::mt19937 random(kSeed);
  struct Live {
    SharedPart part;
    std::size_t size_bytes;
    std::uint8_t mark;
  };
  SharedParts parts;
  std::vector<Live> live;
  for (int step = 0; step < 5000; ++step) {
    if (live.empty() || random() % 5 < 3) {
      const std::size_t size = 1 + random() % (random() % 8 == 0 ? SharedParts::kLargestSharedBytes : 700);
      const auto mark = static_cast<std::uint8_t>(1 + random() % 255);
      live.push_back({parts.allocate(size).value(), size, mark});
      std::memset(live.back().part.data(), mark, size);
      continue;
    }
    std::swap(live[random() % live.size()], live.back());
    const Live freed = live.back();
    live.pop_back();
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(freed.part.data());
    ASSERT_TRUE(
        std::all_of(bytes, bytes + freed.size_bytes, [&](std::uint8_t byte) { return byte == freed.mark; }));
    parts.free(freed.part, freed.size_bytes);
  }
  for (const Live& one : live) parts.free(one.part, one.size_bytes);
  EXPECT_EQ(parts.num_files(), 1U) << "ranges that adjoin are joined";
}

TEST(MappedFiles, AFileIsMappedOnce) {
  SharedParts parts;
  const SharedPart first = parts.allocate(kSmall).value();
  const SharedPart second = parts.allocate(kSmall).value();
  MappedFiles mapped;
  const SharedPart one = mapped.open(first.file->name(), first.offset_bytes, kSmall);
  const SharedPart other = mapped.open(second.file->name(), second.offset_bytes, kSmall);
  ASSERT_NE(one.file, nullptr);
  EXPECT_EQ(one.file, other.file);
  other.data()[3] = std::byte{9};
  EXPECT_EQ(second.data()[3], std::byte{9});
}

TEST(MappedFiles, PartsOutsideOfTheirFileAreNotMapped) {
  SharedParts parts;
  const SharedPart part = parts.allocate(kSmall).value();
  base::SharedMappingName name = part.file->name();
  MappedFiles mapped;
  EXPECT_EQ(mapped.open(name, 0, 8).file, nullptr) << "the random number is no memory of a segment";
  EXPECT_EQ(mapped.open(name, name.file.size_bytes - 7, 8).file, nullptr);
  EXPECT_EQ(mapped.open(name, ~std::uint64_t{0}, 8).file, nullptr);
  EXPECT_EQ(mapped.open(name, 4096, ~std::uint64_t{0}).file, nullptr);
  const SharedPart right = mapped.open(name, 4096, 8);
  ASSERT_NE(right.file, nullptr);
  name.file.size_bytes += 4096;
  EXPECT_EQ(mapped.open(name, name.file.size_bytes - 8, 8).file, nullptr);
}

}  // namespace
}  // namespace weft::rma
