// The memory in which attachments land when nobody chooses it.
//
// Host memory comes from the PE's block pool. Device memory is kept for reuse, because allocating and freeing
// it may wait for the whole device; it is given back to the device when that runs short, and at the end.
// Threads: one PE's.
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

class LandingPool {
 public:
  explicit LandingPool(Scheduler& scheduler) : scheduler_(scheduler) {}
  ~LandingPool() { trim(); }
  LandingPool(const LandingPool&) = delete;
  LandingPool& operator=(const LandingPool&) = delete;

  // Where a buffer from memory of that kind lands when nobody chooses: this PE's own device, or host memory when
  // it has none.
  memory::Place place_for(memory::Kind kind) const;
  // An attachment that gives its memory back to this pool, once the work queued on its stream is done.
  base::Result<Attachment> allocate(std::size_t size_bytes, memory::Place place);
  // Device memory that is kept for reuse now.
  std::size_t kept_bytes() const { return kept_bytes_; }
  // Gives it back to the device. Returns whether there was any.
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
