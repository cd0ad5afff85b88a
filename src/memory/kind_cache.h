// Which kind an address has, remembered per allocation. A wrong answer is a data corruption, hence the rules:
//
// Outside: an address outside the address_range() of every device kind is host memory, and nothing is looked
// up. While no device kind has memory, that is every address, and the answer costs a few nanoseconds.
//
// Host: host memory is never remembered, because nobody says when it is freed and becomes device memory.
// Within a range the kinds are asked each time. cuda's range is everything once a driver and a device are
// there, since other libraries allocate too: a question about host memory costs a driver query (75 ns).
//
// Device: an allocation is remembered by its range. Its entry goes when its kind reports the release, and
// each hit asks the kind whether it is current. emulated reports every release and answers yes (8 ns); cuda,
// whose memory others free behind our back, compares the driver's buffer id, which is never given twice (36
// ns). A new entry removes those that it overlaps. Generation 0 is not remembered.
//
// Threads: the PE's.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <utility>

#include "memory/kind.h"

namespace weft::memory {

class KindCache {
 public:
  // REQUIRES: `kind` is a device kind, outlives the cache's last call, and its release listener is left to
  // the cache.
  void add(KindBackend* kind);

  // Is told, besides the cache, of every allocation that its kind says is released; empty: nobody is.
  void set_release_listener(KindBackend::ReleaseListener listener) { listener_ = std::move(listener); }

  Place place_of(const void* address) {
    return may_be_device(reinterpret_cast<std::uintptr_t>(address)) ? find(address).place : Place();
  }
  // The device allocation that holds `address`; with generation 0 and size 0 for host memory.
  Allocation find(const void* address);

  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    Allocation allocation;
    KindBackend* kind = nullptr;
  };

  bool may_be_device(std::uintptr_t address) const {
    for (int i = 0; i < num_kinds_; ++i) {
      if (kinds_[static_cast<std::size_t>(i)]->address_range().contains(address)) return true;
    }
    return false;
  }
  void remember(const Allocation& allocation, KindBackend* kind);

  std::array<KindBackend*, kNumKinds> kinds_{};
  KindBackend::ReleaseListener listener_;
  int num_kinds_ = 0;
  std::map<std::uintptr_t, Entry> entries_;  // by base; no two overlap
};

}  // namespace weft::memory
