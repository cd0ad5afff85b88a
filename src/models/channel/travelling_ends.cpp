// Channel ends of a chare that moves: how they are packed, and how the new PE makes ends of the packed bytes. See moving.cpp.
#include <array>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/refuse_claim.h"
#include "machine/machine.h"
#include "machine/peer_memory/peer_memory.h"
#include "models/channel/channels.h"
#include "models/channel/travelling_messages.h"

namespace weft::channel {

using runtime::ElementId;

// An end on its way to another PE.
struct TravellingEnd {
  std::uint64_t peer_collection = 0;
  std::uint64_t peer_index = 0;
  std::uint64_t id = 0;
  EndAddress peer;
  std::uint32_t num_moves = 0;
  std::uint32_t round = 0;
  std::uint32_t peer_version = 0;
  std::uint32_t peer_round = 0;
  std::uint32_t peer_moves = 0;  // flags are 0 or 1
  std::uint32_t peer_is_closed = 0;
  std::uint32_t has_told_peer = 0;
  std::uint32_t incoming_end = 0;
  std::uint32_t next_sent = 0;
  std::uint32_t next_received = 0;
  std::array<std::uint32_t, 2> attached{};
  SendWindow window;
  ReceiveCount received;
};

// A peer's end that the PE of a chare knows before the chare has its own end of the channel.
struct TravellingEarlyEnd {
  ChannelKey key;
  EndAddress address;
  std::uint32_t is_closed = 0;
  std::uint32_t version = 0;
  std::uint32_t round = 0;
  std::uint32_t moves = 0;
};

// --- Leaving

void Channels::pack_moving(ElementId element, Pup& p) {
  std::vector<TravellingEnd> travelling;
  std::vector<ChannelEnd*> ends;
  ends_.for_each_of(element.collection, element.index, [&](ChannelEnd& end) {
    ends.push_back(&end);
    const EndMoves& moves = end.moves;
    travelling.push_back({end.key.peer_collection,
                          end.key.peer_index,
                          end.key.id,
                          end.peer,
                          moves.num,
                          moves.round,
                          moves.peer_version,
                          moves.peer_round,
                          moves.peer_moves ? 1U : 0U,
                          end.peer_is_closed ? 1U : 0U,
                          end.has_told_peer ? 1U : 0U,
                          end.incoming_end,
                          end.out.next,
                          end.in.next - end.num_kept,
                          {end.attached_state.numbers[0], end.attached_state.numbers[1]},
                          end.window,
                          end.received});
  });
  p | std::as_const(travelling);
  for (const ChannelEnd* const end : ends) {
    p | std::as_const(end->sent_in_place).all();
    if (end->kept == nullptr) {
      p.count(0, 0);
    } else {
      end->kept->pack(p);
    }
  }
  std::vector<TravellingEarlyEnd> early;
  const ChannelKey first{element.collection, element.index, 0, 0, 0};
  for (auto it = early_.lower_bound(first);
       it != early_.end() && it->first.is_of(element.collection, element.index); ++it) {
    const EarlyEnd& one = it->second;
    early.push_back(
        {it->first, one.address, one.is_closed ? 1U : 0U, one.version, one.round, one.moves ? 1U : 0U});
  }
  p | std::as_const(early);
}

void Channels::element_has_moved(ElementId element, const std::shared_ptr<void>& element_itself) {
  std::vector<ChannelEnd*> leaving;
  ends_.for_each_of(element.collection, element.index, [&](ChannelEnd& end) { leaving.push_back(&end); });
  for (ChannelEnd* const end : leaving) {
    if (end->out.peer == runtime_.pe() && !end->is_its_own_peer()) {
      if (ChannelEnd* const other = ends_.find(end->peer.number); other != nullptr)
        other->out.on_this_pe = nullptr;
    }
    runtime_.machine().peer_memory().forget(end->in, end->out);
    failed_sends_.forget(end->number);
    checked_messages_.forget(end->number);
    end->has_left = true;
    end->is_closed = true;
    end->sends_at_once = false;
    end->receives_specially = true;
    end->needs_poll = false;
    end->moves = {};
    end->kept = nullptr;
    end->num_kept = 0;
    end->chare_alive = element_itself;
    left_.push_back(ends_.take(*end));
  }
  const ChannelKey first{element.collection, element.index, 0, 0, 0};
  auto early = early_.lower_bound(first);
  while (early != early_.end() && early->first.is_of(element.collection, element.index))
    early = early_.erase(early);
  sweep_left();
}

void Channels::sweep_left() {
  // An end may own handles of another one, whose release comes here again.
  std::vector<std::unique_ptr<ChannelEnd>> gone;
  std::erase_if(left_, [&gone](std::unique_ptr<ChannelEnd>& end) {
    if (end->holders != 0 || !end->chare_alive.expired()) return false;
    gone.push_back(std::move(end));
    return true;
  });
}

// --- The arrival

void Channels::unpack_moving(ElementId element, Pup& p) {
  std::vector<TravellingEnd> travelling;
  p | travelling;
  for (const TravellingEnd& one : travelling) {
    std::vector<SentSize> sizes;
    std::vector<TravellingMessage> kept;
    p | sizes | kept;
    ChannelEnd& end = unpack_end(one, element);
    for (const SentSize& sent : sizes) end.sent_in_place.push(sent.number, sent.size_bytes);
    for (std::size_t i = 0; i < kept.size(); ++i) {
      if (kept[i].number != one.next_received + static_cast<std::uint32_t>(i))
        refuse_arrival(element, "keeps messages out of order");
      TravellingMessages::give(end, std::move(kept[i]));
    }
    end.moves.promised = one.next_received + static_cast<std::uint32_t>(kept.size());
    if (end.is_its_own_peer()) {
      set_peer(end, address_of(end));
    } else if (end.peer_is_closed) {
      closed_ends_.poll_later(end);
    } else {
      release_peer(end);
    }
    if (end.peer.number != 0) start_waiting_sends(end);
  }
  std::vector<TravellingEarlyEnd> early;
  p | early;
  for (const TravellingEarlyEnd& one : early) {
    if (!one.key.is_of(element.collection, element.index))
      refuse_arrival(element, "knows an end of another chare");
    if (!expect_address(one.address, one.key)) return;
    early_[one.key] = {one.address, one.is_closed != 0, one.version, one.round, one.moves != 0};
  }
}

ChannelEnd& Channels::unpack_end(const TravellingEnd& from, ElementId element) {
  const ChannelKey key{element.collection, element.index, from.peer_collection, from.peer_index, from.id};
  const bool is_connected = from.peer.number != 0;
  if (ends_.find(key) != nullptr || !from.window.is_valid() || !from.received.is_valid() ||
      from.peer.number > kMaxEndNumber ||
      (is_connected && from.peer.pe >= static_cast<std::uint32_t>(runtime_.num_pes()))) {
    refuse_arrival(element, "has a channel end that cannot be");
  }
  ChannelEnd& end = make_end(key);
  end.moves.num = from.num_moves + 1;
  end.moves.round = end.moves.stopped_round = from.round;
  end.moves.peer_version = from.peer_version;
  end.moves.peer_round = from.peer_round;
  end.moves.peer_moves = from.peer_moves != 0;
  end.peer_is_closed = from.peer_is_closed != 0;
  end.has_told_peer = from.has_told_peer != 0;
  end.incoming_end = from.incoming_end;
  end.out.next = from.next_sent;
  end.in.next = from.next_received;
  end.attached_state.numbers[0] = from.attached[0];
  end.attached_state.numbers[1] = from.attached[1];
  end.window = from.window;
  end.received = from.received;
  end.receives_specially |= end.peer_is_closed;
  end.needs_poll = end.peer_is_closed;
  if (is_connected) set_peer(end, from.peer);
  // News of a mailbox of an earlier stay here may have come late.
  runtime_.machine().peer_memory().forget(end.out);
  if (end.moves.peer_moves || end.peer_is_closed) end.in.has_asked_for_mailbox = true;
  return end;
}

void Channels::refuse_arrival(ElementId element, const char* what) const {
  base::refuse_claim(base::format("{}, which arrives on PE {}, {}",
                                  chares().collection(element.collection).element_name(element.index),
                                  runtime_.pe(), what));
}

}  // namespace weft::channel
