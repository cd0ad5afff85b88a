#include "weft/rma/global_ptr.h"

#include <gtest/gtest.h>

#include "weft/base/pup.h"

namespace weft::rma {
namespace {

GlobalPtr<double> pointer_at(std::uint64_t offset) {
  return GlobalPtr<double>(GlobalAddress(5, 7, memory::Kind::kEmulated, offset));
}

TEST(GlobalPtr, KeepsItsParts) {
  const GlobalPtr<double> pointer = pointer_at(64);
  EXPECT_EQ(pointer.pe(), 5);
  EXPECT_EQ(pointer.segment(), 7U);
  EXPECT_EQ(pointer.kind(), memory::Kind::kEmulated);
  EXPECT_EQ(pointer.offset_bytes(), 64U);
  const GlobalAddress last(0x7fffffff, GlobalAddress::kMaxSegment, memory::Kind::kCuda, ~std::uint64_t{0});
  EXPECT_EQ(last.pe(), 0x7fffffff);
  EXPECT_EQ(last.segment(), GlobalAddress::kMaxSegment);
  EXPECT_EQ(last.kind(), memory::Kind::kCuda);
}

TEST(GlobalPtr, NullIsNull) {
  EXPECT_FALSE(GlobalPtr<int>());
  EXPECT_EQ(GlobalPtr<int>(), nullptr);
  EXPECT_TRUE((GlobalPtr<int>() + 3).address().is_null());
  EXPECT_TRUE(pointer_at(0));
}

TEST(GlobalPtr, CountsInElements) {
  GlobalPtr<double> pointer = pointer_at(64);
  EXPECT_EQ((pointer + 2).offset_bytes(), 80U);
  EXPECT_EQ((2 + pointer).offset_bytes(), 80U);
  EXPECT_EQ((pointer - 8).offset_bytes(), 0U);
  EXPECT_EQ((pointer + 5) - pointer, 5);
  EXPECT_EQ(pointer - (pointer + 5), -5);
  ++pointer;
  --pointer;
  pointer += 3;
  pointer -= 1;
  EXPECT_EQ(pointer.offset_bytes(), 80U);
  EXPECT_EQ(pointer.cast<char>() + 1, GlobalPtr<char>(GlobalAddress(5, 7, memory::Kind::kEmulated, 81)));
}

TEST(GlobalPtr, IsOrderedByOffsetWithinASegment) {
  EXPECT_LT(pointer_at(8), pointer_at(16));
  EXPECT_GT(pointer_at(8), pointer_at(0));
  EXPECT_EQ(pointer_at(8), pointer_at(0) + 1);
  EXPECT_NE(pointer_at(8).address(), GlobalAddress(5, 7, memory::Kind::kHost, 8));
}

TEST(GlobalPtr, ConvertsToConstElements) {
  const GlobalPtr<const double> pointer = pointer_at(8);
  EXPECT_EQ(pointer.offset_bytes(), 8U);
}

TEST(GlobalPtr, TravelsAsPlainBytes) {
  const GlobalPtr<double> pointer = pointer_at(24);
  std::byte bytes[16];
  EXPECT_EQ(base::packed_size(pointer), sizeof bytes);
  base::Pup packer = base::Pup::packer(bytes, sizeof bytes);
  packer | pointer;
  GlobalPtr<double> read;
  base::Pup unpacker = base::Pup::unpacker(bytes, sizeof bytes);
  unpacker | read;
  EXPECT_EQ(read, pointer);
}

TEST(GlobalPtr, IsNamedForPeople) {
  EXPECT_EQ(describe(pointer_at(24).address()), "byte 24 of segment 7 of PE 5 (emulated)");
  EXPECT_EQ(describe((pointer_at(0) - 1).address()), "byte -8 of segment 7 of PE 5 (emulated)");
  EXPECT_EQ(describe(GlobalAddress()), "the null pointer");
  EXPECT_EQ(describe(GlobalAddress(1, 2, static_cast<memory::Kind>(77), 0)),
            "byte 0 of segment 2 of PE 1 (no memory kind)");
}

}  // namespace
}  // namespace weft::rma
