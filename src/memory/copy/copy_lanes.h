// The lanes of one PE: streams of Weft's own, in which copies run and wait for the streams of the user.
//
// Copies that wait for no stream share a few lanes per device. A copy whose buffers name a stream is gated:
// it waits on the device, in lanes of its own. Other copies then do not wait for it, and the user's later
// work does not wait for the copy. At most kMaxGated gated copies have lanes. Further ones are polled: when
// their streams are done, they use the shared lanes.
//
// A lane's pieces are done in order. Small pieces that a poll finds queued behind others share one event, which stands behind the
// last of them: they are done, or fail, together. A poll queries the first event of each lane only.
//
// Threads: the PE's. Invariants: each queued piece is handed back once, by poll() or close(), unless its
// device hangs at the end. Only close() blocks. The owner of a gate calls leave() for it, also after close().
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "weft/base/status.h"
#include "weft/memory/buffer.h"

#include "memory/kinds/kind.h"

namespace weft::memory {

struct Transfer;  // the copy engine's

class CopyLanes {
 private:
  struct Lane;

 public:
  // How many gated copies have lanes at a time.
  static constexpr int kMaxGated = 12;

  struct Side {
    Place place;
    // The work that was queued on the buffer's stream when the copy was started; null if there is none, or if
    // a lane waits for it.
    EventHandle ready = nullptr;
    // The copy's own lane; null: it uses the shared ones.
    Lane* lane = nullptr;
  };
  // The streams that a copy waits for, and its own lanes while it has them.
  struct Gate {
    Side source;
    Side destination;
    bool has_lanes = false;

    bool is_shut() const { return source.ready != nullptr || destination.ready != nullptr; }
  };
  // Some bytes of a transfer. `chunk` is null for a direct copy.
  struct Piece {
    Transfer* transfer = nullptr;
    std::size_t offset_bytes = 0;
    std::size_t size_bytes = 0;
    std::byte* chunk = nullptr;
    bool into_chunk = false;
  };
  // Calls `is_over` until it returns true. Returns false if it gave up before that.
  using Wait = std::function<bool(const std::function<bool()>& is_over)>;

  // `kinds` is indexed by kind, with null for those that are not usable. The kinds must outlive the lanes.
  explicit CopyLanes(const std::array<KindBackend*, kNumKinds>& kinds) : kinds_(kinds) {}
  CopyLanes(const CopyLanes&) = delete;
  CopyLanes& operator=(const CopyLanes&) = delete;

  // Shuts the gate of a copy that starts now, if its buffers name streams.
  base::Status set_gate(const Buffer& destination, const ConstBuffer& source, Gate& gate);
  // Whether one more gated copy may have lanes.
  bool has_room() const { return num_gated_ < kMaxGated; }
  // Opens the gate: lanes of the copy's own, one for each device side if it is staged, wait for its streams.
  // REQUIRES: shut, has_room().
  base::Status enter(Gate& gate, bool is_staged);
  // Queries the streams of a shut gate, and opens it when they are done. The first failure of a stream is put
  // into `failure`, unless that holds one already.
  bool is_over(Gate& gate, base::Status& failure);
  // Releases the events and lanes of the gate. REQUIRES: no piece of its copy is in a lane.
  void leave(Gate& gate);

  // Queues a copy of one piece in a lane of that side of its gate. REQUIRES: equal sizes, not shut.
  base::Status queue(const Side& side, const Buffer& destination, const ConstBuffer& source,
                     const Piece& piece);
  // Calls done(piece, status) for each piece that is done; `done` may queue others. Returns whether there was
  // one.
  template <typename Done>
  bool poll(const Done& done);
  // Waits for the queued pieces, calls `passed` for each one that is done, and destroys the lanes' streams.
  // The streams of a device that hangs are kept. Afterwards nothing can be queued.
  void close(const Wait& wait, const std::function<void(const Piece&)>& passed);

 private:
  // Pieces that follow one another in a lane, and the event behind the last of them.
  struct Batch {
    EventHandle event = nullptr;  // null: it has not been recorded yet
    std::size_t num_pieces = 0;
    std::size_t size_bytes = 0;
  };
  struct Lane {
    KindBackend* kind = nullptr;
    int device = 0;
    StreamHandle stream = nullptr;
    bool is_shared = true;
    bool is_taken = false;  // by a gated copy; of lanes that are not shared
    std::deque<Piece> queue;
    std::deque<Batch> batches;  // of the pieces in the queue
    std::size_t queued_bytes = 0;

    // Whether the last batch has no event yet, so that a piece may join it.
    bool has_open_batch() const { return !batches.empty() && batches.back().event == nullptr; }
    // Forgets the first batch and returns how many pieces it has. take_piece() takes them out of the queue.
    std::size_t take_batch();
    Piece take_piece();
  };

  KindBackend* kind_of(Place place) const { return kinds_[static_cast<std::size_t>(place.kind)]; }
  base::Result<Lane*> make_lane(Place place, bool is_shared);
  base::Result<Lane*> shared_lane(Place place);
  base::Result<Lane*> take_lane(Place place);
  base::Status record(StreamHandle stream, Side& side);
  base::Status wait_in(Lane& lane, Side& side);
  void release(Side& side);
  // How many bytes the lane's open batch, or its next one, may have.
  static std::size_t most_batch_bytes(const Lane& lane);
  // Records the event of the lane's last batch.
  static base::Status end_batch(Lane& lane);
  // The status of the lane's first batch. Unless it is pending, the batch's event is released.
  static base::Status query_first(Lane& lane);
  static void close_lane(Lane& lane, const Wait& wait, const std::function<void(const Piece&)>& passed);

  std::array<KindBackend*, kNumKinds> kinds_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  int num_gated_ = 0;  // of those that have lanes
};

template <typename Done>
bool CopyLanes::poll(const Done& done) {
  bool any = false;
  // A piece that is done may add lanes. NOLINTNEXTLINE(modernize-loop-convert)
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    Lane& lane = *lanes_[i];
    while (!lane.batches.empty()) {
      base::Status status = query_first(lane);
      if (status.is_pending()) break;
      for (std::size_t left = lane.take_batch(); left > 0; --left) done(lane.take_piece(), status);
      any = true;
    }
  }
  return any;
}

}  // namespace weft::memory
