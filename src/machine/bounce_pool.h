// Host buffers that staged transfers pass through, kept for reuse: fresh memory of some size costs more in
// page faults than the copy through it.
//
// Threads: one. Invariant: a Bounce must not outlive its pool.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace weft::machine {

class BouncePool;

// A buffer on loan; goes back when destroyed.
class Bounce {
 public:
  Bounce() = default;
  Bounce(Bounce&& other) noexcept
      : pool_(std::exchange(other.pool_, nullptr)),
        bytes_(std::move(other.bytes_)),
        capacity_bytes_(std::exchange(other.capacity_bytes_, 0)) {}
  Bounce& operator=(Bounce&& other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(bytes_, other.bytes_);
    std::swap(capacity_bytes_, other.capacity_bytes_);
    return *this;
  }
  ~Bounce();

  std::byte* data() const { return bytes_.get(); }
  std::size_t capacity_bytes() const { return capacity_bytes_; }

 private:
  friend class BouncePool;
  BouncePool* pool_ = nullptr;
  std::unique_ptr<std::byte[]> bytes_;
  std::size_t capacity_bytes_ = 0;
};

class BouncePool {
 public:
  // Larger buffers are not kept, nor more than this in all.
  static constexpr std::size_t kMaxKeptBytes = std::size_t{16} << 20;
  static constexpr std::size_t kMaxTotalKeptBytes = std::size_t{64} << 20;

  BouncePool() = default;
  BouncePool(const BouncePool&) = delete;
  BouncePool& operator=(const BouncePool&) = delete;

  // At least `size_bytes` large; data() is null when there is no memory.
  Bounce acquire(std::size_t size_bytes);
  std::size_t kept_bytes() const { return kept_bytes_; }

 private:
  friend class Bounce;
  static constexpr std::size_t kMinBytes = 4096;

  void give_back(Bounce& bounce);

  // Free buffers by power of two, from kMinBytes to kMaxKeptBytes.
  std::array<std::vector<std::unique_ptr<std::byte[]>>, 13> free_;
  std::size_t kept_bytes_ = 0;
};

inline Bounce::~Bounce() {
  if (pool_ != nullptr) pool_->give_back(*this);
}

}  // namespace weft::machine
