// Memory that all PEs reach: segments, put and get, copies, and atomic operations.
//
//   weft::pgas::Pgas& pgas = runtime.model<weft::pgas::Pgas>();  // a model that has it
//   co_await pgas.put(3.0, pointer);                     // one value
//   double x = co_await pgas.get(pointer + 5);
//   co_await pgas.copy(from, to, 1000);                  // between any two places
//   std::uint64_t old = co_await pgas.fetch_add(counter, 1);
//
// How an operation reaches memory:
//   - Host segments that Weft allocates are mapped by every PE of their host. Operations on them are loads, stores, copies
//     and atomic instructions of this CPU, which need no progress of any other PE. Those of up to 4 MiB are over when the
//     call returns.
//   - Device segments are mapped by the PEs whose device reaches them. A device copies.
//   - All else goes through the machine: one-sided transfers, and messages for atomic operations.
// The first use of a pointer into a segment of another PE asks its owner how to reach it, unless the segment was published.
//
// Errors: a call throws Error if it finds the misuse itself, else the await does. The message names the pointer.
//   kInvalidArgument   the null pointer, a wrong kind, a pointer that is not aligned, or source and target overlap
//   kOutOfRange        memory outside of the segment, or a PE that does not exist
//   kNotFound          the segment has been freed, or does not exist
//   kClosed            the job has ended
// Nothing outside of a segment is ever written.
//
// Order: operations are not ordered among each other. An operation that is over is visible to every later operation of
// every PE that knows of its end, for example by a message.
//
// Threads: the PE's.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/base/copy_bytes.h"
#include "weft/memory/buffer.h"
#include "weft/rma/atomic_word.h"
#include "weft/rma/completions.h"
#include "weft/rma/done.h"
#include "weft/rma/global_ptr.h"
#include "weft/rma/limits.h"
#include "weft/rma/segment.h"
#include "weft/rma/segment_cache.h"
#include "weft/runtime/runtime.h"

namespace weft::rma {

class Segments;
class Copies;
class LockedFiles;
class RemoteAtomics;
class RemoteHooks;
struct CopyEnd;
struct CopyPart;
struct Run;

// Rows of a strided copy: one distance in bytes for each dimension, from one element of that dimension to the next.
using Strides = std::span<const std::ptrdiff_t>;
using Extents = std::span<const std::size_t>;

// Who holds memory of segments beyond the program's own objects.
class EndListener {
 public:
  // The job has ended: no stream and no other PE uses the memory any more. GlobalMemory still exists.
  virtual void job_has_ended() = 0;

 protected:
  ~EndListener() = default;
};

class GlobalMemory {
 public:
  static constexpr runtime::HandlerId kNumHandlers = 5;
  GlobalMemory(runtime::Runtime& runtime, runtime::HandlerId first_handler);
  ~GlobalMemory();
  GlobalMemory(const GlobalMemory&) = delete;
  GlobalMemory& operator=(const GlobalMemory&) = delete;

  runtime::Runtime& runtime() const { return runtime_; }

  // --- Segments

  // Host memory is filled with zeros, device memory is not. Throws kOutOfMemory, kUnsupported for a kind that this process
  // cannot use, and kInvalidArgument for 0 bytes.
  Segment make_segment(std::size_t size_bytes, memory::Place place);
  template <class T>
  Segment make_segment(std::size_t count, memory::Place place = {}) {
    return make_segment(bytes_of(count, sizeof(T)), place);
  }
  // Over memory of the caller, of any kind, which stays valid until the segment is released. Other PEs reach host memory
  // through the machine and not by loads and stores.
  Segment make_segment_at(void* address, std::size_t size_bytes);

  // --- Where a pointer leads

