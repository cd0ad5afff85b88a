#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <vector>

#include "weft/base/error.h"

#include "models/mpi/datatype/basic_type.h"
#include "models/mpi/window/wire.h"

namespace weft::mpi {
namespace {

AccessHeader put_header() {
  AccessHeader header;
  header.size_bytes = 24;
  header.num_runs = 2;
  header.number = 7;
  header.flags = kRunsInside | kDataInside;
  return header;
}

AccessHeader sum_header() {
  AccessHeader header = put_header();
  header.kind = AccessKind::kAccumulate;
  header.unit = static_cast<std::uint16_t>(predefined_number(MPI_DOUBLE));
  header.operation = static_cast<std::uint16_t>(reinterpret_cast<std::uintptr_t>(MPI_SUM));
  return header;
}

const std::vector<WindowRun> kTwoRuns{{0, 8, 2, 16}, {100, 8, 1, 0}};

std::vector<std::byte> message(const AccessHeader& header, const std::vector<WindowRun>& runs,
                               std::size_t data_bytes) {
  std::vector<std::byte> bytes(sizeof header + runs.size() * sizeof(WindowRun) + data_bytes, std::byte{3});
  std::memcpy(bytes.data(), &header, sizeof header);
  if (!runs.empty()) std::memcpy(bytes.data() + sizeof header, runs.data(), runs.size() * sizeof(WindowRun));
  return bytes;
}

void expect_refused(const AccessHeader& header, const std::vector<WindowRun>& runs = kTwoRuns,
                    std::size_t data_bytes = 24) {
  try {
    parse_access(1, message(header, runs, data_bytes));
    FAIL() << "the message was accepted";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.code(), base::StatusCode::kCorrupt);
    EXPECT_NE(std::string(error.what()).find("rank 1"), std::string::npos);
  }
}

TEST(WindowWire, RequestsThatOriginsSendAreAccepted) {
  const ArrivedAccess put = parse_access(1, message(put_header(), kTwoRuns, 24));
  EXPECT_EQ(put.runs.size(), 2U);
  EXPECT_EQ(put.runs[1].offset, 100);
  EXPECT_EQ(put.data.size(), 24U);
  EXPECT_FALSE(put.awaits_runs() || put.awaits_data());
  AccessHeader follows = put_header();
  follows.flags = 0;
  const ArrivedAccess bare = parse_access(1, message(follows, {}, 0));
  EXPECT_TRUE(bare.awaits_runs() && bare.awaits_data());
  EXPECT_NO_THROW(parse_access(1, message(sum_header(), kTwoRuns, 24)));
  AccessHeader nothing = sum_header();
  nothing.operation = static_cast<std::uint16_t>(reinterpret_cast<std::uintptr_t>(MPI_NO_OP));
  EXPECT_EQ(nothing.sent_bytes(), 0U);
  EXPECT_NO_THROW(parse_access(1, message(nothing, kTwoRuns, 0)));
}

// Each changes one field of a message that is right.
TEST(WindowWire, HeadersThatCannotBeAreRefused) {
  const std::vector<std::function<void(AccessHeader&)>> changes{
      [](AccessHeader& header) { header.kind = static_cast<AccessKind>(kNumAccessKinds); },
      [](AccessHeader& header) { header.flags |= 0x80; },
      [](AccessHeader& header) { header.size_bytes = 0; },
      [](AccessHeader& header) { header.size_bytes = ~std::uint64_t{0}; },
      [](AccessHeader& header) { header.size_bytes = 16; },
      [](AccessHeader& header) { header.num_runs = 0; },
      [](AccessHeader& header) { header.num_runs = 1; },
      [](AccessHeader& header) { header.num_runs = ~std::uint64_t{0}; },
      [](AccessHeader& header) { header.num_runs = kMostRuns + 1, header.size_bytes = kMostRuns * 8; },
      [](AccessHeader& header) { header.unit = 0; },
      [](AccessHeader& header) { header.unit = 0xffff; },
      [](AccessHeader& header) {
        header.unit = static_cast<std::uint16_t>(predefined_number(MPI_C_DOUBLE_COMPLEX));
      },
      [](AccessHeader& header) { header.operation = 0; },
      [](AccessHeader& header) { header.operation = 0xffff; },
      [](AccessHeader& header) { header.kind = AccessKind::kCompareAndSwap; },
      [](AccessHeader& header) { header.flags = kRunsInside; },
      [](AccessHeader& header) { header.whole_bytes = 12; },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    SCOPED_TRACE(i);
    AccessHeader header = sum_header();
    changes[i](header);
    expect_refused(header);
  }
}

TEST(WindowWire, RunsThatCannotBeAreRefused) {
  const std::vector<std::vector<WindowRun>> wrong{
      {{0, 8, 2, 16}, {100, 16, 1, 0}},                       // too many bytes
      {{0, 8, 2, 16}, {100, 0, 1, 0}},                        // none
      {{0, 8, 2, 16}, {100, 8, 0, 0}},                        // not once
      {{0, 8, std::uint64_t{1} << 61, 16}, {100, 24, 1, 0}},  // the product is 0 in 64 bits
      {{0, std::uint64_t{1} << 63, 2, 16}, {100, 24, 1, 0}},
  };
  for (const auto& runs : wrong) expect_refused(put_header(), runs);
}

TEST(WindowWire, MessagesOfWrongLengthAreRefused) {
  const std::vector<std::byte> whole = message(put_header(), kTwoRuns, 24);
  for (std::size_t size_bytes = 0; size_bytes < whole.size(); ++size_bytes)
    EXPECT_THROW(parse_access(1, std::span(whole).first(size_bytes)), base::Error) << size_bytes;
  expect_refused(put_header(), kTwoRuns, 25);
}

TEST(WindowWire, RunsLieInsideOrOutsideOfMemory) {
  EXPECT_TRUE(is_inside({0, 8, 1, 0}, 0, 8));
  EXPECT_FALSE(is_inside({1, 8, 1, 0}, 0, 8));
  EXPECT_FALSE(is_inside({-1, 8, 1, 0}, 0, 100));
  EXPECT_TRUE(is_inside({0, 8, 3, 16}, 0, 40));
  EXPECT_FALSE(is_inside({0, 8, 3, 16}, 0, 39));
  EXPECT_TRUE(is_inside({32, 8, 3, -16}, 0, 40));
  EXPECT_FALSE(is_inside({31, 8, 3, -16}, 0, 40));
  EXPECT_FALSE(is_inside({0, 8, ~std::uint64_t{0}, INT64_MAX}, 0, 40));
  EXPECT_FALSE(is_inside({0, 8, std::uint64_t{1} << 63, INT64_MIN}, 0, 40));
  EXPECT_TRUE(is_inside({4096, 8, 1, 0}, 4096, 8));
  EXPECT_FALSE(is_inside({4095, 8, 1, 0}, 4096, 8));
}

}  // namespace
}  // namespace weft::mpi
