// Host memory for messages, operations and coroutines, in blocks whose sizes are powers of two. The pool exists
// because a fresh large allocation costs a page fault per 4 KiB, which takes longer than moving the bytes, and
// because each message needs a block, which must not cost a call of malloc.
//
// No other pool of the tree serves. machine::BouncePool and memory::StagingPool hold page-locked memory, which is
// scarce and slow to allocate; ReceiveBufferPool holds device memory; base::VectorPool holds storage that belongs to
// std::vector.
//
// Threads: the PE's thread. Invariants: blocks are aligned to 64 bytes. Each size class keeps at most
// kKeptBytesPerClass.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <utility>

namespace weft::runtime {

class BlockPool {
 public:
  BlockPool() = default;
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;
  ~BlockPool() {
    for (SizeClass& kept : classes_) {
      while (kept.first != nullptr) std::free(std::exchange(kept.first, kept.first->next));
    }
  }

  void* allocate(std::size_t size_bytes) {
    std::size_t which = size_class(size_bytes);
    SizeClass& kept = classes_[which];
    if (kept.first == nullptr) [[unlikely]]
      return fresh_block(which);
    --kept.num_blocks;
    return std::exchange(kept.first, kept.first->next);
  }

  // Whether allocate(size_bytes) would take fresh memory from the system.
  bool needs_fresh_block(std::size_t size_bytes) const {
    return classes_[size_class(size_bytes)].first == nullptr;
  }

  // As allocate(), for callers whose blocks mostly have at most kSmallBytes. These share one size class, which the
  // compiler knows.
  template <std::size_t kSmallBytes>
  void* allocate_mostly(std::size_t size_bytes) {
    return size_bytes <= kSmallBytes ? allocate(kSmallBytes) : allocate(size_bytes);
  }
  template <std::size_t kSmallBytes>
  void deallocate_mostly(void* block, std::size_t size_bytes) {
    if (size_bytes <= kSmallBytes) {
      deallocate(block, kSmallBytes);
    } else {
      deallocate(block, size_bytes);
    }
  }

  // REQUIRES: `block` came from allocate(size_bytes).
  void deallocate(void* block, std::size_t size_bytes) {
    std::size_t which = size_class(size_bytes);
    SizeClass& kept = classes_[which];
    if (kept.num_blocks >= kKeptBytesPerClass >> (kSmallestLog2 + which)) [[unlikely]] {
      std::free(block);
      return;
    }
    ++kept.num_blocks;
    kept.first = new (block) Block{kept.first};
  }

  // The bytes of blocks that are kept for reuse now.
  std::size_t kept_bytes() const {
    std::size_t bytes = 0;
    for (std::size_t which = 0; which < classes_.size(); ++which) {
      bytes += classes_[which].num_blocks * class_bytes(which);
    }
    return bytes;
  }

 private:
  static constexpr std::size_t kAlignment = 64;
  // Enough for 64 messages of 4 MiB or four of 64 MiB in flight: their pages stay mapped.
  static constexpr std::size_t kKeptBytesPerClass = std::size_t{256} << 20;
  static constexpr std::size_t kSmallestLog2 = 6;
  // Programs compute on landed arrays, and a kernel on several of them misses the TLB often if their pages are small. NumPy
  // asks for huge pages from the same size on.
  static constexpr std::size_t kHugeBytes = std::size_t{4} << 20;
  static constexpr std::size_t kLargestClass = 39 - kSmallestLog2;  // 512 GiB: larger sizes are corrupt

  struct Block {
    Block* next;
  };
  struct SizeClass {
    Block* first = nullptr;
    std::size_t num_blocks = 0;
  };

  static std::size_t size_class(std::size_t size_bytes) {
    return static_cast<std::size_t>(std::bit_width((size_bytes - (size_bytes != 0)) >> kSmallestLog2));
  }
  static std::size_t class_bytes(std::size_t which) { return kAlignment << which; }

  // From the system, in huge pages if the size class is kHugeBytes or larger.
  static void* fresh_block(std::size_t which);

  std::array<SizeClass, 65 - kSmallestLog2> classes_;
};

}  // namespace weft::runtime
