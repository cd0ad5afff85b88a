#include "checkpoint/folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/value_or_throw.h"
#include "tests/unit/checkpoint/files.h"

namespace weft::checkpoint_files {
namespace {

namespace fs = std::filesystem;
using base::StatusCode;
using base::value_or_throw;
using testing::code_of;
using testing::TemporaryFolder;
using Numbers = std::vector<std::uint64_t>;

void write_checkpoint(const std::string& folder) {
  const auto made = value_or_throw(NewCheckpoint::begin(folder));
  Manifest manifest;
  manifest.checkpoint = 5;
  auto writer = value_or_throw(
      ElementFileWriter::create(made->partial_path() + "/" + element_file_name(0), manifest.checkpoint, 0));
  manifest.files.push_back(value_or_throw(writer.finish()));
  EXPECT_TRUE(made->publish(manifest).ok());
}

TEST(Folder, NumbersCheckpointsAndKeepsTwo) {
  const TemporaryFolder folder;
  const std::string path = folder / "made/by/it";
  EXPECT_EQ(value_or_throw(checkpoints_in(path)), Numbers{});
  write_checkpoint(path);
  EXPECT_EQ(value_or_throw(checkpoints_in(path)), Numbers{1});
  write_checkpoint(path);
  EXPECT_EQ(value_or_throw(checkpoints_in(path)), (Numbers{2, 1}));
  for (int i = 3; i <= 11; ++i) write_checkpoint(path);
  EXPECT_EQ(value_or_throw(checkpoints_in(path)), (Numbers{11, 10}));
  EXPECT_EQ(value_or_throw(open_checkpoint(checkpoint_path(path, 11))).checkpoint, 5u);
  EXPECT_EQ(std::distance(fs::directory_iterator(path), fs::directory_iterator()), 3);  // and the lock
}

TEST(Folder, OneThatIsNotPublishedLeavesNothing) {
  const TemporaryFolder folder;
  write_checkpoint(folder.path());
  {
    const auto made = value_or_throw(NewCheckpoint::begin(folder.path()));
    EXPECT_TRUE(fs::exists(made->partial_path()));
    EXPECT_EQ(value_or_throw(checkpoints_in(folder.path())), Numbers{1});
  }
  EXPECT_FALSE(fs::exists(folder / "checkpoint-2.partial"));
}

TEST(Folder, WhatAKilledJobHasLeftIsRemoved) {
  const TemporaryFolder folder;
  write_checkpoint(folder.path());
  fs::create_directories(folder / "checkpoint-2.partial");
  testing::write_all(folder / "checkpoint-2.partial/elements-0", {'x'});
  fs::create_directories(folder / "checkpoint-x");
  fs::create_directories(folder / "checkpoint-12345678901234567890123");
  fs::create_directories(folder / "checkpoint--3");
  EXPECT_EQ(value_or_throw(checkpoints_in(folder.path())), Numbers{1});
  write_checkpoint(folder.path());
  EXPECT_EQ(value_or_throw(checkpoints_in(folder.path())), (Numbers{2, 1}));
  EXPECT_FALSE(fs::exists(folder / "checkpoint-2.partial"));
  EXPECT_TRUE(fs::exists(folder / "checkpoint-x"));  // not ours
}

TEST(Folder, OneIsWrittenAtATime) {
  const TemporaryFolder folder;
  const auto first = value_or_throw(NewCheckpoint::begin(folder.path()));
  EXPECT_EQ(code_of(NewCheckpoint::begin(folder.path()).status(), folder.path()), StatusCode::kClosed);
  EXPECT_TRUE(fs::exists(first->partial_path()));
}

TEST(Folder, RefusesACheckpointWithWrongFiles) {
  const TemporaryFolder folder;
  write_checkpoint(folder.path());
  const std::string path = checkpoint_path(folder.path(), 1);
  const auto open = [&] { return open_checkpoint(path).status(); };
  EXPECT_EQ(code_of(open()), StatusCode::kOk);
  const std::string file = path + "/elements-0";
  fs::resize_file(file, fs::file_size(file) - 1);
  EXPECT_EQ(code_of(open(), file), StatusCode::kCorrupt);
  fs::remove(file);
  EXPECT_EQ(code_of(open(), file), StatusCode::kNotFound);
  fs::remove(path + "/manifest");
  EXPECT_EQ(code_of(open(), path + "/manifest"), StatusCode::kNotFound);
}

TEST(Folder, NamesAFolderThatCannotBeMade) {
  const TemporaryFolder folder;
  testing::write_all(folder / "file", {'x'});
  EXPECT_EQ(code_of(NewCheckpoint::begin(folder / "file").status(), folder / "file"),
            StatusCode::kUnsupported);
}

}  // namespace
}  // namespace weft::checkpoint_files
