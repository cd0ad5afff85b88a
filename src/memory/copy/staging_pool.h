// Chunks of host memory that a device kind reaches without blocking the CPU, kept for reuse.
//
// Page-locked memory is scarce and slow to make, and making it may wait for the device: so there are few
// chunks, they are made all at once by the first copy that needs one, and nobody waits for one inside a call.
#pragma once

#include <cstddef>
#include <vector>

#include "weft/base/status.h"

#include "memory/kind.h"

namespace weft::memory {

class StagingPool {
 public:
  static constexpr std::size_t kChunkBytes = 512 * 1024;
  static constexpr int kMaxChunks = 16;

  explicit StagingPool(KindBackend* kind) : kind_(kind) {}
  // REQUIRES: all chunks were given back.
  ~StagingPool() {
    if (block_ != nullptr) kind_->deallocate_host(block_);
  }
  StagingPool(const StagingPool&) = delete;
  StagingPool& operator=(const StagingPool&) = delete;

  // For copies of `device`. Null when all are in use, so that one will be given back.
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
