// malloc() and its kin. Memory of a rank's program comes from the heap in the rank's slot:
//
// - What the program itself calls: the copies are linked with the functions of this file (own_memory_function()).
// - What the C++ library allocates while the program runs, in operator new or for an exception: malloc() looks who calls it.
// - What MPI_Alloc_mem() allocates, in the same way: posix_memalign() looks who calls it.
//
// All other memory is the C library's: that of the MPI library and of other libraries, and what the C library keeps for
// itself, such as the buffer of a FILE. The C library's functions that return memory for the program to free are here too.
//
// Any of them may free() or realloc() any block: its address says whose it is.
// Threads: any. Threads that a program has made have no rank and get the C library's memory.
#include <link.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cwchar>
#include <exception>
#include <string_view>
#include <utility>

#include "ranks/host_interface.h"
#include "slots/rank_memory.h"
#include "slots/rank_state.h"
#include "slots/slot_heap.h"

// The C library's own functions, for those that replace them.
// NOLINTBEGIN(bugprone-reserved-identifier): the C library's names of them
extern "C" {
void* __libc_malloc(std::size_t size_bytes);
void* __libc_calloc(std::size_t count, std::size_t size_bytes);
void* __libc_realloc(void* block, std::size_t size_bytes);
void* __libc_memalign(std::size_t alignment, std::size_t size_bytes);
void __libc_free(void* block);
}
// NOLINTEND(bugprone-reserved-identifier)

namespace weft::mpi_host {

namespace {

constinit const Slots* rank_slots = nullptr;
constinit thread_local bool host_allocates = false;

// Where the code of the C++ library is.
struct CodeRange {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  bool has(const void* address) const {
    const auto number = reinterpret_cast<std::uintptr_t>(address);
    return number >= begin && number < end;
  }
};
constinit CodeRange standard_library;
constinit CodeRange mpi_library;

CodeRange object_at(const void* address) {
  struct Search {
    std::uintptr_t address;
    CodeRange found;
  } search{reinterpret_cast<std::uintptr_t>(address), {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto& wanted = *static_cast<Search*>(data);
        CodeRange range{.begin = info->dlpi_addr, .end = info->dlpi_addr};
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const Elf64_Phdr& segment = info->dlpi_phdr[i];
          if (segment.p_type == PT_LOAD)
            range.end = std::max(range.end, info->dlpi_addr + segment.p_vaddr + segment.p_memsz);
        }
        if (wanted.address < range.begin || wanted.address >= range.end) return 0;
        wanted.found = range;
        return 1;
      },
      &search);
  return search.found;
}

// The heap of the rank whose program runs; null in the MPI library, and on threads without a rank.
SlotHeap* running_heap() {
  if (rank_slots == nullptr || host_allocates) return nullptr;
  RankState* const state = program_state();
  return state == nullptr ? nullptr : state->heap;
}

// The heap that has the block; null if it is the C library's.
SlotHeap* heap_of(const void* block) {
  if (rank_slots == nullptr) return nullptr;
  const int rank = rank_slots->rank_at(block);
  if (rank < 0) [[likely]]
    return nullptr;
  const RankState* const state = state_of(rank);
  if (state != nullptr && state->heap != nullptr) return state->heap;
  std::fprintf(stderr,
               "weft: the block at %p, which is freed or gets another size, is of rank %d, which is not in "
               "this process\n",
               block, rank);
  std::abort();
}

void* checked(void* block) {
  if (block == nullptr) errno = ENOMEM;
  return block;
}

bool overflows(std::size_t count, std::size_t size_bytes) {
  return size_bytes != 0 && count > SIZE_MAX / size_bytes;
}

// A text that the C library has allocated, in memory of the rank.
char* own_text(char* text, std::size_t bytes) {
  SlotHeap* const heap = running_heap();
  if (heap == nullptr) return text;
  auto* const copy = static_cast<char*>(checked(heap->allocate(bytes)));
  if (copy != nullptr) std::memcpy(copy, text, bytes);
  __libc_free(text);
  return copy;
}
char* own_text(char* text) { return text == nullptr ? nullptr : own_text(text, std::strlen(text) + 1); }

// --- What the copies call

void* rank_malloc(std::size_t size_bytes) {
  SlotHeap* const heap = running_heap();
  return heap == nullptr ? __libc_malloc(size_bytes) : checked(heap->allocate(size_bytes));
}

void* rank_calloc(std::size_t count, std::size_t size_bytes) {
  SlotHeap* const heap = running_heap();
  if (heap == nullptr) return __libc_calloc(count, size_bytes);
  return checked(overflows(count, size_bytes) ? nullptr : heap->allocate_zeroed(count * size_bytes));
}

void* rank_realloc(void* block, std::size_t size_bytes) {
  return block == nullptr ? rank_malloc(size_bytes) : realloc(block, size_bytes);
}

void* rank_reallocarray(void* block, std::size_t count, std::size_t size_bytes) {
  if (overflows(count, size_bytes)) return checked(nullptr);
  return rank_realloc(block, count * size_bytes);
}

void* rank_memalign(std::size_t alignment, std::size_t size_bytes) {
  SlotHeap* const heap = running_heap();
  if (heap == nullptr) return __libc_memalign(alignment, size_bytes);
  return checked(heap->allocate(size_bytes, std::bit_ceil(alignment)));
}

int rank_posix_memalign(void** block, std::size_t alignment, std::size_t size_bytes) {
  if (!std::has_single_bit(alignment) || alignment % sizeof(void*) != 0) return EINVAL;
  const int error = errno;
  void* const found = rank_memalign(alignment, size_bytes);
  errno = error;
  if (found == nullptr) return ENOMEM;
  *block = found;
  return 0;
}

std::size_t page_bytes() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }
void* rank_valloc(std::size_t size_bytes) { return rank_memalign(page_bytes(), size_bytes); }
void* rank_pvalloc(std::size_t size_bytes) {
  const std::size_t page = page_bytes();
  return size_bytes > SIZE_MAX - page ? checked(nullptr) : rank_valloc((size_bytes + page - 1) / page * page);
}

