// The program's runtime of OpenMP, whose state ranks of this process exchange when one of them waits inside a parallel region of one
// thread.
//
// GCC's libgomp keeps the team, the task and the loop of a thread in thread-local variables of its own. A rank in a region takes these
// bytes with it, and the others find the thread as it is outside of regions. In a region of several threads the others of the team may
// refer to these variables, so a rank does not wait there. put_aside() checks that the thread has left the region: a libgomp that keeps
// its state elsewhere is refused, not misused.
// Threads: the PE's.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "ranks/host_interface.h"

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

  // As those of weft_mpi_host_openmp.
  void* put_aside();
  void take_back(void* state);

 private:
  using Bytes = std::unique_ptr<std::byte[]>;

  void find_thread_local_block();
  void begin_anew();

  int (*level_)() = nullptr;
  int (*active_level_)() = nullptr;
  // The thread-local variables of the PE's thread, and what they are at first. Null: the runtime is not libgomp.
  std::byte* block_ = nullptr;
  std::size_t block_bytes_ = 0;
  const std::byte* image_ = nullptr;
  std::size_t image_bytes_ = 0;
  std::vector<Bytes> outside_;  // states outside of regions that are not in use
};

}  // namespace weft::mpi_host
