// What a program's stream does with segments: copies, signals and waits for them. The CPU queues it and waits for nothing.
#include <cstdint>
#include <string>
#include <utility>

#include "weft/base/error.h"

#include "base/format.h"
#include "memory/memory.h"
#include "rma/copy/batch.h"
#include "rma/copy/copies.h"

namespace weft::rma {

using base::Error;
using base::StatusCode;

namespace {

// Memory of a segment as that device reaches it.
memory::Buffer part_for_device(const KnownSegment* segment, const GlobalAddress& address,
                               std::size_t size_bytes, memory::Place device) {
  const bool is_reached = segment != nullptr && segment->is_reached() &&
                          (segment->memory.place.is_host() || segment->memory.place.kind == device.kind);
  if (is_reached) return segment->part(address, size_bytes);
  throw Error(
      StatusCode::kInvalidArgument,
      base::format(
          "a stream of {} cannot use {}: {}", memory::place_name(device), describe(address),
          segment == nullptr
              ? "this PE has not learned its segment: await learn() before"
              : "the device does not reach the segment; use copy(), and messages in place of signals"));
}

[[noreturn]] void refuse_word(const StreamWord& word, memory::Place device, const std::string& why) {
  throw Error(StatusCode::kInvalidArgument,
              base::format("a stream of {} cannot {} {}: {}", memory::place_name(device),
                           word.is_wait ? "wait for" : "signal at", describe(word.address), why));
}

void expect_word(const StreamWord& word, const memory::Buffer& memory, memory::Place device) {
  if (memory.place.is_host()) refuse_word(word, device, "put the word into a segment of device memory");
  if (memory.place != device) {
    refuse_word(word, device,
                base::format("this PE reaches the word on {}: use a stream of that device",
                             memory::place_name(memory.place)));
  }
  if (reinterpret_cast<std::uintptr_t>(memory.data) % sizeof(std::uint32_t) != 0)
    refuse_word(word, device, "the address of a word is a multiple of 4");
}

}  // namespace

void Copies::enqueue(const Copy& copy, memory::Place device, memory::StreamHandle stream,
                     runtime::OperationState* state) {
  KnownSegment* const from = segments_.find(copy.from.address);
  KnownSegment* const to = segments_.find(copy.to.address);
  const std::size_t size_bytes = copy.runs.front().size_bytes;
  const memory::Buffer source = part_for_device(from, copy.from.address, size_bytes, device);
  const memory::Buffer target = part_for_device(to, copy.to.address, size_bytes, device);
  expect_ends(copy, from, to);
  memory::KindBackend* const kind = runtime_.memory().backend(device.kind);
  if (kind == nullptr || device.is_host() || (source.place.is_host() && target.place.is_host())) {
    throw Error(StatusCode::kInvalidArgument,
                base::format("{} cannot be queued on a stream of {}: neither end is memory of such a device",
                             copy.text(), memory::place_name(device)));
  }
  lock_pages(from, device, size_bytes);
  lock_pages(to, device, size_bytes);
  base::check(kind->copy_async(target.data, target.place, source.data, source.place, size_bytes, stream));
  follow_stream(segments_.use(*from), segments_.use(*to), {device, stream}, state);
}

void Copies::enqueue(const StreamWord& word, memory::Place device, memory::StreamHandle stream,
                     runtime::OperationState* state) {
  KnownSegment* const segment = segments_.find_inside(word.address, sizeof word.value);
  if (word.is_wait && word.address.pe() != runtime_.pe()) {
    refuse_word(
        word, device,
        "a stream waits for words of its own PE, because it reads them again and again: keep the word "
        "in a segment of the PE that waits, and signal there");
  }
  const memory::Buffer memory = part_for_device(segment, word.address, sizeof word.value, device);
  expect_word(word, memory, device);
  memory::KindBackend* const kind = runtime_.memory().backend(device.kind);
  auto* const data = static_cast<std::uint32_t*>(memory.data);
  base::check(word.is_wait ? kind->queue_wait(data, memory.place, word.value, stream)
                           : kind->queue_write(data, memory.place, word.value, stream));
  follow_stream(segments_.use(*segment), SegmentUse(), {device, stream}, state);
}

// A graph that is captured has no end to wait for, so the program keeps the segments.
void Copies::follow_stream(SegmentUse first, SegmentUse second, PlacedStream on,
                           runtime::OperationState* state) {
  memory::KindBackend* const kind = runtime_.memory().backend(on.device.kind);
  if (kind->is_capturing(on.stream, on.device.device)) return state->complete({}, 0);
  spawn(run_stream(std::move(first), std::move(second), on, state));
}

runtime::Task<> Copies::run_stream(SegmentUse first, SegmentUse second, PlacedStream on,
                                   runtime::OperationState* state) {
  Ticket ticket(*this, state);
  const SegmentUse keep_first =
      std::move(first);  // until the stream is done, also if the parameters are moved
  const SegmentUse keep_second = std::move(second);
  Batch batch(runtime_);
  batch.start([&](base::Completion* completion) {
    return runtime_.memory().when_queued_done(on.device, on.stream, completion);
  });
  co_await batch;
  ticket.end(batch.status(), 0);
}

}  // namespace weft::rma
