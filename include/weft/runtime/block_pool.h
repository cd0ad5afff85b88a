// Memory for messages, in power-of-two blocks that are kept for reuse: a fresh large allocation costs a page
// fault per 4 KiB, which is more than moving the bytes.
//
// Threads: one. Blocks are aligned to 64 bytes. Each size class keeps at most kKeptBytesPerClass.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <vector>

namespace weft::runtime {

class BlockPool {
 public:
  BlockPool() = default;
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;
  ~BlockPool() {
    for (auto& blocks : free_) {
      for (void* block : blocks) std::free(block);
    }
  }

  void* allocate(std::size_t size_bytes) {
    std::size_t which = size_class(size_bytes);
    auto& blocks = free_[which];
    if (!blocks.empty()) {
      void* block = blocks.back();
      blocks.pop_back();
      return block;
    }
    void* block = std::aligned_alloc(kAlignment, class_bytes(which));
    if (block == nullptr) throw std::bad_alloc();
    return block;
  }

  // REQUIRES: `block` came from allocate(size_bytes).
  void deallocate(void* block, std::size_t size_bytes) {
    std::size_t which = size_class(size_bytes);
    auto& blocks = free_[which];
    if ((blocks.size() + 1) * class_bytes(which) <= kKeptBytesPerClass) {
      blocks.push_back(block);
    } else {
      std::free(block);
    }
  }

 private:
  static constexpr std::size_t kAlignment = 64;
  static constexpr std::size_t kKeptBytesPerClass = std::size_t{64} << 20;
  static constexpr std::size_t kSmallestLog2 = 6;

  static std::size_t size_class(std::size_t size_bytes) {
    return size_bytes <= kAlignment ? 0 : static_cast<std::size_t>(std::bit_width(size_bytes - 1)) - kSmallestLog2;
  }
  static std::size_t class_bytes(std::size_t which) { return kAlignment << which; }

  std::array<std::vector<void*>, 64 - kSmallestLog2> free_;
};

}  // namespace weft::runtime