char* rank_strndup(const char* text, std::size_t most) {
  const std::size_t length = strnlen(text, most);
  auto* const copy = static_cast<char*>(rank_malloc(length + 1));
  if (copy == nullptr) return nullptr;
  std::memcpy(copy, text, length);
  copy[length] = '\0';
  return copy;
}
char* rank_strdup(const char* text) { return rank_strndup(text, SIZE_MAX - 1); }

wchar_t* rank_wcsdup(const wchar_t* text) {
  const std::size_t bytes = (std::wcslen(text) + 1) * sizeof(wchar_t);
  auto* const copy = static_cast<wchar_t*>(rank_malloc(bytes));
  if (copy != nullptr) std::memcpy(copy, text, bytes);
  return copy;
}

int rank_vasprintf(char** result, const char* format, va_list values) {
  const int length = vasprintf(result, format, values);
  if (length < 0) return length;
  *result = own_text(*result, static_cast<std::size_t>(length) + 1);
  return *result == nullptr ? -1 : length;
}

int rank_asprintf(char** result, const char* format, ...) {
  va_list values;
  va_start(values, format);
  const int length = rank_vasprintf(result, format, values);
  va_end(values);
  return length;
}

int rank_checked_vasprintf(char** result, int /*level*/, const char* format, va_list values) {
  return rank_vasprintf(result, format, values);
}

int rank_checked_asprintf(char** result, int /*level*/, const char* format, ...) {
  va_list values;
  va_start(values, format);
  const int length = rank_vasprintf(result, format, values);
  va_end(values);
  return length;
}

// The C library makes the line longer where it is.
ssize_t rank_getdelim(char** line, std::size_t* size_bytes, int delimiter, FILE* file) {
  constexpr std::size_t kUsualLine = 120;
  if (line != nullptr && size_bytes != nullptr && (*line == nullptr || *size_bytes == 0)) {
    void* const first = rank_realloc(*line, kUsualLine);
    if (first == nullptr) return -1;
    *line = static_cast<char*>(first);
    *size_bytes = kUsualLine;
  }
  return getdelim(line, size_bytes, delimiter, file);
}
ssize_t rank_getline(char** line, std::size_t* size_bytes, FILE* file) {
  return rank_getdelim(line, size_bytes, '\n', file);
}

char* rank_getcwd(char* buffer, std::size_t size_bytes) {
  return buffer != nullptr ? getcwd(buffer, size_bytes) : own_text(getcwd(nullptr, size_bytes));
}
char* rank_checked_getcwd(char* buffer, std::size_t size_bytes, std::size_t /*room*/) {
  return rank_getcwd(buffer, size_bytes);
}
char* rank_get_current_dir_name() { return own_text(get_current_dir_name()); }
char* rank_realpath(const char* path, char* result) {
  return result != nullptr ? realpath(path, result) : own_text(realpath(path, nullptr));
}
char* rank_checked_realpath(const char* path, char* result, std::size_t /*room*/) {
  return rank_realpath(path, result);
}
char* rank_canonicalize_file_name(const char* path) { return own_text(realpath(path, nullptr)); }

struct OwnFunction {
  std::string_view name;
  void* function;
};

