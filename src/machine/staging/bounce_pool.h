// Host buffers that staged transfers pass through, of the kind of host memory that the device copies to
// without the CPU's help (page-locked, for cuda). They are kept for reuse: making such memory costs far more
// than a copy.
//
// Why it is not one with the other pools: memory::StagingPool has a few chunks of one size, and its users
// wait for a free one, while a staged message needs a buffer of its own size at once, because it may hold it
// until the peer receives. The runtime's pools hold pageable host memory and device memory.
//
// Threads: one. Invariants: a Bounce does not outlive its pool, nor the pool the memory layer.
#pragma once

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "memory/memory.h"

namespace weft::machine {

class BouncePool;

// A buffer on loan; goes back when destroyed.
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
  bool is_kept_ = false;  // else ordinary memory, freed when it comes back
};

class BouncePool {
 public:
  // Larger buffers are pageable memory, and so are those beyond max_total_kept_bytes() in all. The memory
  // layer copies them in chunks, and each page faults: 64 MiB took 98 ms one way between two H200, 29 times
  // what 16 MiB took, and 64 of them in flight moved at 0.9 GB/s.
  static constexpr std::size_t kMaxKeptBytes = std::size_t{64} << 20;

  explicit BouncePool(memory::Memory& memory, std::size_t max_total_kept_bytes = share_of_physical_memory())
      : memory_(memory), max_total_kept_bytes_(max_total_kept_bytes) {}
  ~BouncePool();
  BouncePool(const BouncePool&) = delete;
  BouncePool& operator=(const BouncePool&) = delete;

  // At least `size_bytes` large, for copies from or to `place`; data() is null when there is no memory.
  Bounce acquire(std::size_t size_bytes, memory::Place place);
  // What acquire() would give again without making anything.
  std::size_t free_bytes() const { return free_bytes_; }
  std::size_t max_total_kept_bytes() const { return max_total_kept_bytes_; }

 private:
  friend class Bounce;
  static constexpr std::size_t kMinBytes = 4096;
  // Powers of two from kMinBytes to kMaxKeptBytes.
  static constexpr std::size_t kNumClasses = 15;
  using Classes = std::array<std::vector<std::byte*>, kNumClasses>;

  // The pool's limit: 1 % of physical memory or of the container's limit, at least 256 MiB. Example: 5 GiB
  // on a node with 512 GiB. Only what is in flight at once is ever made.
  static std::size_t share_of_physical_memory();

  std::vector<std::byte*>& free_of(memory::Kind kind, std::size_t capacity_bytes);
  std::byte* make(memory::Place place, std::size_t capacity_bytes);
  void give_back(Bounce& bounce);
  void free_all();

  memory::Memory& memory_;
  std::size_t max_total_kept_bytes_;
  std::array<Classes, memory::kNumKinds> free_;
  std::size_t free_bytes_ = 0;
  std::size_t made_bytes_ = 0;  // free or on loan
};

inline Bounce::~Bounce() {
  if (pool_ != nullptr) pool_->give_back(*this);
}

}  // namespace weft::machine
