// What a memory kind must provide. One folder per kind; memory.cpp makes the kinds that this process can use.
//
// Threads: a kind is used by the PE's thread only. Copies are asynchronous: copy_async() returns at once and
// the bytes move later, in stream order; query() tells when. No call here blocks on the device, but those
// that make or free memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "weft/base/status.h"
#include "weft/memory/buffer.h"

namespace weft::memory {

// A point in a stream's queue; made by record(), given back by release_event().
using EventHandle = void*;

// The allocation that an address belongs to. `generation` differs between two allocations at the same
// address; 0 when the kind cannot tell them apart, and then nothing may be remembered about the address.
struct Allocation {
  std::uintptr_t base = 0;
  std::size_t size_bytes = 0;
  Place place;
  std::uint64_t generation = 0;

  bool contains(std::uintptr_t address) const { return address - base < size_bytes; }
};

// Addresses that may belong to a kind: it never had memory outside.
struct AddressRange {
  std::uintptr_t low = std::numeric_limits<std::uintptr_t>::max();
  std::uintptr_t high = 0;

  bool contains(std::uintptr_t address) const { return address >= low && address < high; }
};

class KindBackend {
 public:
  using ReleaseListener = std::function<void(std::uintptr_t base)>;

  virtual ~KindBackend() = default;

  virtual Kind kind() const = 0;
  virtual int num_devices() const = 0;
  // As a person knows the device: "NVIDIA H200". REQUIRES: device < num_devices().
  virtual std::string device_name(int device) const = 0;
  // Whether copies from one device to the other go directly, without passing through the host.
  virtual bool can_access_peer(int /*device*/, int /*peer*/) const { return true; }
  // Whether the CPU may read and write this memory through its address.
  virtual bool cpu_accessible() const = 0;

  virtual base::Result<void*> allocate(std::size_t size_bytes, int device) = 0;
  virtual base::Status deallocate(void* data) = 0;

  // The allocation of this kind that holds `address`; nothing when the memory is not of this kind.
  virtual std::optional<Allocation> find_allocation(const void* address) = 0;
  // Whether `address` still belongs to `allocation`, which find_allocation gave earlier. A kind that calls
  // the release listener for everything that is freed need not look.
  virtual bool is_current(const Allocation& allocation, const void* address) = 0;

  // Addresses outside are not of this kind, and nobody needs to be asked about them.
  const AddressRange& address_range() const { return address_range_; }
  // `listener` is called with the base of each allocation that goes away through deallocate().
  void set_release_listener(ReleaseListener listener) { release_listener_ = std::move(listener); }

  // What another process of this host and user needs to map the allocation that holds `address`. Valid until
  // the allocation is freed. kUnsupported when this kind, or memory made in this way, cannot be mapped.
  virtual base::Result<std::vector<std::byte>> export_allocation(const void* address);
  // Maps the whole allocation that another process exported, where copies on streams of `device` reach it.
  // It stays the owner's, which must not free it before the import is released; emulated notices: the
  // import's copies fail and find_allocation() gives it generation 0. kNotFound when it was freed already.
  virtual base::Result<Buffer> import_allocation(std::span<const std::byte> exported, int device);
  // REQUIRES: nothing in flight uses it.
  virtual base::Status release_import(void* data);

  // Calls `body` while libraries that go by the calling thread's current device, as CUDA's do, see `device`.
  virtual base::Status with_current(int device, const std::function<void()>& body);

  virtual base::Result<StreamHandle> create_stream(int device) = 0;
  // Work already queued on the stream is still done.
  virtual base::Status destroy_stream(StreamHandle stream) = 0;

  // Queues a copy behind the work already on `stream` (null: the kind's own stream of that device). One side
  // may be host memory, or both are of this kind. REQUIRES: both ranges stay valid until the copy is done.
  virtual base::Status copy_async(void* destination, Place destination_place, const void* source,
                                  Place source_place, std::size_t size_bytes, StreamHandle stream) = 0;

  // Host memory that copies of every device reach without ever blocking the CPU; `device` is one that is in
  // use or will be. With other host memory copy_async may block, unless host_copy_is_async says no.
  virtual base::Result<void*> allocate_host(std::size_t size_bytes, int device) = 0;
  virtual void deallocate_host(void* data) = 0;
  virtual bool host_copy_is_async(const void* host_address, std::size_t size_bytes) = 0;

  virtual base::Result<EventHandle> record(StreamHandle stream, int device) = 0;
  // ok: everything before the event is done and visible to every stream; pending: not yet; else the failure.
  virtual base::Status query(EventHandle event) = 0;
  // Makes work queued on `stream` after this call wait for the event, without blocking the CPU. The event may
  // be released as soon as this returned.
  virtual base::Status stream_wait(StreamHandle stream, int device, EventHandle event) = 0;
  virtual void release_event(EventHandle event) = 0;

  // A device hangs. From now on the kind gives back nothing, memory of allocate_host() included, also not in
  // its destructor: the device may still write there, and the driver would wait for it. The process's end
  // gives back all of it.
  virtual void leave_to_the_system() {}

 protected:
  void widen_address_range(std::uintptr_t base, std::size_t size_bytes) {
    if (base < address_range_.low) address_range_.low = base;
    if (base + size_bytes > address_range_.high) address_range_.high = base + size_bytes;
  }
  void notify_release(std::uintptr_t base) {
    if (release_listener_) release_listener_(base);
  }

 private:
  AddressRange address_range_;
  ReleaseListener release_listener_;
};

}  // namespace weft::memory
