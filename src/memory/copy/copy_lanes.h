// The lanes of one PE: streams of our own in which its copies run and wait for the users' streams.
//
// Copies that wait for no stream share a few lanes per device. A copy whose buffers name a stream is gated:
// it waits, on the device, in lanes of its own, so that it neither holds up other copies nor makes the user's
// later work wait for it. Few gated copies have lanes at a time; one that finds no room can only be asked,
// now and then, whether its streams are done, and then shares lanes like any other.
//
// A lane's pieces are done in order, hence a poll asks the driver about the first piece of each lane only.
//
// Threads: the PE's. Invariants: a piece that was queued is handed back once, by poll() or close(), unless
// its device hangs at the end; nothing blocks but close(). Whoever has a gate leaves it, also after close().
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

#include "memory/kind.h"

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
    // What was queued on the buffer's stream when the copy was started; null when there is nothing to wait
    // for, or when a lane waits for it.
    EventHandle ready = nullptr;
    // The copy's own; null: it shares.
    Lane* lane = nullptr;
  };
  // What a copy waits for, and its own lanes while it has them.
  struct Gate {
    Side source;
    Side destination;
    bool has_lanes = false;

    bool is_shut() const { return source.ready != nullptr || destination.ready != nullptr; }
  };
  // Some bytes of a transfer; lanes keep it and look at none of it. `chunk` is null for a direct copy.
  struct Piece {
    Transfer* transfer = nullptr;
    std::size_t offset_bytes = 0;
    std::size_t size_bytes = 0;
    std::byte* chunk = nullptr;
    bool into_chunk = false;
  };
  // Calls `is_over` until it says so, then true; false when it gave up before.
  using Wait = std::function<bool(const std::function<bool()>& is_over)>;

  // Kinds by number, null where there is none; they outlive the lanes.
  explicit CopyLanes(const std::array<KindBackend*, kNumKinds>& kinds) : kinds_(kinds) {}
  CopyLanes(const CopyLanes&) = delete;
  CopyLanes& operator=(const CopyLanes&) = delete;

  // Shuts the gate of a copy that is started now if its buffers name streams.
  base::Status set_gate(const Buffer& destination, const ConstBuffer& source, Gate& gate);
  // For one more gated copy.
  bool has_room() const { return num_gated_ < kMaxGated; }
  // Lets the copy's pieces be queued: its own lanes, one per device side if staged, wait for its streams.
  // REQUIRES: shut, has_room().
  base::Status enter(Gate& gate, bool is_staged);
  // Asks whether the streams of a shut gate are done; then it is open. Puts what failed there into `failure`,
  // unless there is one.
  bool is_over(Gate& gate, base::Status& failure);
  // Gives back what the gate holds. REQUIRES: no piece of its copy is in a lane.
  void leave(Gate& gate);

  // Queues a copy of one piece in a lane of that side of its gate. REQUIRES: equal sizes, not shut.
  base::Status queue(const Side& side, const Buffer& destination, const ConstBuffer& source,
                     const Piece& piece);
  // Calls done(piece, status) for each piece that its lane is past; that may queue others. Whether there was
  // one.
  template <typename Done>
  bool poll(const Done& done);
  // Waits for what is queued, calls `passed` for each piece that its device is done with, and gives the lanes
  // back. A device that hangs keeps its lanes' streams. Afterwards nothing can be queued.
  void close(const Wait& wait, const std::function<void(const Piece&)>& passed);

 private:
  struct Queued {
    Piece piece;
    EventHandle event = nullptr;  // null: it could not be recorded yet
  };
  struct Lane {
    KindBackend* kind = nullptr;
    int device = 0;
    StreamHandle stream = nullptr;
    bool is_shared = true;
    bool is_taken = false;  // by a gated copy; of lanes that are not shared
    std::deque<Queued> queue;
  };

  KindBackend* kind_of(Place place) const { return kinds_[static_cast<std::size_t>(place.kind)]; }
  base::Result<Lane*> make_lane(Place place, bool is_shared);
  base::Result<Lane*> shared_lane(Place place);
  base::Result<Lane*> take_lane(Place place);
  base::Status record(StreamHandle stream, Side& side);
  base::Status wait_in(Lane& lane, Side& side);
  void release(Side& side);
  // Whether the lane is past its first piece; then that one's event is released.
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
    while (!lane.queue.empty()) {
      base::Status status = query_first(lane);
      if (status.is_pending()) break;
      const Piece piece = lane.queue.front().piece;
      lane.queue.pop_front();
      done(piece, std::move(status));
      any = true;
    }
  }
  return any;
}

}  // namespace weft::memory
