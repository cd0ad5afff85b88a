#include "collective/form.h"

#include <gtest/gtest.h>

namespace weft::collective {
namespace {

TEST(Forms, AreChosenByWhatAllMembersKnow) {
  EXPECT_EQ(form_of(Kind::kAllreduce, 4, 8, Spread::kOneHost), Form::kFewMessages);
  EXPECT_EQ(form_of(Kind::kAllreduce, 4, 32768, Spread::kOneHost), Form::kDirect);
  EXPECT_EQ(form_of(Kind::kAllreduce, 4, 32768, Spread::kOwnHosts), Form::kFewMessages) << "on several hosts";
  EXPECT_EQ(form_of(Kind::kAllreduce, 1, 32768, Spread::kOneHost), Form::kFewMessages) << "alone";
  EXPECT_EQ(form_of(Kind::kAllreduce, 65, 32768, Spread::kOneHost), Form::kFewMessages)
      << "too many messages";
  EXPECT_EQ(form_of(Kind::kAllreduce, 4, 32768, Spread::kSharedHosts), Form::kLeaders);
  EXPECT_EQ(form_of(Kind::kScan, 4, 8, Spread::kSharedHosts), Form::kFewMessages);
  EXPECT_EQ(form_of(Kind::kBarrier, 4, 0, Spread::kOneHost), Form::kFewMessages);
  EXPECT_EQ(form_of(Kind::kAlltoall, 16, 8, Spread::kOneHost), Form::kFewMessages);
  EXPECT_EQ(form_of(Kind::kAlltoall, 16, 1024, Spread::kOneHost), Form::kSeparate);
  EXPECT_EQ(form_of(Kind::kAlltoall, 16, 32768, Spread::kOneHost), Form::kDirect);
  for (const Kind kind : {Kind::kBroadcast, Kind::kAllreduce, Kind::kAllgather, Kind::kAlltoall}) {
    EXPECT_TRUE(is_small(kind, 16, 32768, Spread::kOneHost));
    EXPECT_FALSE(is_small(kind, 16, 32768, Spread::kOwnHosts));
    EXPECT_FALSE(is_small(kind, 16, std::size_t{1} << 30, Spread::kOneHost));
  }
}

TEST(Forms, TheSizesOfTheDirectFormAreThoseThatItIsChosenFor) {
  for (const int size : {2, 16, 64}) {
    const DirectSizes sizes = direct_sizes(Kind::kReduce, size, Spread::kOneHost);
    EXPECT_NE(form_of(Kind::kReduce, size, sizes.least - 1, Spread::kOneHost), Form::kDirect);
    EXPECT_EQ(form_of(Kind::kReduce, size, sizes.least, Spread::kOneHost), Form::kDirect);
    EXPECT_EQ(form_of(Kind::kReduce, size, sizes.most, Spread::kOneHost), Form::kDirect);
    EXPECT_NE(form_of(Kind::kReduce, size, sizes.most + 1, Spread::kOneHost), Form::kDirect);
  }
  for (const int size : {1, 65}) {
    const DirectSizes none = direct_sizes(Kind::kReduce, size, Spread::kOneHost);
    EXPECT_GT(none.least, none.most);
  }
  const DirectSizes elsewhere = direct_sizes(Kind::kReduce, 4, Spread::kOwnHosts);
  EXPECT_GT(elsewhere.least, elsewhere.most);
}

}  // namespace
}  // namespace weft::collective
