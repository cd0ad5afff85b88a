// The memory layer of one PE: its kinds, the kind cache, and copies between any two kinds.
//
// Threads: the PE's. Invariants: each operation that is started here completes exactly once, from progress()
// or close(). Memory does not use Completion::in_flight, so its caller may.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weft/base/completion.h"
#include "weft/base/status.h"
#include "weft/memory/buffer.h"

#include "memory/kinds/kind.h"
#include "memory/kinds/memory_options.h"

namespace weft::memory {

class Memory {
 public:
  // Makes the kinds that this process can use: host and emulated always, cuda if its driver and a device are
  // there. A context on a device is made when the device is first used.
  explicit Memory(const MemoryOptions& options = {});
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // Null if this process cannot use that kind; availability() says why.
  KindBackend* backend(Kind kind);
  base::Status availability(Kind kind) const;
  // Fails if the options ask for something that this process does not have, such as a device that WEFT_GPUS
  // names.
  base::Status check_options() const;

  // The device of that kind that this PE uses unless it names another.
  Place default_place(Kind kind) const { return default_place(kind, local_rank_); }
  // The device of that kind that the PE with that rank on this host uses unless it names another.
  Place default_place(Kind kind, int local_rank) const;

  // For libraries that allocate on the calling thread's current device: makes this PE's own device of each
  // kind current, unless the thread has a current one already. Fails with the first kind that cannot.
  base::Status make_own_devices_current();
  // As make_own_devices_current(), for the kinds whose use is expected when the job starts, see
  // KindBackend::use_is_expected(). The other kinds cost such a program nothing.
  base::Status make_expected_devices_current();
  // One sentence for each device, other than this PE's own one, in whose memory a buffer was found or
  // allocated.
  std::vector<std::string> uses_of_other_devices() const;

  // Zero bytes are a null address.
  base::Result<Buffer> allocate(std::size_t size_bytes, Place place);
  // REQUIRES: no operation in flight uses the buffer.
  base::Status deallocate(const Buffer& buffer);

  // The place of the memory at `address`; host if no device kind knows the address. The driver is asked once
  // per allocation, and the answer is cached by the allocation's range. An entry is dropped when its
  // allocation is freed, also when another library frees it. The answer "host" may be cached by page until
  // memory is unmapped. REQUIRES: the caller may access the byte at `address`, so it is not the address of a
  // buffer without bytes.
  Place place_of(const void* address);
  // The device allocation that holds `address`, from the same cache; size and generation 0 for host memory.
  // `address` may be any, because this does not cache "host". A caller that keeps something per allocation (an
  // IPC handle, a registration) must compare the generation before it uses that again.
  Allocation allocation_of(const void* address);
  // `find` returns a counter that rises before memory of this process is unmapped and exists until the last
  // call; null if there is none. It is called only if a kind's driver would be asked about host memory again
  // and again otherwise.
  void use_unmap_generation(const std::atomic<std::uint64_t>* (*find)());

  // Calls `listener` with the base of each device allocation before deallocate() frees it. There is one
  // listener; an empty one removes it. Memory that other libraries free shows only in allocation_of()'s
  // generation.
  void set_release_listener(KindBackend::ReleaseListener listener);

  // Copies between any two kinds, after the work that is queued on destination.stream and source.stream now.
  // Work that is queued on them later does not wait for the copy. The completion gets the number of bytes
  // copied, or 0 for a failure, after which the destination's contents are undefined. A copy of zero bytes
  // waits for no stream. REQUIRES: equal sizes, no overlap, no stream on a host side.
  base::Status copy(const Buffer& destination, const ConstBuffer& source, base::Completion* completion);

  // Completes when the work that is queued on `stream` of `place` now is done.
  base::Status when_stream_done(Place place, StreamHandle stream, base::Completion* completion);
  // As when_stream_done(), for work on memory of Weft's that the caller has queued there itself, also if `stream` is null. close()
  // waits for it as for a copy, because the memory is freed afterwards.
  base::Status when_queued_done(Place place, StreamHandle stream, base::Completion* completion);
  // Completes when that event of the kind's is done. REQUIRES: the caller releases it afterwards.
  base::Status when_event_done(Place place, EventHandle event, base::Completion* completion);
  // Completes when has_reached(the word, value), see kinds/device_step.h. Any other status than pending: it has been reached, or the wait
  // cannot begin. The first wait for a word of a device may block on the device, because it allocates memory there. REQUIRES: the word
  // is aligned and stays until then.
  base::Status when_word_reached(const std::uint32_t* word, Place place, std::uint32_t value,
                                 base::Completion* completion);
  // Whether that work is done already. False also if the stream cannot be asked or has failed: what waits for it then
  // says why.
  bool is_stream_idle(Place place, StreamHandle stream);

  // Completes the operations that are done. Returns whether there was one.
  bool progress();
  // Whether progress() must be polled: device work does not wake a sleeping PE.
  bool has_pending() const;
  // Whether it has only waits for words, and the process can use no real device, whose kernels might write them: then other PEs alone can
  // end the waits.
  bool awaits_words_alone() const;

  // For the end of a job: calls `is_over`, which makes progress, until it returns true. When all such calls together have waited
  // longer than MemoryOptions::device_timeout, steps that wait for signals are ended, as by abort_steps(). Returns false if that
  // does not help; then a device hangs.
  bool wait_for_devices(const std::function<bool()>& is_over);
  // For the end of a job that has failed, where streams may wait for signals that no PE sends any more: ends these waits. What their
  // steps would have done is not done, and a stream's work that is not done yet completes with kClosed.
  void abort_steps();
  // For the end of a job, before memory is given back: waits, as close() does, for the work that Weft has queued, and then ends the
  // waits of all other steps. These are of graphs that the program has launched, and of which Weft does not know: a call that frees
  // memory would wait for them.
  void end_steps();
  // Waits for the devices to be done with their buffers, as wait_for_devices(), and then fails the operations in flight with kClosed.
  // If a device hangs, no device memory is freed any more, because the device may still use it. Allocations stay valid until the
  // destructor.
  void close();
  // After close(): fails with a sentence if a device had not ended its work by then, or only because steps were ended.
  base::Status hang() const;

 private:
  struct MemoryState;
  // place_of() where a device kind may have memory.
  Place device_place_of(const void* address);
  // Whether the place is a device that is not this PE's own and that note_use() has not remembered.
  bool is_new_elsewhere(Place place) const;
  void note_use(Place place, std::size_t size_bytes);
  base::Status make_current(bool (*wants)(const KindBackend&));

  int local_rank_;
  std::unique_ptr<MemoryState> state_;
};

}  // namespace weft::memory
