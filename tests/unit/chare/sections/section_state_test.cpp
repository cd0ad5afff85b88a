#include "models/chare/sections/section_state.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <vector>

namespace weft::chare {
namespace {

TEST(SectionKey, DiffersByCollectionSectionAndSet) {
  const SectionKey key{1, {2, 3}, 4};
  const std::vector<SectionKey> others = {{9, {2, 3}, 4}, {1, {9, 3}, 4}, {1, {2, 9}, 4}, {1, {2, 3}, 9}};
  std::set<SectionKey> all{key};
  for (const SectionKey& other : others) {
    EXPECT_NE(other, key);
    EXPECT_TRUE(all.insert(other).second);
  }
  EXPECT_EQ(base::unpack<SectionKey>(base::pack(key)), key);
}

TEST(CountedSection, ReductionsAreCompletedInAnyOrder) {
  CountedSection section(3, {});
  EXPECT_FALSE(section.has_open());
  for (const std::uint64_t sequence : {0U, 1U, 2U, 3U}) section.open(sequence).count = 10 + sequence;
  for (const std::uint64_t sequence : {2U, 0U, 3U}) {
    EXPECT_EQ(section.complete(sequence).count, 10 + sequence);
    EXPECT_TRUE(section.is_complete(sequence));
  }
  EXPECT_FALSE(section.is_complete(1));
  EXPECT_FALSE(section.is_complete(4));
  EXPECT_EQ(section.all_open().size(), 1U);
  EXPECT_EQ(section.complete(1).count, 11U);
  EXPECT_FALSE(section.has_open());
  for (const std::uint64_t sequence : {0U, 1U, 2U, 3U}) EXPECT_TRUE(section.is_complete(sequence));
}

}  // namespace
}  // namespace weft::chare
