#include "models/mpi/objects/group.h"

#include <gtest/gtest.h>

#include <climits>
#include <memory>
#include <vector>

namespace weft::mpi {
namespace {

using RankNumbers = std::vector<int>;

TEST(Group, KnowsTheRankOfEachProcess) {
  const auto group = Ref<Group>::adopt(new Group(std::make_shared<const Members>(Members{7, 3, 5})));
  EXPECT_EQ(group->size(), 3);
  EXPECT_EQ(group->rank_of(3), 1);
  EXPECT_EQ(group->rank_of(4), MPI_UNDEFINED);
}

TEST(Group, SetOperationsKeepTheOrderOfTheFirstGroup) {
  const Members one = {4, 2, 0};
  const Members other = {1, 0, 4};
  EXPECT_EQ(union_of(one, other), (Members{4, 2, 0, 1}));
  EXPECT_EQ(intersection_of(one, other), (Members{4, 0}));
  EXPECT_EQ(difference_of(one, other), (Members{2}));
  EXPECT_EQ(union_of({}, other), other);
  EXPECT_EQ(intersection_of(one, {}), Members());
  EXPECT_EQ(difference_of(one, {}), one);
}

TEST(Group, IncludesAndExcludesRanks) {
  const Members members = {10, 11, 12, 13};
  Members result;
  EXPECT_TRUE(include_ranks(members, RankNumbers{3, 0}, &result).ok());
  EXPECT_EQ(result, (Members{13, 10}));
  EXPECT_TRUE(exclude_ranks(members, RankNumbers{3, 0}, &result).ok());
  EXPECT_EQ(result, (Members{11, 12}));
  EXPECT_TRUE(include_ranks(members, RankNumbers{}, &result).ok());
  EXPECT_EQ(result, Members());
}

TEST(Group, RefusesRanksThatAreNotThereOrThereTwice) {
  const Members members = {10, 11};
  Members result;
  for (const RankNumbers& ranks :
       {RankNumbers{2}, RankNumbers{-1}, RankNumbers{1, 0, 1}, RankNumbers{MPI_PROC_NULL}}) {
    EXPECT_EQ(include_ranks(members, ranks, &result).error_class, MPI_ERR_RANK);
    EXPECT_EQ(exclude_ranks(members, ranks, &result).error_class, MPI_ERR_RANK);
  }
}

TEST(Group, ExpandsRangesInBothDirections) {
  const RankRange ranges[] = {{1, 5, 2}, {4, 0, -2}, {6, 6, 9}, {3, 2, 1}};
  RankNumbers ranks;
  EXPECT_TRUE(expand_ranges(8, ranges, &ranks).ok());
  EXPECT_EQ(ranks, (RankNumbers{1, 3, 5, 4, 2, 0, 6}));
}

TEST(Group, RefusesRangesThatCannotBeRight) {
  RankNumbers ranks;
  const RankRange without_stride[] = {{0, 1, 0}};
  EXPECT_EQ(expand_ranges(8, without_stride, &ranks).error_class, MPI_ERR_ARG);
  const RankRange outside[] = {{6, 8, 1}};
  EXPECT_EQ(expand_ranges(8, outside, &ranks).error_class, MPI_ERR_RANK);
  const RankRange below[] = {{2, INT_MIN, INT_MIN}};
  EXPECT_EQ(expand_ranges(8, below, &ranks).error_class, MPI_ERR_RANK);
  const RankRange far_too_many[] = {{0, 1, 1}, {0, 1, 1}};
  EXPECT_EQ(expand_ranges(2, far_too_many, &ranks).error_class, MPI_ERR_RANK);
}

TEST(Group, ARangeWhoseNextRankDoesNotFitEnds) {
  const RankRange ranges[] = {{1, 1, INT_MAX}, {0, 0, INT_MIN}};
  RankNumbers ranks;
  EXPECT_TRUE(expand_ranges(2, ranges, &ranks).ok());
  EXPECT_EQ(ranks, (RankNumbers{1, 0}));
}

TEST(Group, TranslatesRanks) {
  const Members one = {5, 6, 7};
  const Members other = {7, 5};
  int result[4] = {};
  EXPECT_TRUE(translate_ranks(one, RankNumbers{0, 1, 2, MPI_PROC_NULL}, other, result).ok());
  EXPECT_EQ(RankNumbers(result, result + 4), (RankNumbers{1, MPI_UNDEFINED, 0, MPI_PROC_NULL}));
  EXPECT_EQ(translate_ranks(one, RankNumbers{3}, other, result).error_class, MPI_ERR_RANK);
}

TEST(Group, ComparesMembersAndTheirOrder) {
  EXPECT_EQ(compare_members({1, 2}, {1, 2}), MPI_IDENT);
  EXPECT_EQ(compare_members({1, 2}, {2, 1}), MPI_SIMILAR);
  EXPECT_EQ(compare_members({1, 2}, {1, 3}), MPI_UNEQUAL);
  EXPECT_EQ(compare_members({}, {}), MPI_IDENT);
}

}  // namespace
}  // namespace weft::mpi
