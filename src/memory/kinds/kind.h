// The interface that a memory kind must provide. Each kind has a folder in src/memory/kinds/; kind_factory.h makes it.
//
// Threads: the PE's thread only. Copies are asynchronous: copy_async() returns at once, the bytes are copied
// later in stream order, and query() says when. Only calls that allocate or free memory may block on the
// device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/status.h"
#include "weft/memory/buffer.h"

#include "memory/kinds/device_message.h"
#include "memory/kinds/device_step.h"
#include "memory/kinds/software_device.h"

namespace weft::memory {

// A point in a stream's queue. record() makes it, release_event() releases it.
using EventHandle = void*;

// The allocation that holds an address. Two allocations at the same address have different generations.
// Generation 0 means that the kind cannot tell them apart; then nothing about the address may be cached.
struct Allocation {
  std::uintptr_t base = 0;
  std::size_t size_bytes = 0;
  Place place;
  std::uint64_t generation = 0;

  bool contains(std::uintptr_t address) const { return address - base < size_bytes; }
};

// A range that contains every address that a kind has ever allocated.
struct AddressRange {
  std::uintptr_t low = std::numeric_limits<std::uintptr_t>::max();
  std::uintptr_t high = 0;

  bool contains(std::uintptr_t address) const { return address >= low && address < high; }
};

// Rows of bytes, `stride` bytes from one to the next; it can be negative.
struct StridedRows {
  std::byte* data = nullptr;
  std::ptrdiff_t stride = 0;
};

class KindBackend {
 public:
  using ReleaseListener = std::function<void(std::uintptr_t base)>;

  virtual ~KindBackend() = default;

  virtual Kind kind() const = 0;
  virtual int num_devices() const = 0;
  // The name for people, for example "NVIDIA H200". REQUIRES: device < num_devices().
  virtual std::string device_name(int device) const = 0;
  // The device that the PE with this rank on its host uses unless it names another.
  virtual int device_of(int local_rank) const;
  // Whether copies from one device to the other do not pass through the host.
  virtual bool can_access_peer(int /*device*/, int /*peer*/) const { return true; }
  // How the user finds out why a device cannot access another; empty when there is no such way.
  virtual std::string_view peer_access_advice() const { return {}; }
  // Whether the CPU may read and write this memory through its address.
  virtual bool cpu_accessible() const = 0;
  // For kinds whose kernels the CPU of this process runs; null for other kinds.
  virtual SoftwareDevice* software_device() { return nullptr; }

  virtual base::Result<void*> allocate(std::size_t size_bytes, int device) = 0;
  virtual base::Status deallocate(void* data) = 0;

  // The allocation of this kind that holds `address`; empty when the memory is not of this kind. A kind that
  // is_in_own_mappings() gives an empty allocation, whose place is the host, for host memory of which its
  // driver knows, and if its driver cannot say.
  virtual std::optional<Allocation> find_allocation(const void* address) = 0;
  // Whether `address` still belongs to `allocation`, an earlier result of find_allocation(). A kind that
  // calls the release listener for every allocation that is freed may return true at once.
  virtual bool is_current(const Allocation& allocation, const void* address) = 0;

  // The memory layer sees an allocation for the first time that it has not made. A copy into it from host memory whose call has
  // returned may still be on its way, as cudaMemcpy() from pageable memory is. Such a copy is over when this returns, if a
  // millisecond is enough, and later ones when their call returns, if the kind can arrange that.
  virtual void first_seen(const Allocation& /*allocation*/) {}

  // An address outside this range is not of this kind.
  const AddressRange& address_range() const { return address_range_; }
  // Whether all memory of this kind is in mappings that its driver makes: memory of the program's becomes
  // memory of this kind only after the program has unmapped it. The kind is then not asked about HostRanges
  // (host_ranges.h) and HostPages (host_pages.h), although its range contains them.
  bool is_in_own_mappings() const { return is_in_own_mappings_; }
  // `listener` is called with the base of each allocation that deallocate() frees.
  void set_release_listener(ReleaseListener listener) { release_listener_ = std::move(listener); }

