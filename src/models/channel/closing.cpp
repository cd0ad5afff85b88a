// The end of a channel: its end of a chare closes when the chare's collection is destroyed. Entry methods of the chare may
// still wait for operations of the end, and the chare is freed later.
//
// A closed end starts nothing more, and tells its peer how many messages it has sent in all. The peer then fails its receives
// of others, and all its sends; it receives what was sent before. It answers how many messages it has sent itself: then the
// receives of the closed end that wait for others fail, and the closed end receives and drops the messages that had no
// receive, so that their sends are over and nothing of them stays in the machine. Both ends may close at the same time.
//
// A peer that is not known yet may not exist. The closing end then announces once more, as closed. The PE of the peer's chare
// answers for an end that is not made, and refuses to make it later. If the peer's collection has been destroyed on this PE, the
// first announcement gets that answer.
//
// A closed end is gone when nothing of it is in flight, its peer has answered, and its chare is freed. A send in place whose
// message the peer has not received stays in flight, because no path can cancel it.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/format.h"
#include "machine/machine.h"
#include "machine/peer_memory/peer_memory.h"
#include "models/channel/channels.h"
#include "models/channel/travelling_messages.h"

namespace weft::channel {

namespace {

// The end `from_end` sends no message from number `sent` on. from_end 0: the chare made no end, and will make none.
struct EndClosed {
  std::uint32_t to_end = 0;
  std::uint32_t from_end = 0;
  std::uint32_t sent = 0;
  // Not 0: the answer to the release with this number, whose receiver is gone. It had been stopped before.
  std::uint32_t answers_round = 0;
};

}  // namespace

base::Status Channels::closed_status(const ChannelEnd& end, std::string_view operation) {
  auto& chares = end.runtime->model<chare::Chares>();
  const std::uint64_t gone = end.is_closed ? end.key.self_collection : end.key.peer_collection;
  std::string why = base::format("the collection {} {} has been destroyed", chares.collection(gone).name(),
                                 end.is_closed ? "of this end" : "at the other end");
  if (end.has_left) {
    why = base::format(
        "{} has moved to another PE, and this handle belongs to the object that has stayed behind",
        chares.collection(gone).element_name(end.key.self_index));
  }
  const bool is_lost = !end.is_closed && end.lost_pe >= 0;
  if (is_lost) why = base::format("PE {} is lost, which the other end was on", end.lost_pe);
  if (!operation.empty()) why = base::format("{}: {}: {}", describe(end), operation, why);
  return {is_lost ? base::StatusCode::kPeerFailed : base::StatusCode::kClosed, std::move(why)};
}

void Channels::expect_open(const ChannelEnd& end, std::string_view operation) {
  if (end.is_closed && (end.has_left || !end.chare_alive.expired()))
    base::throw_status(closed_status(end, operation));
}

void Channels::element_ends(runtime::ElementId element, const std::shared_ptr<void>& element_itself) {
  ends_.for_each_of(element.collection, element.index,
                    [&](ChannelEnd& end) { close_end(end, element_itself); });
  const ChannelKey first{element.collection, element.index, 0, 0, 0};
  for (auto early = early_.lower_bound(first);
       early != early_.end() && early->first.self_collection == element.collection &&
       early->first.self_index == element.index;
       early = early_.erase(early)) {
    if (!early->second.is_closed) answer_closed(early->second.address);
  }
}

void Channels::element_has_ended(runtime::ElementId element) {
  ends_.for_each_of(element.collection, element.index,
                    [this](const ChannelEnd& end) { closed_ends_.poll_later(end); });
}

void Channels::close_end(ChannelEnd& end, const std::shared_ptr<void>& chare) {
  end.is_closed = true;
  end.moves.is_asking = false;
  if (end.kept != nullptr) end.kept->give_back();
  end.needs_poll = true;
  end.sends_at_once = false;
  end.receives_specially = true;
  end.received.report_each();
  end.chare_alive = chare;
  const bool is_used = end.receives_in_flight() != 0 || end.watched_sends != 0 || end.in.receives != 0;
  if (is_used || !end.waiting_sends.empty()) end.chare = chare;
  fail_waiting_sends(end);
  if (end.peer.number == 0) {
    auto& chares = runtime_.model<chare::Chares>();
    if (!chares.collection(end.key.peer_collection).is_destroyed()) announce(end, true);
  } else if (!end.has_told_peer) {
    tell_closed(end);
  }
  if (end.peer_is_closed) drain(end);
  closed_ends_.poll_later(end);
}

void Channels::fail_waiting_sends(ChannelEnd& end) {
  while (!end.waiting_sends.empty()) {
    runtime::OperationState* const operation = end.waiting_sends.pop().operation;
    runtime_.count_processed();
    operation->observe();  // a message that is not received is no failure of the program
    operation->complete(closed_status(end, "a send"), 0);
  }
}

void Channels::tell_closed(ChannelEnd& end) {
  end.has_told_peer = true;
  runtime_.send(static_cast<int>(end.peer.pe),
                runtime::Message::pack(runtime_, handler(kEndClosed),
                                       EndClosed{end.peer.number, end.number, end.out.next}));
}

void Channels::answer_closed(EndAddress announced, std::uint32_t answers_round) {
  runtime_.send(static_cast<int>(announced.pe),
                runtime::Message::pack(runtime_, handler(kEndClosed),
                                       EndClosed{announced.number, 0, first_counter_, answers_round}));
}

void Channels::on_end_closed(runtime::MessagePtr message) {
  EndClosed closed;
  message->unpacker() | closed;
  const std::uint32_t pe = message->envelope().source_pe;
  ChannelEnd* const end =
      closed.from_end == 0 ? ends_.find(closed.to_end) : ends_.find(closed.to_end, {pe, closed.from_end});
  if (end == nullptr || closed.from_end > kMaxEndNumber) {
    if (ends_.is_gone(closed.to_end)) return;
    runtime_.fail(base::format(
        "PE {} closes its channel end {}, whose peer is end {} of PE {}; these ends are not connected", pe,
        closed.from_end, closed.to_end, runtime_.pe()));
    return;
  }
  if (end->peer_is_closed) return;
  if (closed.answers_round != 0) {
    const EndMoves& moves = end->moves;
    // A peer that has not answered the last request sends its end by itself.
    const bool was_stopped =
        moves.num != 0 && !moves.is_answered && closed.answers_round == moves.stopped_round;
    if (was_stopped) peer_closes(*end, end->moves.promised);
    return;
  }
  // An answer to an announcement that comes late: the peer's end closes by a message of its own.
  if (closed.from_end == 0 && end->peer.number != 0) return;
  // The message may have overtaken the announcement, or the news of a move; it is the peer's last.
  if (closed.from_end != 0) {
    end->peer_is_closed = true;  // before it connects, so that no waiting send starts
    learn_address(*end, {pe, closed.from_end}, kLastVersion);
    end->peer_is_closed = false;
  }
  peer_closes(*end, closed.sent);
}

void Channels::peer_closes(ChannelEnd& end, std::uint32_t sent) {
  const auto unreceived = static_cast<std::int32_t>(sent - end.received.next());
  if (unreceived < 0 || unreceived > kMostUnreceived) {
    runtime_.fail(
        base::format("the peer of {} has sent messages before number {}, and those before {} were received; "
                     "this cannot be",
                     describe(end), sent, end.received.next()));
    return;
  }
  end.peer_is_closed = true;
  end.incoming_end = sent;
  end.needs_poll = true;
  end.sends_at_once = false;
  end.receives_specially = true;
  end.received.report_each();
  end.in.has_asked_for_mailbox = true;  // a new one would serve no further stream
  fail_waiting_sends(end);
  // Otherwise the new address is told.
  if (end.peer.number != 0 && end.moves.next_peer.number == 0 && !end.has_told_peer) tell_closed(end);
  // Receives whose messages do not come.
  const std::string why(closed_status(end).message());
  for (std::uint32_t number = sent; static_cast<std::int32_t>(end.in.next - number) > 0; ++number) {
    runtime_.count_sent();  // a receive counts as processed
    failed_sends_.end_receive(end, number, why);
    if (end.checks != nullptr) end.checks->expect_none(end, number);
  }
  if (end.is_closed) drain(end);
  if (end.moves.is_asking) chares().move_again({end.key.self_collection, end.key.self_index});
  closed_ends_.poll_later(end);
}

void Channels::on_loss(int pe) {
  std::vector<ChannelEnd*> lost;
  ends_.for_each([&](ChannelEnd& end) {
    const bool is_known = end.peer.number != 0 && end.peer.pe == static_cast<std::uint32_t>(pe);
    if (is_known && !end.peer_is_closed) lost.push_back(&end);
  });
  for (ChannelEnd* const end : lost) {
    end->lost_pe = pe;
    end->has_told_peer = true;
    peer_closes(*end, end->received.next());
  }
}

void Channels::drain(ChannelEnd& end) {
  while (static_cast<std::int32_t>(end.incoming_end - end.in.next) > 0) {
    if (end.handed_over.is_next(end.in.next)) {
      static_cast<void>(take_handed_over(end));
      continue;
    }
    const std::uint32_t number = end.in.next++;
    auto* const operation = runtime::OperationState::create(runtime_);
    operation->observe();  // it is truncated, unless the message is empty
    operation->set_finisher(
        [](runtime::OperationState*, void* context) {
          auto& closed = *static_cast<ChannelEnd*>(context);
          closed.runtime->count_processed();
          static_cast<void>(closed.received.count(0));
          closed.closed_ends->poll_later(closed);
        },
        &end);
    operation->started(runtime_.machine().peer_memory().receive(end.in, {number, end.receive_tags[number]},
                                                                {}, operation->completion()),
                       0);
    operation->drop_handle();
  }
}

std::shared_ptr<void> Channels::hold(ChannelEnd& end) {
  ++end.holders;
  // The model may be gone when the share is released, and the end with it.
  return {&end, [this, alive = std::weak_ptr<void>(alive_)](ChannelEnd* held) {
            if (alive.expired()) return;
            if (--held->holders != 0) return;
            if (held->has_left) {
              sweep_left();
            } else if (held->is_closed) {
              closed_ends_.poll_later(*held);
            }
          }};
}

void Channels::end_is_over(ChannelEnd& end) {
  if (end.out.peer == runtime_.pe()) {
    if (ChannelEnd* const other = ends_.find(end.peer.number); other != nullptr)
      other->out.on_this_pe = nullptr;
  }
  runtime_.machine().peer_memory().forget(end.in, end.out);
  failed_sends_.forget(end.number);
  checked_messages_.forget(end.number);
  if (end.is_closed) ends_.erase(end);
}

}  // namespace weft::channel
