// The program's runtime of OpenMP, whose state ranks of this process exchange when one of them waits inside a parallel region.
//
// GCC's libgomp keeps all that it knows of a thread in thread-local variables of its own: the team, the task, and the pool of
// threads. So a rank in a region takes these bytes with it, and the others find the thread as it is outside of regions. For libgomp
// each rank that waits in a region then is an initial thread of its own; it keeps its team, whose other threads go on.
// Threads: the PE's.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "host_interface.h"

namespace weft::mpi_host {

class OpenMp {
 public:
  // `libraries`: handles of the program's libraries.
  explicit OpenMp(const std::vector<void*>& libraries);
  OpenMp(const OpenMp&) = delete;
  OpenMp& operator=(const OpenMp&) = delete;

  bool is_used() const { return level_ != nullptr; }
  int (*level() const)() { return level_; }
  int (*active_level() const)() { return active_level_; }

  // Whether put_aside() and take_back() work.
  bool can_switch() const { return block_ != nullptr; }
  // As those of weft_mpi_host_openmp.
  void* put_aside();
  void take_back(void* state);

 private:
  using Bytes = std::unique_ptr<std::byte[]>;

  void find_thread_local_block();
  void begin_anew();

  int (*level_)() = nullptr;
  int (*active_level_)() = nullptr;
  // The thread-local variables of the PE's thread, and what they are at first.
  std::byte* block_ = nullptr;
  std::size_t block_bytes_ = 0;
  const std::byte* image_ = nullptr;
  std::size_t image_bytes_ = 0;
  std::vector<Bytes> outside_;  // states outside of regions that are not in use
};

}  // namespace weft::mpi_host
