#include "models/mpi/objects/addresses.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace weft::mpi {
namespace {

TEST(Addresses, AreAboveTheConstantsOfTheHeader) {
  const int value = 0;
  EXPECT_TRUE(is_address(&value));
  EXPECT_FALSE(is_sentinel(&value));
  for (const void* const constant :
       {static_cast<const void*>(MPI_IN_PLACE), static_cast<const void*>(MPI_BUFFER_AUTOMATIC),
        static_cast<const void*>(MPI_UNWEIGHTED), static_cast<const void*>(MPI_WEIGHTS_EMPTY)}) {
    EXPECT_FALSE(is_address(constant));
    EXPECT_TRUE(is_sentinel(constant));
  }
  EXPECT_FALSE(is_address(MPI_BOTTOM));
  EXPECT_FALSE(is_sentinel(MPI_BOTTOM));
  EXPECT_TRUE(is_address(reinterpret_cast<const void*>(kFirstAddress)));
}

TEST(Addresses, OthersAreNamed) {
  EXPECT_EQ(describe_sentinel(nullptr), "a null pointer");
  EXPECT_EQ(describe_sentinel(MPI_IN_PLACE), "MPI_IN_PLACE, which is not allowed here");
  EXPECT_EQ(describe_sentinel(MPI_WEIGHTS_EMPTY), "MPI_WEIGHTS_EMPTY, which is not allowed here");
  EXPECT_EQ(describe_sentinel(reinterpret_cast<const void*>(std::uintptr_t{77})),
            "the number 77, which is no address");
}

}  // namespace
}  // namespace weft::mpi
