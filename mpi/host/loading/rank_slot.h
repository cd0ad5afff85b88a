// The contents of the slots of the ranks of this process, and how ranks come and go.
//
// A slot: the copy of the program, addresses without access, the stack, the control block, the heap. Each of these has the same place in
// every process. The control block has what the host keeps of the rank, so it moves with the rank.
// Threads: the PE's.
#pragma once

#include <cstddef>
#include <vector>

#include "loading/linkage.h"
#include "loading/program_copy.h"
#include "program/program.h"
#include "ranks/host_interface.h"
#include "slots/rank_state.h"
#include "slots/slot_heap.h"
#include "slots/slots.h"

namespace weft::mpi_host {

class RankSlots {
 public:
  // `stack_bytes`: whole pages. Throws: Refusal if there is no room for a rank.
  RankSlots(const Program& program, const Linkage& linkage, int num_ranks, std::size_t stack_bytes);
  RankSlots(const RankSlots&) = delete;
  RankSlots& operator=(const RankSlots&) = delete;

  const Slots& slots() const { return slots_; }
  // By rank; null for ranks of other processes.
  const std::vector<RankState*>& states() const { return states_; }
  // REQUIRES: the rank is here.
  ProgramCopy& copy(int rank) const { return control(rank)->copy; }
  char* stack(int rank) const;
  std::size_t stack_bytes() const { return stack_bytes_; }
  // Whether it is one of the addresses without access.
  bool is_below_stack(int rank, const void* address) const {
    return address >= slots_.begin(rank) + program_.image_bytes() && address < stack(rank);
  }

  // Loads a copy of the program for the rank. Throws: Refusal.
  void make(int rank);

  // --- Moves, see weft_mpi_host_moves
  int ranges(int rank, const void* lowest, weft_mpi_host_range* ranges) const;
  const char* receive(int rank, const weft_mpi_host_range* ranges, int num_ranges);
  void arrived(int rank);
  void left(int rank);

 private:
  struct Control {
    Control(const Program& program, const Linkage& linkage, int fd, char* base, SlotHeap& heap);
    RankState state;
    ProgramCopy copy;
  };

  Control* control(int rank) const { return reinterpret_cast<Control*>(stack(rank) + stack_bytes_); }
  char* heap(int rank) const { return stack(rank) + stack_bytes_ + control_bytes_; }
  char* end(int rank) const { return slots_.begin(rank) + slots_.slot_bytes(); }
  // Stores the ranges of the program's segments that the rank may write, and returns how many there are.
  // REQUIRES: Program::obstacle_to_moves() is null.
  int segment_ranges(int rank, weft_mpi_host_range* ranges) const;
  const char* map_arrival(int rank, const weft_mpi_host_range& memory);

  const Program& program_;
  const Linkage& linkage_;
  const Slots slots_;
  const std::size_t page_bytes_;
  const std::size_t stack_bytes_;
  const std::size_t control_bytes_;
  int fd_ = -1;  // the program's file, from which copies are mapped; stays open
  std::vector<RankState*> states_;
};

}  // namespace weft::mpi_host
