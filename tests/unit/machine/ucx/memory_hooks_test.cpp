// UCX's memory hooks work in a process that `weft run` has started: with them UCX forgets what it has cached of
// memory that is unmapped. This test's CMakeLists.txt sets the environment that `weft run` sets.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <ucm/api/ucm.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "machine/factory/factory.h"
#include "memory/memory.h"
#include "tests/conformance/world.h"
#include "tests/support/within_a_minute.h"

namespace weft::machine::ucx {
namespace {

constexpr std::size_t kBytes = std::size_t{64} << 20;

// A function of libucm, which libucs has loaded; no CMake target names it.
template <class Function>
Function* ucm_function(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

// Counts how often a range was reported as unmapped while it lives.
class Watch {
 public:
  explicit Watch(const void* begin) : begin_(static_cast<const std::byte*>(begin)) {
    auto* set = ucm_function<decltype(ucm_set_event_handler)>("ucm_set_event_handler");
    EXPECT_EQ(set(UCM_EVENT_VM_UNMAPPED, 0, &Watch::on_event, this), UCS_OK);
  }
  ~Watch() {
    auto* unset = ucm_function<decltype(ucm_unset_event_handler)>("ucm_unset_event_handler");
    unset(UCM_EVENT_VM_UNMAPPED, &Watch::on_event, this);
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  int count() const { return count_; }

 private:
  static void on_event(ucm_event_type_t, ucm_event_t* event, void* self_in) {
    auto& self = *static_cast<Watch*>(self_in);
    const auto* from = static_cast<const std::byte*>(event->vm_unmapped.address);
    if (from <= self.begin_ && self.begin_ < from + event->vm_unmapped.size) ++self.count_;
  }

  const std::byte* begin_;
  int count_ = 0;
};

TEST(MemoryHooksTest, TheWaitIsThatOfWeftRun) {
  ASSERT_STREQ(std::getenv("UCX_MEM_BISTRO_GRACE_DURATION"), "0");
}

TEST(MemoryHooksTest, UnmappedMemoryIsReported) {
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  Watch watch(memory);
  ASSERT_EQ(munmap(memory, kBytes), 0);
  EXPECT_EQ(watch.count(), 1);
}

#ifndef __SANITIZE_ADDRESS__  // its allocator unmaps by system calls of its own
// glibc unmaps a large block by an internal call, which no relocation table names.
TEST(MemoryHooksTest, AFreedBlockIsReported) {
  void* memory = std::malloc(kBytes);
  ASSERT_NE(memory, nullptr);
  std::memset(memory, 1, kBytes);
  Watch watch(memory);
  std::free(memory);
  EXPECT_EQ(watch.count(), 1);
}
#endif

// Other pages at the same address, registered or not, with messages in between: each arrives as it was sent.
TEST(MemoryHooksTest, MemoryThatIsMappedAgainIsSentAsItIs) {
  std::vector<std::unique_ptr<memory::Memory>> memories;
  std::vector<memory::Memory*> pointers;
  for (int pe = 0; pe < 2; ++pe) {
    memories.push_back(std::make_unique<memory::Memory>());
    pointers.push_back(memories.back().get());
  }
  auto machines = make_in_process("ucx", pointers).value();
  const std::size_t size = std::size_t{4} << 20;
  void* const place = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(place, MAP_FAILED);
  std::vector<std::byte> received(size);
  for (int round = 0; round < 4; ++round) {
    ASSERT_EQ(munmap(place, size), 0);
    ASSERT_EQ(mmap(place, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
              place);
    std::memset(place, round + 1, size);
    RemoteMemory registered;
    if (round % 2 == 1)
      registered = machines[0]->register_memory(memory::Buffer{place, size, {}, nullptr}).value();
    conformance::CheckedOperation sending;
    conformance::CheckedOperation receiving;
    receiving.start(
        machines[1]->tag_receive(1, ~Tag{0}, memory::Buffer{received.data(), size, {}, nullptr}, &receiving));
    sending.start(machines[0]->tag_send(1, 1, memory::ConstBuffer(place, size), &sending));
    const auto are_done = [&] { return sending.done() && receiving.done(); };
    ASSERT_TRUE(testing::within_a_minute(are_done, [&] {
      for (auto& machine : machines) machine->progress();
    }));
    EXPECT_EQ(received, std::vector<std::byte>(size, static_cast<std::byte>(round + 1)));
    if (round % 2 == 1) {
      EXPECT_TRUE(machines[0]->deregister_memory(registered).ok());
    }
  }
  for (auto& machine : machines) machine->close();
  munmap(place, size);
}

}  // namespace
}  // namespace weft::machine::ucx
