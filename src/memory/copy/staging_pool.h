// Chunks of host memory that a device kind copies to and from without blocking the CPU (page-locked for cuda),
// for copies between a device and pageable memory. The pool exists because page-locked memory is scarce and slow
// to allocate, and its allocation may wait for the device: there are few chunks, and the first copy that needs
// one allocates all of them.
//
// No other pool of the tree serves. A buffer of machine::BouncePool holds a whole message, has one of many sizes
// and is granted at once; a chunk has one size, and a copy without a chunk waits. The pools of the runtime hold
// pageable host memory (BlockPool) and device memory (ReceiveBufferPool), and lie above this layer.
//
// Threads: the PE's thread. No call waits for a chunk.
#pragma once

#include <cstddef>
#include <vector>

#include "weft/base/status.h"

#include "memory/kinds/kind.h"

namespace weft::memory {

class StagingPool {
 public:
  static constexpr std::size_t kChunkBytes = 512 * 1024;
  static constexpr int kMaxChunks = 16;

  explicit StagingPool(KindBackend* kind) : kind_(kind) {}
  // REQUIRES: no chunk is in use.
  ~StagingPool() {
    if (block_ != nullptr) kind_->deallocate_host(block_);
  }
  StagingPool(const StagingPool&) = delete;
  StagingPool& operator=(const StagingPool&) = delete;

  // A chunk for copies of `device`. Null if all chunks are in use.
  base::Result<std::byte*> take(int device) {
    if (block_ == nullptr) {
      base::Result<void*> made = kind_->allocate_host(kChunkBytes * kMaxChunks, device);
      if (!made.ok()) return made.status();
      block_ = *made;
      for (int i = kMaxChunks; i > 0; --i)
        free_.push_back(static_cast<std::byte*>(block_) + (i - 1) * kChunkBytes);
    }
    if (free_.empty()) return static_cast<std::byte*>(nullptr);
    std::byte* const chunk = free_.back();
    free_.pop_back();
    return chunk;
  }
  void give_back(std::byte* chunk) { free_.push_back(chunk); }

 private:
  KindBackend* kind_;
  void* block_ = nullptr;
  std::vector<std::byte*> free_;
};

}  // namespace weft::memory
