// Copies between any two places: who copies, and when the ends are told.
//
//     source        target        who copies
//     reached       reached       the CPU if both are host memory, else a device
//     reached       not           a put of the machine, and a flush of that PE
//     not           reached       a get of the machine
//     not           not           the source's PE is asked, which reaches the source
//
// "Reached": this PE or its device has an address for it.
//
// Threads: the PE's. Invariant: the state of each copy completes exactly once, also at the end of the job.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "weft/base/status.h"
#include "weft/memory/buffer.h"
#include "weft/rma/completions.h"
#include "weft/rma/global_ptr.h"
#include "weft/rma/limits.h"
#include "weft/runtime/operation.h"
#include "weft/runtime/runtime.h"

#include "rma/copy/remote_hooks.h"
#include "rma/copy/run.h"
#include "rma/segment/segments.h"
#include "runtime/message/receive_buffer_pool.h"

namespace weft::rma {

// The bytes at an offset of the buffer that begins at `base`.
inline memory::Buffer part_of(const memory::Buffer& base, std::int64_t offset_bytes,
                              std::uint64_t size_bytes) {
  memory::Buffer part = base;
  part.data = static_cast<std::byte*>(base.data) + offset_bytes;
  part.size_bytes = size_bytes;
  return part;
}

// One end: a place in a segment, or memory of this PE.
struct CopyEnd {
  CopyEnd(const GlobalAddress& address_in) : address(address_in) {}  // implicit: an address is an end
  CopyEnd(const memory::Buffer& local_in) : local(local_in), is_local(true) {}  // and so is memory
  GlobalAddress address;
  memory::Buffer local;
  bool is_local = false;
};

struct Copy {
  std::vector<Run> runs;
  CopyEnd from;
  CopyEnd to;
  Completions completions;

  // "a copy of 8 bytes from ... to ..."
  std::string text() const;
};

// A word of 32 bits by which streams tell one another, see GlobalMemory::signal_on_stream() and wait_on_stream().
struct StreamWord {
  GlobalAddress address;
  std::uint32_t value = 0;
  bool is_wait = false;
};

// One of several copies that start together.
struct CopyPart {
  std::span<const Run> runs;
  const CopyEnd& from;
  const CopyEnd& to;
};

class Copies {
 public:
  Copies(runtime::Runtime& runtime, runtime::HandlerId handler, Segments& segments, RemoteHooks& hooks);
  Copies(const Copies&) = delete;
  Copies& operator=(const Copies&) = delete;

  // From so many runs on, if their mean size is at most this, a copy between two places or through the machine is packed. Not
  // measured.
  static constexpr std::size_t kLeastPackedRuns = 8;
  static constexpr std::uint64_t kMostPackedBytes = std::uint64_t{64} << 10;
  // Copies now and returns true if the CPU reaches both ends and knows them, and the copy is not large. Throws Error.
  bool copy_now(const Copy& copy);
  // Throws Error if one part writes what another one reads, in a segment or in memory of this PE. Parts start in no order.
  void expect_apart(std::span<const CopyPart> parts) const;
  // Tells the ends of a copy that is over.
  void finish(Copy& copy);
  // The state of a copy, whose extra() begins with room for a value.
  runtime::OperationState* make_state(std::size_t value_bytes = 0);
  // `state` gets the outcome. REQUIRES: it was made by make_state(); so also for start_put() and start_get().
  void start(Copy copy, runtime::OperationState* state);

  // Puts and gets of host memory through the machine, without a coroutine (direct.cpp). They throw Error for misuse.
  // The segment at `address`, if the machine puts and gets there and its key is here; else null.
  KnownSegment* direct_segment(const GlobalAddress& address, std::size_t size_bytes);
  // `state` gets the outcome. The memory of this PE stays until then. `near` is where it begins if it lies in a segment, which is
  // then kept.
  void start_put(KnownSegment& to, const GlobalAddress& address, const memory::ConstBuffer& from,
                 runtime::OperationState* state);
  void start_get(KnownSegment& from, const GlobalAddress& address, const memory::Buffer& to,
                 runtime::OperationState* state, const GlobalAddress* near = nullptr);
  // The state of a copy between a host segment that this PE reaches, which is kept, and such a segment; null if it is another copy.
  // `near`: the address of the end that this PE reaches, of the source if it reaches both; null if the caller does not know it.
  runtime::OperationState* start_between(const GlobalAddress& from, const GlobalAddress& to,
                                         std::size_t size_bytes, std::byte* near);

