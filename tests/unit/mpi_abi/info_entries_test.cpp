#include <gtest/gtest.h>

#include <string>

#include "weft/mpi/mpi.h"

#include "ended_jobs.h"

namespace weft::mpi {
namespace {

class InfoEntries : public ::testing::Test {
 protected:
  InfoEntries() { EXPECT_EQ(MPI_Info_create(&info_), MPI_SUCCESS); }
  ~InfoEntries() override {
    EXPECT_EQ(MPI_Info_free(&info_), MPI_SUCCESS);
    EXPECT_EQ(info_, MPI_INFO_NULL);
  }

  EndedJobs ended_;
  MPI_Info info_ = MPI_INFO_NULL;
};

TEST_F(InfoEntries, GetStringTellsTheLengthAndCuts) {
  ASSERT_EQ(MPI_Info_set(info_, "key", "value"), MPI_SUCCESS);
  int flag = 0;
  int length = 0;
  EXPECT_EQ(MPI_Info_get_string(info_, "key", &length, nullptr, &flag), MPI_SUCCESS);
  EXPECT_EQ(flag, 1);
  EXPECT_EQ(length, 6);
  char text[8] = "xxxxxxx";
  length = 3;
  EXPECT_EQ(MPI_Info_get_string(info_, "key", &length, text, &flag), MPI_SUCCESS);
  EXPECT_STREQ(text, "va");
  EXPECT_EQ(length, 6);
  EXPECT_EQ(MPI_Info_get_string(info_, "key", &length, text, &flag), MPI_SUCCESS);
  EXPECT_STREQ(text, "value");
  length = 8;
  EXPECT_EQ(MPI_Info_get_string(info_, "other", &length, text, &flag), MPI_SUCCESS);
  EXPECT_EQ(flag, 0);
  EXPECT_EQ(length, 8);
  length = -1;
  EXPECT_EQ(MPI_Info_get_string(info_, "key", &length, text, &flag), MPI_ERR_ARG);
}

TEST_F(InfoEntries, TheDeprecatedGetCountsWithoutTheZero) {
  ASSERT_EQ(MPI_Info_set(info_, "key", "value"), MPI_SUCCESS);
  int flag = 0;
  int length = 0;
  EXPECT_EQ(MPI_Info_get_valuelen(info_, "key", &length, &flag), MPI_SUCCESS);
  EXPECT_EQ(length, 5);
  char text[6] = "xxxxx";
  EXPECT_EQ(MPI_Info_get(info_, "key", 2, text, &flag), MPI_SUCCESS);
  EXPECT_STREQ(text, "va");
  EXPECT_EQ(MPI_Info_get(info_, "key", 5, text, &flag), MPI_SUCCESS);
  EXPECT_STREQ(text, "value");
}

TEST_F(InfoEntries, KeysHaveNumbers) {
  ASSERT_EQ(MPI_Info_set(info_, "one", "1"), MPI_SUCCESS);
  ASSERT_EQ(MPI_Info_set(info_, "two", "2"), MPI_SUCCESS);
  int num_keys = 0;
  EXPECT_EQ(MPI_Info_get_nkeys(info_, &num_keys), MPI_SUCCESS);
  EXPECT_EQ(num_keys, 2);
  char key[MPI_MAX_INFO_KEY];
  EXPECT_EQ(MPI_Info_get_nthkey(info_, 1, key), MPI_SUCCESS);
  EXPECT_STREQ(key, "two");
  EXPECT_EQ(MPI_Info_get_nthkey(info_, 2, key), MPI_ERR_ARG);
  EXPECT_EQ(MPI_Info_get_nthkey(info_, -1, key), MPI_ERR_ARG);
}

TEST_F(InfoEntries, ADuplicateIsIndependent) {
  ASSERT_EQ(MPI_Info_set(info_, "key", "value"), MPI_SUCCESS);
  MPI_Info copy = MPI_INFO_NULL;
  ASSERT_EQ(MPI_Info_dup(info_, &copy), MPI_SUCCESS);
  EXPECT_EQ(MPI_Info_delete(info_, "key"), MPI_SUCCESS);
  EXPECT_EQ(MPI_Info_delete(info_, "key"), MPI_ERR_INFO_NOKEY);
  int num_keys = 0;
  EXPECT_EQ(MPI_Info_get_nkeys(copy, &num_keys), MPI_SUCCESS);
  EXPECT_EQ(num_keys, 1);
  EXPECT_EQ(MPI_Info_free(&copy), MPI_SUCCESS);
}

TEST_F(InfoEntries, MpiInfoEnvIsReadOnly) {
  int num_keys = 0;
  EXPECT_EQ(MPI_Info_get_nkeys(MPI_INFO_ENV, &num_keys), MPI_SUCCESS);
  EXPECT_GT(num_keys, 0);
  EXPECT_EQ(MPI_Info_set(MPI_INFO_ENV, "key", "value"), MPI_ERR_INFO);
  MPI_Info env = MPI_INFO_ENV;
  EXPECT_EQ(MPI_Info_free(&env), MPI_ERR_INFO);
}

TEST_F(InfoEntries, WrongHandlesAreErrors) {
  int num_keys = 0;
  EXPECT_EQ(MPI_Info_get_nkeys(MPI_INFO_NULL, &num_keys), MPI_ERR_INFO);
  EXPECT_EQ(MPI_Info_set(MPI_INFO_NULL, "key", "value"), MPI_ERR_INFO);
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  ASSERT_EQ(MPI_Win_create_errhandler(ignore_error_of_window, &handler), MPI_SUCCESS);
  EXPECT_EQ(MPI_Info_get_nkeys(reinterpret_cast<MPI_Info>(handler), &num_keys), MPI_ERR_INFO);
  EXPECT_EQ(MPI_Errhandler_free(&handler), MPI_SUCCESS);
}

}  // namespace
}  // namespace weft::mpi
