#include "checkpoint/disk_file.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/unit/checkpoint/files.h"

namespace weft::checkpoint_files {
namespace {

using base::StatusCode;
using testing::code_of;
using testing::TemporaryFolder;

TEST(DiskFile, WritesAndReads) {
  const TemporaryFolder folder;
  DiskFile written = DiskFile::create(folder / "a");
  written.write("hello ", 6);
  written.start_writing_back();
  written.write("world", 5);
  written.sync();
  written.drop_cached_pages();
  sync_folder(folder.path());
  const DiskFile file = DiskFile::open(folder / "a");
  EXPECT_EQ(file.size_bytes(), 11u);
  std::string text(5, ' ');
  file.read(6, text.data(), text.size());
  EXPECT_EQ(text, "world");
  EXPECT_EQ(code_of([&] { file.read(7, text.data(), text.size()); }, folder / "a"), StatusCode::kCorrupt);
}

TEST(DiskFile, NamesTheFileInEveryError) {
  const TemporaryFolder folder;
  EXPECT_EQ(code_of([&] { static_cast<void>(DiskFile::open(folder / "none")); }, folder / "none"),
            StatusCode::kNotFound);
  EXPECT_EQ(code_of([&] { static_cast<void>(DiskFile::create(folder / "no/file")); },
                    "cannot create " + (folder / "no/file")),
            StatusCode::kNotFound);
  EXPECT_EQ(code_of([&] { sync_folder(folder / "none"); }, folder / "none"), StatusCode::kNotFound);
  DiskFile full = DiskFile::create("/dev/full");
  EXPECT_EQ(code_of([&] { full.write("x", 1); }, "cannot write /dev/full: No space left"),
            StatusCode::kUnsupported);
}

TEST(DiskFile, IsLockedForOneOpenFile) {
  const TemporaryFolder folder;
  DiskFile second = DiskFile::create(folder / "lock");
  {
    DiskFile first = DiskFile::create(folder / "lock");
    EXPECT_TRUE(first.try_lock());
    EXPECT_FALSE(second.try_lock());
  }
  EXPECT_TRUE(second.try_lock());
}

}  // namespace
}  // namespace weft::checkpoint_files
