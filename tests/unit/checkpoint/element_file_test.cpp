#include "checkpoint/element_file.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/value_or_throw.h"
#include "checkpoint/crc32c.h"
#include "tests/unit/checkpoint/files.h"

namespace weft::checkpoint_files {
namespace {

using base::StatusCode;
using base::value_or_throw;
using testing::code_of;
using testing::TemporaryFolder;

constexpr std::uint64_t kCheckpoint = 0x1234567890abcdef;
const std::vector<std::uint64_t> kSizes{10, 3};

std::vector<std::byte> some_bytes(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(count);
  for (auto& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

FileSummary write_small(const std::string& path) {
  ElementFileWriter writer = value_or_throw(ElementFileWriter::create(path, kCheckpoint, 3));
  EXPECT_TRUE(writer.add_element(0, 9, 1, some_bytes(20, 1)).ok());
  EXPECT_TRUE(writer.add_element(1, 0, 0, {}).ok());
  EXPECT_TRUE(writer.add_buffer(0, some_bytes(7, 2)).ok());
  EXPECT_TRUE(writer.add_buffer(0, {}).ok());
  EXPECT_TRUE(writer.add_buffer(2, some_bytes(5, 3)).ok());
  EXPECT_TRUE(writer.add_element(0, 0, 0, some_bytes(3, 4)).ok());
  return value_or_throw(writer.finish());
}

base::Result<ElementFileReader> open_small(const std::string& path, const FileSummary& summary) {
  return ElementFileReader::open(path, kCheckpoint, 3, summary, kSizes);
}

base::Status verify_small(const std::string& path, const FileSummary& summary) {
  const base::Result<ElementFileReader> file = open_small(path, summary);
  return file.ok() ? file.value().verify() : file.status();
}

TEST(ElementFile, ReadsWhatWasWritten) {
  const TemporaryFolder folder;
  const FileSummary summary = write_small(folder / "f");
  const ElementFileReader file = value_or_throw(open_small(folder / "f", summary));
  EXPECT_TRUE(file.verify().ok());
  ASSERT_EQ(file.elements().size(), 3u);
  const ElementEntry& first = file.elements()[0];
  EXPECT_EQ(first.collection, 0u);
  EXPECT_EQ(first.index, 9u);
  EXPECT_EQ(first.flags, 1u);
  std::vector<std::byte> state(first.state_bytes);
  EXPECT_TRUE(file.read_state(first, state.data()).ok());
  EXPECT_EQ(state, some_bytes(20, 1));
  const ElementEntry& second = file.elements()[1];
  EXPECT_EQ(second.state_bytes, 0u);
  ASSERT_EQ(second.buffers.size(), 3u);
  EXPECT_EQ(second.buffers[2].kind, 2u);
  std::vector<std::byte> buffer(5);
  EXPECT_TRUE(file.read_buffer(second, 2, buffer.data()).ok());
  EXPECT_EQ(buffer, some_bytes(5, 3));
}

TEST(ElementFile, LargeAndSmallStatesMix) {
  const TemporaryFolder folder;
  const std::vector<std::size_t> sizes{1, 20'000'001, 5, 131'072, 131'071, 700'000, 0, 3'000'000, 2};
  std::vector<std::uint64_t> collection_sizes{sizes.size()};
  ElementFileWriter writer = value_or_throw(ElementFileWriter::create(folder / "f", kCheckpoint, 0));
  for (unsigned i = 0; i < sizes.size(); ++i) {
    EXPECT_TRUE(writer.add_element(0, i, 0, some_bytes(sizes[i], i)).ok());
    EXPECT_TRUE(writer.add_buffer(0, some_bytes(sizes[sizes.size() - 1 - i], 100 + i)).ok());
  }
  const ElementFileReader file = value_or_throw(ElementFileReader::open(
      folder / "f", kCheckpoint, 0, value_or_throw(writer.finish()), collection_sizes));
  EXPECT_TRUE(file.verify().ok());
  for (unsigned i = 0; i < sizes.size(); ++i) {
    const ElementEntry& element = file.elements().at(i);
    std::vector<std::byte> state(element.state_bytes);
    EXPECT_TRUE(file.read_state(element, state.data()).ok());
    EXPECT_TRUE(state == some_bytes(sizes[i], i)) << i;
    std::vector<std::byte> buffer(element.buffers.at(0).size_bytes);
    EXPECT_TRUE(file.read_buffer(element, 0, buffer.data()).ok());
    EXPECT_TRUE(buffer == some_bytes(sizes[sizes.size() - 1 - i], 100 + i)) << i;
  }
}

TEST(ElementFile, EveryDamageIsFound) {
  const TemporaryFolder folder;
  const FileSummary summary = write_small(folder / "f");
  testing::expect_every_damage_found(folder / "f", [&] { return verify_small(folder / "f", summary); });
}

TEST(ElementFile, RefusesFilesOfAnotherCheckpointOrPe) {
  const TemporaryFolder folder;
  const FileSummary summary = write_small(folder / "f");
  const auto open = [&](std::uint64_t checkpoint, std::uint32_t pe, std::vector<std::uint64_t> sizes) {
    return code_of(ElementFileReader::open(folder / "f", checkpoint, pe, summary, sizes).status(),
                   folder / "f");
  };
  EXPECT_EQ(open(kCheckpoint, 3, kSizes), StatusCode::kOk);
  EXPECT_EQ(open(kCheckpoint + 1, 3, kSizes), StatusCode::kCorrupt);
  EXPECT_EQ(open(kCheckpoint, 2, kSizes), StatusCode::kCorrupt);
  EXPECT_EQ(open(kCheckpoint, 3, {9, 3}), StatusCode::kCorrupt);  // there is no element 9
  EXPECT_EQ(open(kCheckpoint, 3, {10}), StatusCode::kCorrupt);    // there is no collection 1
}

// An index whose checksum is right but whose numbers are not.
TEST(ElementFile, BoundsWhatTheIndexSays) {
  const TemporaryFolder folder;
  const FileSummary summary = write_small(folder / "f");
  const std::vector<char> whole = testing::read_all(folder / "f");
  const std::uint32_t seed = testing::seed_of_test(4711);
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 3000; ++round) {
    std::vector<char> damaged = whole;
    const std::size_t at = summary.index_offset + random() % (summary.index_bytes - 7);
    const std::uint64_t value = random() >> (random() % 64);
    std::memcpy(damaged.data() + at, &value, 1 + random() % 8);
    testing::overwrite(folder / "f", damaged);
    FileSummary claimed = summary;
    claimed.index_crc = crc32c(damaged.data() + summary.index_offset, summary.index_bytes);
    // Flags, kinds and checksums may say anything; all else is refused, and nothing is read outside of the file.
    const StatusCode code = code_of(verify_small(folder / "f", claimed));
    EXPECT_TRUE(code == StatusCode::kOk || code == StatusCode::kCorrupt);
  }
}

}  // namespace
}  // namespace weft::checkpoint_files
