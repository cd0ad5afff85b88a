// The memory that the program of one rank has allocated, in the rank's slot. All of its state lies in the slot too.
//
// Blocks come from Boost.Interprocess' best-fit algorithm, which manages memory that it is given. The heap makes the addresses
// of the slot accessible as it grows.
// Threads: any.
#pragma once

#include <cstddef>
#include <mutex>

#include <boost/interprocess/mem_algo/rbtree_best_fit.hpp>
#include <boost/interprocess/sync/mutex_family.hpp>

namespace weft::mpi_host {

class SlotHeap {
 public:
  // The alignment that malloc() promises.
  static constexpr std::size_t kAlignment = 16;

  // Makes a heap in [begin, end), which is reserved without access. REQUIRES: both are multiples of the page size.
  // Throws: Refusal.
  static SlotHeap& make(char* begin, char* end);
  SlotHeap(const SlotHeap&) = delete;
  SlotHeap& operator=(const SlotHeap&) = delete;

  // Null if the slot is full, or the system has no more memory. `alignment`: a power of two.
  void* allocate(std::size_t size_bytes, std::size_t alignment = kAlignment);
  // As allocate(), and the memory is zero.
  void* allocate_zeroed(std::size_t size_bytes);
  // As realloc(). REQUIRES: `block` is one of this heap, and size_bytes > 0.
  void* reallocate(void* block, std::size_t size_bytes);
  void free(void* block);
  // How many bytes the user of the block may write.
  std::size_t usable_bytes(const void* block) const { return blocks_->size(block); }

  // The end of what is accessible, and of the slot.
  char* accessible_end() const { return accessible_end_; }
  char* end() const { return end_; }

  // For tests: whether the bookkeeping is right; and what is accessible.
  bool is_sound();
  std::size_t accessible_bytes() const { return static_cast<std::size_t>(accessible_end_ - begin_); }

 private:
  using Blocks =
      boost::interprocess::rbtree_best_fit<boost::interprocess::null_mutex_family, void*, kAlignment>;

  SlotHeap(char* begin, char* accessible_end, char* end);
  void* allocate_locked(std::size_t size_bytes, std::size_t alignment);
  bool grow(std::size_t size_bytes);

  std::mutex mutex_;
  char* const begin_;
  char* accessible_end_;
  char* const end_;
  Blocks* blocks_;
};

}  // namespace weft::mpi_host
