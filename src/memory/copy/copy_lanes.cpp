#include "memory/copy/copy_lanes.h"

#include <algorithm>
#include <cassert>

namespace weft::memory {

using base::Result;
using base::Status;
using base::StatusCode;

namespace {

// Enough for copies in both directions to overlap. More lanes add nothing on the device.
constexpr int kSharedLanesPerDevice = 4;
// Pieces share an event up to as many bytes as are queued before them in their lane, within these limits, and up to so many pieces.
// So the first of them is known to be done at most about twice as late as it is, and each piece of a few large ones at once. An event
// costs the CPU 1.4 us (two H100, driver 580). With 1 MiB alone, a flood of copies of that size has an event for each, and in the slow
// state of the driver's calls it reaches 139 GB/s instead of 175.
constexpr std::size_t kLeastBatchBytes = std::size_t{1} << 20;
constexpr std::size_t kMostBatchBytes = std::size_t{4} << 20;
constexpr std::size_t kMostBatchPieces = 32;

}  // namespace

Status CopyLanes::set_gate(const Buffer& destination, const ConstBuffer& source, Gate& gate) {
  gate.source.place = source.place;
  gate.destination.place = destination.place;
  Status status = record(source.stream, gate.source);
  if (status.failed()) return status;
  return record(destination.stream, gate.destination);
}

Status CopyLanes::record(StreamHandle stream, Side& side) {
  if (stream == nullptr) return {};
  Result<EventHandle> event = kind_of(side.place)->record(stream, side.place.device);
  if (event.ok()) side.ready = *event;
  return event.status();
}

// A direct copy has one lane, which waits for both streams. A staged copy has a lane for each device side,
// which waits for the stream of that side.
Status CopyLanes::enter(Gate& gate, bool is_staged) {
  assert(gate.is_shut() && !gate.has_lanes && has_room());
  Side& source = gate.source;
  Side& destination = gate.destination;
  gate.has_lanes = true;
  ++num_gated_;
  if (!source.place.is_host()) {
    Result<Lane*> lane = take_lane(source.place);
    if (!lane.ok()) return lane.status();
    source.lane = *lane;
  }
  if (!destination.place.is_host() && (source.place.is_host() || is_staged)) {
    Result<Lane*> lane = take_lane(destination.place);
    if (!lane.ok()) return lane.status();
    destination.lane = *lane;
  }
  if (source.ready != nullptr) {
    Status status = wait_in(*source.lane, source);
    if (status.failed()) return status;
  }
  if (destination.ready == nullptr) return {};
  return wait_in(destination.lane != nullptr ? *destination.lane : *source.lane, destination);
}

Status CopyLanes::wait_in(Lane& lane, Side& side) {
  Status status = lane.kind->stream_wait(lane.stream, lane.device, side.ready);
  release(side);
  return status;
}

bool CopyLanes::is_over(Gate& gate, Status& failure) {
  for (Side* side : {&gate.source, &gate.destination}) {
    if (side->ready == nullptr) continue;
    Status status = kind_of(side->place)->query(side->ready);
    if (status.is_pending()) return false;
    release(*side);
    if (failure.ok()) failure = std::move(status);
  }
  return true;
}

void CopyLanes::leave(Gate& gate) {
  for (Side* side : {&gate.source, &gate.destination}) {
    release(*side);
    if (side->lane != nullptr) std::exchange(side->lane, nullptr)->is_taken = false;
  }
  if (std::exchange(gate.has_lanes, false)) --num_gated_;
}

void CopyLanes::release(Side& side) {
  if (side.ready != nullptr) kind_of(side.place)->release_event(std::exchange(side.ready, nullptr));
}

Result<CopyLanes::Lane*> CopyLanes::make_lane(Place place, bool is_shared) {
  Result<StreamHandle> stream = kind_of(place)->create_stream(place.device);
  if (!stream.ok()) return stream.status();
  lanes_.push_back(std::make_unique<Lane>());
  Lane& lane = *lanes_.back();
  lane.kind = kind_of(place);
  lane.device = place.device;
  lane.stream = *stream;
  lane.is_shared = is_shared;
  return &lane;
}

Result<CopyLanes::Lane*> CopyLanes::shared_lane(Place place) {
  Lane* best = nullptr;
  int num_lanes = 0;
  for (const auto& lane : lanes_) {
    if (!lane->is_shared || lane->kind != kind_of(place) || lane->device != place.device) continue;
    ++num_lanes;
    if (best == nullptr || lane->queue.size() < best->queue.size()) best = lane.get();
  }
  if (best != nullptr && (best->queue.empty() || num_lanes >= kSharedLanesPerDevice)) return best;
  return make_lane(place, /*is_shared=*/true);
}

Result<CopyLanes::Lane*> CopyLanes::take_lane(Place place) {
  for (const auto& lane : lanes_) {
    if (lane->is_shared || lane->is_taken || lane->kind != kind_of(place) || lane->device != place.device)
      continue;
    lane->is_taken = true;
    return lane.get();
  }
  Result<Lane*> made = make_lane(place, /*is_shared=*/false);
  if (made.ok()) (*made)->is_taken = true;
  return made;
}

Status CopyLanes::queue(const Side& side, const Buffer& destination, const ConstBuffer& source,
                        const Piece& piece) {
  Lane* lane = side.lane;
  if (lane == nullptr) {
    Result<Lane*> shared = shared_lane(side.place);
    if (!shared.ok()) return shared.status();
    lane = *shared;
  }
  // Ends the open batch if the piece makes it too large: pieces queued before do not wait for a large one.
  if (lane->has_open_batch() && lane->batches.back().size_bytes + piece.size_bytes > most_batch_bytes(*lane))
    static_cast<void>(end_batch(*lane));
  Status status = lane->kind->copy_async(destination.data, destination.place, source.data, source.place,
                                         source.size_bytes, lane->stream);
  if (status.failed()) return status;
  // The piece of an idle lane has its own event at once: the next poll may find it done, also if the PE computes until then.
  const bool was_idle = lane->queue.empty();
  lane->queue.push_back(piece);
  lane->queued_bytes += piece.size_bytes;
  if (!lane->has_open_batch()) lane->batches.emplace_back();
  Batch& batch = lane->batches.back();
  ++batch.num_pieces;
  batch.size_bytes += piece.size_bytes;
  const bool is_full = batch.size_bytes >= most_batch_bytes(*lane) || batch.num_pieces >= kMostBatchPieces;
  // The copy is queued. If there is no event for it, the lane's next poll records one. Others wait for a chunk.
  if (was_idle || is_full || piece.chunk != nullptr) static_cast<void>(end_batch(*lane));
  return {};
}

std::size_t CopyLanes::most_batch_bytes(const Lane& lane) {
  const std::size_t own_bytes = lane.has_open_batch() ? lane.batches.back().size_bytes : 0;
  return std::clamp(lane.queued_bytes - own_bytes, kLeastBatchBytes, kMostBatchBytes);
}

std::size_t CopyLanes::Lane::take_batch() {
  const std::size_t num_pieces = batches.front().num_pieces;
  queued_bytes -= batches.front().size_bytes;
  batches.pop_front();
  return num_pieces;
}

CopyLanes::Piece CopyLanes::Lane::take_piece() {
  const Piece piece = queue.front();
  queue.pop_front();
  return piece;
}

Status CopyLanes::end_batch(Lane& lane) {
  Result<EventHandle> event = lane.kind->record(lane.stream, lane.device);
  if (event.ok()) lane.batches.back().event = *event;
  return event.status();
}

Status CopyLanes::query_first(Lane& lane) {
  Status recorded;
  if (lane.has_open_batch()) recorded = end_batch(lane);
  EventHandle& first = lane.batches.front().event;
  if (first == nullptr) {
    // Without memory for an event, the copies continue. Any other failure means that the device is broken.
    return recorded.code() == StatusCode::kOutOfMemory ? Status::pending() : recorded;
  }
  Status status = lane.kind->query(first);
  if (!status.is_pending()) lane.kind->release_event(first);
  return status;
}

void CopyLanes::close(const Wait& wait, const std::function<void(const Piece&)>& passed) {
  for (const auto& lane : lanes_) close_lane(*lane, wait, passed);
}

void CopyLanes::close_lane(Lane& lane, const Wait& wait, const std::function<void(const Piece&)>& passed) {
  while (!lane.batches.empty()) {
    if (!wait([&] { return !query_first(lane).is_pending(); })) break;
    for (std::size_t left = lane.take_batch(); left > 0; --left) passed(lane.take_piece());
  }
  if (lane.queue.empty()) {
    [[maybe_unused]] Status status =
        lane.kind->destroy_stream(lane.stream);  // a failure changes nothing: the lane has no work
    return;
  }
  // The device hangs: the stream and the chunks are kept, because the device may still write to the chunks.
  for (const Batch& batch : lane.batches) {
    if (batch.event != nullptr) lane.kind->release_event(batch.event);
  }
  lane.batches.clear();
  lane.queue.clear();
  lane.queued_bytes = 0;
}

}  // namespace weft::memory
