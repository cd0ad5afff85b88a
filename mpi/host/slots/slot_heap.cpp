#include "slots/slot_heap.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <new>

#include "base/format.h"
#include "program/refusal.h"

namespace weft::mpi_host {

namespace {

constexpr std::size_t kFirstBytes = std::size_t{256} << 10;
// The most that a block takes besides its bytes, rounding included.
constexpr std::size_t kOverheadBytes = 128;
// The pages of a block of that size go back to the system when it is freed, as those of the C library's largest blocks do.
constexpr std::size_t kLargeBytes = std::size_t{32} << 20;
// Memory of the system is zero already; from this size on that is cheaper than to write zeros.
constexpr std::size_t kZeroedBySystemBytes = std::size_t{1} << 20;

bool make_accessible(char* begin, std::size_t size_bytes) {
  return mprotect(begin, size_bytes, PROT_READ | PROT_WRITE) == 0;
}

std::size_t round_up(std::size_t size, std::size_t unit) { return (size + unit - 1) / unit * unit; }

// Whole pages inside of a block, without its first and last bytes.
struct Pages {
  Pages(void* block, std::size_t size_bytes) {
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    const auto first = reinterpret_cast<std::uintptr_t>(block);
    const std::uintptr_t begin_page = round_up(first + kOverheadBytes, page);
    const std::uintptr_t end_page = (first + size_bytes - kOverheadBytes) / page * page;
    begin = static_cast<char*>(block) + (begin_page - first);
    bytes = end_page > begin_page ? end_page - begin_page : 0;
  }
  char* begin = nullptr;
  std::size_t bytes = 0;
};

}  // namespace

SlotHeap& SlotHeap::make(char* begin, char* end) {
  const auto room = static_cast<std::size_t>(end - begin);
  const std::size_t first_bytes = std::min(kFirstBytes, room);
  if (end <= begin || first_bytes < kFirstBytes || !make_accessible(begin, first_bytes)) {
    throw Refusal(base::format("no memory for a rank: {}; start fewer ranks",
                               end <= begin ? "its slot is too small" : std::strerror(errno)));
  }
  return *new (begin) SlotHeap(begin, begin + first_bytes, end);
}

SlotHeap::SlotHeap(char* begin, char* accessible_end, char* end)
    : begin_(begin), accessible_end_(accessible_end), end_(end) {
  char* const first = begin + round_up(sizeof *this, kAlignment);
  blocks_ = new (first) Blocks(static_cast<std::size_t>(accessible_end - first), 0);
}

void* SlotHeap::allocate(std::size_t size_bytes, std::size_t alignment) {
  const std::lock_guard lock(mutex_);
  return allocate_locked(size_bytes, alignment);
}

void* SlotHeap::allocate_locked(std::size_t size_bytes, std::size_t alignment) {
  const auto most = static_cast<std::size_t>(end_ - begin_);
  if (size_bytes > most || alignment > most) return nullptr;
  const std::size_t wanted = std::max<std::size_t>(size_bytes, 1);
  const auto attempt = [&] {
    return alignment <= kAlignment ? blocks_->allocate(wanted) : blocks_->allocate_aligned(wanted, alignment);
  };
  void* const block = attempt();
  if (block != nullptr || !grow(wanted + alignment + kOverheadBytes)) return block;
  return attempt();
}

// By a tenth at least, so that many small blocks need few system calls.
bool SlotHeap::grow(std::size_t size_bytes) {
  const std::size_t step = std::max(size_bytes, accessible_bytes() / 10);
  const auto room = static_cast<std::size_t>(end_ - accessible_end_);
  const std::size_t more = std::min(round_up(step, kFirstBytes), room);
  if (more < size_bytes || !make_accessible(accessible_end_, more)) return false;
  accessible_end_ += more;
  blocks_->grow(more);
  return true;
}

void* SlotHeap::allocate_zeroed(std::size_t size_bytes) {
  void* const block = allocate(size_bytes);
  if (block == nullptr) return nullptr;
  auto* const bytes = static_cast<char*>(block);
  if (size_bytes >= kZeroedBySystemBytes) {
    const Pages pages(block, size_bytes);
    if (madvise(pages.begin, pages.bytes, MADV_DONTNEED) == 0) {
      char* const end = pages.begin + pages.bytes;
      std::memset(bytes, 0, static_cast<std::size_t>(pages.begin - bytes));
      std::memset(end, 0, static_cast<std::size_t>(bytes + size_bytes - end));
      return block;
    }
  }
  std::memset(bytes, 0, size_bytes);
  return block;
}

void* SlotHeap::reallocate(void* block, std::size_t size_bytes) {
  namespace ip = boost::interprocess;
  {
    const std::lock_guard lock(mutex_);
    const std::size_t usable = blocks_->size(block);
    // Half of a block may stay unused before its bytes move.
    if (size_bytes <= usable && size_bytes >= usable / 2) return block;
    if (size_bytes > usable && size_bytes < static_cast<std::size_t>(end_ - begin_)) {
      Blocks::size_type wanted = size_bytes;
      auto* same = static_cast<char*>(block);
      if (blocks_->allocation_command<char>(ip::expand_fwd | ip::nothrow_allocation, size_bytes, wanted,
                                            same) != nullptr)
        return block;
    }
  }
  void* const moved = allocate(size_bytes);
  if (moved == nullptr) return nullptr;
  std::memcpy(moved, block, std::min(size_bytes, usable_bytes(block)));
  free(block);
  return moved;
}

void SlotHeap::free(void* block) {
  const std::lock_guard lock(mutex_);
  const std::size_t usable = blocks_->size(block);
  if (usable >= kLargeBytes) {
    const Pages pages(block, usable);
    madvise(pages.begin, pages.bytes, MADV_DONTNEED);
  }
  blocks_->deallocate(block);
}

bool SlotHeap::is_sound() {
  const std::lock_guard lock(mutex_);
  return blocks_->check_sanity();
}

}  // namespace weft::mpi_host
