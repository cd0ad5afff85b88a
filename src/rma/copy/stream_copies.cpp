// Copies that a program's stream makes: the CPU queues them and waits for nothing.
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

// The end as that device reaches it.
memory::Buffer end_for_device(const KnownSegment* segment, const GlobalAddress& address,
                              std::size_t size_bytes, memory::Place device) {
  const bool is_reached = segment != nullptr && segment->is_reached() &&
                          (segment->memory.place.is_host() || segment->memory.place.kind == device.kind);
  if (is_reached) return segment->part(address, size_bytes);
  throw Error(StatusCode::kInvalidArgument,
              base::format("a stream of {} cannot copy {}: {}", memory::place_name(device), describe(address),
                           segment == nullptr ? "this PE has not learned its segment: await learn() before"
                                              : "the device does not reach the segment; use copy()"));
}

}  // namespace

void Copies::enqueue(const Copy& copy, memory::Place device, memory::StreamHandle stream,
                     runtime::OperationState* state) {
  KnownSegment* const from = segments_.find(copy.from.address);
  KnownSegment* const to = segments_.find(copy.to.address);
  const std::size_t size_bytes = copy.runs.front().size_bytes;
  const memory::Buffer source = end_for_device(from, copy.from.address, size_bytes, device);
  const memory::Buffer target = end_for_device(to, copy.to.address, size_bytes, device);
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
  spawn(run_stream(segments_.use(*from), segments_.use(*to), device, stream, state));
}

runtime::Task<> Copies::run_stream(SegmentUse from, SegmentUse to, memory::Place device,
                                   memory::StreamHandle stream, runtime::OperationState* state) {
  Ticket ticket(*this, state);
  const SegmentUse keep_from = std::move(from);  // until the stream is done, also if the parameters are moved
  const SegmentUse keep_to = std::move(to);
  Batch batch(runtime_);
  batch.start([&](base::Completion* completion) {
    return runtime_.memory().when_stream_done(device, stream, completion);
  });
  co_await batch;
  ticket.end(batch.status(), 0);
}

}  // namespace weft::rma
