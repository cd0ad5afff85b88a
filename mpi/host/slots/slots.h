// The range of addresses in which ranks live: a slot for each rank of the job, at the same place in each process.
//
// A slot holds all that belongs to a rank, so pointers of a rank mean the same on every PE. A process reserves the slots of
// all ranks when it begins, and uses those of the ranks that it runs.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::mpi_host {

class Slots {
 public:
  // Reserves the range, without access. It stays reserved until the process ends. Throws: Refusal.
  explicit Slots(int num_ranks);
  Slots(const Slots&) = delete;
  Slots& operator=(const Slots&) = delete;

  std::size_t slot_bytes() const { return slot_bytes_; }
  // REQUIRES: 0 <= rank < num_ranks.
  char* begin(int rank) const { return begin_ + static_cast<std::size_t>(rank) * slot_bytes_; }
  // The rank whose slot has the address; -1 if none has.
  int rank_at(const void* address) const {
    const auto offset = reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(begin_);
    return offset < total_bytes_ ? static_cast<int>(offset / slot_bytes_) : -1;
  }

  // The size of each slot; a power of two, the same on all PEs. REQUIRES: num_ranks > 0.
  static std::size_t bytes_for(int num_ranks);

 private:
  char* begin_ = nullptr;
  std::size_t slot_bytes_ = 0;
  std::size_t total_bytes_ = 0;
};

}  // namespace weft::mpi_host
