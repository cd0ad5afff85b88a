#include "entry/widened.h"

#include <gtest/gtest.h>

#include <climits>
#include <cstdint>
#include <vector>

namespace weft::mpi {
namespace {

TEST(Widened, CopiesFewAndManyValues) {
  for (const int length : {0, 1, 32, 33, 1000}) {
    std::vector<int> values(static_cast<std::size_t>(length) + 1);
    for (int at = 0; at < length; ++at) values[static_cast<std::size_t>(at)] = at % 2 == 0 ? at : -at;
    const Widened<MPI_Count, int> widened(values.data(), length);
    ASSERT_NE(widened.data(), nullptr);
    for (int at = 0; at < length; ++at) EXPECT_EQ(widened.data()[at], values[static_cast<std::size_t>(at)]);
  }
}

TEST(Widened, NullStaysNullAndANegativeLengthCountsAsNone) {
  EXPECT_EQ((Widened<MPI_Count, int>(nullptr, 5).data()), nullptr);
  EXPECT_EQ((Widened<MPI_Count, int>(MPI_UNWEIGHTED, 5).data()), nullptr);
  const int value = 1;
  EXPECT_NE((Widened<MPI_Count, int>(&value, -1).data()), nullptr);
}

TEST(Narrowed, AValueThatDoesNotFitIsUndefined) {
  EXPECT_EQ(narrowed<int>(MPI_Count{INT_MAX}), INT_MAX);
  EXPECT_EQ(narrowed<int>(MPI_Count{INT_MAX} + 1), MPI_UNDEFINED);
  EXPECT_EQ(narrowed<int>(MPI_Count{INT_MIN}), INT_MIN);
  EXPECT_EQ(narrowed<int>(MPI_Count{INT_MIN} - 1), MPI_UNDEFINED);
  EXPECT_EQ(narrowed<MPI_Aint>(MPI_Count{1} << 40), MPI_Aint{1} << 40);
}

}  // namespace
}  // namespace weft::mpi