template <class Function>
void* address_of(Function* function) {
  return reinterpret_cast<void*>(function);
}

const std::array own_functions = {
    OwnFunction{"malloc", address_of(&rank_malloc)},
    OwnFunction{"calloc", address_of(&rank_calloc)},
    OwnFunction{"realloc", address_of(&rank_realloc)},
    OwnFunction{"reallocarray", address_of(&rank_reallocarray)},
    OwnFunction{"memalign", address_of(&rank_memalign)},
    OwnFunction{"aligned_alloc", address_of(&rank_memalign)},
    OwnFunction{"posix_memalign", address_of(&rank_posix_memalign)},
    OwnFunction{"valloc", address_of(&rank_valloc)},
    OwnFunction{"pvalloc", address_of(&rank_pvalloc)},
    OwnFunction{"strdup", address_of(&rank_strdup)},
    OwnFunction{"__strdup", address_of(&rank_strdup)},
    OwnFunction{"strndup", address_of(&rank_strndup)},
    OwnFunction{"__strndup", address_of(&rank_strndup)},
    OwnFunction{"wcsdup", address_of(&rank_wcsdup)},
    OwnFunction{"asprintf", address_of(&rank_asprintf)},
    OwnFunction{"vasprintf", address_of(&rank_vasprintf)},
    OwnFunction{"__asprintf_chk", address_of(&rank_checked_asprintf)},
    OwnFunction{"__vasprintf_chk", address_of(&rank_checked_vasprintf)},
    OwnFunction{"getline", address_of(&rank_getline)},
    OwnFunction{"getdelim", address_of(&rank_getdelim)},
    OwnFunction{"__getdelim", address_of(&rank_getdelim)},
    OwnFunction{"getcwd", address_of(&rank_getcwd)},
    OwnFunction{"__getcwd_chk", address_of(&rank_checked_getcwd)},
    OwnFunction{"get_current_dir_name", address_of(&rank_get_current_dir_name)},
    OwnFunction{"realpath", address_of(&rank_realpath)},
    OwnFunction{"__realpath_chk", address_of(&rank_checked_realpath)},
    OwnFunction{"canonicalize_file_name", address_of(&rank_canonicalize_file_name)},
};

}  // namespace

void* own_memory_function(std::string_view name) {
  const auto* const found = std::ranges::find(own_functions, name, &OwnFunction::name);
  return found == own_functions.end() ? nullptr : found->function;
}

HostAllocates::HostAllocates() : before_(std::exchange(host_allocates, true)) {}
HostAllocates::~HostAllocates() { host_allocates = before_; }

void begin_rank_memory(const Slots& slots) {
  standard_library = object_at(reinterpret_cast<const void*>(&std::terminate));
  mpi_library = object_at(reinterpret_cast<const void*>(&weft_mpi_host_run));
  rank_slots = &slots;
}

}  // namespace weft::mpi_host

using namespace weft::mpi_host;  // NOLINT(google-build-using-namespace): the replacements are C functions

extern "C" {

void* malloc(std::size_t size_bytes) noexcept {
  if (!standard_library.has(__builtin_return_address(0))) return __libc_malloc(size_bytes);
  return rank_malloc(size_bytes);
}

void* aligned_alloc(std::size_t alignment, std::size_t size_bytes) noexcept {
  if (!standard_library.has(__builtin_return_address(0))) return __libc_memalign(alignment, size_bytes);
  return rank_memalign(alignment, size_bytes);
}

int posix_memalign(void** block, std::size_t alignment, std::size_t size_bytes) noexcept {
  if (mpi_library.has(__builtin_return_address(0))) return rank_posix_memalign(block, alignment, size_bytes);
  static auto* const form = replaced<int(void**, std::size_t, std::size_t)>("posix_memalign");
  return form(block, alignment, size_bytes);
}

void free(void* block) noexcept {
  if (SlotHeap* const heap = heap_of(block)) {
    heap->free(block);
  } else {
    __libc_free(block);
  }
}

void* realloc(void* block, std::size_t size_bytes) noexcept {
  SlotHeap* const heap = heap_of(block);
  if (heap == nullptr) return __libc_realloc(block, size_bytes);
  if (size_bytes != 0) return checked(heap->reallocate(block, size_bytes));
  heap->free(block);
  return nullptr;
}

std::size_t malloc_usable_size(void* block) noexcept {
  static auto* const form = replaced<std::size_t(void*)>("malloc_usable_size");
  const SlotHeap* const heap = heap_of(block);
  return heap == nullptr ? form(block) : heap->usable_bytes(block);
}

}  // extern "C"
