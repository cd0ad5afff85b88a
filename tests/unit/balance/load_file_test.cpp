#include "balance/load_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <random>
#include <string>

#include "snapshots.h"

namespace weft::balance {
namespace {

constexpr const char* kSmall =
    "weft-load 1\n"
    "\n"
    "# a comment\n"
    "counts 2 3 1\n"
    "pe 0.5 1\n"
    "pe 0 2\r\n"
    "object 7 0 0 0.25 4096 moves\n"
    "object 7 1 0 0.5 0 stays\n"
    "  object\t7 2 1 0.125 64 moves\n"
    "edge 0 2 10 4096";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return text.replace(at, from.size(), to);
}

void expect_error(const std::string& text, const std::string& message) {
  auto snapshot = parse_loads(text, "loads.txt");
  ASSERT_FALSE(snapshot.ok()) << message;
  EXPECT_EQ(snapshot.status().code(), base::StatusCode::kCorrupt);
  EXPECT_EQ(snapshot.status().message(), message);
}

TEST(LoadFile, ATextIsRead) {
  auto snapshot = parse_loads(kSmall, "loads.txt");
  ASSERT_TRUE(snapshot.ok()) << snapshot.status().message();
  EXPECT_EQ(snapshot->num_pes, 2);
  EXPECT_EQ(snapshot->background_load_s, (std::vector<double>{0.5, 0}));
  EXPECT_EQ(snapshot->pe_speed, (std::vector<double>{1, 2}));
  ASSERT_EQ(snapshot->objects.size(), 3U);
  EXPECT_EQ(snapshot->objects[0].collection, 7U);
  EXPECT_EQ(snapshot->objects[0].load_s, 0.25);
  EXPECT_EQ(snapshot->objects[0].size_bytes, 4096U);
  EXPECT_TRUE(snapshot->objects[0].can_move);
  EXPECT_FALSE(snapshot->objects[1].can_move);
  EXPECT_EQ(snapshot->objects[2].index, 2U);
  EXPECT_EQ(snapshot->objects[2].pe, 1);
  ASSERT_EQ(snapshot->edges.size(), 1U);
  EXPECT_EQ(snapshot->edges[0].to, 2U);
  EXPECT_EQ(snapshot->edges[0].messages, 10U);
  EXPECT_EQ(snapshot->edges[0].bytes, 4096U);
}

TEST(LoadFile, WhatIsWrittenIsReadBackExactly) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const Snapshot snapshot =
        random_snapshot(seed, {.fixed_objects = true, .background = true, .speeds = true});
    const std::string text = format_loads(snapshot);
    auto read = parse_loads(text, "loads.txt");
    ASSERT_TRUE(read.ok()) << "seed " << seed << ": " << read.status().message();
    EXPECT_EQ(format_loads(*read), text) << "seed " << seed;
    ASSERT_EQ(read->objects.size(), snapshot.objects.size());
    for (std::size_t i = 0; i < snapshot.objects.size(); ++i) {
      EXPECT_EQ(read->objects[i].load_s, snapshot.objects[i].load_s);
    }
  }
}

TEST(LoadFile, ErrorsNameFileLineAndWhatIsExpected) {
  expect_error(
      "", "loads.txt:1: expected 'weft-load 1', the first line of a load file, found the end of the file");
  expect_error("{\"pes\": 2}\n",
               "loads.txt:1: expected 'weft-load 1', the first line of a load file, found '{\"pes\": 2}'");
  expect_error(replaced(kSmall, "weft-load 1", "weft-load 2"),
               "loads.txt:1: expected version 1, the only one that this Weft reads, found 'weft-load 2'");
  expect_error(replaced(kSmall, "counts 2 3 1", "counts 2 3"),
               "loads.txt:4: expected 'counts PES OBJECTS EDGES', found 'counts 2 3'");
  expect_error(replaced(kSmall, "counts 2", "counts 0"),
               "loads.txt:4: expected 1 to 16777216 PEs, found 'counts 0 3 1'");
  expect_error(replaced(kSmall, "pe 0.5 1", "pe 0.5"),
               "loads.txt:5: expected line 1 of 2 of the form 'pe BACKGROUND_S SPEED', found 'pe 0.5'");
  expect_error(replaced(kSmall, "0.25 4096", "0.25x 4096"),
               "loads.txt:7: expected line 1 of 3 of the form 'object COLLECTION INDEX PE LOAD_S SIZE_BYTES "
               "moves|stays', found 'object 7 0 0 0.25x 4096 moves'");
  expect_error(replaced(kSmall, "stays", "maybe"),
               "loads.txt:8: expected line 2 of 3 of the form 'object COLLECTION INDEX PE LOAD_S SIZE_BYTES "
               "moves|stays', found 'object 7 1 0 0.5 0 maybe'");
  expect_error(replaced(kSmall, "64 moves", "64 moves too"),
               "loads.txt:9: expected line 3 of 3 of the form 'object COLLECTION INDEX PE LOAD_S SIZE_BYTES "
               "moves|stays', found '  object?7 2 1 0.125 64 moves too'");
  expect_error(replaced(kSmall, "\nedge 0 2 10 4096", ""),
               "loads.txt:10: expected line 1 of 1 of the form 'edge FROM TO MESSAGES BYTES', found the end "
               "of the file");
  expect_error(std::string(kSmall) + "\nedge 0 1 1 1\n",
               "loads.txt:11: expected the end of the file, found 'edge 0 1 1 1'");
}

