// Memory of a window that lies in another process of the host and is not mapped: the system copies (process_vm_readv(2)).
//
// Threads: the PE's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "weft/base/status.h"

#include "models/mpi/p2p/data_view.h"
#include "models/mpi/window/accumulation.h"
#include "models/mpi/window/wire.h"

namespace weft::mpi {

// A process whose memory this one may copy from and to.
struct CopiedProcess {
  std::int32_t pid = 0;    // 0: none
  std::uint64_t base = 0;  // the address of the window there

  explicit operator bool() const { return pid != 0; }
};

// What a process tells, so that the others find out whether they may copy its memory, and whether the process is the one that they think.
struct ProcessProbe {
  std::int32_t pid = 0;
  std::uint64_t address = 0;
  std::uint64_t value = 0;

  // Of this process. `word` stays in place until all have tried.
  static ProcessProbe of(std::uint64_t& word);
  bool succeeds() const;
};

// The target memory of one access. A copy that fails is remembered, and nothing is copied afterwards.
class ProcessMemory {
 public:
  // Each piece is a call of the system: more of them go by messages.
  static constexpr std::uint64_t kMostPieces = 64;

  // REQUIRES: the runs lie in the window.
  ProcessMemory(CopiedProcess process, std::vector<WindowRun> runs);
  std::uint64_t num_pieces() const { return num_pieces_; }
  std::size_t size_bytes() const { return size_bytes_; }
  const base::Status& status() const { return status_; }

  // As the functions of accumulation.h; all in host memory.
  void put(const DataView& from);
  void get(const DataView& to);
  void accumulate(const Accumulation& how, const std::byte* operand, std::byte* before,
                  WindowControl* control);
  void compare_and_swap(const std::byte* compare, const std::byte* desired, std::byte* before,
                        WindowControl* control);

 private:
  // The packed bytes [first, first + size_bytes).
  void read(std::size_t first, std::size_t size_bytes, std::byte* packed);
  void write(std::size_t first, std::size_t size_bytes, const std::byte* packed);
  void read(std::byte* packed) { read(0, size_bytes_, packed); }
  void write(const std::byte* packed) { write(0, size_bytes_, packed); }
  // Calls copy(address, how many of these bytes are before it, size) for each piece of them.
  template <class Copy>
  void for_each_piece(std::size_t first, std::size_t size_bytes, const Copy& copy);

  CopiedProcess process_;
  std::vector<WindowRun> runs_;
  std::uint64_t num_pieces_ = 0;
  std::size_t size_bytes_ = 0;
  base::Status status_;
};

}  // namespace weft::mpi