  // Queues the copy on that stream. `state` completes when the stream has done it. Throws Error if this PE does not know the
  // ends or the device does not reach them; then `state` is not used.
  void enqueue(const Copy& copy, memory::Place device, memory::StreamHandle stream,
               runtime::OperationState* state);
  // Queues the writing of the value, or the wait for it, in the same way.
  void enqueue(const StreamWord& word, memory::Place device, memory::StreamHandle stream,
               runtime::OperationState* state);
  // Learns how to reach a segment, as an operation.
  void learn(const GlobalAddress& address, runtime::OperationState* state);
  // Ends what is not over. The machine has ended its operations.
  void close();

 private:
  // Completes the state of a copy once.
  class Ticket {
   public:
    Ticket(Copies& copies, runtime::OperationState* state);
    Ticket(const Ticket&) = delete;
    Ticket& operator=(const Ticket&) = delete;
    ~Ticket();
    void end(base::Status status, std::size_t size_bytes);

   private:
    Copies& copies_;
    runtime::OperationState* state_;
  };
  struct Request;

  // start_put() with `near`, see there.
  void put_directly(KnownSegment& to, const GlobalAddress& address, const memory::ConstBuffer& from,
                    runtime::OperationState* state, const GlobalAddress* near);
  // Where the bytes of an end are numbered from, see ByteRange.
  ByteRange origin_of(const CopyEnd& end, bool is_target) const;
  // Throws Error unless the segments contain the runs, which do not overlap. Null for an end in local memory.
  void expect_ends(const Copy& copy, const KnownSegment* from, const KnownSegment* to) const;

  // Starts a put or a get of host memory through the machine, without a coroutine. False if the copy is another one, or the
  // key to the segment is not here yet. Throws Error.
  bool start_direct(const Copy& copy, runtime::OperationState* state);
  runtime::Task<> run(Copy copy, runtime::OperationState* state);
  runtime::Task<> run_learn(GlobalAddress address, runtime::OperationState* state);
  runtime::Task<> carry_out(Copy& copy);
  struct PlacedStream {
    memory::Place device;
    memory::StreamHandle stream;
  };
  // Completes `state` when the stream has done what is queued, and keeps the segments until then.
  void follow_stream(SegmentUse first, SegmentUse second, PlacedStream on, runtime::OperationState* state);
  runtime::Task<> run_stream(SegmentUse first, SegmentUse second, PlacedStream on,
                             runtime::OperationState* state);
  // A copy between that segment, if there is one and it is in host memory, and a device begins.
  void lock_pages(KnownSegment* segment, memory::Place device, std::uint64_t size_bytes);
  runtime::Task<> copy_memory(const Copy& copy, memory::Buffer from, memory::Buffer to);
  // Both ends are at one place: the CPU or its device copies the runs, which the caller keeps.
  runtime::Task<> copy_at_place(std::span<const Run> runs, memory::Buffer from, memory::Buffer to);
  runtime::Task<> copy_host(std::span<const Run> runs, memory::Buffer from, memory::Buffer to);
  runtime::Task<> copy_device(std::span<const Run> runs, memory::Buffer from, memory::Buffer to);
  static bool are_small(std::span<const Run> runs) {
    return runs.size() >= kLeastPackedRuns && total_bytes(runs) / runs.size() <= kMostPackedBytes;
  }
  // Many small runs between two places: packed at the one, copied as one block, unpacked at the other.
  runtime::Task<> copy_packed(const Copy& copy, memory::Buffer from, memory::Buffer to);
  // Where this PE packs a piece of a copy through the machine, so that runs that adjoin at the other end travel as one.
  struct Block {
    runtime::Attachment memory;
    std::uint64_t size_bytes = 0;
    std::vector<Run> runs;  // between the block and the other end
    bool is_used() const { return size_bytes > 0; }
    memory::Buffer buffer() const { return part_of(memory.buffer(), 0, size_bytes); }
  };
  // Not used if the runs hardly adjoin at the other end of the copy, or if there is no memory.
  Block make_block(std::span<const Run> piece, End other_end, memory::Place place);
  runtime::Task<> put_runs(Copy& copy, memory::Buffer from, KnownSegment& to);
  runtime::Task<> get_runs(const Copy& copy, KnownSegment& from, memory::Buffer to);
  runtime::Task<> ask_source(const Copy& copy);
  void spawn(runtime::Task<> task) { runtime_.spawn(std::move(task), "a copy of global memory"); }

  void on_message(runtime::Message& message);
  void serve(int pe, Request request);
  void answered(int pe, std::uint64_t request, base::StatusCode code, const std::string& why);

  runtime::Runtime& runtime_;
  runtime::HandlerId handler_;
  Segments& segments_;
  RemoteHooks& hooks_;
  bool closed_ = false;
  std::unordered_set<runtime::OperationState*> running_;
  std::uint64_t last_request_ = 0;
  struct Asked {
    int pe = -1;
    runtime::Future<> answer;
  };
  std::unordered_map<std::uint64_t, Asked> asked_;  // of source's PEs
};

}  // namespace weft::rma