  bool is_local(const GlobalAddress& address) const {
    return address.pe() == runtime_.pe() && !address.is_null();
  }
  // The address on this PE; null if the memory is not this PE's, or not host memory.
  template <class T>
  T* local(GlobalPtr<T> pointer) {
    const bool is_host = is_local(pointer.address()) && pointer.kind() == memory::Kind::kHost;
    return is_host ? static_cast<T*>(mapped_address(pointer.address(), sizeof(T))) : nullptr;
  }
  // The address by which this PE, or its device, reaches the memory; null if it does not, or has not learned it yet.
  template <class T>
  T* mapped(GlobalPtr<T> pointer) {
    return static_cast<T*>(mapped_address(pointer.address(), sizeof(T)));
  }
  // Memory of a segment where this PE or its device reaches it. While the keeper exists, the memory stays, also if the segment is
  // freed, and host memory that Weft has allocated also if the job ends. No keeper: this PE does not reach the memory, or has
  // not learned it yet. Throws Error for memory outside of the segment. The keeper may outlive the job, and then does nothing. It is
  // destroyed by the PE's thread.
  struct HeldMemory {
    memory::Buffer memory;
    std::shared_ptr<void> keeper;
  };
  HeldMemory hold(const GlobalAddress& address, std::size_t size_bytes);
  // As hold(), for kernels on that device of this PE: the address is one that they use, see weft/device/kernels.cuh. Always with a
  // keeper. Throws Error if the device does not reach the memory, or this PE has not learned the segment.
  //
  // Kernels reach memory of the device, and segments of other PEs that it has mapped. On GPUs they reach host segments of the PEs of
  // this host too: the pages of the segment, or of the 1 MiB that it shares with other small ones, are locked meanwhile.
  HeldMemory hold_for_kernels(const GlobalAddress& address, std::size_t size_bytes, memory::Place device);
  // Learns how to reach the segment. Afterwards mapped() gives an address if there is one.
  Done learn(const GlobalAddress& address);

  // --- Single values

  template <class T>
  Done put(std::type_identity_t<T> value, GlobalPtr<T> to) {
    static_assert(!std::is_const_v<T>);
    if (std::byte* const target = cache_.find(to.address(), sizeof(T)); target != nullptr) [[likely]] {
      std::memcpy(target, &value, sizeof(T));
      return Done(runtime_);
    }
    return put_bytes(&value, sizeof(T), to.address());
  }
  template <class T>
  Value<std::remove_const_t<T>> get(GlobalPtr<T> from) {
    using Result = std::remove_const_t<T>;
    if (const std::byte* const source = cache_.find(from.address(), sizeof(T)); source != nullptr)
        [[likely]] {
      Result value;
      std::memcpy(&value, source, sizeof(T));
      return Value<Result>(runtime_, value);
    }
    return Value<Result>(runtime_, get_bytes(sizeof(T), from.address()));
  }

  // --- Copies. Each is over when its data is visible at the target.

  template <class T>
  Done copy(GlobalPtr<const T> from, GlobalPtr<T> to, std::size_t count) {
    return copy_plain(from.address(), to.address(), bytes_of(count, sizeof(T)));
  }
  template <class T>
  Done copy(GlobalPtr<T> from, GlobalPtr<T> to, std::size_t count) {
    return copy_plain(from.address(), to.address(), bytes_of(count, sizeof(T)));
  }
  template <class T>
  Done copy(GlobalPtr<const T> from, GlobalPtr<T> to, std::size_t count, Completions completions) {
    const std::size_t size_bytes = completions.or_error([=] { return bytes_of(count, sizeof(T)); });
    return copy_bytes(from.address(), to.address(), size_bytes, std::move(completions));
  }
  template <class T>
  Done copy(GlobalPtr<T> from, GlobalPtr<T> to, std::size_t count, Completions completions) {
    const std::size_t size_bytes = completions.or_error([=] { return bytes_of(count, sizeof(T)); });
    return copy_bytes(from.address(), to.address(), size_bytes, std::move(completions));
  }
  // From and to memory of this PE, of any kind, which need not lie in a segment. It stays valid and unchanged until the
  // operation is over, and that of put() until completions.source.
  template <class T, std::size_t N>
  Done put(std::span<T, N> from, GlobalPtr<std::remove_const_t<T>> to, Completions completions = {}) {
    return put_memory({from.data(), from.size_bytes()}, to.address(), std::move(completions));
  }
  template <class T, std::size_t N>
  Done get(GlobalPtr<const T> from, std::span<T, N> to, Completions completions = {}) {
    return get_memory(from.address(), {to.data(), to.size_bytes(), {}, nullptr}, std::move(completions));
  }
  template <class T, std::size_t N>
  Done get(GlobalPtr<T> from, std::span<T, N> to, Completions completions = {}) {
    return get_memory(from.address(), {to.data(), to.size_bytes(), {}, nullptr}, std::move(completions));
  }
  // Blocks of elements with equal distances in each of up to kMostDimensions dimensions. Strides are in bytes and may be
  // negative; extents are in elements. Elements of the target must not overlap.
  template <class T>
  Done copy_strided(GlobalPtr<const T> from, Strides from_strides, GlobalPtr<T> to, Strides to_strides,
                    Extents extents, Completions completions = {}) {
    return copy_strided_bytes(from.address(), from_strides, to.address(), to_strides, extents, sizeof(T),
                              std::move(completions));
  }
  // Blocks of `block` elements: number i from from + from_index[i] to to + to_index[i].
  template <class T>
  Done copy_indexed(GlobalPtr<const T> from, std::span<const std::ptrdiff_t> from_index, GlobalPtr<T> to,
                    std::span<const std::ptrdiff_t> to_index, std::size_t block,
                    Completions completions = {}) {
    return copy_indexed_bytes(from.address(), from_index, to.address(), to_index, sizeof(T), block,
                              std::move(completions));
  }

