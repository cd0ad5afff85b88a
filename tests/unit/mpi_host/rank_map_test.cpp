#include "slots/rank_map.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "program/refusal.h"

namespace weft::mpi_host {
namespace {

using Pes = std::vector<int>;

std::string refusal_of(int num_ranks, int num_pes, const std::string& how) {
  try {
    map_ranks(num_ranks, num_pes, how);
  } catch (const Refusal& refusal) {
    return refusal.what();
  }
  return {};
}

// A file with that text, removed at the end.
class MapFile {
 public:
  explicit MapFile(const std::string& text) : path_(::testing::TempDir() + "rank_map_test.map") {
    std::ofstream(path_) << text;
  }
  ~MapFile() { std::remove(path_.c_str()); }
  MapFile(const MapFile&) = delete;
  MapFile& operator=(const MapFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(RankMap, BlocksDifferByOneRankAtMost) {
  EXPECT_EQ(map_ranks(4, 2, "block"), (Pes{0, 0, 1, 1}));
  EXPECT_EQ(map_ranks(5, 2, "block"), (Pes{0, 0, 0, 1, 1}));
  EXPECT_EQ(map_ranks(3, 3, "block"), (Pes{0, 1, 2}));
  for (const int num_pes : {1, 2, 3, 7}) {
    for (int num_ranks = num_pes; num_ranks < 30; ++num_ranks) {
      const Pes pes = map_ranks(num_ranks, num_pes, "block");
      Pes counts(static_cast<std::size_t>(num_pes));
      for (const int pe : pes) ++counts.at(static_cast<std::size_t>(pe));
      for (const int count : counts) {
        EXPECT_GE(count, num_ranks / num_pes);
        EXPECT_LE(count, (num_ranks + num_pes - 1) / num_pes);
      }
    }
  }
}

TEST(RankMap, RoundRobinDealsRanksOut) { EXPECT_EQ(map_ranks(5, 2, "round-robin"), (Pes{0, 1, 0, 1, 0})); }

TEST(RankMap, AFileHasALinePerRank) {
  const MapFile file("# the PE of each rank\n1\n 0 # the root\n\n1\r\n");
  EXPECT_EQ(map_ranks(3, 2, file.path()), (Pes{1, 0, 1}));
}

TEST(RankMap, EachPeHasARank) {
  EXPECT_NE(refusal_of(1, 2, "block"), "");
  const MapFile file("0\n0\n");
  EXPECT_EQ(refusal_of(2, 2, file.path()),
            file.path() + ": gives PE 1 no rank; give it one, or start fewer PEs (-n)");
}

TEST(RankMap, WrongFilesAreRefused) {
  EXPECT_NE(refusal_of(2, 2, "/nowhere/map").find("cannot be read"), std::string::npos);
  for (const char* const text :
       {"0\ntwo\n", "0\n2\n", "0\n-1\n", "0\n1.5\n", "0 1\n1\n", "0\n99999999999\n"}) {
    const MapFile file(text);
    EXPECT_NE(refusal_of(2, 2, file.path()).find("is no PE of this job"), std::string::npos) << text;
  }
  for (const char* const text : {"", "0\n", "0\n1\n0\n"}) {
    const MapFile file(text);
    EXPECT_NE(refusal_of(2, 2, file.path()).find("lines with a PE number"), std::string::npos) << text;
  }
}

TEST(RankMap, TooManyRanksAreRefused) { EXPECT_NE(refusal_of(kMaxRanks + 1, 2, "block"), ""); }

}  // namespace
}  // namespace weft::mpi_host
