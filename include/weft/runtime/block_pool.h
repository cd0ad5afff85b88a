// Memory for messages and operations, in power-of-two blocks that are kept for reuse: a fresh large
// allocation costs a page fault per 4 KiB, which is more than moving the bytes.
//
// Threads: one. Blocks are aligned to 64 bytes. Each size class keeps at most kKeptBytesPerClass.
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

  // The same for blocks of which most are no larger than kSmallBytes: those all have one class, which the
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
    if ((kept.num_blocks + 1) << (kSmallestLog2 + which) > kKeptBytesPerClass) [[unlikely]] {
      std::free(block);
      return;
    }
    ++kept.num_blocks;
    kept.first = new (block) Block{kept.first};
  }

  // What is kept for reuse now.
  std::size_t kept_bytes() const {
    std::size_t bytes = 0;
    for (std::size_t which = 0; which < classes_.size(); ++which) {
      bytes += classes_[which].num_blocks * class_bytes(which);
    }
    return bytes;
  }

 private:
  static constexpr std::size_t kAlignment = 64;
  // A window of 64 messages of 4 MiB, or four of 64 MiB, finds its pages mapped.
  static constexpr std::size_t kKeptBytesPerClass = std::size_t{256} << 20;
  static constexpr std::size_t kSmallestLog2 = 6;
  static constexpr std::size_t kLargestClass = 39 - kSmallestLog2;  // 512 GiB: a larger size is damage

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

  static void* fresh_block(std::size_t which) {
    if (which > kLargestClass) throw std::bad_alloc();
    void* block = std::aligned_alloc(kAlignment, class_bytes(which));
    if (block == nullptr) throw std::bad_alloc();
    return block;
  }

  std::array<SizeClass, 65 - kSmallestLog2> classes_;
};

}  // namespace weft::runtime
