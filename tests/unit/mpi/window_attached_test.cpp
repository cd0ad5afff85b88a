// Memory of dynamic windows: which runs lie in it.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "weft/mpi/mpi.h"

#include "models/mpi/window/attached_memory.h"

namespace weft::mpi {
namespace {

int check(const AttachedMemory& memory, const WindowRun& run) {
  return memory.check(std::vector<WindowRun>{run});
}

// [1000, 1100), [1100, 1200) and [2000, 2100).
AttachedMemory three_regions() {
  AttachedMemory memory;
  memory.attach(1000, 100, {});
  memory.attach(1100, 100, {});
  memory.attach(2000, 100, {});
  return memory;
}

TEST(AttachedMemory, RegionsDoNotMeet) {
  AttachedMemory memory = three_regions();
  EXPECT_EQ(memory.size_bytes(), 300U);
  EXPECT_FALSE(memory.meets(900, 100) || memory.meets(1200, 800) || memory.meets(2100, 10));
  EXPECT_TRUE(memory.meets(900, 101) && memory.meets(1199, 1) && memory.meets(500, 5000));
  memory.attach(1050, 0, {});
  EXPECT_FALSE(memory.meets(1050, 0));
  EXPECT_TRUE(memory.detach(1050));
  EXPECT_FALSE(memory.detach(1050));
  EXPECT_TRUE(memory.detach(1100));
  EXPECT_FALSE(memory.meets(1100, 100));
  EXPECT_EQ(memory.size_bytes(), 200U);
}

TEST(AttachedMemory, PiecesLieInAnyRegions) {
  const AttachedMemory memory = three_regions();
  for (const WindowRun& run : std::vector<WindowRun>{
           {1000, 100, 1, 0},
           {1000, 200, 1, 0},
           {1000, 8, 2, 1000},
           {2000, 8, 2, -1000},
           {1000, 8, 25, 8},
           {1192, 8, 25, -8},
           {1090, 20, 5, 0},
           {1000, 100, 101, 1},
       })
    EXPECT_EQ(check(memory, run), MPI_SUCCESS) << run.offset << " " << run.size_bytes << " " << run.count;
}

TEST(AttachedMemory, AByteBesideThemIsRefused) {
  const AttachedMemory memory = three_regions();
  for (const WindowRun& run : std::vector<WindowRun>{
           {999, 8, 1, 0},
           {1000, 201, 1, 0},
           {1000, 8, 3, 1000},
           {1000, 8, 26, 8},
           {1192, 8, 26, -8},
           {1200, 1, 1, 0},
           {-1000, 8, 1, 0},
           {1000, 1, INT64_MAX, INT64_MAX},
           {1000, 1, INT64_MAX, INT64_MIN},
           {1000, INT64_MAX, 1, 0},
           {INT64_MAX, INT64_MAX, 1, 0},
       })
    EXPECT_EQ(check(memory, run), MPI_ERR_RMA_RANGE)
        << run.offset << " " << run.size_bytes << " " << run.count;
}

TEST(AttachedMemory, OneAccessIsInOnePlace) {
  AttachedMemory memory = three_regions();
  const memory::Place device{memory::Kind::kEmulated, 0};
  memory.attach(3000, 100, device);
  EXPECT_EQ(check(memory, {3000, 100, 1, 0}), MPI_SUCCESS);
  EXPECT_EQ(memory.place_of(std::vector<WindowRun>{{3000, 100, 1, 0}}), device);
  EXPECT_EQ(check(memory, {2000, 8, 2, 1000}), MPI_ERR_UNSUPPORTED_OPERATION);
  EXPECT_EQ(memory.check(std::vector<WindowRun>{{3000, 8, 1, 0}, {1000, 8, 1, 0}}),
            MPI_ERR_UNSUPPORTED_OPERATION);
}

}  // namespace
}  // namespace weft::mpi
