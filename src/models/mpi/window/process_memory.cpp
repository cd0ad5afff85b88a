#include "models/mpi/window/process_memory.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "machine/peer_memory/mapping/process_copy.h"

namespace weft::mpi {

namespace {

// The system copies at most some 2 GiB in one call.
constexpr std::size_t kMostBytesAtOnce = std::size_t{1} << 30;

}  // namespace

ProcessProbe ProcessProbe::of(std::uint64_t& word) {
  ProcessProbe probe;
  probe.pid = static_cast<std::int32_t>(::getpid());
  probe.address = reinterpret_cast<std::uintptr_t>(&word);
  probe.value = word;
  return probe;
}

bool ProcessProbe::succeeds() const {
  std::uint64_t found = 0;
  return machine::read_from_process(pid, address, &found, sizeof found).ok() && found == value;
}

ProcessMemory::ProcessMemory(CopiedProcess process, std::vector<WindowRun> runs)
    : process_(process), runs_(std::move(runs)) {
  for (const WindowRun& run : runs_) {
    num_pieces_ += run.count;
    size_bytes_ += run.count * run.size_bytes;
  }
}

template <class Copy>
void ProcessMemory::for_each_piece(std::size_t first, std::size_t size_bytes, const Copy& copy) {
  std::size_t done = 0;
  std::size_t skipped = first;
  for (const WindowRun& run : runs_) {
    std::uint64_t address = process_.base + static_cast<std::uint64_t>(run.offset);
    for (std::uint64_t i = 0; i < run.count; ++i, address += static_cast<std::uint64_t>(run.stride)) {
      std::size_t at = std::min<std::size_t>(skipped, run.size_bytes);
      skipped -= at;
      while (at < run.size_bytes && done < size_bytes) {
        if (status_.failed()) return;
        const std::size_t piece_bytes =
            std::min({static_cast<std::size_t>(run.size_bytes) - at, size_bytes - done, kMostBytesAtOnce});
        status_ = copy(address + at, done, piece_bytes);
        done += piece_bytes;
        at += piece_bytes;
      }
    }
  }
}

void ProcessMemory::read(std::size_t first, std::size_t size_bytes, std::byte* packed) {
  for_each_piece(first, size_bytes, [&](std::uint64_t address, std::size_t done, std::size_t piece_bytes) {
    return machine::read_from_process(process_.pid, address, packed + done, piece_bytes);
  });
}

void ProcessMemory::write(std::size_t first, std::size_t size_bytes, const std::byte* packed) {
  for_each_piece(first, size_bytes, [&](std::uint64_t address, std::size_t done, std::size_t piece_bytes) {
    return machine::write_to_process(process_.pid, address, packed + done, piece_bytes);
  });
}

void ProcessMemory::put(const DataView& from) {
  if (from.is_dense()) return write(from.data);
  std::vector<std::byte> packed(size_bytes_);
  from.pack(packed.data());
  write(packed.data());
}

void ProcessMemory::get(const DataView& to) {
  if (to.is_dense()) return read(to.data);
  std::vector<std::byte> packed(size_bytes_);
  read(packed.data());
  if (status_.ok()) to.unpack(packed.data(), packed.size());
}

void ProcessMemory::accumulate(const Accumulation& how, const std::byte* operand, std::byte* before,
                               WindowControl* control) {
  const std::size_t most_bytes = part_bytes(how);
  std::vector<std::byte> values(std::min(size_bytes_, most_bytes));
  AccumulateLock lock(*control);
  for (std::size_t done = 0; done < size_bytes_;) {
    const std::size_t size_bytes = std::min(values.size(), size_bytes_ - done);
    if (done > 0) lock.step_aside();
    read(done, size_bytes, values.data());
    if (status_.failed()) return;
    if (before != nullptr) std::memcpy(before + done, values.data(), size_bytes);
    if (operand != nullptr) {
      mpi::accumulate(how, operand + done, DataView::of_bytes(values.data(), size_bytes), nullptr, nullptr);
      write(done, size_bytes, values.data());
    }
    done += size_bytes;
  }
}

void ProcessMemory::compare_and_swap(const std::byte* compare, const std::byte* desired, std::byte* before,
                                     WindowControl* control) {
  const AccumulateLock lock(*control);
  read(before);
  if (status_.ok() && std::memcmp(before, compare, size_bytes_) == 0) write(desired);
}

}  // namespace weft::mpi
