#include "weft/base/copy_bytes.h"

#include <gtest/gtest.h>

#include <array>
#include <numeric>

namespace weft::base {
namespace {

TEST(CopyBytesTest, CopiesThatMuchAndNoMore) {
  std::array<unsigned char, 32> from{};
  std::iota(from.begin(), from.end(), 1);
  for (const std::size_t size : {0, 1, 7, 8, 9, 16, 31}) {
    for (const std::size_t at : {0, 1}) {
      std::array<unsigned char, 34> to{};
      copy_bytes(to.data() + 1 + at, from.data() + at, size);
      for (std::size_t i = 0; i < to.size(); ++i) {
        const bool is_inside = i >= 1 + at && i < 1 + at + size;
        EXPECT_EQ(to[i], is_inside ? i : 0) << size << " at " << at << ", byte " << i;
      }
    }
  }
}

}  // namespace
}  // namespace weft::base
