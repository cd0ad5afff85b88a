// Chunks of host memory that a device kind reaches without blocking the CPU, made on demand and kept for
// reuse.
//
// Page-locked memory is scarce and slow to make, so there are few chunks and nobody waits for one inside a
// call.
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
  ~StagingPool() {
    for (std::byte* chunk : free_) kind_->deallocate_host(chunk);
  }
  StagingPool(const StagingPool&) = delete;
  StagingPool& operator=(const StagingPool&) = delete;

  // For copies of `device`. Null when all are in use, so that one will be given back; a failure when there is
  // none to wait for.
  base::Result<std::byte*> take(int device) {
    if (free_.empty() && num_chunks_ < kMaxChunks) {
      base::Result<void*> made = kind_->allocate_host(kChunkBytes, device);
      if (!made.ok() && num_chunks_ == 0) return made.status();
      if (made.ok()) {
        ++num_chunks_;
        free_.push_back(static_cast<std::byte*>(*made));
      }
    }
    if (free_.empty()) return static_cast<std::byte*>(nullptr);
    std::byte* const chunk = free_.back();
    free_.pop_back();
    return chunk;
  }
  void give_back(std::byte* chunk) { free_.push_back(chunk); }

 private:
  KindBackend* kind_;
  int num_chunks_ = 0;
  std::vector<std::byte*> free_;
};

}  // namespace weft::memory
