#include "memory/kinds/host_pages.h"

#include <dlfcn.h>

namespace weft::memory {

namespace {

// _dl_find_object() of glibc 2.35. It takes no lock. It is looked up, because a reference to it would keep the
// program from running with an older C library.
using FindLoadedObject = int (*)(void* address, void* object);

FindLoadedObject find_loaded_object() {
  static const auto function = reinterpret_cast<FindLoadedObject>(::dlsym(RTLD_DEFAULT, "_dl_find_object"));
  return function;
}

// For a `struct dl_find_object`, which has 104 bytes where it has most.
struct alignas(std::max_align_t) FoundObject {
  std::array<std::byte, 256> bytes;
};

}  // namespace

bool may_be_in_loaded_object(std::uintptr_t address) {
  const FindLoadedObject find = find_loaded_object();
  FoundObject object;
  return find == nullptr || find(reinterpret_cast<void*>(address), &object) == 0;
}

void HostPages::use_generation(const std::atomic<std::uint64_t>* counter) {
  counter_ = counter == nullptr ? &kNoCounter : counter;
  entries_.fill({});
}

void HostPages::remember(std::uintptr_t address, std::uint64_t generation) {
  if (counter_ == &kNoCounter || address < kPageBytes || may_be_in_loaded_object(address)) return;
  const std::uintptr_t key = key_of(address);
  entries_[key % kNumEntries] = {key, generation};
}

}  // namespace weft::memory
