#include "slots/slots.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "base/format.h"
#include "program/refusal.h"

namespace weft::mpi_host {

namespace {

using base::format;

// 17 to 33 TiB. The kernel places nothing here by itself: random addresses of programs begin at 85 TiB, those of libraries
// end 16 TiB below 128 TiB, or begin at 42 TiB if the stack has no limit. Tables of sanitizers end at 16 TiB.
constexpr std::uintptr_t kRangeBegin = std::uintptr_t{17} << 40;
constexpr std::size_t kRangeBytes = std::size_t{16} << 40;
// More than a process can use; a smaller reservation is easier to look at.
constexpr std::size_t kLargestSlotBytes = std::size_t{256} << 30;

}  // namespace

std::size_t Slots::bytes_for(int num_ranks) {
  return std::min(kLargestSlotBytes, kRangeBytes / std::bit_ceil(static_cast<std::size_t>(num_ranks)));
}

Slots::Slots(int num_ranks)
    : slot_bytes_(bytes_for(num_ranks)), total_bytes_(static_cast<std::size_t>(num_ranks) * slot_bytes_) {
  auto* const wanted = reinterpret_cast<void*>(kRangeBegin);  // NOLINT(performance-no-int-to-ptr)
  void* const got = mmap(wanted, total_bytes_, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (got == MAP_FAILED) {
    throw Refusal(format(
        "no {} GiB of addresses at {} for {} ranks: {}; run `ulimit -v unlimited`, or start one PE per "
        "rank (-n)",
        total_bytes_ >> 30, wanted, num_ranks, std::strerror(errno)));
  }
  // A kernel before 4.17 takes the address for a wish.
  if (got != wanted) {
    munmap(got, total_bytes_);
    throw Refusal(
        format("the addresses at {}, where ranks live, are in use; start one PE per rank (-n)", wanted));
  }
  begin_ = static_cast<char*>(got);
}

}  // namespace weft::mpi_host