TEST(LoadFile, NumbersOutOfTheirRangeAreRefusedWithTheirLine) {
  expect_error(replaced(kSmall, "pe 0 2", "pe nan 2"),
               "loads.txt:6: the background load of PE 1 is nan s; expected 0 to 1000000000000 s");
  expect_error(replaced(kSmall, "pe 0 2", "pe 0 0"),
               "loads.txt:6: the speed of PE 1 is 0; expected 1e-06 to 1000000");
  expect_error(replaced(kSmall, "0.5 0 stays", "inf 0 stays"),
               "loads.txt:8: the load of object 1 of collection 7 is inf s; expected 0 to 1000000000000 s");
  expect_error(replaced(kSmall, "0.5 0 stays", "-0.5 0 stays"),
               "loads.txt:8: the load of object 1 of collection 7 is -0.5 s; expected 0 to 1000000000000 s");
  expect_error(replaced(kSmall, "2 1 0.125", "2 2 0.125"),
               "loads.txt:9: object 2 of collection 7 is on PE 2; expected 0 to 1");
  expect_error(
      replaced(kSmall, "edge 0 2", "edge 0 3"),
      "loads.txt:10: a communication edge goes from object 0 to object 3; the snapshot has 3 objects");
  expect_error(
      replaced(kSmall, "7 1 0 0.5", "7 0 0 0.5"),
      "loads.txt: object 0 of collection 7 is in the load snapshot twice; expected each object once");
}

TEST(LoadFile, CountsThatTheTextRulesOutReserveNothing) {
  for (const char* counts :
       {"counts 16777216 3 1", "counts 2 18446744073709551615 1", "counts 2 3 1000000000000"}) {
    const std::string text = replaced(kSmall, "counts 2 3 1", counts);
    expect_error(text, "loads.txt:4: expected counts that fit into a file of " + std::to_string(text.size()) +
                           " bytes, found '" + counts + "'");
  }
  expect_error(replaced(kSmall, "counts 2 3 1", "counts 2 3 99999999999999999999"),
               "loads.txt:4: expected 'counts PES OBJECTS EDGES', found 'counts 2 3 99999999999999999999'");
}

TEST(LoadFile, QuotesOfTheFileAreShortAndPrintable) {
  expect_error("\x1b[2J" + std::string(1000, 'x'),
               "loads.txt:1: expected 'weft-load 1', the first line of a load file, found '?[2J" +
                   std::string(56, 'x') + "'...");
}

// Damaged files are read or refused, and what is read is valid.
TEST(LoadFile, DamagedFilesAreRefusedOrValid) {
  constexpr std::uint64_t kSeed = 20261123;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937_64 random(kSeed);
  const std::string whole = format_loads(random_snapshot(3, {.fixed_objects = true, .background = true}));
  constexpr std::string_view kBytes = "0123456789 .-e\n#xnaif\0\xff";
  int refused = 0;
  int valid = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    std::string text = whole;
    for (std::uint64_t i = random() % 4 + 1; i > 0 && !text.empty(); --i) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = kBytes[random() % kBytes.size()];
          break;
        case 1:
          text.erase(at, random() % 8 + 1);
          break;
        case 2:
          text.insert(at, text.substr(random() % text.size(), random() % 40));
          break;
        default:
          text[at] = static_cast<char>(random());
          break;
      }
    }
    if (random() % 4 == 0) text.resize(random() % (text.size() + 1));
    auto snapshot = parse_loads(text, "loads.txt");
    if (snapshot.ok()) {
      ++valid;
      ASSERT_TRUE(check(*snapshot).ok()) << "trial " << trial;
      ASSERT_TRUE(check(*snapshot, place("greedy_refine", *snapshot)).ok()) << "trial " << trial;
    } else {
      ++refused;
      ASSERT_EQ(snapshot.status().code(), base::StatusCode::kCorrupt);
      ASSERT_TRUE(snapshot.status().message().starts_with("loads.txt:")) << snapshot.status().message();
    }
  }
  EXPECT_GT(refused, 300);
  EXPECT_GT(valid, 30) << "the damage is so large that only the first check is tested";
}

TEST(LoadFile, AFileIsWrittenAndRead) {
  const std::string path = ::testing::TempDir() + "weft-loads-" + std::to_string(getpid());
  const Snapshot snapshot = random_snapshot(5);
  ASSERT_TRUE(write_load_file(path, snapshot).ok());
  auto read = read_load_file(path);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(format_loads(*read), format_loads(snapshot));
  EXPECT_EQ(std::remove(path.c_str()), 0);

  auto missing = read_load_file(path);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.status().code(), base::StatusCode::kNotFound);
  EXPECT_EQ(missing.status().message(),
            "the load file " + path + " cannot be read: No such file or directory");
  EXPECT_FALSE(write_load_file("/no/such/folder/loads", snapshot).ok());
  EXPECT_FALSE(read_load_file(::testing::TempDir()).ok()) << "a folder is no load file";
}

TEST(LoadFile, AFullDiskIsAnError) {
  if (access("/dev/full", W_OK) != 0) GTEST_SKIP() << "this system has no /dev/full";
  const base::Status status = write_load_file("/dev/full", random_snapshot(5));
  EXPECT_EQ(status.message(), "the load file /dev/full cannot be written: No space left on device");
}

}  // namespace
}  // namespace weft::balance
