#include "job/identity.h"

#include <gtest/gtest.h>

#include <cstring>

namespace weft::job {
namespace {

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

Identity with_methods(std::string_view methods) {
  Identity identity = Identity::of_weft();
  identity.add("entry methods", methods);
  return identity;
}

TEST(Identity, EqualOnesDoNotDiffer) {
  EXPECT_TRUE(with_methods("3").expect_equal(0, with_methods("3").pack(), 1).ok());
}

TEST(Identity, NamesWhatDiffersAndWhere) {
  EXPECT_EQ(
      with_methods("3").expect_equal(0, with_methods("4").pack(), 2).message(),
      "PE 0 and PE 2 cannot be in one job: they differ in entry methods (3 and 4); start the same build on "
      "every PE");
}

TEST(Identity, ANoteMayDiffer) {
  const std::vector<std::byte> noted = with_methods("3").pack("0-3,8");
  EXPECT_TRUE(with_methods("3").expect_equal(0, noted, 1).ok());
  EXPECT_EQ(Identity::note_of(noted), "0-3,8");
  EXPECT_FALSE(with_methods("4").expect_equal(0, noted, 1).ok());
  EXPECT_EQ(Identity::note_of(with_methods("3").pack()), "");
}

TEST(Identity, OfNotesOnlySoMuchIsRead) {
  EXPECT_EQ(Identity::note_of({}), "");
  EXPECT_EQ(Identity::note_of(bytes_of(std::string_view("\0", 1))), "");
  EXPECT_EQ(Identity::note_of(with_methods("3").pack(std::string(kMaxNoteBytes + 9, 'x'))).size(),
            kMaxNoteBytes);
}

TEST(Identity, HoldsWhatAnotherBuildMayDifferIn) {
  std::string text;
  for (const std::byte byte : Identity::of_weft().pack()) text += static_cast<char>(byte);
  for (const char* name : {"Weft's version=", "Weft's wire revision=", "word size in bits=", "byte order="}) {
    EXPECT_NE(text.find(name), std::string::npos) << name;
  }
}

TEST(Identity, ReadsWhatAnotherVersionOfTheExchangeNames) {
  const base::Status status = with_methods("3").expect_equal(
      1, bytes_of("weft-job\nWeft's version=99.0\nthreads per PE=4\nentry methods=3\n"), 0);
  const std::string_view why = status.message();
  EXPECT_NE(why.find("Weft's version ("), std::string::npos) << why;
  EXPECT_NE(why.find("and 99.0)"), std::string::npos) << why;
  EXPECT_NE(why.find("byte order (little endian and nothing)"), std::string::npos) << why;
  EXPECT_NE(why.find("threads per PE (nothing and 4)"), std::string::npos) << why;
  EXPECT_EQ(why.find("entry methods"), std::string::npos) << why;
}

// Weft 0.1.0 before this exchange sent a number of eight bytes.
TEST(Identity, ReportsAVersionThatHasAnotherExchange) {
  const std::uint64_t hash = 0x1234'5678'9abc'def0;
  std::vector<std::byte> old(sizeof hash);
  std::memcpy(old.data(), &hash, sizeof hash);
  for (const auto& theirs : {old, std::vector<std::byte>{}, bytes_of("weft-job\nno value\n")}) {
    const base::Status status = Identity::of_weft().expect_equal(0, theirs, 3);
    const std::string_view why = status.message();
    EXPECT_NE(why.find("PE 3 runs another version of Weft than PE 0"), std::string::npos) << why;
  }
}

TEST(Identity, ShowsNothingUnprintableAndNothingLong) {
  std::string theirs = "weft-job\nbad\x1b[31m=" + std::string(5000, 'x') + '\n';
  for (int i = 0; i < 5000; ++i) theirs += "more" + std::to_string(i) + "=1\n";
  const base::Status status = Identity::of_weft().expect_equal(0, bytes_of(theirs), 1);
  const std::string_view why = status.message();
  EXPECT_EQ(why.find('\x1b'), std::string::npos);
  EXPECT_LT(why.size(), 20'000u);
}

TEST(Identity, ANameOrValueCannotBreakTheForm) {
  Identity identity;
  identity.add("a=b\nc", "d\ne");
  Identity other;
  other.add("a=b\nc", "d\nf");
  EXPECT_NE(identity.expect_equal(0, other.pack(), 1).message().find("a:b?c (d?e and d?f)"),
            std::string::npos);
}

}  // namespace
}  // namespace weft::job
