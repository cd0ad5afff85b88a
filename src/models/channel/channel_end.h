// One end of a channel on its PE: who it belongs to, who its peer is, and the two streams of messages.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "weft/channel/channel.h"
#include "weft/runtime/runtime.h"

#include "machine/peer_memory/mapping/peer_stream.h"
#include "models/channel/channel_tag.h"
#include "models/channel/unreceived/handed_over.h"
#include "models/channel/unreceived/send_window.h"
#include "models/channel/unreceived/sent_sizes.h"
#include "models/channel/waiting_sends.h"

namespace weft::channel {

class Channels;
class CheckedMessages;
class ClosedEnds;
class FailedSends;
class TravellingMessages;

// One chare's view of a channel: itself, its peer and the id that both name.
struct ChannelKey {
  std::uint64_t self_collection = 0;
  std::uint64_t self_index = 0;
  std::uint64_t peer_collection = 0;
  std::uint64_t peer_index = 0;
  std::uint64_t id = 0;  // the program's, or that and kOutOfBand

  friend auto operator<=>(const ChannelKey&, const ChannelKey&) = default;
  bool is_of(std::uint64_t collection, std::uint64_t index) const {
    return self_collection == collection && self_index == index;
  }
  ChannelKey reversed() const { return {peer_collection, peer_index, self_collection, self_index, id}; }
};

// A flag in ChannelKey::id: the channel that Channel::out_of_band() makes for the one with the same id without it.
inline constexpr std::uint64_t kOutOfBand = std::uint64_t{1} << 32;
// And the one by which the ends of a QueuedChannel agree.
inline constexpr std::uint64_t kQueuedChannel = std::uint64_t{1} << 33;

// Where an end receives.
struct EndAddress {
  std::uint32_t pe = 0;
  std::uint32_t number = 0;  // 0: not known
};

// The version of the address of an end that has closed.
inline constexpr std::uint32_t kLastVersion = ~std::uint32_t{0};

// An end's knowledge of moves of its own chare and of its peer, see moving.cpp.
struct EndMoves {
  std::uint32_t num = 0;  // moves of this end: the version of its address
  // --- Of this end's chare
  std::uint32_t round = 0;          // of the last request to the peer to stop
  std::uint32_t stopped_round = 0;  // of the last request that the peer has answered
  bool is_asking = false;           // the peer has been asked to stop, and has not been released
  bool is_answered = false;
  std::uint32_t promised =
      0;  // the peer sends no message from this number on: if answered, and after each move
  std::vector<SentSize> sizes;  // if answered: of messages in place that were not asked for
  bool waits = false;           // for the end's operations; ClosedEnds::poll() asks again
  // --- Of the peer
  std::uint32_t peer_version = 0;  // of its address
  std::uint32_t peer_round = 0;    // of its last request, or release
  bool peer_moves = false;         // sends wait until it releases this end
  EndAddress next_peer;            // if known: its new address, from when no send in place is in flight
};

struct ChannelEnd {
  runtime::Runtime* runtime = nullptr;
  Channels* channels = nullptr;
  FailedSends* failed_sends = nullptr;
  ClosedEnds* closed_ends = nullptr;
  CheckedMessages* checks = nullptr;  // in check mode
  ChannelKey key;
  std::uint32_t number = 0;
  EndAddress peer;
  // The peer is known and not gone, the window is open, no send waits, and no message is checked.
  bool sends_at_once = false;
  // Messages are checked, the peer or the end's own chare is gone, or the chare is about to move.
  bool receives_specially = false;
  // ClosedEnds polls this end when an operation of it is over.
  bool needs_poll = false;
  EndTags send_tags;  // once the peer is known
  EndTags receive_tags;
  machine::OutgoingStream out;
  machine::IncomingStream in;
  SendWindow window;
  ReceiveCount received;
  WaitingSends waiting_sends;
  SentSizes sent_in_place;
  HandedOver handed_over;  // to this end, and not received

  // --- The end of the channel, see closing.cpp
  bool is_closed = false;           // the collection of this end's chare has been destroyed
  bool peer_is_closed = false;      // the peer sends no more, and receives no more
  bool has_told_peer = false;       // that this end sends no more
  int lost_pe = -1;                 // with peer_is_closed: that of the peer, if it is lost
  std::uint32_t incoming_end = 0;   // with peer_is_closed: the number behind the peer's last message
  std::uint32_t watched_sends = 0;  // in flight: sends in place, which use this object and the chare's memory
  std::shared_ptr<void> chare;      // of a closed end, while operations may use its memory
  std::weak_ptr<void> chare_alive;  // of a closed end; expired in the chare's destructor too
  std::uint32_t holders = 0;        // Python objects
  ChannelEnd* out_of_band = nullptr;  // of Channel::out_of_band(); valid while this end is not closed
  bool is_queued = false;             // a QueuedChannel is connected: the peer's device has this PE's memory

  EndMoves moves;
  std::shared_ptr<TravellingMessages> kept;  // null as a rule
  std::uint32_t num_kept = 0;                // messages in it
  bool has_left = false;  // with its chare, to another PE: closed here, and not in the table

  std::shared_ptr<void> attached;  // of the program's language, see Channel::attached()
  AttachedState attached_state;

  bool is_its_own_peer() const {
    return key.self_collection == key.peer_collection && key.self_index == key.peer_index;
  }
  // The program's receives that are in flight.
  std::uint32_t receives_in_flight() const { return in.next - received.next() - num_kept; }
};

// "the channel Ring[3] - Ring[4], id 0, on PE 3", for messages to people.
std::string describe(const ChannelEnd& end);

}  // namespace weft::channel
