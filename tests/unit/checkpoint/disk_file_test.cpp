#include "checkpoint/disk_file.h"

#include <gtest/gtest.h>

#include <string>

#include "base/value_or_throw.h"
#include "tests/unit/checkpoint/files.h"

namespace weft::checkpoint_files {
namespace {

using base::StatusCode;
using base::value_or_throw;
using testing::code_of;
using testing::TemporaryFolder;

TEST(DiskFile, WritesAndReads) {
  const TemporaryFolder folder;
  DiskFile written = value_or_throw(DiskFile::create(folder / "a"));
  EXPECT_TRUE(written.write("hello ", 6).ok());
  written.start_writing_back();
  EXPECT_TRUE(written.write("world", 5).ok());
  EXPECT_TRUE(written.sync().ok());
  written.drop_cached_pages();
  EXPECT_TRUE(sync_folder(folder.path()).ok());
  const DiskFile file = value_or_throw(DiskFile::open(folder / "a"));
  EXPECT_EQ(value_or_throw(file.size_bytes()), 11u);
  std::string text(5, ' ');
  EXPECT_TRUE(file.read(6, text.data(), text.size()).ok());
  EXPECT_EQ(text, "world");
  EXPECT_EQ(code_of(file.read(7, text.data(), text.size()), folder / "a"), StatusCode::kCorrupt);
}

TEST(DiskFile, NamesTheFileInEveryError) {
  const TemporaryFolder folder;
  EXPECT_EQ(code_of(DiskFile::open(folder / "none").status(), folder / "none"), StatusCode::kNotFound);
  EXPECT_EQ(code_of(DiskFile::create(folder / "no/file").status(), "cannot create " + (folder / "no/file")),
            StatusCode::kNotFound);
  EXPECT_EQ(code_of(sync_folder(folder / "none"), folder / "none"), StatusCode::kNotFound);
  DiskFile full = value_or_throw(DiskFile::create("/dev/full"));
  EXPECT_EQ(code_of(full.write("x", 1), "cannot write /dev/full: No space left"), StatusCode::kUnsupported);
}

TEST(DiskFile, IsLockedForOneOpenFile) {
  const TemporaryFolder folder;
  DiskFile second = value_or_throw(DiskFile::create(folder / "lock"));
  {
    DiskFile first = value_or_throw(DiskFile::create(folder / "lock"));
    EXPECT_TRUE(value_or_throw(first.try_lock()));
    EXPECT_FALSE(value_or_throw(second.try_lock()));
  }
  EXPECT_TRUE(value_or_throw(second.try_lock()));
}

}  // namespace
}  // namespace weft::checkpoint_files
