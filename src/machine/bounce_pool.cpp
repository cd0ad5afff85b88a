#include "machine/bounce_pool.h"

#include <algorithm>
#include <bit>
#include <new>

namespace weft::machine {
namespace {

std::size_t class_of(std::size_t capacity_bytes, std::size_t min_bytes) {
  return static_cast<std::size_t>(std::countr_zero(capacity_bytes) - std::countr_zero(min_bytes));
}

}  // namespace

Bounce BouncePool::acquire(std::size_t size_bytes) {
  Bounce bounce;
  bounce.pool_ = this;
  if (size_bytes > kMaxKeptBytes) {
    bounce.capacity_bytes_ = size_bytes;
  } else {
    bounce.capacity_bytes_ = std::bit_ceil(std::max(size_bytes, kMinBytes));
    auto& free = free_[class_of(bounce.capacity_bytes_, kMinBytes)];
    if (!free.empty()) {
      bounce.bytes_ = std::move(free.back());
      free.pop_back();
      kept_bytes_ -= bounce.capacity_bytes_;
      return bounce;
    }
  }
  bounce.bytes_.reset(new (std::nothrow) std::byte[bounce.capacity_bytes_]);
  return bounce;
}

void BouncePool::give_back(Bounce& bounce) {
  const std::size_t capacity_bytes = bounce.capacity_bytes_;
  if (bounce.bytes_ == nullptr || capacity_bytes > kMaxKeptBytes ||
      kept_bytes_ + capacity_bytes > kMaxTotalKeptBytes) {
    return;
  }
  free_[class_of(capacity_bytes, kMinBytes)].push_back(std::move(bounce.bytes_));
  kept_bytes_ += capacity_bytes;
}

}  // namespace weft::machine
