// The memory layer of one PE: its kinds, the kind cache, and copies between any two kinds.
//
// Threads: one PE's thread, except that invalidation of freed allocations may come from a hook on the same thread.
// Invariants: an operation started here completes exactly once, from progress() or close().
#pragma once

#include <cstddef>
#include <memory>

#include "memory/kind.h"
#include "weft/base/completion.h"
#include "weft/base/status.h"
#include "weft/memory/buffer.h"

namespace weft::memory {

class Memory {
 public:
  // Finds the kinds usable in this process: host and emulated always, cuda when its driver and a device are there.
  Memory();
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // Null when this process cannot use that kind.
  KindBackend* backend(Kind kind);

  base::Result<Buffer> allocate(std::size_t size_bytes, Place place);
  base::Status deallocate(const Buffer& buffer);

  // Where `address` lives; host when no device kind knows it. Asked of the driver once per allocation and cached by
  // allocation range; an entry dies with its allocation, also when it was freed behind our back.
  Place place_of(const void* address);

  // Copies between any two kinds, in order after destination.stream and source.stream. Completes later.
  // size_bytes in the completion is the number of bytes copied. REQUIRES: equal sizes.
  base::Status copy(const Buffer& destination, const ConstBuffer& source, base::Completion* completion);

  // Completes when all work queued so far on `stream` of `place` is done.
  base::Status when_stream_done(Place place, StreamHandle stream, base::Completion* completion);

  // Completes what is done. Returns whether anything was.
  bool progress();
  // Whether progress() must be polled: device work does not wake a sleeping PE.
  bool has_pending() const;

  // Fails what is in flight with kClosed after waiting for the device to be done with its buffers.
  void close();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weft::memory
