// The copies and stream waits in flight in one PE's memory.
//
// A copy takes one of three ways:
//   direct   one copy in a lane (copy_lanes.h), if the device kind of one side can access the other side
//   staged   pipelined through chunks of host memory that devices access without blocking the CPU: between
//            device kinds, and between a device and host memory for which its driver would block (cuda: host
//            memory that is not page-locked)
//   host     the CPU copies, in slices, when it is polled
//
// If there are no lanes for a gated copy, the copy is deferred until there are, or until its streams are
// done. A waiting copy holds at most one chunk. A busy stream therefore never blocks copies on other streams.
//
// Threads: the PE's. Invariants: only progress() and close() call completion functions, after the engine has
// dropped the operation. A transfer ends when none of its pieces is in flight, also if one has failed, unless
// its device hangs at the end.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "weft/base/completion.h"
#include "weft/base/status.h"
#include "weft/memory/buffer.h"

#include "memory/copy/copy_lanes.h"
#include "memory/copy/staging_pool.h"
#include "memory/kinds/kind.h"
#include "memory/kinds/memory_options.h"

namespace weft::memory {

struct Transfer {
  std::size_t slot = 0;  // in the engine's list of them
  base::Completion* completion = nullptr;
  Buffer destination;
  ConstBuffer source;
  CopyLanes::Gate gate;
  StagingPool* staging = nullptr;  // of a staged copy, for this device
  int staging_device = 0;
  std::size_t issued_bytes = 0;
  std::size_t landed_bytes = 0;
  int pieces_in_flight = 0;
  base::Status failure;

  std::size_t size_bytes() const { return destination.size_bytes; }
};

class CopyEngine {
 public:
  // `kinds` is indexed by kind, with null for those that are not usable. The kinds must outlive the engine.
  explicit CopyEngine(const std::array<KindBackend*, kNumKinds>& kinds,
                      std::chrono::nanoseconds timeout = kDeviceTimeout)
      : kinds_(kinds), lanes_(kinds), timeout_left_(timeout) {}
  ~CopyEngine();
  CopyEngine(const CopyEngine&) = delete;
  CopyEngine& operator=(const CopyEngine&) = delete;

  // REQUIRES: equal sizes, known kinds and devices, host sides name no stream.
  base::Status copy(const Buffer& destination, const ConstBuffer& source, base::Completion* completion);
  base::Status when_stream_done(Place place, StreamHandle stream, base::Completion* completion);
  base::Status when_event_done(Place place, EventHandle event, base::Completion* completion);
  base::Status when_queued_done(Place place, StreamHandle stream, base::Completion* completion);

  bool progress();
  bool has_pending() const;
  // Calls `is_over` until it returns true. When the timeout, which all waits share, ends before that, steps that wait for signals
  // are ended, see abort_steps(), and the devices get kAbortTimeout more for that. Returns false if it ends, too. If all kinds know
  // that their devices only wait for signals, steps are ended after kSignalTimeout.
  bool wait_for_devices(const std::function<bool()>& is_over);
  // Ends the waits of steps on all kinds. A stream's work that is not done then completes with kClosed.
  void abort_steps();
  // See Memory.
  void end_steps();
  // Afterwards nothing can be started. Waits for the devices until the timeout ends; then a device hangs,
  // and the kinds are abandoned.
  void close();
  // Whether close() found that a device hangs.
  bool has_hung() const { return has_hung_; }
  // Whether a timeout has ended, and no device hangs since the steps that waited were ended.
  bool has_ended_steps() const { return (is_out_of_time() || has_ended_waits_) && !has_hung_; }

 private:
  using Piece = CopyLanes::Piece;

  struct Watch {
    KindBackend* kind = nullptr;
    EventHandle event = nullptr;
    base::Completion* completion = nullptr;
    bool owns_event = true;
    bool holds_memory = false;  // of when_queued_done()

    void release() const {
      if (owns_event) kind->release_event(event);
    }
  };
  struct Done {
    base::Completion* completion = nullptr;
    base::Status status;
    std::size_t size_bytes = 0;
  };

  KindBackend* kind_of(Place place) const { return kinds_[static_cast<std::size_t>(place.kind)]; }
  base::Status start(Transfer& transfer);
  // Queues the transfer's first piece, or defers it. On success the transfer may be complete and deleted.
  base::Status begin(Transfer& transfer);
  bool needs_staging(const Transfer& transfer) const;
  void find_staging(Transfer& transfer);

  bool begin_deferred();
  base::Status watch_stream(Place place, StreamHandle stream, Watch watch);

  base::Status queue_piece(const Piece& piece, bool on_source_side);
  void piece_done(const Piece& piece, base::Status status);
  // Queues up to max_chunks chunks of staged copies, while there are free ones.
  void issue_chunks(int max_chunks);
  base::Status issue_chunk(Transfer& transfer, std::byte* chunk);
  base::Status copy_from_chunk(Piece piece);

  void end_steps_that_only_wait();
  bool is_out_of_time() const { return timeout_left_ <= std::chrono::nanoseconds::zero(); }
  bool poll_watches();
  bool copy_host_slices();
  bool deliver();

  void end_if_over(Transfer& transfer);
  // Releases the gate of the transfer and deletes it. The caller completes its operation.
  void forget(Transfer& transfer);

  std::array<KindBackend*, kNumKinds> kinds_;
  std::array<std::unique_ptr<StagingPool>, kNumKinds> staging_;
  CopyLanes lanes_;
  std::vector<std::unique_ptr<Transfer>> transfers_;
  std::deque<Transfer*> host_copies_;
  std::deque<Transfer*> deferred_;  // gated copies without lanes
  std::deque<Transfer*> unissued_;  // staged copies with bytes that are in no chunk yet
  std::vector<Watch> watches_;
  std::vector<Done> done_;
  std::vector<Done> delivering_;
  std::chrono::nanoseconds timeout_left_;
  std::chrono::nanoseconds abort_timeout_left_{0};  // 0 if no kind has steps, or none was aborted
  std::optional<std::chrono::steady_clock::time_point> only_waits_since_;
  bool has_ended_waits_ = false;  // of steps, after kSignalTimeout
  bool steps_are_aborted_ = false;
  bool closed_ = false;
  bool has_hung_ = false;
};

}  // namespace weft::memory
