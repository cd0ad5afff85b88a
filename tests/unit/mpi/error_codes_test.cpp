#include "models/mpi/objects/error_codes.h"

#include <gtest/gtest.h>

#include <string>

#include "models/mpi/objects/error_table.h"

namespace weft::mpi {
namespace {

std::string string_of(const ErrorCodes& codes, int code) {
  std::string text;
  EXPECT_TRUE(codes.string_of(code, &text).ok());
  return text;
}

TEST(ErrorCodes, EveryPredefinedClassIsItsOwnClassAndHasAString) {
  const ErrorCodes codes;
  for (const ErrorClass& row : kErrorClasses) {
    int error_class = -1;
    EXPECT_TRUE(codes.class_of(row.number, &error_class).ok()) << row.name;
    EXPECT_EQ(error_class, row.number);
    EXPECT_NE(string_of(codes, row.number).find(row.name), std::string::npos);
    EXPECT_EQ(error_class_name(row.number), row.name);
  }
}

TEST(ErrorCodes, AnUnknownCodeIsAnError) {
  const ErrorCodes codes;
  int error_class = 7;
  std::string text;
  for (const int code : {-1, 999, int{MPI_ERR_LASTCODE}, MPI_ERR_LASTCODE + 1}) {
    EXPECT_EQ(codes.class_of(code, &error_class).error_class, MPI_ERR_ARG);
    EXPECT_EQ(codes.string_of(code, &text).error_class, MPI_ERR_ARG);
  }
  EXPECT_EQ(error_class, 7);
}

TEST(ErrorCodes, TheProgramAddsClassesCodesAndStrings) {
  ErrorCodes codes;
  EXPECT_EQ(*codes.last_used(), MPI_ERR_LASTCODE);
  int error_class = 0;
  int code = 0;
  ASSERT_TRUE(codes.add_class(&error_class).ok());
  ASSERT_TRUE(codes.add_code(error_class, &code).ok());
  EXPECT_GT(error_class, MPI_ERR_LASTCODE);
  EXPECT_EQ(*codes.last_used(), code);
  int found = 0;
  ASSERT_TRUE(codes.class_of(code, &found).ok());
  EXPECT_EQ(found, error_class);
  EXPECT_EQ(string_of(codes, code), "");
  ASSERT_TRUE(codes.set_string(code, "the pump is dry").ok());
  EXPECT_EQ(string_of(codes, code), "the pump is dry");
  EXPECT_EQ(string_of(codes, error_class), "");
}

TEST(ErrorCodes, ACodeMayBelongToAPredefinedClassButNotToACode) {
  ErrorCodes codes;
  int code = 0;
  ASSERT_TRUE(codes.add_code(MPI_ERR_IO, &code).ok());
  int found = 0;
  ASSERT_TRUE(codes.class_of(code, &found).ok());
  EXPECT_EQ(found, MPI_ERR_IO);
  int other = 0;
  EXPECT_EQ(codes.add_code(code, &other).error_class, MPI_ERR_ARG);
  EXPECT_EQ(codes.add_code(MPI_SUCCESS, &other).error_class, MPI_ERR_ARG);
}

TEST(ErrorCodes, RemovingGoesFromTheStringToTheClass) {
  ErrorCodes codes;
  int error_class = 0;
  int code = 0;
  ASSERT_TRUE(codes.add_class(&error_class).ok());
  ASSERT_TRUE(codes.add_code(error_class, &code).ok());
  ASSERT_TRUE(codes.set_string(code, "text").ok());
  EXPECT_FALSE(codes.remove_class(error_class).ok());
  EXPECT_FALSE(codes.remove_code(code).ok());
  EXPECT_FALSE(codes.remove_code(error_class).ok());
  EXPECT_TRUE(codes.remove_string(code).ok());
  EXPECT_FALSE(codes.remove_string(code).ok());
  EXPECT_FALSE(codes.remove_class(code).ok());
  EXPECT_TRUE(codes.remove_code(code).ok());
  EXPECT_FALSE(codes.remove_code(code).ok());
  EXPECT_TRUE(codes.remove_class(error_class).ok());
  EXPECT_FALSE(codes.remove_class(error_class).ok());
  EXPECT_EQ(*codes.last_used(), code);
}

TEST(ErrorCodes, PredefinedClassesDoNotChange) {
  ErrorCodes codes;
  for (const int code : {MPI_SUCCESS, MPI_ERR_RANK, MPI_ERR_LASTCODE}) {
    EXPECT_EQ(codes.set_string(code, "text").error_class, MPI_ERR_ARG);
    EXPECT_EQ(codes.remove_class(code).error_class, MPI_ERR_ARG);
    EXPECT_EQ(codes.remove_code(code).error_class, MPI_ERR_ARG);
    EXPECT_EQ(codes.remove_string(code).error_class, MPI_ERR_ARG);
  }
}

TEST(ErrorCodes, AStringThatIsTooLongIsAnError) {
  ErrorCodes codes;
  int code = 0;
  ASSERT_TRUE(codes.add_code(MPI_ERR_OTHER, &code).ok());
  EXPECT_EQ(codes.set_string(code, std::string(MPI_MAX_ERROR_STRING, 'x')).error_class, MPI_ERR_ARG);
  EXPECT_TRUE(codes.set_string(code, std::string(MPI_MAX_ERROR_STRING - 1, 'x')).ok());
}

}  // namespace
}  // namespace weft::mpi
