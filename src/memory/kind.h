// What a memory kind must provide. One folder per kind; memory.cpp makes the kinds that this process can use.
//
// Threads: a kind is used by the PE's thread only. Copies are asynchronous: copy_async() returns at once and
// the bytes move later, in stream order; query() tells when. No call here blocks on the device.
#pragma once

#include <cstddef>
#include <cstdint>

#include "weft/base/status.h"
#include "weft/memory/buffer.h"

namespace weft::memory {

// A point in a stream's queue; made by record(), given back by release_event().
using EventHandle = void*;

// The allocation that an address belongs to. `generation` differs between two allocations at the same address.
struct Allocation {
  std::uintptr_t base = 0;
  std::size_t size_bytes = 0;
  Place place;
  std::uint64_t generation = 0;
};

class KindBackend {
 public:
  virtual ~KindBackend() = default;

  virtual Kind kind() const = 0;
  virtual int num_devices() const = 0;
  // Whether the CPU may read and write this memory through its address.
  virtual bool cpu_accessible() const = 0;

  virtual base::Result<void*> allocate(std::size_t size_bytes, int device) = 0;
  virtual base::Status deallocate(void* data) = 0;

  // The allocation of this kind that holds `address`; kNotFound when the memory is not of this kind.
  virtual base::Result<Allocation> find_allocation(const void* address) = 0;

  virtual base::Result<StreamHandle> create_stream(int device) = 0;
  virtual base::Status destroy_stream(StreamHandle stream) = 0;

  // Queues a copy behind the work already on `stream` (null: the kind's own stream of that device). One side
  // may be host memory, or both are of this kind. REQUIRES: both ranges stay valid until the copy is done.
  virtual base::Status copy_async(void* destination, Place destination_place, const void* source,
                                  Place source_place, std::size_t size_bytes, StreamHandle stream) = 0;

  virtual base::Result<EventHandle> record(StreamHandle stream, int device) = 0;
  // ok: everything before the event is done and visible to every stream; pending: not yet; else the failure.
  virtual base::Status query(EventHandle event) = 0;
  // Makes work queued on `stream` after this call wait for the event, without blocking the CPU.
  virtual base::Status stream_wait(StreamHandle stream, int device, EventHandle event) = 0;
  virtual void release_event(EventHandle event) = 0;
};

}  // namespace weft::memory