  // Queues the copy on a stream of `device`: it runs behind the work that is queued there, and work that is queued there later
  // waits for it, without the CPU. The Done is over when the stream has done it. At least one end is of the device's kind, the
  // other may be host memory, and for memory that is not page-locked the CPU may wait. Throws Error if this PE has not
  // learned both segments, or the device does not reach them: mapped() is null then.
  template <class T>
  Done copy_on_stream(GlobalPtr<const T> from, GlobalPtr<T> to, std::size_t count, memory::Place device,
                      memory::StreamHandle stream) {
    return enqueue_copy(from.address(), to.address(), bytes_of(count, sizeof(T)), device, stream);
  }
  template <class T>
  Done copy_on_stream(GlobalPtr<T> from, GlobalPtr<T> to, std::size_t count, memory::Place device,
                      memory::StreamHandle stream) {
    return enqueue_copy(from.address(), to.address(), bytes_of(count, sizeof(T)), device, stream);
  }

  // Streams of different PEs tell one another, without the CPU:
  //
  //   PE 0   copy_on_stream(data, data_on_1, ...); signal_on_stream(flag_on_1, round, ...);
  //   PE 1   wait_on_stream(own_flag, round, ...);   and kernels behind it, which see the data
  //
  // `device` is the device of the stream, and the word lies there as this PE reaches it: on the device itself, or in a segment of
  // another PE that this PE's own device has mapped. The segment stays until the Done is over. Throws Error as copy_on_stream()
  // does, also for a word in host memory or one that is not aligned, and kUnsupported if the driver has no such call.
  //
  // If a graph is being captured from the stream, the graph does the work at each launch, the Done is over at once, and the program
  // keeps the segments as long as the graph.
  //
  // Writes the value to the word behind the work that is queued on the stream. What the stream has written before, copies to
  // other PEs' devices included, is visible to a stream that has seen the value. The Done is over when the stream has written it.
  Done signal_on_stream(GlobalPtr<std::uint32_t> to, std::uint32_t value, memory::Place device,
                        memory::StreamHandle stream);
  // Work that is queued on the stream later waits until the word, which lies on this PE, is at least `value`. The comparison is
  // cyclic, int32(word - value) >= 0, so counters may pass 2^32. The Done is over when the stream has gone on. If no PE sends the
  // signal, it fails with kClosed at the end of the job, which waits for devices for up to 10 s. Meanwhile calls that wait for
  // the device do not return: those of its library that allocate or free memory may.
  Done wait_on_stream(GlobalPtr<std::uint32_t> at, std::uint32_t value, memory::Place device,
                      memory::StreamHandle stream);

  // Over when the word, which lies in a segment of this PE in host or device memory, is at least `value`, compared cyclically as
  // wait_on_stream() does. For flags that others raise without a message: a kernel (weft/device/kernels.cuh), a stream
  // (signal_on_stream()), or a put of another PE. What the writer has written before its signal is visible then. The segment stays
  // until the Done is over. Throws Error for a word of another PE, and for one that is not aligned.
  //
  // The PE polls the word: it does not sleep meanwhile, and takes its turns. quiescence() does not count the wait. At the end of the
  // job it fails with kClosed. The first wait for device memory allocates there, which may block while a kernel runs.
  Done wait_for(GlobalPtr<std::uint32_t> at, std::uint32_t value);

