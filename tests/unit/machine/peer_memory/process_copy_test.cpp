#include "machine/peer_memory/mapping/process_copy.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>

#include "tests/support/child_process.h"

namespace weft::machine {
namespace {

using base::StatusCode;

std::uint64_t address_of(const void* data) { return reinterpret_cast<std::uintptr_t>(data); }

TEST(ProcessCopyTest, CopiesInBothDirections) {
  ASSERT_TRUE(allow_process_copies().ok());
  const std::array<int, 4> from{1, 2, 3, 4};
  std::array<int, 4> to{};
  EXPECT_TRUE(read_from_process(::getpid(), address_of(from.data()), to.data(), sizeof to).ok());
  EXPECT_EQ(to, from);
  to = {};
  EXPECT_TRUE(write_to_process(::getpid(), address_of(to.data()), from.data(), sizeof from).ok());
  EXPECT_EQ(to, from);
}

TEST(ProcessCopyTest, MemoryThatIsNotThereIsAnError) {
  int value = 0;
  EXPECT_EQ(read_from_process(::getpid(), 8, &value, sizeof value).code(), StatusCode::kCorrupt);
  EXPECT_EQ(write_to_process(::getpid(), 8, &value, sizeof value).code(), StatusCode::kCorrupt);
}

TEST(ProcessCopyTest, AProcessThatIsNotThereHasFailed) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  int value = 0;
  EXPECT_EQ(read_from_process(child, address_of(&value), &value, sizeof value).code(),
            StatusCode::kPeerFailed);
}

TEST(ProcessCopyTest, AProcessHasEndedBeforeItsParentKnows) {
  EXPECT_TRUE(probe_process(::getpid()).ok());
  testing::ChildProcess child;
  EXPECT_TRUE(probe_process(child.pid()).ok());
  child.kill();
  EXPECT_EQ(probe_process(child.pid()).code(), StatusCode::kPeerFailed);
  child.reap();
  EXPECT_EQ(probe_process(child.pid()).code(), StatusCode::kPeerFailed);
}

}  // namespace
}  // namespace weft::machine
