#include "memory/page_lock.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tests/unit/memory/fake_cuda_fixture.h"
#include "tests/unit/memory/places.h"

namespace weft::memory {
namespace {

class PageLockTest : public FakeCudaTest {
 protected:
  Buffer whole() { return host_buffer(bytes); }
  void copy_begins(PageLock& lock, std::uint64_t copied_bytes) {
    lock.copy_begins(cuda(), kGpu1, whole(), copied_bytes);
  }

  std::vector<unsigned char> bytes = std::vector<unsigned char>(2 * PageLock::kLeastBytes);
};

TEST_F(PageLockTest, MemoryThatIsCopiedAgainIsLockedUntilItIsReleased) {
  PageLock lock;
  copy_begins(lock, bytes.size() - 1);
  copy_begins(lock, 1);
  EXPECT_FALSE(lock.is_locked()) << "it was copied once";
  copy_begins(lock, 10);
  EXPECT_TRUE(lock.is_locked());
  EXPECT_TRUE(cuda().host_copy_is_async(bytes.data(), bytes.size()));
  PageLock moved = std::move(lock);
  EXPECT_TRUE(moved.is_locked());
  lock.release();
  EXPECT_TRUE(cuda().host_copy_is_async(bytes.data(), bytes.size()));
  moved.release();
  moved.release();
  EXPECT_FALSE(cuda().host_copy_is_async(bytes.data(), bytes.size()));
}

TEST_F(PageLockTest, ADeviceCopiesLockedMemoryAsItLies) {
  const Buffer device = memory->allocate(bytes.size(), kGpu1).value();
  PageLock lock;
  for (int i = 0; i < 2; ++i) copy_begins(lock, bytes.size());
  const int copies_before = fake_cuda()->calls["cuMemcpyAsync"];
  Outcome outcome;
  ASSERT_TRUE(memory->copy(device, ConstBuffer(bytes.data(), bytes.size()), &outcome).is_pending());
  poll_until_idle(*memory);
  EXPECT_TRUE(outcome.status.ok());
  EXPECT_EQ(fake_cuda()->calls["cuMemcpyAsync"], copies_before + 1) << "chunks are more copies";
  lock.release();
  EXPECT_TRUE(memory->deallocate(device).ok());
}

TEST_F(PageLockTest, ARefusedLockChangesNothingAndIsNotTriedAgain) {
  PageLock lock;
  copy_begins(lock, bytes.size());
  fake_cuda()->fail_next["cuMemHostRegister"] = 2;
  for (int i = 0; i < 3; ++i) copy_begins(lock, bytes.size());
  EXPECT_FALSE(lock.is_locked());
  EXPECT_EQ(fake_cuda()->calls["cuMemHostRegister"], 1);
}

TEST_F(PageLockTest, SmallMemoryAndMemoryThatNeedsNoLockAreLeft) {
  PageLock small;
  Buffer part = whole();
  part.size_bytes = PageLock::kLeastBytes - 1;
  for (int i = 0; i < 3; ++i) small.copy_begins(cuda(), kGpu1, part, part.size_bytes);
  EXPECT_FALSE(small.is_locked());
  PageLock emulated;
  KindBackend& kind = *memory->backend(Kind::kEmulated);
  for (int i = 0; i < 3; ++i) emulated.copy_begins(kind, {Kind::kEmulated, 0}, whole(), bytes.size());
  EXPECT_FALSE(emulated.is_locked());
  EXPECT_TRUE(kind.lock_host(bytes.data(), bytes.size(), 0).failed());
  EXPECT_EQ(fake_cuda()->calls["cuMemHostRegister"], 0);
}

}  // namespace
}  // namespace weft::memory
