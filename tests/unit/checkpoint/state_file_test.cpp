#include "checkpoint/state_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "base/value_or_throw.h"

namespace weft::checkpoint_files {
namespace {

using base::StatusCode;

BlockPtr block_with(std::string_view text) {
  auto block = std::make_shared<Block>();
  block->append(text.data(), text.size());
  return block;
}

std::string_view text_of(const BlockPtr& block) {
  return {reinterpret_cast<const char*>(block->data()), block->size()};
}

class StateFile : public ::testing::Test {
 protected:
  StateFile() {
    Manifest manifest;
    manifest.checkpoint = 7;
    state_.put({7, 0}, block_with("the own block"));
    state_.commit(7, std::move(manifest));
    state_.put({7, 2}, block_with("a copy"));
    state_.put({8, 0}, block_with(""));  // is not committed
    file_ = base::value_or_throw(write_state_file(state_));
  }
  ~StateFile() override { close(file_); }

  ProtectedState state_;
  int file_ = -1;
};

TEST_F(StateFile, HasAllBlocksAndTheManifest) {
  ProtectedState read;
  ASSERT_TRUE(read_state_file(file_, read).ok());
  EXPECT_EQ(read.committed(), 7u);
  EXPECT_EQ(read.manifest().checkpoint, 7u);
  EXPECT_EQ(read.block_ids(), state_.block_ids());
  EXPECT_EQ(text_of(read.find({7, 0})), "the own block");
  EXPECT_EQ(text_of(read.find({7, 2})), "a copy");
  EXPECT_EQ(read.find({8, 0})->size(), 0u);
}

TEST_F(StateFile, StaysOpenOverExec) { EXPECT_EQ(fcntl(file_, F_GETFD) & FD_CLOEXEC, 0); }

TEST_F(StateFile, ThatEndsTooEarlyIsRefused) {
  const auto size_bytes = static_cast<std::size_t>(lseek(file_, 0, SEEK_END));
  for (std::size_t left = size_bytes; left-- > 0;) {
    ASSERT_EQ(ftruncate(file_, static_cast<off_t>(left)), 0);
    ProtectedState read;
    EXPECT_EQ(read_state_file(file_, read).code(), StatusCode::kCorrupt) << left;
  }
}

TEST_F(StateFile, OfNoKindIsRefused) {
  ProtectedState read;
  EXPECT_EQ(read_state_file(-1, read).code(), StatusCode::kCorrupt);
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  EXPECT_EQ(read_state_file(pipes[0], read).code(), StatusCode::kCorrupt);
  close(pipes[0]);
  close(pipes[1]);
  const int other = memfd_create("other", 0);
  const std::uint64_t huge = ~std::uint64_t{0};
  ASSERT_EQ(write(other, &huge, sizeof huge), static_cast<ssize_t>(sizeof huge));
  EXPECT_EQ(read_state_file(other, read).code(), StatusCode::kCorrupt);
  close(other);
}

}  // namespace
}  // namespace weft::checkpoint_files
