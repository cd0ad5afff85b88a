#include "machine/ucx/handles/boundary.h"

#include <gtest/gtest.h>

#include <new>

namespace weft::machine::ucx {
namespace {

TEST(UcxBoundaryTest, ReturnsTheResultOfTheFunction) {
  EXPECT_EQ(at_boundary([] { return 7; }), 7);
  int calls = 0;
  at_boundary([&] { ++calls; });
  EXPECT_EQ(calls, 1);
}

// UCX's frames are C: an exception that reached them would leave UCX with half-changed lists.
TEST(UcxBoundaryDeathTest, AnExceptionEndsTheProcessWithASentence) {
  EXPECT_DEATH(at_boundary([] { throw std::bad_alloc(); }),
               "weft: std::bad_alloc in a function that the network library called");
  EXPECT_DEATH(at_boundary([] { throw 1; }), "weft: an unknown exception in a function");
}

}  // namespace
}  // namespace weft::machine::ucx