  // Without types, for other languages. Bytes of one segment to another, or to the same without overlap.
  Done copy_bytes(const GlobalAddress& from, const GlobalAddress& to, std::size_t size_bytes,
                  Completions completions = {});
  Done enqueue_copy(const GlobalAddress& from, const GlobalAddress& to, std::size_t size_bytes,
                    memory::Place device, memory::StreamHandle stream);
  // The place of the local end is found from its address.
  Done put_memory(const memory::ConstBuffer& from, const GlobalAddress& to, Completions completions = {});
  Done get_memory(const GlobalAddress& from, const memory::Buffer& to, Completions completions = {});
  Done copy_strided_bytes(const GlobalAddress& from, Strides from_strides, const GlobalAddress& to,
                          Strides to_strides, Extents extents, std::size_t element_bytes,
                          Completions completions = {});
  Done copy_indexed_bytes(const GlobalAddress& from, std::span<const std::ptrdiff_t> from_index,
                          const GlobalAddress& to, std::span<const std::ptrdiff_t> to_index,
                          std::size_t element_bytes, std::size_t block, Completions completions = {});
  // An end is a place in a segment or memory of this PE; the caller keeps the runs inside of the latter, and it stays valid
  // until the operation is over. src/rma/copy/ has both types.
  Done start_copy(std::vector<Run> runs, const CopyEnd& from, const CopyEnd& to, Completions completions);
  // Before several copies start that are one: throws Error if one of them writes what another one reads.
  void expect_apart(std::span<const CopyPart> parts) const;
  // Before the runs of a strided copy are listed: throws Error if this PE knows the segment and an element lies outside of it.
  void expect_strided_inside(const GlobalAddress& address, Strides strides, Extents extents,
                             std::size_t element_bytes) const;

  // Called on this PE, from the scheduler, for each RemoteCompletion that arrives.
  using RemoteHook = void (*)(void* context, int source_pe, std::uint32_t function,
                              std::span<const std::byte> bytes);
  void set_remote_hook(RemoteHook hook, void* context);

  // --- Atomic operations on aligned integers and floating-point numbers of 32 and 64 bits. They are atomic among each other,
  // for all PEs, and on host memory also with std::atomic_ref. A load acquires, a store releases, the others do both. On
  // device memory they are not atomic with kernels.

  template <AtomicValue T>
  Value<T> atomic_load(GlobalPtr<T> from) {
    return atomic<AtomicKind::kLoad, T>(from, T(), T());
  }
  template <AtomicValue T>
  Done atomic_store(GlobalPtr<T> to, std::type_identity_t<T> value) {
    if (std::byte* const word = cache_.find_aligned<T>(to.address()); word != nullptr) [[likely]] {
      apply_atomic<AtomicKind::kStore, T>(word, value, T());
      return Done(runtime_);
    }
    return Done(runtime_,
                atomic_elsewhere(AtomicKind::kStore, kAtomicType<T>, to.address(), bits_of(value), 0));
  }
  template <AtomicValue T>
  Value<T> fetch_add(GlobalPtr<T> to, std::type_identity_t<T> value) {
    return atomic<AtomicKind::kAdd, T>(to, value, T());
  }
  template <AtomicValue T>
  Value<T> exchange(GlobalPtr<T> to, std::type_identity_t<T> value) {
    return atomic<AtomicKind::kExchange, T>(to, value, T());
  }
  // Stores `desired` if the value is `expected`, compared bit by bit. Returns the value before, which is `expected` if it
  // was stored.
  template <AtomicValue T>
  Value<T> compare_exchange(GlobalPtr<T> to, std::type_identity_t<T> expected,
                            std::type_identity_t<T> desired) {
    return atomic<AtomicKind::kCompareExchange, T>(to, desired, expected);
  }
  template <AtomicInteger T>
  Value<T> fetch_and(GlobalPtr<T> to, std::type_identity_t<T> value) {
    return atomic<AtomicKind::kAnd, T>(to, value, T());
  }
  template <AtomicInteger T>
  Value<T> fetch_or(GlobalPtr<T> to, std::type_identity_t<T> value) {
    return atomic<AtomicKind::kOr, T>(to, value, T());
  }
  template <AtomicInteger T>
  Value<T> fetch_xor(GlobalPtr<T> to, std::type_identity_t<T> value) {
    return atomic<AtomicKind::kXor, T>(to, value, T());
  }

