#include "memory/copy/copy_engine.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <thread>
#include <utility>

#include "base/format.h"

namespace weft::memory {

using base::Completion;
using base::Result;
using base::Status;
using base::StatusCode;

namespace {

// A waiting copy holds at most one chunk, so some chunks remain for copies that wait for nothing.
static_assert(CopyLanes::kMaxGated < StagingPool::kMaxChunks);
// How many deferred copies one poll queries.
constexpr std::size_t kDeferredPerPoll = 16;
// How much the CPU copies in one poll. The limit lets a PE with a large copy handle its messages.
constexpr std::size_t kHostSliceBytes = 4 * 1024 * 1024;

std::byte* at(const Buffer& buffer, std::size_t offset_bytes) {
  return static_cast<std::byte*>(buffer.data) + offset_bytes;
}

const std::byte* at(const ConstBuffer& buffer, std::size_t offset_bytes) {
  return static_cast<const std::byte*>(buffer.data) + offset_bytes;
}

Status closed_status(const char* operation) {
  return Status(StatusCode::kClosed,
                base::format("the memory layer was closed before {} was done", operation));
}

// On some kinds a step that is ended does not fail.
Status aborted_status() {
  return Status(StatusCode::kClosed,
                "the end of the job has ended steps that waited for signals, so a stream's work is not done");
}

bool wait(const std::function<bool()>& is_over, std::chrono::nanoseconds& time_left) {
  const auto start = std::chrono::steady_clock::now();
  for (;;) {
    const bool over = is_over();
    const auto waited = std::chrono::steady_clock::now() - start;
    if (over || waited >= time_left) {
      time_left -= std::min<std::chrono::nanoseconds>(waited, time_left);
      return over;
    }
    std::this_thread::yield();
  }
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
  if (transfer.destination.place.is_host() && transfer.source.place.is_host()) {
    host_copies_.push_back(&transfer);
    return {};
  }
  Status status = lanes_.set_gate(transfer.destination, transfer.source, transfer.gate);
  if (status.failed()) return status;
  if (needs_staging(transfer)) find_staging(transfer);
  return begin(transfer);
}

bool CopyEngine::needs_staging(const Transfer& transfer) const {
  const Buffer& destination = transfer.destination;
  const ConstBuffer& source = transfer.source;
  if (source.place.is_host()) {
    return !kind_of(destination.place)->host_copy_is_async(source.data, source.size_bytes);
  }
  if (destination.place.is_host()) {
    return !kind_of(source.place)->host_copy_is_async(destination.data, destination.size_bytes);
  }
  return destination.place.kind != source.place.kind;
}

void CopyEngine::find_staging(Transfer& transfer) {
  // The chunks are host memory of the side whose copies would block for ordinary host memory.
  static constexpr char kProbe = 0;
  Place place = transfer.destination.place;
  if (place.is_host() || kind_of(place)->host_copy_is_async(&kProbe, 1)) place = transfer.source.place;
  std::unique_ptr<StagingPool>& pool = staging_[static_cast<std::size_t>(place.kind)];
  if (pool == nullptr) pool = std::make_unique<StagingPool>(kind_of(place));
  transfer.staging = pool.get();
  transfer.staging_device = place.device;
}

Status CopyEngine::begin(Transfer& transfer) {
  if (transfer.gate.is_shut()) {
    if (!lanes_.has_room()) {
      deferred_.push_back(&transfer);
      return {};
    }
    Status status = lanes_.enter(transfer.gate, /*is_staged=*/transfer.staging != nullptr);
    if (status.failed()) return status;
  }
  if (transfer.staging != nullptr) {
    unissued_.push_back(&transfer);
    // The first chunk is queued at once. The others are queued by polls, because each costs a CPU copy.
    if (unissued_.size() == 1) issue_chunks(1);
    return {};
  }
  Piece piece;
  piece.transfer = &transfer;
  piece.size_bytes = transfer.size_bytes();
  Status status = queue_piece(piece, /*on_source_side=*/!transfer.source.place.is_host());
  if (status.failed()) return status;
  transfer.issued_bytes = piece.size_bytes;
  transfer.pieces_in_flight = 1;
  return {};
}

bool CopyEngine::begin_deferred() {
  bool any = false;
  for (std::size_t left = std::min(kDeferredPerPoll, deferred_.size()); left > 0; --left) {
    Transfer& transfer = *deferred_.front();
    deferred_.pop_front();
    if (!lanes_.has_room() && !lanes_.is_over(transfer.gate, transfer.failure)) {
      deferred_.push_back(&transfer);
      continue;
    }
    any = true;
    if (transfer.failure.ok()) {
      Status status = begin(transfer);
      if (!status.failed()) continue;  // the transfer may be deleted, if its first chunk failed
      transfer.failure = std::move(status);
    }
    end_if_over(transfer);
  }
  return any;
}

Status CopyEngine::queue_piece(const Piece& piece, bool on_source_side) {
  const Transfer& transfer = *piece.transfer;
  const bool to_chunk = piece.chunk != nullptr && piece.into_chunk;
  const bool from_chunk = piece.chunk != nullptr && !piece.into_chunk;
  const Buffer destination{to_chunk ? piece.chunk : at(transfer.destination, piece.offset_bytes),
                           piece.size_bytes, to_chunk ? Place() : transfer.destination.place, nullptr};
  const ConstBuffer source(from_chunk ? piece.chunk : at(transfer.source, piece.offset_bytes),
                           piece.size_bytes, from_chunk ? Place() : transfer.source.place);
  return lanes_.queue(on_source_side ? transfer.gate.source : transfer.gate.destination, destination, source,
                      piece);
}

void CopyEngine::issue_chunks(int max_chunks) {
  for (std::size_t i = 0; i < unissued_.size() && max_chunks > 0;) {
    Transfer& transfer = *unissued_[i];
    const bool is_waiting =
        transfer.gate.has_lanes && transfer.landed_bytes == 0 && transfer.pieces_in_flight > 0;
    if (is_waiting) {
      ++i;
      continue;
    }
    Result<std::byte*> chunk = transfer.staging->take(transfer.staging_device);
    if (chunk.ok() && *chunk == nullptr) return;
    --max_chunks;
    transfer.failure = chunk.ok() ? issue_chunk(transfer, *chunk) : chunk.status();
    if (transfer.failure.failed() || transfer.issued_bytes == transfer.size_bytes()) {
      unissued_.erase(unissued_.begin() + static_cast<std::ptrdiff_t>(i));
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
  Status status = queue_piece(piece, /*on_source_side=*/!from_host);
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
    status = copy_from_chunk(piece);
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

// Copies the bytes of the chunk to the destination. pending: that copy is in flight.
Status CopyEngine::copy_from_chunk(Piece piece) {
  Transfer& transfer = *piece.transfer;
  if (transfer.destination.place.is_host()) {
    std::memcpy(at(transfer.destination, piece.offset_bytes), piece.chunk, piece.size_bytes);
    transfer.staging->give_back(piece.chunk);
    return {};
  }
  piece.into_chunk = false;
  Status status = queue_piece(piece, /*on_source_side=*/false);
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
  lanes_.leave(transfer.gate);
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
  Watch watch;
  watch.completion = completion;
  return watch_stream(place, stream, watch);
}

Status CopyEngine::when_queued_done(Place place, StreamHandle stream, Completion* completion) {
  if (closed_) return closed_status("a stream's work");
  Watch watch;
  watch.completion = completion;
  watch.holds_memory = true;
  return watch_stream(place, stream, watch);
}

Status CopyEngine::watch_stream(Place place, StreamHandle stream, Watch watch) {
  watch.kind = kind_of(place);
  Result<EventHandle> event = watch.kind->record(stream, place.device);
  if (!event.ok()) return event.status();
  watch.event = *event;
  watches_.push_back(watch);
  return Status::pending();
}

Status CopyEngine::when_event_done(Place place, EventHandle event, Completion* completion) {
  if (closed_) return closed_status("an event");
  watches_.push_back({kind_of(place), event, completion, false});
  return Status::pending();
}

bool CopyEngine::poll_watches() {
  bool any = false;
  for (std::size_t i = 0; i < watches_.size();) {
    // A copy: a query may run a kernel of an emulated device, and the kernel may begin a watch.
    const Watch watch = watches_[i];
    Status status = watch.kind->query(watch.event);
    if (status.is_pending()) {
      ++i;
      continue;
    }
    watch.release();
    if (steps_are_aborted_ && status.ok()) status = aborted_status();
    done_.push_back({watch.completion, std::move(status), 0});
    watches_[i] = watches_.back();
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
  // A completion function may start operations that complete at once and are added to done_.
  std::swap(done_, delivering_);
  for (Done& done : delivering_) {
    done.completion->function(done.completion, std::move(done.status), done.size_bytes);
  }
  delivering_.clear();
  return true;
}

bool CopyEngine::progress() {
  bool any = lanes_.poll([this](const Piece& piece, Status status) { piece_done(piece, std::move(status)); });
  if (!deferred_.empty()) any |= begin_deferred();
  issue_chunks(StagingPool::kMaxChunks);
  if (!watches_.empty()) any |= poll_watches();
  if (!host_copies_.empty()) any |= copy_host_slices();
  return deliver() || any;
}

bool CopyEngine::has_pending() const { return !transfers_.empty() || !watches_.empty() || !done_.empty(); }

bool CopyEngine::wait_for_devices(const std::function<bool()>& is_over) {
  const auto is_over_or_waits = [&] {
    if (is_over()) return true;
    end_steps_that_only_wait();
    return false;
  };
  if (wait(is_over_or_waits, timeout_left_)) return true;
  abort_steps();
  return abort_timeout_left_ > std::chrono::nanoseconds::zero() && wait(is_over, abort_timeout_left_);
}

void CopyEngine::end_steps_that_only_wait() {
  if (steps_are_aborted_) return;
  bool only_waits = false;
  bool is_unknown = false;
  for (KindBackend* const kind : kinds_) {
    const KindBackend::Activity activity = kind == nullptr ? KindBackend::Activity::kIdle : kind->activity();
    only_waits |= activity == KindBackend::Activity::kOnlyWaits;
    is_unknown |= activity == KindBackend::Activity::kUnknown;
  }
  const auto now = std::chrono::steady_clock::now();
  if (!only_waits || is_unknown) {
    only_waits_since_.reset();
  } else if (!only_waits_since_.has_value()) {
    only_waits_since_ = now;
  } else if (now - *only_waits_since_ >= kSignalTimeout) {
    has_ended_waits_ = true;
    abort_steps();
  }
}

void CopyEngine::abort_steps() {
  if (std::exchange(steps_are_aborted_, true)) return;
  for (KindBackend* const kind : kinds_) {
    if (kind != nullptr && kind->abort_steps()) abort_timeout_left_ = kAbortTimeout;
  }
}

void CopyEngine::end_steps() {
  const auto holds_none = [this] { return std::ranges::none_of(watches_, &Watch::holds_memory); };
  wait_for_devices([&] {
    if (holds_none()) return true;
    poll_watches();
    return holds_none();
  });
  abort_steps();
}

void CopyEngine::close() {
  if (closed_) return;
  closed_ = true;
  lanes_.close([this](const std::function<bool()>& is_over) { return wait_for_devices(is_over); },
               [](const Piece& piece) {
                 if (piece.chunk != nullptr) piece.transfer->staging->give_back(piece.chunk);
               });
  end_steps();
  has_hung_ = is_out_of_time() && abort_timeout_left_ <= std::chrono::nanoseconds::zero();
  if (has_hung_) {
    for (KindBackend* kind : kinds_) {
      if (kind != nullptr) kind->abandon();
    }
  }
  host_copies_.clear();
  deferred_.clear();
  unissued_.clear();
  while (!transfers_.empty()) {
    Transfer& transfer = *transfers_.back();
    done_.push_back({transfer.completion, closed_status("a copy"), 0});
    forget(transfer);
  }
  for (const Watch& watch : watches_) {
    watch.release();
    done_.push_back({watch.completion, closed_status("a stream's work"), 0});
  }
  watches_.clear();
  while (deliver()) {
  }
}

}  // namespace weft::memory
