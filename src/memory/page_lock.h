// Host memory that a layer above keeps for long, and whose copies to and from devices count. Once as many bytes have been
// copied as it has, its pages are locked, so that a device copies it as it lies. Before, each copy passes through chunks of
// page-locked memory, which the CPU fills.
//
// Locking takes about as long as a copy through chunks (cuMemHostRegister pins each page), so memory that is copied once is
// left as it is.
//
// Threads: the PE's. Not copyable; it moves with the object that describes the memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "weft/memory/buffer.h"

#include "memory/kinds/kind.h"

namespace weft::memory {

class PageLock {
 public:
  // Smaller memory is copied through chunks.
  static constexpr std::size_t kLeastBytes = std::size_t{1} << 20;

  PageLock() = default;
  PageLock(PageLock&& other) noexcept { *this = std::move(other); }
  PageLock& operator=(PageLock&& other) noexcept {
    std::swap(kind_, other.kind_);
    std::swap(data_, other.data_);
    std::swap(copied_bytes_, other.copied_bytes_);
    std::swap(is_decided_, other.is_decided_);
    return *this;
  }
  ~PageLock() { release(); }

  // A copy of `copied_bytes` between `whole`, all of that host memory, and `device` begins. A refused lock changes nothing:
  // the limit on locked memory may be reached.
  void copy_begins(KindBackend& kind, Place device, const Buffer& whole, std::uint64_t copied_bytes);
  // Before the memory is unmapped. REQUIRES: no copy of it is under way.
  void release();
  bool is_locked() const { return kind_ != nullptr; }

 private:
  KindBackend* kind_ = nullptr;
  void* data_ = nullptr;
  std::uint64_t copied_bytes_ = 0;
  bool is_decided_ = false;
};

}  // namespace weft::memory