  // The bytes that another process of this host and user needs to map the allocation that holds `address`.
  // They are valid until the allocation is freed. kUnsupported if memory of this kind, or memory allocated in
  // this way, cannot be mapped.
  virtual base::Result<std::vector<std::byte>> export_allocation(const void* address);
  // Maps the whole allocation that another process exported, for copies on streams of `device`. The owner
  // must not free the allocation before the import is released. kNotFound if it has been freed already. Kind
  // emulated detects a later free: copies of the import fail, and find_allocation() returns generation 0.
  virtual base::Result<Buffer> import_allocation(std::span<const std::byte> exported, int device);
  // REQUIRES: no operation in flight uses the import.
  virtual base::Status release_import(void* data);

  // Calls `body` with `device` as the calling thread's current device, for libraries that use the current
  // device.
  virtual base::Status with_current(int device, const std::function<void()>& body);
  // Makes `device` the calling thread's current device, unless the thread has one already: then the program
  // has chosen it. Does nothing for kinds without a current device. May take 100 ms and device memory.
  virtual base::Status make_current(int /*device*/) { return {}; }
  // Whether it is known when the job starts that the program uses devices of this kind: a setting names them,
  // or the program contains the kind's own runtime library.
  virtual bool use_is_expected() const { return false; }

  virtual base::Result<StreamHandle> create_stream(int device) = 0;
  // Work that is already queued on the stream is still done.
  virtual base::Status destroy_stream(StreamHandle stream) = 0;

  // Queues a copy behind the work on `stream` (null: the kind's own stream of that device). Both sides are of
  // this kind, or one of them is host memory. REQUIRES: both ranges stay valid until the copy is done.
  virtual base::Status copy_async(void* destination, Place destination_place, const void* source,
                                  Place source_place, std::size_t size_bytes, StreamHandle stream) = 0;

  // Queues copies of `count` rows of `row_bytes` as copy_async(). Both sides are on `place`, and rows of the destination do not
  // overlap.
  virtual base::Status copy_rows_async(StridedRows destination, StridedRows source, Place place,
                                       std::size_t row_bytes, std::size_t count, StreamHandle stream);

  // Allocates host memory for which copy_async() never blocks the CPU, on every device; `device` is one that
  // is in use or will be used. For other host memory copy_async() may block if host_copy_is_async() returns
  // false.
  virtual base::Result<void*> allocate_host(std::size_t size_bytes, int device) = 0;
  virtual void deallocate_host(void* data) = 0;
  virtual bool host_copy_is_async(const void* host_address, std::size_t size_bytes) = 0;
  // Locks the pages of other host memory, so that host_copy_is_async(). Takes about as long as a copy of it. kUnsupported: the
  // kind has no such call. REQUIRES: unlock_host() before the memory is unmapped.
  virtual base::Status lock_host(void* data, std::size_t size_bytes, int device);
  virtual void unlock_host(void* /*data*/) {}

  virtual base::Result<EventHandle> record(StreamHandle stream, int device) = 0;
  // ok: the work before the event is done and visible to every stream. pending: it is not done yet. Any other
  // status: it failed.
  virtual base::Status query(EventHandle event) = 0;
  // Whether all work of `stream` is done. False if it cannot be asked, or has failed: an event then says why.
  virtual bool is_idle(StreamHandle /*stream*/, int /*device*/) { return false; }
  // Makes work that is queued on `stream` after this call wait for the event, without blocking the CPU. The
  // event may be released as soon as this returns.
  virtual base::Status stream_wait(StreamHandle stream, int device, EventHandle event) = 0;
  virtual void release_event(EventHandle event) = 0;

