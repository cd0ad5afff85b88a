#include "job/processors.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <vector>

namespace weft::job {
namespace {

using runtime::ProcessorShare;

// Of the first of these PEs.
ProcessorShare share(const std::vector<std::string_view>& lists) { return share_of(0, lists); }

void expect_share(const std::vector<std::string_view>& lists, int num_pes, int num_processors) {
  const ProcessorShare found = share(lists);
  EXPECT_EQ(found.num_pes, num_pes) << lists[0];
  EXPECT_EQ(found.num_processors, num_processors) << lists[0];
}

TEST(Processors, PesThatRunAnywhereShareAll) {
  expect_share({"0-3", "0-3", "0-3"}, 3, 4);
  EXPECT_FALSE(share({"0-3", "0-3", "0-3"}).is_shared());
  EXPECT_TRUE(share({"0-1", "0-1", "0-1"}).is_shared());
}

TEST(Processors, BoundPesShareNone) {
  expect_share({"0", "1", "2"}, 1, 1);
  EXPECT_FALSE(share({"0", "1", "2"}).is_shared());
  expect_share({"0-7", "8-15"}, 1, 8);
}

TEST(Processors, PesThatAreBoundToOneProcessorShareItWhateverTheOthersHave) {
  EXPECT_TRUE(share({"0", "0", "1-15"}).is_shared());
  EXPECT_FALSE(share({"1-15", "0", "0"}).is_shared());
  EXPECT_TRUE(share({"3", "3", "0-7"}).is_shared()) << "the third one makes no room";
}

TEST(Processors, SetsThatOverlapArePutTogether) {
  expect_share({"0-1", "1-2", "5"}, 2, 3);
  expect_share({"0,2,4", "4-6"}, 2, 5);
}

TEST(Processors, WrongListsOfPeersCountAsTheOwn) {
  for (const char* list : {"", ",", "3-1", "x", "1-", "-", "1-99999999", "4294967296", "1--2", "0-3 "}) {
    expect_share({"0-3", list}, 2, 4);
  }
  expect_share({"", ""}, 2, 1);
  expect_share({"x"}, 1, 1);
}

TEST(Processors, PesInALimitedContainerShareItsTime) {
  expect_share({"0-15@2/7", "0-15@2/7", "0-15@2/7"}, 3, 2);
  EXPECT_FALSE(share({"0-15@2/7", "0-15@2/7"}).is_shared());
  EXPECT_FALSE(share({"0-15@1/7", "0-15@1/8", "0-15"}).is_shared()) << "others have time of their own";
  expect_share({"0@4/7", "0@4/7", "0@4/7", "1@4/7", "1@4/7"}, 3, 1);
  expect_share({"0-1@1/7", "0-1@1/7", "0-1@1/7"}, 3, 1);
}

TEST(Processors, WrongLimitsOfPeersCountAsTheOwn) {
  for (const char* claim : {"0-15@", "0-15@2", "0-15@0/7", "0-15@-1/7", "0-15@2/", "0-15@2/x",
                            "0-15@9999999999/7", "0-15@2/99999999999999999999", "@2/7"}) {
    expect_share({"0-15@1/7", claim}, 2, 1);
  }
}

TEST(Processors, APeOfWhichNothingIsKnownMayShare) { EXPECT_TRUE(share({"", "0-3"}).is_shared()); }

TEST(Processors, KnowsTheOwn) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  const std::string all = own_processors();
  EXPECT_EQ(share({all}).num_processors, CPU_COUNT(&before));
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(own_processors(), std::to_string(first));
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

}  // namespace
}  // namespace weft::job
