// The copies and stream waits in flight in one PE's memory.
//
// A copy takes one of three ways:
//   direct   the device kind of one side reaches the other side: one copy in a lane
//   staged   pipelined through chunks of host memory that devices reach without blocking the CPU: between
//            device kinds, and between a device and host memory that its driver would block for (cuda: not
//            page-locked)
//   host     the CPU copies, in slices, when it is polled
//
// Lanes are streams of our own. Copies that wait for no stream share a few of them. A copy that names a
// stream is gated: it waits, on the device, in lanes of its own, so that it neither holds up other copies
// nor makes the user's later work wait for it. Few gated copies have lanes at a time; the others are
// deferred until lanes are free or their streams are seen to be done. A gated copy holds one chunk at most
// while it waits. So whatever waits for a busy stream, all else goes on.
//
// A lane's pieces are done in order, hence a poll asks the driver about the first piece of each lane only.
//
// Threads: the PE's. Invariants: completion functions are called by progress() and close() alone, after the
// engine has forgotten the operation; a transfer ends only when no piece of it is in flight, also when one
// has failed, unless its device hangs at the end.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "weft/base/completion.h"
#include "weft/base/status.h"
#include "weft/memory/buffer.h"

#include "memory/kind.h"
#include "memory/memory_options.h"
#include "memory/staging_pool.h"

namespace weft::memory {

class CopyEngine {
 public:
  // Kinds by number, null where there is none; they outlive the engine.
  explicit CopyEngine(const std::array<KindBackend*, kNumKinds>& kinds,
                      std::chrono::nanoseconds patience = kDevicePatience)
      : kinds_(kinds), patience_left_(patience) {}
  ~CopyEngine();
  CopyEngine(const CopyEngine&) = delete;
  CopyEngine& operator=(const CopyEngine&) = delete;

  // REQUIRES: equal sizes, known kinds and devices, host sides name no stream.
  base::Status copy(const Buffer& destination, const ConstBuffer& source, base::Completion* completion);
  base::Status when_stream_done(Place place, StreamHandle stream, base::Completion* completion);

  bool progress();
  bool has_pending() const;
  // Calls `is_over` until it says so. False when the patience, which all waits share, ends before.
  bool wait_for_devices(const std::function<bool()>& is_over);
  // Afterwards nothing can be started. Waits for the devices until the patience ends; then the kinds are
  // left to the system, since one hangs.
  void close();

 private:
  struct Lane;
  struct Transfer {
    std::size_t slot = 0;  // in transfers_
    base::Completion* completion = nullptr;
    Buffer destination;
    ConstBuffer source;
    // What was queued on the buffers' streams when the copy was started; null when there is nothing to wait
    // for, or when lanes of our own wait for it.
    EventHandle destination_ready = nullptr;
    EventHandle source_ready = nullptr;
    // A gated copy's own lanes while it has them.
    bool has_lanes = false;
    Lane* destination_lane = nullptr;
    Lane* source_lane = nullptr;
    StagingPool* staging = nullptr;  // of a staged copy, for this device
    int staging_device = 0;
    std::size_t issued_bytes = 0;
    std::size_t landed_bytes = 0;
    int pieces_in_flight = 0;
    base::Status failure;

    std::size_t size_bytes() const { return destination.size_bytes; }
    bool is_gated() const { return source_ready != nullptr || destination_ready != nullptr; }
  };
  // Some bytes of a transfer in a lane. `chunk` is null for a direct copy.
  struct Piece {
    Transfer* transfer = nullptr;
    std::size_t offset_bytes = 0;
    std::size_t size_bytes = 0;
    std::byte* chunk = nullptr;
    bool into_chunk = false;
    EventHandle event = nullptr;  // null: it could not be recorded yet
  };
  struct Lane {
    KindBackend* kind = nullptr;
    int device = 0;
    StreamHandle stream = nullptr;
    bool is_shared = true;
    bool is_taken = false;  // by a gated copy; of lanes that are not shared
    std::deque<Piece> pieces;
  };
  struct Watch {
    KindBackend* kind = nullptr;
    EventHandle event = nullptr;
    base::Completion* completion = nullptr;
  };
  struct Done {
    base::Completion* completion = nullptr;
    base::Status status;
    std::size_t size_bytes = 0;
  };

  KindBackend* kind_of(Place place) const { return kinds_[static_cast<std::size_t>(place.kind)]; }
  base::Status start(Transfer& transfer);
  base::Status record_streams(Transfer& transfer);
  // Puts the transfer's first piece on its way, or defers it. Unless this fails, the transfer may be gone.
  base::Status begin(Transfer& transfer);
  bool needs_staging(const Transfer& transfer) const;
  void find_staging(Transfer& transfer);

  base::Result<Lane*> make_lane(Place place, bool is_shared);
  base::Result<Lane*> shared_lane(Place place);
  base::Result<Lane*> take_lane(Place place);
  base::Status take_lanes(Transfer& transfer);
  base::Status wait_in_lane(Place place, EventHandle& event, Lane& lane);
  bool begin_deferred();
  // Whether what the transfer waits for is over; its events are given back then.
  bool streams_are_done(Transfer& transfer);

  base::Status queue_piece(Piece piece, bool on_source_side);
  // Whether the lane is past `piece`; then its event is released.
  static base::Status query(const Lane& lane, Piece& piece);
  void piece_done(const Piece& piece, base::Status status);
  // Queues up to max_chunks chunks of staged copies, as far as there are free ones.
  void issue_chunks(int max_chunks);
  base::Status issue_chunk(Transfer& transfer, std::byte* chunk);
  base::Status leave_chunk(Piece piece);

  bool poll_lanes();
  bool poll_watches();
  bool copy_host_slices();
  bool deliver();

  void end_if_over(Transfer& transfer);
  // Gives back what the transfer holds; its completion is the caller's affair.
  void forget(Transfer& transfer);
  void release(Place place, EventHandle& event);
  // Waits for what is in the lane, then gives it back, or leaves it.
  void close_lane(Lane& lane);

  std::array<KindBackend*, kNumKinds> kinds_;
  std::array<std::unique_ptr<StagingPool>, kNumKinds> staging_;
  std::vector<std::unique_ptr<Transfer>> transfers_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::deque<Transfer*> host_copies_;
  std::deque<Transfer*> deferred_;  // gated copies without lanes
  int num_with_lanes_ = 0;
  std::deque<Transfer*> unissued_;  // staged copies with bytes that no chunk has taken yet
  std::vector<Watch> watches_;
  std::vector<Done> done_;
  std::vector<Done> delivering_;
  std::chrono::nanoseconds patience_left_;
  bool closed_ = false;
};

}  // namespace weft::memory
