#include "memory/copy_engine.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <thread>
#include <utility>

#include "fmt/format.h"

namespace weft::memory {

using base::Completion;
using base::Result;
using base::Status;
using base::StatusCode;

namespace {

// Enough for copies in both directions beside one another and beside one that waits for its stream.
constexpr int kLanesPerDevice = 4;
// What the CPU copies in one poll, so that a PE with a large copy still gets to its messages.
constexpr std::size_t kHostSliceBytes = 4 * 1024 * 1024;

std::byte* at(const Buffer& buffer, std::size_t offset_bytes) {
  return static_cast<std::byte*>(buffer.data) + offset_bytes;
}

const std::byte* at(const ConstBuffer& buffer, std::size_t offset_bytes) {
  return static_cast<const std::byte*>(buffer.data) + offset_bytes;
}

Status closed_status(const char* operation) {
  return Status(StatusCode::kClosed,
                fmt::format("the memory layer was closed before {} was done", operation));
}

}  // namespace

CopyEngine::~CopyEngine() { close(); }

Status CopyEngine::copy(const Buffer& destination, const ConstBuffer& source, Completion* completion) {
  assert(completion != nullptr && destination.size_bytes == source.size_bytes);
  if (closed_) return Status(StatusCode::kClosed, "no copy can be started: the memory layer is closed");
  if (destination.size_bytes == 0) {
    done_.push_back({completion, Status(), 0});
    return Status::pending();
  }
  transfers_.push_back(std::make_unique<Transfer>());
  Transfer& transfer = *transfers_.back();
  transfer.slot = transfers_.size() - 1;
  transfer.completion = completion;
  transfer.destination = destination;
  transfer.source = source;
  Status status = start(transfer);
  if (status.failed()) {
    forget(transfer);
    return status;
  }
  return Status::pending();
}

Status CopyEngine::start(Transfer& transfer) {
  const Buffer& destination = transfer.destination;
  const ConstBuffer& source = transfer.source;
  if (destination.place.is_host() && source.place.is_host()) {
    host_copies_.push_back(&transfer);
    return {};
  }
  if (source.stream != nullptr) {
    Result<EventHandle> event = kind_of(source.place)->record(source.stream, source.place.device);
    if (!event.ok()) return event.status();
    transfer.source_ready = *event;
  }
  if (destination.stream != nullptr) {
    Result<EventHandle> event =
        kind_of(destination.place)->record(destination.stream, destination.place.device);
    if (!event.ok()) return event.status();
    transfer.destination_ready = *event;
  }
  bool direct = destination.place.kind == source.place.kind;
  if (source.place.is_host()) {
    direct = kind_of(destination.place)->host_copy_is_async(source.data, source.size_bytes);
  } else if (destination.place.is_host()) {
    direct = kind_of(source.place)->host_copy_is_async(destination.data, destination.size_bytes);
  }
  if (direct) return start_direct(transfer);
  start_staged(transfer);
  return {};
}

Status CopyEngine::start_direct(Transfer& transfer) {
  const Place place = transfer.source.place.is_host() ? transfer.destination.place : transfer.source.place;
  Piece piece;
  piece.transfer = &transfer;
  piece.size_bytes = transfer.size_bytes();
  Status status = queue_piece(place, piece);
  if (status.failed()) return status;
  transfer.issued_bytes = piece.size_bytes;
  transfer.pieces_in_flight = 1;
  return {};
}

void CopyEngine::start_staged(Transfer& transfer) {
  find_staging(transfer);
  unissued_.push_back(&transfer);
  // A short copy is on its way at once; the rest of a long one follows when polled, because it costs CPU
  // copies.
  if (unissued_.size() == 1) issue_chunks(1);
}

void CopyEngine::find_staging(Transfer& transfer) {
  // The side that blocks for ordinary host memory provides the chunks.
  static constexpr char kProbe = 0;
  Place place = transfer.destination.place;
  if (place.is_host() || kind_of(place)->host_copy_is_async(&kProbe, 1)) place = transfer.source.place;
  std::unique_ptr<StagingPool>& pool = staging_[static_cast<std::size_t>(place.kind)];
  if (pool == nullptr) pool = std::make_unique<StagingPool>(kind_of(place));
  transfer.staging = pool.get();
  transfer.staging_device = place.device;
}

Result<CopyEngine::Lane*> CopyEngine::choose_lane(Place place) {
  KindBackend* const kind = kind_of(place);
  Lane* best = nullptr;
  int num_lanes = 0;
  for (const auto& lane : lanes_) {
    if (lane->kind != kind || lane->device != place.device) continue;
    ++num_lanes;
    if (best == nullptr || lane->pieces.size() < best->pieces.size()) best = lane.get();
  }
  if (best != nullptr && (best->pieces.empty() || num_lanes >= kLanesPerDevice)) return best;
  Result<StreamHandle> stream = kind->create_stream(place.device);
  if (!stream.ok()) return stream.status();
  lanes_.push_back(std::make_unique<Lane>());
  Lane& lane = *lanes_.back();
  lane.kind = kind;
  lane.device = place.device;
  lane.stream = *stream;
  return &lane;
}

Status CopyEngine::wait_for_streams(const Lane& lane, const Piece& piece) {
  const Transfer& transfer = *piece.transfer;
  const bool reads_source = piece.chunk == nullptr || piece.into_chunk;
  const bool writes_destination = !piece.into_chunk;
  if (transfer.source_ready != nullptr && reads_source) {
    Status status = lane.kind->stream_wait(lane.stream, lane.device, transfer.source_ready);
    if (status.failed()) return status;
  }
  if (transfer.destination_ready != nullptr && writes_destination) {
    return lane.kind->stream_wait(lane.stream, lane.device, transfer.destination_ready);
  }
  return {};
}

Status CopyEngine::queue_piece(Place lane_place, Piece piece) {
  Result<Lane*> chosen = choose_lane(lane_place);
  if (!chosen.ok()) return chosen.status();
  Lane& lane = **chosen;
  Status status = wait_for_streams(lane, piece);
  if (status.failed()) return status;

  const Buffer& destination = piece.transfer->destination;
  const ConstBuffer& source = piece.transfer->source;
  const bool to_chunk = piece.chunk != nullptr && piece.into_chunk;
  const bool from_chunk = piece.chunk != nullptr && !piece.into_chunk;
  status = lane.kind->copy_async(to_chunk ? piece.chunk : at(destination, piece.offset_bytes),
                                 to_chunk ? Place() : destination.place,
                                 from_chunk ? piece.chunk : at(source, piece.offset_bytes),
                                 from_chunk ? Place() : source.place, piece.size_bytes, lane.stream);
  if (status.failed()) return status;
  Result<EventHandle> event = lane.kind->record(lane.stream, lane.device);
  if (!event.ok()) return event.status();
  piece.event = *event;
  lane.pieces.push_back(piece);
  return {};
}

void CopyEngine::issue_chunks(int max_chunks) {
  while (max_chunks-- > 0 && !unissued_.empty()) {
    Transfer& transfer = *unissued_.front();
    Result<std::byte*> chunk = transfer.staging->take(transfer.staging_device);
    if (chunk.ok() && *chunk == nullptr) return;
    transfer.failure = chunk.ok() ? issue_chunk(transfer, *chunk) : chunk.status();
    if (transfer.failure.failed() || transfer.issued_bytes == transfer.size_bytes()) {
      unissued_.pop_front();
      end_if_over(transfer);
    }
  }
}

Status CopyEngine::issue_chunk(Transfer& transfer, std::byte* chunk) {
  const bool from_host = transfer.source.place.is_host();
  Piece piece;
  piece.transfer = &transfer;
  piece.offset_bytes = transfer.issued_bytes;
  piece.size_bytes = std::min(StagingPool::kChunkBytes, transfer.size_bytes() - transfer.issued_bytes);
  piece.chunk = chunk;
  piece.into_chunk = !from_host;
  if (from_host) std::memcpy(chunk, at(transfer.source, piece.offset_bytes), piece.size_bytes);
  Status status = queue_piece(from_host ? transfer.destination.place : transfer.source.place, piece);
  if (status.failed()) {
    transfer.staging->give_back(chunk);
    return status;
  }
  transfer.issued_bytes += piece.size_bytes;
  ++transfer.pieces_in_flight;
  return {};
}

void CopyEngine::piece_done(const Piece& piece, Status status) {
  Transfer& transfer = *piece.transfer;
  if (status.ok() && piece.into_chunk && transfer.failure.ok()) {
    status = leave_chunk(piece);
    if (status.is_pending()) return;
  } else if (piece.chunk != nullptr) {
    transfer.staging->give_back(piece.chunk);
  }
  --transfer.pieces_in_flight;
  if (status.ok()) {
    transfer.landed_bytes += piece.size_bytes;
  } else if (transfer.failure.ok()) {
    transfer.failure = std::move(status);
    std::erase(unissued_, &transfer);
  }
  end_if_over(transfer);
}

// The bytes are in the chunk; brings them to the destination. Pending: they are on their way there.
Status CopyEngine::leave_chunk(Piece piece) {
  Transfer& transfer = *piece.transfer;
  if (transfer.destination.place.is_host()) {
    std::memcpy(at(transfer.destination, piece.offset_bytes), piece.chunk, piece.size_bytes);
    transfer.staging->give_back(piece.chunk);
    return {};
  }
  piece.into_chunk = false;
  Status status = queue_piece(transfer.destination.place, piece);
  if (status.ok()) return Status::pending();
  transfer.staging->give_back(piece.chunk);
  return status;
}

void CopyEngine::end_if_over(Transfer& transfer) {
  if (transfer.pieces_in_flight > 0) return;
  const bool complete = transfer.landed_bytes == transfer.size_bytes();
  if (transfer.failure.ok() && !complete) return;
  done_.push_back({transfer.completion, std::move(transfer.failure), complete ? transfer.size_bytes() : 0});
  forget(transfer);
}

void CopyEngine::forget(Transfer& transfer) {
  if (transfer.source_ready != nullptr) kind_of(transfer.source.place)->release_event(transfer.source_ready);
  if (transfer.destination_ready != nullptr) {
    kind_of(transfer.destination.place)->release_event(transfer.destination_ready);
  }
  const std::size_t slot = transfer.slot;
  if (slot + 1 != transfers_.size()) {
    std::swap(transfers_[slot], transfers_.back());
    transfers_[slot]->slot = slot;
  }
  transfers_.pop_back();
}

Status CopyEngine::when_stream_done(Place place, StreamHandle stream, Completion* completion) {
  assert(completion != nullptr);
  if (closed_) return Status(StatusCode::kClosed, "no stream can be waited for: the memory layer is closed");
  if (stream == nullptr) {
    done_.push_back({completion, Status(), 0});
    return Status::pending();
  }
  KindBackend* const kind = kind_of(place);
  Result<EventHandle> event = kind->record(stream, place.device);
  if (!event.ok()) return event.status();
  watches_.push_back({kind, *event, completion});
  return Status::pending();
}

bool CopyEngine::poll_lanes() {
  bool any = false;
  for (std::size_t i = 0; i < lanes_.size(); ++i) {  // a piece that is done may add lanes
    Lane& lane = *lanes_[i];
    while (!lane.pieces.empty()) {
      const Piece piece = lane.pieces.front();
      Status status = lane.kind->query(piece.event);
      if (status.is_pending()) break;
      lane.pieces.pop_front();
      lane.kind->release_event(piece.event);
      piece_done(piece, std::move(status));
      any = true;
    }
  }
  return any;
}

bool CopyEngine::poll_watches() {
  bool any = false;
  for (std::size_t i = 0; i < watches_.size();) {
    Watch& watch = watches_[i];
    Status status = watch.kind->query(watch.event);
    if (status.is_pending()) {
      ++i;
      continue;
    }
    watch.kind->release_event(watch.event);
    done_.push_back({watch.completion, std::move(status), 0});
    watch = watches_.back();
    watches_.pop_back();
    any = true;
  }
  return any;
}

bool CopyEngine::copy_host_slices() {
  std::size_t budget_bytes = kHostSliceBytes;
  bool any = false;
  while (budget_bytes > 0 && !host_copies_.empty()) {
    Transfer& transfer = *host_copies_.front();
    const std::size_t size_bytes = std::min(budget_bytes, transfer.size_bytes() - transfer.landed_bytes);
    std::memmove(at(transfer.destination, transfer.landed_bytes), at(transfer.source, transfer.landed_bytes),
                 size_bytes);
    transfer.landed_bytes += size_bytes;
    budget_bytes -= size_bytes;
    if (transfer.landed_bytes == transfer.size_bytes()) {
      host_copies_.pop_front();
      end_if_over(transfer);
    }
    any = true;
  }
  return any;
}

bool CopyEngine::deliver() {
  if (done_.empty()) return false;
  // A completion function may start operations, and those may be done at once.
  std::swap(done_, delivering_);
  for (Done& done : delivering_) {
    done.completion->function(done.completion, std::move(done.status), done.size_bytes);
  }
  delivering_.clear();
  return true;
}

bool CopyEngine::progress() {
  bool any = poll_lanes();
  issue_chunks(StagingPool::kMaxChunks);
  if (!watches_.empty()) any |= poll_watches();
  if (!host_copies_.empty()) any |= copy_host_slices();
  return deliver() || any;
}

bool CopyEngine::has_pending() const { return !transfers_.empty() || !watches_.empty() || !done_.empty(); }

void CopyEngine::close() {
  if (closed_) return;
  closed_ = true;
  for (const auto& lane : lanes_) {
    for (const Piece& piece : lane->pieces) {
      while (lane->kind->query(piece.event).is_pending()) std::this_thread::yield();
      lane->kind->release_event(piece.event);
      if (piece.chunk != nullptr) piece.transfer->staging->give_back(piece.chunk);
    }
    lane->pieces.clear();
    [[maybe_unused]] Status status =
        lane->kind->destroy_stream(lane->stream);  // nothing is left to be done about it
  }
  lanes_.clear();
  host_copies_.clear();
  unissued_.clear();
  while (!transfers_.empty()) {
    Transfer& transfer = *transfers_.back();
    done_.push_back({transfer.completion, closed_status("a copy"), 0});
    forget(transfer);
  }
  for (const Watch& watch : watches_) {
    watch.kind->release_event(watch.event);
    done_.push_back({watch.completion, closed_status("a stream's work"), 0});
  }
  watches_.clear();
  while (deliver()) {
  }
}

}  // namespace weft::memory
