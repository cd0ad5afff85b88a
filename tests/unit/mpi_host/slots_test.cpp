#include "slots/slots.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <bit>
#include <string>

#include "program/refusal.h"

namespace weft::mpi_host {
namespace {

TEST(Slots, SizesArePowersOfTwoThatFollowTheNumberOfRanks) {
  for (const int num_ranks : {1, 2, 3, 16, 255, 256, 257, 4000, 1 << 20}) {
    const std::size_t bytes = Slots::bytes_for(num_ranks);
    EXPECT_TRUE(std::has_single_bit(bytes)) << num_ranks;
    EXPECT_GE(bytes, std::size_t{16} << 20) << num_ranks;
    EXPECT_LE(bytes * static_cast<std::size_t>(num_ranks), std::size_t{16} << 40) << num_ranks;
  }
  EXPECT_GE(Slots::bytes_for(256), std::size_t{64} << 30);
}

// One test: the range stays reserved.
TEST(Slots, EachRankHasItsAddressesAndNoOtherUserGetsThem) {
  const Slots slots(5);
  char* const begin = slots.begin(0);
  EXPECT_EQ(slots.begin(4), begin + 4 * slots.slot_bytes());
  EXPECT_EQ(slots.rank_at(begin - 1), -1);
  EXPECT_EQ(slots.rank_at(begin), 0);
  EXPECT_EQ(slots.rank_at(slots.begin(1) - 1), 0);
  EXPECT_EQ(slots.rank_at(slots.begin(4) + slots.slot_bytes() - 1), 4);
  EXPECT_EQ(slots.rank_at(slots.begin(4) + slots.slot_bytes()), -1);
  EXPECT_EQ(slots.rank_at(nullptr), -1);
  void* const other = mmap(begin, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(other, begin);
  munmap(other, 4096);
  try {
    const Slots again(1);
    FAIL() << "the range was reserved twice";
  } catch (const Refusal& refusal) {
    EXPECT_NE(std::string(refusal.what()).find("for 1 ranks"), std::string::npos) << refusal.what();
  }
}

}  // namespace
}  // namespace weft::mpi_host
