// How the two ends of a channel find each other, when they are made and when one of them has moved.
//
// An address has a version: how often the end has moved. An older address than the known one is ignored, because messages may
// overtake each other.
#include <string>
#include <utility>

#include "base/format.h"
#include "machine/machine.h"
#include "machine/peer_memory/peer_memory.h"
#include "models/channel/channels.h"

namespace weft::channel {

namespace {

// Follows the EntryHeader, by which the message finds the peer.
struct Announcement {
  ChannelKey key;  // as the receiver of the announcement sees it
  EndAddress from;
  // Not 0: that end closes without having known its peer.
  std::uint32_t is_closed = 0;
  std::uint32_t version = 0;  // of the address
};

}  // namespace

void Channels::announce(const ChannelEnd& end, bool is_closed) {
  chare::EntryHeader header{end.key.peer_collection, end.key.peer_index, 0, 0, {}};
  Announcement announcement{end.key.reversed(), address_of(end), is_closed ? 1u : 0u, end.moves.num};
  auto message = runtime::Message::pack(runtime_, handler(kAnnouncement), header, announcement);
  chares().send_to_element(chares().collection(end.key.peer_collection), end.key.peer_index,
                           std::move(message));
}

bool Channels::expect_address(EndAddress from, const ChannelKey& key) {
  if (from.pe < static_cast<std::uint32_t>(runtime_.num_pes()) && from.number != 0 &&
      from.number <= kMaxEndNumber) {
    return true;
  }
  runtime_.fail(base::format(
      "a channel end numbered {} on PE {} was announced to {} on PE {}; no such end can exist", from.number,
      from.pe, chares().collection(key.self_collection).element_name(key.self_index), runtime_.pe()));
  return false;
}

void Channels::on_announcement(runtime::MessagePtr message) {
  chare::EntryHeader header;
  Announcement announcement;
  Pup p = message->unpacker();
  p | header | announcement;
  chare::Collection& collection = chares().collection(header.collection);
  // A destroyed collection has no elements, but ends that its peers must hear of.
  if (!collection.is_destroyed() && chares().find_or_forward(message) == nullptr) return;
  if (!expect_address(announcement.from, announcement.key)) return;
  ChannelEnd* const end = ends_.find(announcement.key);
  const bool is_closed = announcement.is_closed != 0;
  if (end != nullptr) {
    const bool closes = is_closed && !end->peer_is_closed;
    if (closes) end->peer_is_closed = true;  // before it connects, so that no waiting send starts
    learn_address(*end, announcement.from, announcement.version);
    if (closes) peer_closes(*end, first_counter_);
    return;
  }
  // The two announcements of an end may overtake each other, and so may those of an end that moves.
  const auto known = early_.find(announcement.key);
  if (collection.is_destroyed() || is_closed) answer_closed(announcement.from);
  if (collection.is_destroyed()) return;
  if (known == early_.end()) {
    early_[announcement.key] = {announcement.from, is_closed, announcement.version, 0, false};
    return;
  }
  if (known->second.is_closed) return;
  known->second.is_closed = is_closed;
  if (announcement.version < known->second.version) return;
  known->second.address = announcement.from;
  known->second.version = announcement.version;
}

void Channels::connect(ChannelEnd& end, EndAddress peer, std::uint32_t version) {
  if (end.peer.number != 0) return;  // the peer's end has closed before its announcement came
  end.moves.peer_version = version;
  set_peer(end, peer);
  if ((end.is_closed || end.peer_is_closed) && !end.has_told_peer) return tell_closed(end);
  start_waiting_sends(end);
  if (end.received.is_due()) report_received(end);
}

void Channels::set_peer(ChannelEnd& end, EndAddress peer) {
  end.peer = peer;
  end.send_tags = EndTags(range_.tag_type, peer.number);
  const auto pe = static_cast<int>(peer.pe);
  end.in.peer = pe;
  end.out.peer = pe;
  end.out.name = end.send_tags[0];
  end.out.on_this_pe = nullptr;
  if (pe != runtime_.pe()) return;
  ChannelEnd* const other = ends_.find(peer.number);
  // An end that takes this one to be on another PE would not look for sends that wait for its receives.
  if (other == nullptr || other->peer.pe != peer.pe || other->peer.number != end.number) return;
  end.out.on_this_pe = &other->in;
  other->out.on_this_pe = &end.in;
}

void Channels::learn_address(ChannelEnd& end, EndAddress peer, std::uint32_t version) {
  if (end.peer.number == 0) return connect(end, peer, version);
  if (version <= end.moves.peer_version) return;
  end.moves.peer_version = version;
  if (peer.pe == end.peer.pe && peer.number == end.peer.number) return;
  end.moves.next_peer = peer;
  end.sends_at_once = false;
  // Sends in place are over for the peer, which has received them, and about to be so here.
  if (end.watched_sends == 0) return change_peer(end);
  end.needs_poll = true;
}

void Channels::change_peer(ChannelEnd& end) {
  const EndAddress peer = std::exchange(end.moves.next_peer, {});
  runtime_.machine().peer_memory().forget(end.out);
  runtime_.machine().peer_memory().change_peer(end.in, static_cast<int>(peer.pe));
  set_peer(end, peer);
  // This end's notices may have reached the peer's former address too late, so the new address gets them too.
  if (end.is_closed || end.peer_is_closed) return tell_closed(end);
  start_waiting_sends(end);
  report_received(end);
}

}  // namespace weft::channel
