// The memory layer of one PE: its kinds, the kind cache, and copies between any two kinds.
//
// Threads: the PE's.
// Invariants: an operation started here completes exactly once, from progress() or close(). Memory leaves
// Completion::in_flight to its caller.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "weft/base/completion.h"
#include "weft/base/status.h"
#include "weft/memory/buffer.h"

#include "memory/kind.h"
#include "memory/memory_options.h"

namespace weft::memory {

class Memory {
 public:
  // Finds the kinds usable in this process: host and emulated always, cuda when its driver and a device are
  // there. A context on a device is made when it is first used.
  explicit Memory(const MemoryOptions& options = {});
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // Null when this process cannot use that kind; availability() says why.
  KindBackend* backend(Kind kind);
  base::Status availability(Kind kind) const;
  // Whether the devices that the options name exist.
  base::Status check_devices() const;

  // The device of that kind that this PE uses unless it names another, by local rank (MemoryOptions).
  Place default_place(Kind kind) const { return default_place(kind, local_rank_); }
  // That of another PE of the host.
  Place default_place(Kind kind, int local_rank) const;

  // Zero bytes are a null address.
  base::Result<Buffer> allocate(std::size_t size_bytes, Place place);
  // REQUIRES: nothing in flight uses the buffer.
  base::Status deallocate(const Buffer& buffer);

  // Where `address` lives; host when no device kind knows it. Asked of the driver once per allocation and
  // cached by allocation range; an entry dies with its allocation, also when it was freed behind our back.
  Place place_of(const void* address);
  // The device allocation that holds `address`, from the same cache; size and generation 0 for host memory.
  // Whoever keeps something per allocation (an IPC handle, a registration) compares the generation before
  // using it again.
  Allocation allocation_of(const void* address);

  // Calls `listener` with the base of each device allocation that is freed through deallocate(), before it
  // is; one listener, empty for none. What other libraries free shows in allocation_of()'s generation alone.
  void set_release_listener(KindBackend::ReleaseListener listener);

  // Copies between any two kinds, in order after what is queued on destination.stream and source.stream now.
  // Work queued on them later does not wait for the copy. Completes later; size_bytes in the completion is
  // the number of bytes copied, 0 for a failure, after which the destination's contents are undefined. A copy
  // of zero bytes waits for nothing. REQUIRES: equal sizes, no overlap, no stream on a host side.
  base::Status copy(const Buffer& destination, const ConstBuffer& source, base::Completion* completion);

  // Completes when all work queued so far on `stream` of `place` is done.
  base::Status when_stream_done(Place place, StreamHandle stream, base::Completion* completion);

  // Completes what is done. Returns whether anything was.
  bool progress();
  // Whether progress() must be polled: device work does not wake a sleeping PE.
  bool has_pending() const;

  // For ends: calls `is_over`, which makes progress, until it says so. False when the devices were waited for
  // longer than MemoryOptions::device_patience, in all such calls together: one hangs.
  bool wait_for_devices(const std::function<bool()>& is_over);
  // Fails what is in flight with kClosed after waiting for the device to be done with its buffers, as long
  // as there is patience left. Without it no device memory is given back any more, since a device that hangs
  // may still use it. Allocations stay valid until the destructor.
  void close();

 private:
  struct State;
  int local_rank_;
  std::unique_ptr<State> state_;
};

}  // namespace weft::memory