  // Tells the listener of the end of the job, if it still exists then.
  void tell_of_end(std::weak_ptr<EndListener> listener);

  // --- For the model

  // Whether this PE maps segments of other PEs. Off: all operations on other PEs' memory go through the machine, for tests and
  // comparison. REQUIRES: no segment of another PE is known yet.
  void set_mapping(bool is_on);
  // Whether some PEs of the job are on other hosts. They get the machine's key to a segment that is published.
  void set_has_other_hosts(bool has_other_hosts);
  void close();
  // Segments that this PE has and that it knows of others, for tests.
  std::size_t num_segments() const;

 private:
  // Throws kOutOfMemory if the number is too large.
  static std::size_t bytes_of(std::size_t count, std::size_t element_bytes) {
    if (count > std::numeric_limits<std::size_t>::max() / element_bytes) [[unlikely]]
      refuse_count(count, element_bytes);
    return count * element_bytes;
  }
  [[noreturn]] static void refuse_count(std::size_t count, std::size_t element_bytes);

  // A copy without completions. If the CPU reaches both ends and the copy is not large, it is over when this returns.
  Done copy_plain(const GlobalAddress& from, const GlobalAddress& to, std::size_t size_bytes) {
    std::byte* const source = cache_.find(from, size_bytes);
    std::byte* const target = cache_.find(to, size_bytes);
    if (source != nullptr && target != nullptr && size_bytes <= kAtOnceBytes) [[likely]] {
      const auto distance =
          reinterpret_cast<std::uintptr_t>(target) - reinterpret_cast<std::uintptr_t>(source);
      if (distance >= size_bytes && std::uintptr_t{0} - distance >= size_bytes) [[likely]] {
        base::copy_bytes(target, source, size_bytes);
        return Done(runtime_);
      }
    }
    return copy_elsewhere(from, to, size_bytes, source != nullptr ? source : target);
  }
  // A copy whose ends the CPU does not both reach, or that is large or wrong. `near`: the address of one end, of the source if the
  // CPU reaches that one; null if none was found.
  Done copy_elsewhere(const GlobalAddress& from, const GlobalAddress& to, std::size_t size_bytes,
                      std::byte* near);
  [[gnu::noinline]] Done start_plain_copy(const GlobalAddress& from, const GlobalAddress& to,
                                          std::size_t size_bytes);

  // Starts what a stream does.
  template <class StreamWork>
  Done enqueue(const StreamWork& work, memory::Place device, memory::StreamHandle stream);
  // Takes the way of a segment that is not in the cache.
  Done put_bytes(const void* value, std::size_t size_bytes, const GlobalAddress& to);
  runtime::OperationState* get_bytes(std::size_t size_bytes, const GlobalAddress& from);
  void* mapped_address(const GlobalAddress& address, std::size_t size_bytes);
  // The address of segment memory if the CPU copies so much at once between it and `local`, else null.
  std::byte* mapped_to_copy(const void* local, const GlobalAddress& address, std::size_t size_bytes);
  runtime::OperationState* atomic_elsewhere(AtomicKind kind, AtomicType type, const GlobalAddress& address,
                                            std::uint64_t operand, std::uint64_t compare);

  template <AtomicKind kKind, class T>
  Value<T> atomic(const GlobalPtr<T>& pointer, T operand, T compare) {
    if (std::byte* const word = cache_.find_aligned<T>(pointer.address()); word != nullptr) [[likely]] {
      return Value<T>(runtime_, apply_atomic<kKind, T>(word, operand, compare));
    }
    return Value<T>(runtime_, atomic_elsewhere(kKind, kAtomicType<T>, pointer.address(), bits_of(operand),
                                               bits_of(compare)));
  }

  runtime::Runtime& runtime_;
  SegmentCache cache_;
  std::unique_ptr<Segments> segments_;
  std::unique_ptr<LockedFiles> locked_files_;
  std::unique_ptr<RemoteHooks> hooks_;
  std::unique_ptr<Copies> copies_;
  std::unique_ptr<RemoteAtomics> atomics_;
  std::vector<std::weak_ptr<EndListener>> end_listeners_;
};

}  // namespace weft::rma
