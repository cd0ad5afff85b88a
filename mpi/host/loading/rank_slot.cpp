#include "loading/rank_slot.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/format.h"
#include "program/refusal.h"

namespace weft::mpi_host {

namespace {

using base::format;

constexpr std::size_t kLeastHeapBytes = std::size_t{1} << 20;

int open_program(const Program& program) {
  const int fd = open(program.path().c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw Refusal(format("{}: cannot be read: {}", program.path(), std::strerror(errno)));
  return fd;
}

char* address(const weft_mpi_host_range& range) { return static_cast<char*>(range.begin); }
char* end_of(const weft_mpi_host_range& range) { return address(range) + range.size_bytes; }

}  // namespace

RankSlots::Control::Control(const Program& program, const Linkage& linkage, int fd, char* base,
                            SlotHeap& heap)
    : state(heap), copy(program, linkage, fd, base, state) {}

RankSlots::RankSlots(const Program& program, const Linkage& linkage, int num_ranks, std::size_t stack_bytes)
    : program_(program),
      linkage_(linkage),
      slots_(num_ranks),
      page_bytes_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))),
      stack_bytes_(stack_bytes),
      control_bytes_((sizeof(Control) + page_bytes_ - 1) / page_bytes_ * page_bytes_),
      fd_(open_program(program)),
      states_(static_cast<std::size_t>(num_ranks)) {
  if (heap(0) + kLeastHeapBytes <= end(0)) return;
  throw Refusal(format(
      "{}: its code, its variables and a stack of {} KiB do not fit into the {} MiB that each of {} ranks "
      "has; start fewer ranks",
      program_.path(), stack_bytes_ >> 10, slots_.slot_bytes() >> 20, num_ranks));
}

// The addresses without access below it are a part of the slot, and not a page alone: a function whose variables are larger than
// the rest of the stack must not write to those of the program.
char* RankSlots::stack(int rank) const {
  constexpr std::size_t kPart = 64;
  return slots_.begin(rank) + program_.image_bytes() + slots_.slot_bytes() / kPart;
}

void RankSlots::make(int rank) {
  if (mprotect(stack(rank), stack_bytes_ + control_bytes_, PROT_READ | PROT_WRITE) != 0) {
    throw Refusal(format("no stack of {} KiB for a rank: {}; give a smaller stack or fewer ranks per process",
                         stack_bytes_ >> 10, std::strerror(errno)));
  }
  SlotHeap& memory = SlotHeap::make(heap(rank), end(rank));
  auto* const made =
      new (static_cast<void*>(control(rank))) Control(program_, linkage_, fd_, slots_.begin(rank), memory);
  states_[static_cast<std::size_t>(rank)] = &made->state;
}

int RankSlots::segment_ranges(int rank, weft_mpi_host_range* ranges) const {
  int count = 0;
  for (const Elf64_Phdr& segment : program_.loaded_segments()) {
    if ((segment.p_flags & PF_W) == 0) continue;
    const std::uint64_t begin = segment.p_vaddr / page_bytes_ * page_bytes_;
    const std::uint64_t end =
        (segment.p_vaddr + segment.p_memsz + page_bytes_ - 1) / page_bytes_ * page_bytes_;
    ranges[count++] = {.begin = slots_.begin(rank) + begin, .size_bytes = end - begin};
  }
  return count;
}

int RankSlots::ranges(int rank, const void* lowest, weft_mpi_host_range* ranges) const {
  const int count = segment_ranges(rank, ranges);
  char* const low = stack(rank);
  const auto unused =
      static_cast<std::size_t>(static_cast<const char*>(lowest) - low) / page_bytes_ * page_bytes_;
  char* const end = states_[static_cast<std::size_t>(rank)]->heap->accessible_end();
  ranges[count] = {.begin = low + unused, .size_bytes = static_cast<std::size_t>(end - (low + unused))};
  return count + 1;
}

const char* RankSlots::receive(int rank, const weft_mpi_host_range* ranges, int num_ranges) {
  weft_mpi_host_range expected[WEFT_MPI_HOST_MOST_RANGES];
  const int count = segment_ranges(rank, static_cast<weft_mpi_host_range*>(expected));
  if (num_ranges != count + 1) return "it has another number of parts";
  for (int i = 0; i < count; ++i) {
    if (ranges[i].begin != expected[i].begin || ranges[i].size_bytes != expected[i].size_bytes)
      return "its variables lie elsewhere";
  }
  const weft_mpi_host_range& memory = ranges[count];
  const auto room = static_cast<std::size_t>(end(rank) - stack(rank));
  if (address(memory) < stack(rank) || address(memory) >= reinterpret_cast<char*>(control(rank)) ||
      memory.size_bytes > room || end_of(memory) <= heap(rank) || end_of(memory) > end(rank) ||
      (address(memory) - stack(rank)) % static_cast<std::ptrdiff_t>(page_bytes_) != 0 ||
      memory.size_bytes % page_bytes_ != 0)
    return "its stack and its heap do not fit";
  return map_arrival(rank, memory);
}

const char* RankSlots::map_arrival(int rank, const weft_mpi_host_range& memory) {
  try {
    ProgramCopy::map_segments(program_, fd_, slots_.begin(rank));
  } catch (const Refusal&) {
    return "its program cannot be mapped";
  }
  const auto bytes = static_cast<std::size_t>(end_of(memory) - stack(rank));
  if (mprotect(stack(rank), bytes, PROT_READ | PROT_WRITE) != 0) return "there is not enough memory";
  return nullptr;
}

void RankSlots::arrived(int rank) {
  ProgramCopy::protect_relocations(program_, slots_.begin(rank));
  states_[static_cast<std::size_t>(rank)] = &control(rank)->state;
}

void RankSlots::left(int rank) {
  RankState*& state = states_[static_cast<std::size_t>(rank)];
  forget_options_of(*state);
  forget_environment_of(*state);
  state = nullptr;
  if (mmap(slots_.begin(rank), slots_.slot_bytes(), PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED)
    return;
  std::fprintf(stderr, "weft: the memory of rank %d, which has left, cannot be freed: %s\n", rank,
               std::strerror(errno));
  std::abort();
}

}  // namespace weft::mpi_host
