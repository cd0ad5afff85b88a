// The memory in which attachments land if the program does not choose a place. The pool exists because
// allocating and freeing device memory may wait for the whole device: it keeps device memory for reuse, until
// the device has no memory left or the job ends.
//
// No other pool of the tree serves. BlockPool has host memory only, and attachments in host memory take theirs
// from it; machine::BouncePool and memory::StagingPool hold page-locked host memory for copies.
//
// Threads: the PE's thread. Invariant: memory is reused only after the work queued on the stream that its last
// user named.
#pragma once

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "weft/base/status.h"
#include "weft/memory/buffer.h"
#include "weft/runtime/attachment.h"
#include "weft/runtime/scheduler.h"

namespace weft::runtime {

class ReceiveBufferPool {
 public:
  explicit ReceiveBufferPool(Scheduler& scheduler) : scheduler_(scheduler) {}
  ~ReceiveBufferPool() { trim(); }
  ReceiveBufferPool(const ReceiveBufferPool&) = delete;
  ReceiveBufferPool& operator=(const ReceiveBufferPool&) = delete;

  // The place where a buffer from memory of that kind lands: this PE's own device, or host memory if the PE has
  // no device of the kind.
  memory::Place place_for(memory::Kind kind) const;
  // An attachment that returns its memory to this pool when the work queued on its stream is done. kOutOfMemory
  // if there is no memory.
  base::Result<Attachment> allocate(std::size_t size_bytes, memory::Place place);
  // The bytes of device memory that are kept for reuse now.
  std::size_t kept_bytes() const { return kept_bytes_; }
  // Frees the kept device memory. Returns whether there was any.
  bool trim();

 private:
  struct Block;

  // Kept blocks by device and rounded size.
  using Key = std::pair<int, std::size_t>;

  base::Result<Attachment> allocate_on_device(std::size_t size_bytes, memory::Place place);
  static void release_host(void* scheduler, const memory::Buffer& buffer);
  static void release_device(void* block, const memory::Buffer& buffer);
  void keep(Block* block);
  void destroy(Block* block);

  Scheduler& scheduler_;
  std::map<Key, std::vector<Block*>> kept_;
  std::size_t kept_bytes_ = 0;
};

}  // namespace weft::runtime