  // Streams that order their work among themselves, without the CPU: see device_step.h. All memory is of this kind, memory of
  // import_allocation() too; `place` is the stream's device (null: the kind's own stream of it), which has the count and the words
  // that the step waits for. REQUIRES: the memory stays valid until the stream has done the step. kUnsupported: the kind, or its
  // driver, cannot do it.
  virtual base::Status queue_step(const DeviceStep& step, Place place, StreamHandle stream);
  // The same steps, one after the other, in fewer launches if the kind can. If it fails, some of them may be queued.
  virtual base::Status queue_steps(std::span<const DeviceStep> steps, Place place, StreamHandle stream);
  // All ends of messages at once, see device_message.h. REQUIRES: 1 to kMaxMessageEnds of them, those that send first; memory and
  // words as for queue_step().
  virtual base::Status queue_messages(std::span<const MessageEnd> ends, Place place, StreamHandle stream);
  // A reduction of many elements, by the whole device.
  virtual base::Status queue_reduction(const DeviceReduction& reduction, Place place, StreamHandle stream);
  // Does now what the first step, or the first reduction of a type and combination, on a device does else: it may take 0.1 s, may
  // wait for the device, and is refused while a graph is being captured.
  virtual base::Status prepare_steps(int /*device*/) { return {}; }
  virtual base::Status prepare_reductions(int /*device*/, ElementType /*type*/, Combination /*combination*/) {
    return {};
  }
  // Ends the waits of all steps, queued now or later. A step that waits does nothing else then, so its data and its signals are
  // not what the program expects. For the end of a job that has failed. Returns false if there has been no step.
  virtual bool abort_steps() { return false; }
  // What the kind's devices have done since the last call, for the end of a job.
  enum class Activity {
    kIdle,
    kOnlyWaits,  // for signals: all work that is left is in a step that waits, or behind one
    kUnknown,    // they work, or the kind cannot tell
  };
  virtual Activity activity() { return Activity::kIdle; }
  // A step that writes `value` to the word, and one that waits until has_reached(the word, value).
  base::Status queue_write(std::uint32_t* word, Place place, std::uint32_t value, StreamHandle stream);
  base::Status queue_wait(std::uint32_t* word, Place place, std::uint32_t value, StreamHandle stream);
  // Whether a graph is being captured from the stream. What is queued there is then done by each launch of the graph, and neither
  // the stream nor an event of it may be asked.
  virtual bool is_capturing(StreamHandle /*stream*/, int /*device*/) { return false; }

  // --- How long a device works. These make no progress on devices that advance only when polled.

  // The stream of programs that name none; null: the kind's own stream of the device.
  virtual StreamHandle default_stream() const { return nullptr; }
  // As record(). The event has a time too, which elapsed() reads. kUnsupported: the kind has no clock.
  virtual base::Result<EventHandle> record_timed(StreamHandle stream, int device);
  // Sets `seconds` to the device's time from `begin` to `end`. pending: one of them is not done yet. Any other status: one of
  // them failed, or cannot be asked. REQUIRES: both are of record_timed(), on one stream and in this order.
  virtual base::Status elapsed(EventHandle begin, EventHandle end, double& seconds);

  // A device hangs: from now on the kind frees nothing, neither memory of allocate_host() nor anything in its
  // destructor. The device may still write to that memory, and the driver would wait for the device. The
  // operating system frees it when the process ends.
  virtual void abandon() {}

 protected:
  void widen_address_range(std::uintptr_t base, std::size_t size_bytes) {
    if (base < address_range_.low) address_range_.low = base;
    if (base + size_bytes > address_range_.high) address_range_.high = base + size_bytes;
  }
  // Why a message has failed.
  static std::string wrong_label(std::uint64_t expected, std::uint64_t found);
  // REQUIRES: KindCache::add() has not been called.
  void declare_in_own_mappings() { is_in_own_mappings_ = true; }
  void notify_release(std::uintptr_t base) {
    if (release_listener_) release_listener_(base);
  }

 private:
  AddressRange address_range_;
  bool is_in_own_mappings_ = false;
  ReleaseListener release_listener_;
};

}  // namespace weft::memory
