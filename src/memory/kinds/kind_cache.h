// Caches the kind of an address per allocation. A wrong answer corrupts data, so these rules hold:
//
// Outside: an address outside the address_range() of every device kind is host memory; the cache is not
// searched. While no device kind has memory, that is every address, and the answer takes a few nanoseconds.
//
// Host: host memory is never cached, because no library reports when it is freed and becomes device memory.
// Inside a range the kinds are asked each time. The range of cuda is every address when a driver and a device
// are there, because other libraries allocate too. Then a question about host memory costs a driver query (75
// ns).
//
// Device: an allocation is cached by its range. Its entry is dropped when its kind reports the release, and
// each hit asks the kind whether the entry is current. emulated reports every release and returns true (8
// ns). For cuda, other libraries free memory without a report, so the backend compares the driver's buffer
// id, which is never reused (36 ns). A new entry removes those that it overlaps. Generation 0 is not cached.
//
// Threads: the PE's.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <utility>

#include "memory/kinds/kind.h"

namespace weft::memory {

class KindCache {
 public:
  // REQUIRES: `kind` is a device kind and exists until the last call of the cache. The cache sets its release
  // listener.
  void add(KindBackend* kind);

  // `listener` is called for each allocation whose kind reports its release; an empty one removes it.
  void set_release_listener(KindBackend::ReleaseListener listener) { listener_ = std::move(listener); }

  // False for addresses outside every range: they are host memory, and find() need not be asked.
  bool may_be_device(const void* address) const {
    const auto number = reinterpret_cast<std::uintptr_t>(address);
    for (int i = 0; i < num_kinds_; ++i) {
      if (kinds_[static_cast<std::size_t>(i)]->address_range().contains(number)) return true;
    }
    return false;
  }
  // The device allocation that holds `address`; generation 0 and size 0 for host memory.
  Allocation find(const void* address);

  std::size_t size() const { return entries_.size(); }

 private:
  struct CachedAllocation {
    Allocation allocation;
    KindBackend* kind = nullptr;
  };

  // False if it cannot be remembered.
  bool remember(const Allocation& allocation, KindBackend* kind);

  std::array<KindBackend*, kNumKinds> kinds_{};
  KindBackend::ReleaseListener listener_;
  int num_kinds_ = 0;
  std::map<std::uintptr_t, CachedAllocation> entries_;  // by base; no two overlap
};

}  // namespace weft::memory
