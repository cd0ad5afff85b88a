// Caches the kind of an address per allocation. A wrong answer corrupts data, so these rules hold:
//
// Outside: an address outside the address_range() of every device kind is host memory; the cache is not
// searched. While no device kind has memory, that is every address, and the answer takes a few nanoseconds.
//
// Host ranges: the heap, the main program's variables and the main thread's stack are host memory for kinds
// that declare that a driver maps all their memory (cuda does). Such a kind is not asked, and the answer takes 1
// or 2 ns. host_ranges.h says which addresses these are and why they are safe. Memory there that the program
// registers with a driver (cudaHostRegister) stays host memory, and the driver says the same. Memory of
// cudaMalloc, cudaMallocManaged and cudaHostAlloc is never there, because the driver maps it. The same holds
// for variables that CUDA manages (__managed__).
//
// Host pages: the range of cuda is every address when a driver and a device are there, because other libraries
// allocate too. Then a question about mapped host memory (large blocks of malloc(), memory that malloc() gives
// other threads, their stacks, variables of shared libraries) costs a driver query (75 ns). find_of_buffer()
// remembers the answer "host" by page until memory of this process is unmapped, and later answers take 5 ns.
// That needs a counter of unmappings (set_unmap_generation()). host_pages.h says which pages are remembered
// and why they are safe.
//
// Other host memory is never cached. Inside a range the kinds are asked each time.
//
// Device: an allocation is cached by its range. Its entry is dropped when its kind reports the release, and
// each hit asks the kind whether the entry is current. emulated reports every release and returns true (8
// ns). For cuda, other libraries free memory without a report, so the backend compares the driver's buffer
// id, which is never reused (36 ns). A new entry removes those that it overlaps. Generation 0 is not cached.
//
// Threads: the PE's.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <utility>

#include "memory/kinds/host_pages.h"
#include "memory/kinds/host_ranges.h"
#include "memory/kinds/kind.h"

namespace weft::memory {

class KindCache {
 public:
  // REQUIRES: `kind` is a device kind and exists until the last call of the cache. The cache sets its release
  // listener.
  void add(KindBackend* kind);

  // `listener` is called for each allocation whose kind reports its release; an empty one removes it.
  void set_release_listener(KindBackend::ReleaseListener listener) { listener_ = std::move(listener); }

  // Whether a kind is_in_own_mappings(). No other kind needs the generation.
  bool wants_unmap_generation() const { return has_kind_in_own_mappings_; }
  // For HostPages; null: no page is remembered any more.
  void set_unmap_generation(const std::atomic<std::uint64_t>* counter) {
    host_pages_.use_generation(counter);
  }

  // False for addresses outside every range: they are host memory. Few instructions, for each message asks.
  bool is_in_a_range(const void* address) const {
    const auto number = reinterpret_cast<std::uintptr_t>(address);
    for (int i = 0; i < num_kinds_; ++i) {
      if (kinds_[static_cast<std::size_t>(i)]->address_range().contains(number)) return true;
    }
    return false;
  }
  // False for addresses outside every range, for host ranges and for host pages: they are host memory, and
  // find() need not be asked.
  bool may_be_device(const void* address) const {
    const auto number = reinterpret_cast<std::uintptr_t>(address);
    for (int i = 0; i < num_kinds_; ++i) {
      if (may_have(*kinds_[static_cast<std::size_t>(i)], number)) return true;
    }
    return false;
  }
  // The device allocation that holds `address`; generation 0 and size 0 for host memory.
  Allocation find(const void* address) { return look_up(address, nullptr); }
  // As find(). Remembers the page of host memory. REQUIRES: the program may access the byte at `address`.
  Allocation find_of_buffer(const void* address);

  std::size_t size() const { return entries_.size(); }

 private:
  struct CachedAllocation {
    Allocation allocation;
    KindBackend* kind = nullptr;
  };

  // Whether the kind must be asked about that address.
  bool may_have(const KindBackend& kind, std::uintptr_t number) const {
    return kind.address_range().contains(number) &&
           !(kind.is_in_own_mappings() && (host_ranges_.contains(number) || host_pages_.contains(number)));
  }
  // Sets `*is_known_host` if a driver knows of host memory at that address, or cannot say.
  Allocation look_up(const void* address, bool* is_known_host);
  // False if it cannot be remembered.
  bool remember(const Allocation& allocation, KindBackend* kind);

  std::array<KindBackend*, kNumKinds> kinds_{};
  KindBackend::ReleaseListener listener_;
  int num_kinds_ = 0;
  bool has_kind_in_own_mappings_ = false;
  HostRanges host_ranges_;  // contain nothing until there is such a kind
  HostPages host_pages_;
  std::map<std::uintptr_t, CachedAllocation> entries_;  // by base; no two overlap
};

}  // namespace weft::memory
