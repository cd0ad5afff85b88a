// Memory of two PEs that their devices share: words of the own device, set to 0 before any peer knows them, and what a peer has
// granted.
//
// Threads: the PE's.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/memory/buffer.h"
#include "weft/rma/global_memory.h"
#include "weft/runtime/task.h"

namespace weft::queued {

// A segment of zeros on a device.
runtime::Task<rma::Segment> make_words(rma::GlobalMemory& memory, std::size_t size_bytes,
                                       memory::Place device);

// Where this PE's device reaches the memory of a peer.
class PeerMemory {
 public:
  // `name` is for errors.
  PeerMemory(rma::GlobalMemory& memory, memory::Place device, std::function<std::string()> name)
      : memory_(memory), device_(device), name_(std::move(name)) {}

  // Throws Error: kUnsupported if the device does not reach it, kCorrupt if the claimed address is not aligned to `alignment`, and
  // if there is no such memory.
  runtime::Task<void*> reach(rma::GlobalAddress address, std::size_t size_bytes, std::size_t alignment);
  // What keeps the memory that was reached.
  std::vector<std::shared_ptr<void>> take_keepers() { return std::move(keepers_); }

 private:
  rma::GlobalMemory& memory_;
  memory::Place device_;
  std::function<std::string()> name_;
  std::vector<std::shared_ptr<void>> keepers_;
};

}  // namespace weft::queued
