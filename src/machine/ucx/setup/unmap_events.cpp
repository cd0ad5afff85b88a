#include "machine/ucx/setup/unmap_events.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <ucm/api/ucm.h>

#include <cstddef>
#include <cstdlib>

#include <gnu/lib-names.h>

namespace weft::machine::ucx {
namespace {

constexpr std::size_t kTriedPageBytes = 4096;
// Above every threshold of glibc's malloc(), so the block is a mapping of its own.
constexpr std::size_t kMappedBlockBytes = std::size_t{64} << 20;

std::atomic<std::uint64_t> g_unmap_generation{0};

// It is called inside munmap(), in any thread, and may not allocate. The order is that of the unmapping: who
// learns of other memory at the address learns of the counter too.
void on_unmapped(ucm_event_type_t /*type*/, ucm_event_t* /*event*/, void* /*argument*/) {
  g_unmap_generation.fetch_add(1, std::memory_order_relaxed);
}

// Functions of the C library, as it calls them itself. The linker may give this library's calls another
// address, which UCX's relocation hooks and preloaded libraries set.
class CLibrary {
 public:
  CLibrary() : handle_(dlopen(LIBC_SO, RTLD_LAZY | RTLD_NOLOAD)) {}
  ~CLibrary() {
    if (handle_ != nullptr) dlclose(handle_);
  }
  CLibrary(const CLibrary&) = delete;
  CLibrary& operator=(const CLibrary&) = delete;

  template <class Function>
  Function* get(const char* name) const {
    return handle_ == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(handle_, name));
  }

 private:
  void* handle_;
};

template <class Body>
bool raises_generation(const Body& body) {
  const std::uint64_t before = g_unmap_generation.load(std::memory_order_relaxed);
  body();
  return g_unmap_generation.load(std::memory_order_relaxed) != before;
}

// An unmapping by another thread could be taken for the tried one's. The hooks are patched together when UCX
// is loaded, so this hides nothing.
bool are_events_complete() {
  const CLibrary library;
  auto* const map = library.get<decltype(mmap)>("mmap");
  auto* const unmap = library.get<decltype(munmap)>("munmap");
  auto* const remap = library.get<decltype(mremap)>("mremap");
  auto* const advise = library.get<decltype(madvise)>("madvise");
  auto* const detach = library.get<decltype(shmdt)>("shmdt");
  if (map == nullptr || unmap == nullptr || remap == nullptr || advise == nullptr || detach == nullptr)
    return false;

  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS;
  void* page = map(nullptr, kTriedPageBytes, PROT_READ | PROT_WRITE, kFlags, -1, 0);
  if (page == MAP_FAILED) return false;
  bool is_complete = raises_generation([&] { advise(page, kTriedPageBytes, MADV_DONTNEED); });
  is_complete &= raises_generation(
      [&] { map(page, kTriedPageBytes, PROT_READ | PROT_WRITE, kFlags | MAP_FIXED, -1, 0); });
  is_complete &= raises_generation([&] {
    void* const moved = remap(page, kTriedPageBytes, 2 * kTriedPageBytes, MREMAP_MAYMOVE);
    if (moved == MAP_FAILED) return;
    page = moved;
    remap(page, 2 * kTriedPageBytes, kTriedPageBytes, 0);
  });
  is_complete &= raises_generation([&] { unmap(page, kTriedPageBytes); });
  // Fails, and changes nothing.
  is_complete &= raises_generation([&] { detach(nullptr); });
  // The pointer is volatile, so that the compiler keeps the block.
  void* volatile block = std::malloc(kMappedBlockBytes);
  return raises_generation([&] { std::free(block); }) && is_complete;
}

// libucm comes with libucs. It is looked up, because UCX's CMake package has no target for it.
template <class Function>
Function* ucm_function_named(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

// Its destructor removes the handler before this library is unloaded.
class UnmapHandler {
 public:
  UnmapHandler() {
    auto* const set = ucm_function_named<decltype(ucm_set_event_handler)>("ucm_set_event_handler");
    unset_ = ucm_function_named<decltype(ucm_unset_event_handler)>("ucm_unset_event_handler");
    if (set == nullptr || unset_ == nullptr) return;
    // No hooks are installed here: other threads may be inside the functions that UCX would patch.
    is_set_ = set(UCM_EVENT_VM_UNMAPPED | UCM_EVENT_FLAG_NO_INSTALL, 0, &on_unmapped, nullptr) == UCS_OK;
    // Not ucm_test_events(): it says that all is well if no hooks are installed.
    if (is_set_ && !are_events_complete()) remove();
  }
  ~UnmapHandler() { remove(); }
  UnmapHandler(const UnmapHandler&) = delete;
  UnmapHandler& operator=(const UnmapHandler&) = delete;

  bool is_set() const { return is_set_; }

 private:
  void remove() {
    if (is_set_) unset_(UCM_EVENT_VM_UNMAPPED, &on_unmapped, nullptr);
    is_set_ = false;
  }

  decltype(ucm_unset_event_handler)* unset_ = nullptr;
  bool is_set_ = false;
};

}  // namespace

const std::atomic<std::uint64_t>* unmap_generation() {
  static const UnmapHandler handler;
  return handler.is_set() ? &g_unmap_generation : nullptr;
}

}  // namespace weft::machine::ucx
