#include "models/mpi/objects/info.h"

#include <gtest/gtest.h>

#include <string>

namespace weft::mpi {
namespace {

TEST(Info, KeepsTheOrderOfKeysAndReplacesValues) {
  Info info;
  ASSERT_TRUE(info.set("second", "2").ok());
  ASSERT_TRUE(info.set("first", "1").ok());
  ASSERT_TRUE(info.set("second", "two").ok());
  EXPECT_EQ(info.pairs(), (Info::Pairs{{"second", "two"}, {"first", "1"}}));
  ASSERT_NE(info.find("first"), nullptr);
  EXPECT_EQ(*info.find("first"), "1");
  EXPECT_EQ(info.find("fir"), nullptr);
}

TEST(Info, RemovesKeys) {
  Info info;
  ASSERT_TRUE(info.set("key", "").ok());
  EXPECT_TRUE(info.remove("key").ok());
  EXPECT_EQ(info.remove("key").error_class, MPI_ERR_INFO_NOKEY);
  EXPECT_TRUE(info.pairs().empty());
}

TEST(Info, RefusesKeysAndValuesThatTheStandardDoesNotAllow) {
  Info info;
  const std::string long_key(MPI_MAX_INFO_KEY, 'k');
  const std::string long_value(MPI_MAX_INFO_VAL, 'v');
  EXPECT_EQ(info.set(nullptr, "v").error_class, MPI_ERR_INFO_KEY);
  EXPECT_EQ(info.set("", "v").error_class, MPI_ERR_INFO_KEY);
  EXPECT_EQ(info.set(long_key.c_str(), "v").error_class, MPI_ERR_INFO_KEY);
  EXPECT_EQ(info.set("k", nullptr).error_class, MPI_ERR_INFO_VALUE);
  EXPECT_EQ(info.set("k", long_value.c_str()).error_class, MPI_ERR_INFO_VALUE);
  EXPECT_EQ(info.remove(nullptr).error_class, MPI_ERR_INFO_KEY);
  EXPECT_TRUE(info.set(long_key.c_str() + 1, long_value.c_str() + 1).ok());
}

TEST(Info, TheEnvironmentHasTheCommandAndItsArguments) {
  const char* const arguments[] = {"./a.out", "-n", "12"};
  const Info info(environment_pairs(3, arguments));
  ASSERT_NE(info.find("command"), nullptr);
  EXPECT_EQ(*info.find("command"), "./a.out");
  ASSERT_NE(info.find("argv"), nullptr);
  EXPECT_EQ(*info.find("argv"), "-n 12");
  EXPECT_NE(info.find("wdir"), nullptr);
  EXPECT_NE(info.find("arch"), nullptr);
}

TEST(Info, TheEnvironmentOfAProgramWithoutArgumentsHasNoCommand) {
  EXPECT_EQ(Info(environment_pairs(0, nullptr)).find("command"), nullptr);
  const char* const none[] = {nullptr};
  EXPECT_EQ(Info(environment_pairs(1, none)).find("command"), nullptr);
}

}  // namespace
}  // namespace weft::mpi
