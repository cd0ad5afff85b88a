// Host buffers of any size that staged messages pass through, from KindBackend::allocate_host (page-locked for
// cuda). The pool exists because allocating such memory takes far longer than a copy.
//
// No other pool of the tree serves. memory::StagingPool has few chunks of one size, and its users wait for a free
// one; a staged message needs a buffer of its own size at once, because it may hold it until the peer receives.
// runtime::BlockPool holds pageable host memory, and runtime::ReceiveBufferPool holds device memory.
//
// Threads: the PE's thread. Invariants: a Bounce does not outlive its pool. The pool does not outlive the memory
// layer.
#pragma once

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "memory/memory.h"

namespace weft::machine {

class BouncePool;

// A buffer of the pool in use. The destructor returns it to the pool.
class Bounce {
 public:
  Bounce() = default;
  Bounce(Bounce&& other) noexcept { swap(other); }
  Bounce& operator=(Bounce&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Bounce();

  std::byte* data() const { return data_; }
  std::size_t capacity_bytes() const { return capacity_bytes_; }

 private:
  friend class BouncePool;

  void swap(Bounce& other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(data_, other.data_);
    std::swap(capacity_bytes_, other.capacity_bytes_);
    std::swap(kind_, other.kind_);
    std::swap(is_kept_, other.is_kept_);
  }

  BouncePool* pool_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t capacity_bytes_ = 0;
  memory::Kind kind_ = memory::Kind::kHost;
  bool is_kept_ = false;  // false: pageable memory, which is freed when the buffer is returned
};

class BouncePool {
 public:
  // A buffer is pageable memory if it is larger than this, or if all buffers together would exceed
  // max_total_kept_bytes(). Pageable memory is slow: the memory layer copies it in chunks, and each page faults.
  // Measured between two H200: 64 MiB took 98 ms one way, 29 times as long as 16 MiB. 64 such messages in flight
  // reached 0.9 GB/s.
  static constexpr std::size_t kMaxKeptBytes = std::size_t{64} << 20;

  explicit BouncePool(memory::Memory& memory, std::size_t max_total_kept_bytes = share_of_physical_memory())
      : memory_(memory), max_total_kept_bytes_(max_total_kept_bytes) {}
  ~BouncePool();
  BouncePool(const BouncePool&) = delete;
  BouncePool& operator=(const BouncePool&) = delete;

  // A buffer of at least `size_bytes`, for copies from or to `place`. data() is null if there is no memory.
  Bounce acquire(std::size_t size_bytes, memory::Place place);
  // The bytes of buffers that are kept for reuse now.
  std::size_t free_bytes() const { return free_bytes_; }
  std::size_t max_total_kept_bytes() const { return max_total_kept_bytes_; }

 private:
  friend class Bounce;
  static constexpr std::size_t kMinBytes = 4096;
  // Powers of two from kMinBytes to kMaxKeptBytes.
  static constexpr std::size_t kNumClasses = 15;
  using Classes = std::array<std::vector<std::byte*>, kNumClasses>;

  // The pool's limit: 1 % of physical memory or of the container's limit, at least 256 MiB. Example: 5 GiB
  // on a node with 512 GiB. The pool allocates only as much as transfers use at the same time.
  static std::size_t share_of_physical_memory();

  std::vector<std::byte*>& free_of(memory::Kind kind, std::size_t capacity_bytes);
  std::byte* make(memory::Place place, std::size_t capacity_bytes);
  void give_back(Bounce& bounce);
  void free_all();

  memory::Memory& memory_;
  std::size_t max_total_kept_bytes_;
  std::array<Classes, memory::kNumKinds> free_;
  std::size_t free_bytes_ = 0;
  std::size_t made_bytes_ = 0;  // of all buffers of the pool, free and in use, without the pageable ones
};

inline Bounce::~Bounce() {
  if (pool_ != nullptr) pool_->give_back(*this);
}

}  // namespace weft::machine
