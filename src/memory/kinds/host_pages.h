// Pages of this process's memory about which the drivers have said "host", so that they are not asked again.
//
// A page is remembered until memory of this process is unmapped, wherever that memory was. The owner passes a
// counter (the unmap generation) that rises before any memory is unmapped, or before other pages are mapped
// over it. Without a counter nothing is remembered.
//
// A page is a good answer because a driver maps the memory of its devices itself, and the kernel maps nothing
// over a mapped page unless it is told to (MAP_FIXED). A mapped page of the program must therefore be unmapped
// before a driver can have it, and that raises the counter.
//
// So that this holds, a page is remembered only if all of the following is true. Each is a way in which an
// address could become device memory with no page of the program unmapped.
//
// - The address is that of a byte which the program may access. A null address, the end of an array, or the
//   address of an array without elements may lie in a range that a driver has reserved (cuMemAddressReserve)
//   or in no memory at all. Memory::place_of() requires this of its callers. A question about an allocation
//   (Memory::allocation_of()) never remembers, because its answer tells its caller whether there is one.
// - The driver knows nothing of the address. Host memory of the driver's (cudaHostAlloc) may be freed and used
//   again by calls that the C library does not see. Memory that the program has registered (cudaHostRegister)
//   looks the same, so it is not remembered either. Once remembered, it may be registered: it stays the
//   program's.
// - The address is not in a shared library or another loaded object. dlclose() unmaps them by system calls of
//   the dynamic linker's own, which raise no counter.
// - The counter was read before the driver was asked, so that an unmapping in between makes the page forgotten.
//
// A program makes the answer wrong if it does one of these. UCX's caches of registered memory have the same
// limits.
// - It unmaps memory, after a question about it, by system calls of its own: not by munmap() and its relatives
//   of the C library. A second C library (dlmopen()) is such a case, and so is a runtime that needs none (Go).
// - It asks about memory that another thread is unmapping, or that is unmapped. Both are faults of the program
//   without this cache too.
//
// Threads: one at a time. Other threads may raise the counter.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace weft::memory {

class HostPages {
 public:
  static constexpr std::size_t kPageBytes = 4096;  // the smallest page of a system; larger ones are several
  // 1 MiB of buffers that follow one another. A page takes the entry of the one 1 MiB before it.
  static constexpr std::size_t kNumEntries = 256;

  // `counter` rises before memory is unmapped, and exists until the last call. Null: nothing is remembered.
  void use_generation(const std::atomic<std::uint64_t>* counter);

  bool contains(std::uintptr_t address) const {
    const std::uintptr_t key = key_of(address);
    const Entry& entry = entries_[key % kNumEntries];
    return entry.key == key && entry.generation == generation();
  }

  // The value for remember(), read before the kinds are asked. No order with other memory is needed: a thread
  // that learns of device memory at an address has also learned that the counter rose before.
  std::uint64_t generation() const { return counter_->load(std::memory_order_relaxed); }
  // REQUIRES: the rules at the head of this file, but for loaded objects, which are looked for here.
  void remember(std::uintptr_t address, std::uint64_t generation);

 private:
  struct Entry {
    std::uintptr_t key = 0;
    std::uint64_t generation = 0;
  };

  // Never 0, the key of an empty entry.
  static std::uintptr_t key_of(std::uintptr_t address) { return address / kPageBytes + 1; }

  static inline const std::atomic<std::uint64_t> kNoCounter{0};

  const std::atomic<std::uint64_t>* counter_ = &kNoCounter;
  std::array<Entry, kNumEntries> entries_{};
};

// Whether the address is in the program, a shared library or another object that the dynamic linker has
// loaded. Also true if the C library cannot say it fast (glibc before 2.35).
bool may_be_in_loaded_object(std::uintptr_t address);

}  // namespace weft::memory
