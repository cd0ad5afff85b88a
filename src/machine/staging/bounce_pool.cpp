#include "machine/staging/bounce_pool.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <fstream>
#include <limits>
#include <new>

namespace weft::machine {

namespace {

// The memory limit of a container or of a resource manager's job. Without a limit the file says "max".
std::size_t memory_limit_bytes() {
  std::ifstream file("/sys/fs/cgroup/memory.max");
  std::size_t limit_bytes = 0;
  return file >> limit_bytes ? limit_bytes : std::numeric_limits<std::size_t>::max();
}

}  // namespace

std::size_t BouncePool::share_of_physical_memory() {
  constexpr std::size_t least_bytes = std::size_t{256} << 20;
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_bytes = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page_bytes <= 0) return least_bytes;
  const std::size_t all_bytes = static_cast<std::size_t>(pages) * static_cast<std::size_t>(page_bytes);
  return std::max(least_bytes, std::min(all_bytes, memory_limit_bytes()) / 100);
}

BouncePool::~BouncePool() { free_all(); }

std::vector<std::byte*>& BouncePool::free_of(memory::Kind kind, std::size_t capacity_bytes) {
  const int size_class = std::countr_zero(capacity_bytes) - std::countr_zero(kMinBytes);
  return free_[static_cast<std::size_t>(kind)][static_cast<std::size_t>(size_class)];
}

Bounce BouncePool::acquire(std::size_t size_bytes, memory::Place place) {
  Bounce bounce;
  bounce.pool_ = this;
  bounce.kind_ = place.kind;
  if (size_bytes <= kMaxKeptBytes) {
    bounce.capacity_bytes_ = std::bit_ceil(std::max(size_bytes, kMinBytes));
    bounce.is_kept_ = true;
    auto& free = free_of(place.kind, bounce.capacity_bytes_);
    if (!free.empty()) {
      bounce.data_ = free.back();
      free.pop_back();
      free_bytes_ -= bounce.capacity_bytes_;
      return bounce;
    }
    bounce.data_ = make(place, bounce.capacity_bytes_);
    if (bounce.data_ != nullptr) return bounce;
  }
  bounce.is_kept_ = false;
  bounce.capacity_bytes_ = size_bytes;
  bounce.data_ = new (std::nothrow) std::byte[size_bytes];
  return bounce;
}

// Null if the buffer would exceed the pool's limit, or if there is no memory.
std::byte* BouncePool::make(memory::Place place, std::size_t capacity_bytes) {
  if (made_bytes_ + capacity_bytes > max_total_kept_bytes_) free_all();  // buffers of other sizes
  if (made_bytes_ + capacity_bytes > max_total_kept_bytes_) return nullptr;
  auto made = memory_.backend(place.kind)->allocate_host(capacity_bytes, place.device);
  if (!made.ok()) return nullptr;
  made_bytes_ += capacity_bytes;
  return static_cast<std::byte*>(*made);
}

void BouncePool::give_back(Bounce& bounce) {
  if (!bounce.is_kept_) {
    delete[] bounce.data_;
    return;
  }
  free_of(bounce.kind_, bounce.capacity_bytes_).push_back(bounce.data_);
  free_bytes_ += bounce.capacity_bytes_;
}

void BouncePool::free_all() {
  for (std::size_t kind = 0; kind < free_.size(); ++kind) {
    for (auto& free : free_[kind]) {
      for (std::byte* data : free) memory_.backend(static_cast<memory::Kind>(kind))->deallocate_host(data);
      free.clear();
    }
  }
  made_bytes_ -= free_bytes_;
  free_bytes_ = 0;
}

}  // namespace weft::machine
