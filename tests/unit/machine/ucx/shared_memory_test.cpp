#include "machine/ucx/shared_memory.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>

namespace weft::machine::ucx {
namespace {

TEST(SharedMemory, TheSmallFileSystemOfAContainerKeepsBothTransports) {
  EXPECT_FALSE(holds_posix_segments(std::uint64_t{64} << 20, 1));
  EXPECT_FALSE(holds_posix_segments(std::uint64_t{500} << 20, 64));
  EXPECT_TRUE(holds_posix_segments(std::uint64_t{1} << 30, 64));
}

TEST(SharedMemory, AFolderThatDoesNotExistHasNoRoom) {
  const char* const before = getenv("UCX_POSIX_DIR");
  const std::string kept = before == nullptr ? "" : before;
  setenv("UCX_POSIX_DIR", "/there/is/no/such/folder", 1);
  EXPECT_FALSE(has_room_for_posix(1));
  if (before == nullptr) {
    unsetenv("UCX_POSIX_DIR");
  } else {
    setenv("UCX_POSIX_DIR", kept.c_str(), 1);
  }
}

}  // namespace
}  // namespace weft::machine::ucx
