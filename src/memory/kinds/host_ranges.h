// Parts of this process's memory that are never device memory: no driver need be asked about them.
//
// Heap: from its start to the current break. The kernel extends it only over free addresses and places no
// mapping inside. The C library lowers the break when it gives memory back, and a driver may map memory there
// afterwards. The break is therefore read for each question.
//
// Program: the writable segments of the main program. They are never unmapped.
//
// Stack: the main thread's, as far as it reached when the ranges were read. The kernel never makes that
// mapping smaller. Addresses below it do not count: the stack may grow into them, but another mapping may be
// there too.
//
// Each range is exact. A range that cannot be read for certain is left out. An address outside all ranges may
// have any kind. A GPU that migrates pages of ordinary memory may hold pages of these ranges. They are host
// memory all the same, because the CPU reads and writes them at their addresses.
//
// A program makes the answer wrong if it does one of these:
// - It unmaps a part of its heap, segments or stack, or maps over it (MAP_FIXED).
// - It lowers the break by a system call of its own, of which the C library does not know.
// - It gets device memory above the break while another thread is inside the call that lowers it, and asks
//   about that memory before that call has stored the new break.
// The first two break the C library too. For the third, the driver must place memory directly above the heap,
// where mmap() places nothing unless it is told to.
//
// Threads: any. The break is read while other threads change it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weft::memory {

class HostRanges {
 public:
  struct Range {
    std::uintptr_t begin = 0;
    std::size_t size_bytes = 0;

    bool contains(std::uintptr_t address) const { return address - begin < size_bytes; }
  };

  // Contains nothing.
  HostRanges() = default;
  // Reads the ranges of this process from /proc. They are valid until it ends, and in a child after fork().
  static HostRanges of_process();

  bool contains(std::uintptr_t address) const {
    // Not sbrk(0): with UCX's memory hooks it makes two system calls.
    const void* const heap_end = __atomic_load_n(break_, __ATOMIC_RELAXED);
    if (address >= heap_begin_ && address < reinterpret_cast<std::uintptr_t>(heap_end)) return true;
    for (const Range& range : fixed_) {
      if (range.contains(address)) return true;
    }
    return false;
  }

 private:
  void add_heap();
  void add(Range range);

  static inline void* const kNoBreak = nullptr;

  std::uintptr_t heap_begin_ = 0;
  void* const* break_ = &kNoBreak;
  // The stack and the segments. Linkers make one or two that are writable. Those for which there is no room
  // are left out.
  std::array<Range, 4> fixed_{};
};

// The start of the heap in the text of /proc/self/stat; 0 if it does not say.
std::uintptr_t start_of_heap(std::string_view stat);
// The main thread's stack in the text of /proc/self/maps; empty if it does not say.
HostRanges::Range main_stack(std::string_view maps);

}  // namespace weft::memory
