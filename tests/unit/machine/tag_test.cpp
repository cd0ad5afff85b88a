#include "machine/tag.h"

#include <gtest/gtest.h>

#include <set>

namespace weft::machine {
namespace {

TEST(Tag, TypesAndValuesAreToldApart) {
  std::set<Tag> tags;
  for (std::uint8_t type = 0; type <= kMaxTagType; ++type) {
    for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{1}, kTagValueMask - 1, kTagValueMask}) {
      tags.insert(make_tag(type, value));
    }
  }
  EXPECT_EQ(tags.size(), 4u * (kMaxTagType + 1));
}

TEST(Tag, AValueThatIsTooLargeCannotChangeTheType) {
  EXPECT_EQ(make_tag(3, kTagValueMask + 1), make_tag(3, 0));
  EXPECT_EQ(make_tag(3, ~std::uint64_t{0}), make_tag(3, kTagValueMask));
}

}  // namespace
}  // namespace weft::machine
