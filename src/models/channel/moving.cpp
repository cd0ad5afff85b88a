// Ends that move with their chares. docs/decisions/migration.md has the reasons.
//
// A message on a channel has a tag with the number of the receiving end, and cannot be sent on. So nothing may be under way
// to an end that leaves:
//
//   stop      The chare's end asks its peer to start no more sends to it. The peer's sends wait in the peer's end.
//   stopped   The peer's answer, at once: the number of its next message, and the sizes of its messages in place.
//   go on     Releases the peer: the end is on its new PE, with a new number, or the chare does not move after all.
//
// When all peers have answered, the chare's PE receives what has been sent and was not asked for (TravellingMessages). Then nothing
// is under way to the end, and it packs its counters. Messages to the peer need nothing: they arrive under the peer's number,
// which stays.
//
// Both ends may move at the same time: each has stopped the other, each receives all that the other has sent, and they leave
// independently. Each sends again when the other has released it. Answers wait for nothing, so no cycle of waits exists.
//
// An end asks only if its own operations are over: a peer that is stopped may be unable to end them. An operation that begins
// meanwhile and that needs the peer releases it (used_while_asking()), and the move is tried again when it is over.
//
// These messages find the peer's end by its chare, through the location service: the peer may move. The peer may have no end
// yet; then an EarlyEnd keeps what it is to know. Requests and releases have a round, because they may overtake each other.
#include <string>
#include <utility>
#include <vector>

#include "base/format.h"
#include "models/channel/channels.h"
#include "models/channel/travelling_messages.h"

namespace weft::channel {

using runtime::ElementId;
using runtime::MoveState;

enum class Channels::NoteKind : std::uint32_t { kStop, kStopped, kGoOn };

// Follows the EntryHeader, by which the message finds the peer.
struct Channels::MoveNote {
  ChannelKey key;  // as the receiver sees it
  EndAddress from;
  std::uint32_t version = 0;  // of `from`
  NoteKind kind = NoteKind::kStop;
  std::uint32_t round = 0;
  // kStop: the first message that the end has not asked for. kStopped: the first one that the peer has not sent.
  std::uint32_t next = 0;
};

namespace {

// Each takes kCopyLimitBytes of memory until its size is known.
constexpr int kTakenAtOnce = 256;

std::int32_t difference(std::uint32_t a, std::uint32_t b) { return static_cast<std::int32_t>(a - b); }

}  // namespace

// --- The chare that moves

MoveState Channels::prepare_to_move(ElementId element, bool may_wait) {
  bool is_asking = false;
  bool is_used = false;       // by operations of the program
  bool must_release = false;  // a peer, which they may need
  bool is_settling = false;
  std::vector<ChannelEnd*> ends;
  ends_.for_each_of(element.collection, element.index, [&](ChannelEnd& end) {
    ends.push_back(&end);
    if (end.moves.next_peer.number != 0 && end.watched_sends == 0) change_peer(end);
    is_asking |= end.moves.is_asking;
    const bool is_sending = end.watched_sends != 0 || !end.waiting_sends.empty();
    is_used |= is_sending || end.receives_in_flight() != 0 || end.attached_state.num_busy != 0;
    is_settling |= end.in.receives != 0;  // peer memory ends some a turn after their completion
    must_release |=
        end.moves.is_asking &&
        (is_sending || (end.moves.is_answered && difference(end.in.next, end.moves.promised) > 0));
  });
  if (ends.empty()) return MoveState::kReady;
  const auto wait = [&] {
    if (!may_wait) return MoveState::kBusy;
    for (ChannelEnd* const end : ends) wait_to_move(*end);
    return MoveState::kWaits;
  };
  if (is_asking && must_release) {
    stay(element);
    is_asking = false;
  }
  if (is_used && (!is_asking || !may_wait)) return wait();

  bool all_answered = true;
  for (ChannelEnd* const end : ends) {
    if (end->is_its_own_peer()) {
      end->moves.is_asking = end->moves.is_answered = true;
      end->moves.promised = end->out.next;
    } else if (end->peer_is_closed) {
      end->moves.is_asking = end->moves.is_answered = true;
      // A receive that has failed was counted, and no message belongs to it.
      end->moves.promised =
          difference(end->incoming_end, end->in.next) > 0 ? end->incoming_end : end->in.next;
    } else if (!end->moves.is_asking) {
      ask_to_stop(*end);
    }
    end->sends_at_once = false;
    end->receives_specially = true;
    all_answered &= end->moves.is_answered;
  }
  if (!all_answered) return MoveState::kWaits;

  bool is_settled = true;
  bool has_taken_all = true;
  for (ChannelEnd* const end : ends) {
    if (difference(end->moves.promised, end->in.next) > 0) {
      // In check mode the descriptions would have to travel too. The sizes of a closed peer's messages are not known.
      if (end->checks != nullptr || end->peer_is_closed) {
        stay(element);
        return wait();
      }
      take_early(*end);
    }
    has_taken_all &= end->moves.promised == end->in.next;
    is_settled &= end->kept == nullptr || end->kept->is_settled();
  }
  if (!is_settled) return MoveState::kWaits;
  if (is_used) return wait();
  if (is_settling || !has_taken_all) {
    chares().move_again(element);
    return MoveState::kWaits;
  }
  return MoveState::kReady;
}

void Channels::ask_to_stop(ChannelEnd& end) {
  ++end.moves.round;
  end.moves.is_asking = true;
  end.moves.is_answered = false;
  send_note(end, NoteKind::kStop, end.moves.round, end.in.next, {});
}

void Channels::release_peer(const ChannelEnd& end) {
  send_note(end, NoteKind::kGoOn, end.moves.round, 0, {});
}

void Channels::take_early(ChannelEnd& end) {
  if (end.kept == nullptr) {
    end.kept = std::make_shared<TravellingMessages>(end, [this, &end] {
      if (end.kept->is_settled()) chares().move_again({end.key.self_collection, end.key.self_index});
    });
  }
  const std::vector<SentSize> own_sizes =
      end.is_its_own_peer() ? end.sent_in_place.from(end.in.next) : std::vector<SentSize>();
  const std::vector<SentSize>& sizes = end.is_its_own_peer() ? own_sizes : end.moves.sizes;
  auto size = sizes.begin();
  for (int i = 0; i < kTakenAtOnce && difference(end.moves.promised, end.in.next) > 0; ++i) {
    while (size != sizes.end() && difference(end.in.next, size->number) > 0) ++size;
    const bool is_in_place = size != sizes.end() && size->number == end.in.next;
    end.kept->take_next(is_in_place ? size->size_bytes : kCopyLimitBytes);
  }
}

void Channels::wait_to_move(ChannelEnd& end) {
  end.moves.waits = true;
  end.needs_poll = true;
  end.received.report_each();  // so that this end is polled after each receive
}

void Channels::poll_moves(ChannelEnd& end) {
  if (end.moves.next_peer.number != 0 && end.watched_sends == 0) change_peer(end);
  if (std::exchange(end.moves.waits, false))
    chares().move_again({end.key.self_collection, end.key.self_index});
  end.needs_poll = end.is_closed || end.peer_is_closed || end.moves.next_peer.number != 0;
}

void Channels::stay(ElementId element) {
  ends_.for_each_of(element.collection, element.index, [this](ChannelEnd& end) {
    end.moves.waits = false;
    if (!end.moves.is_asking) return;
    end.moves.is_asking = false;
    end.moves.is_answered = false;
    end.receives_specially = end.checks != nullptr || end.peer_is_closed || end.is_closed;
    if (end.kept != nullptr) end.kept->give_back();
    if (!end.is_its_own_peer() && !end.peer_is_closed) release_peer(end);
    if (end.peer.number != 0) start_waiting_sends(end);
  });
}

void Channels::stay_for_now(const ChannelEnd& end) {
  const ElementId element{end.key.self_collection, end.key.self_index};
  stay(element);
  chares().move_again(element);
}

void Channels::used_while_asking(ChannelEnd& end) {
  if (!end.moves.is_asking) return;
  const bool is_past = end.moves.is_answered && difference(end.in.next, end.moves.promised) > 0;
  if (is_past || end.watched_sends != 0 || !end.waiting_sends.empty()) stay_for_now(end);
}

// --- Messages

void Channels::send_note(const ChannelEnd& end, NoteKind kind, std::uint32_t round, std::uint32_t next,
                         const std::vector<SentSize>& sizes) {
  const chare::EntryHeader header{end.key.peer_collection, end.key.peer_index, 0, 0, {}};
  const MoveNote note{end.key.reversed(), address_of(end), end.moves.num, kind, round, next};
  chares().send_to_element(chares().collection(end.key.peer_collection), end.key.peer_index,
                           runtime::Message::pack(runtime_, handler(kMoveNote), header, note, sizes));
}

void Channels::on_note(runtime::MessagePtr message) {
  chare::EntryHeader header;
  MoveNote note;
  std::vector<SentSize> sizes;
  Pup p = message->unpacker();
  p | header | note | sizes;
  chare::Collection& collection = chares().collection(header.collection);
  if (!collection.is_destroyed() && chares().find_or_forward(message) == nullptr) return;
  const bool has_end = note.kind != NoteKind::kStopped || note.from.number != 0;
  if (has_end && !expect_address(note.from, note.key)) return;
  ChannelEnd* const end = ends_.find(note.key);
  if (end != nullptr) {
    if (note.kind == NoteKind::kStopped) return on_stopped(*end, note, std::move(sizes));
    return on_note_to_end(*end, note);
  }
  if (note.kind == NoteKind::kStopped) return;  // the asking end is gone
  if (!collection.is_destroyed()) return on_early_note(note);
  answer_closed(note.from, note.kind == NoteKind::kGoOn ? note.round : 0);
}

void Channels::on_note_to_end(ChannelEnd& end, const MoveNote& note) {
  learn_address(end, note.from, note.version);
  const std::int32_t ahead = difference(note.round, end.moves.peer_round);
  if (note.kind == NoteKind::kGoOn) {
    if (ahead < 0) return;
    end.moves.peer_round = note.round;
    end.moves.peer_moves = false;
    if (end.in.mailbox == nullptr && !end.peer_is_closed) end.in.has_asked_for_mailbox = false;
    return start_waiting_sends(end);
  }
  if (ahead <= 0) return;  // it has been released already
  end.moves.peer_round = note.round;
  end.moves.peer_moves = true;
  end.sends_at_once = false;
  // The peer's PE would keep the news of a mailbox that no send of this stream uses.
  if (end.in.mailbox == nullptr) end.in.has_asked_for_mailbox = true;
  send_note(end, NoteKind::kStopped, note.round, end.out.next, end.sent_in_place.from(note.next));
}

// The chare has not made its end.
void Channels::on_early_note(const MoveNote& note) {
  EarlyEnd& early =
      early_.try_emplace(note.key, EarlyEnd{note.from, false, note.version, 0, false}).first->second;
  if (early.is_closed) return;
  if (note.version >= early.version) {
    early.address = note.from;
    early.version = note.version;
  }
  const std::int32_t ahead = difference(note.round, early.round);
  if (note.kind == NoteKind::kGoOn ? ahead < 0 : ahead <= 0) return;
  early.round = note.round;
  early.moves = note.kind == NoteKind::kStop;
  if (!early.moves) return;
  const chare::EntryHeader header{note.key.peer_collection, note.key.peer_index, 0, 0, {}};
  const MoveNote answer{note.key.reversed(), {}, 0, NoteKind::kStopped, note.round, first_counter_};
  chares().send_to_element(
      chares().collection(note.key.peer_collection), note.key.peer_index,
      runtime::Message::pack(runtime_, handler(kMoveNote), header, answer, std::vector<SentSize>()));
}

void Channels::on_stopped(ChannelEnd& end, const MoveNote& note, std::vector<SentSize> sizes) {
  if (note.from.number != 0) learn_address(end, note.from, note.version);
  if (!end.moves.is_asking || note.round != end.moves.round || end.moves.is_answered || end.peer_is_closed)
    return;
  const std::int32_t unreceived = difference(note.next, end.received.next());
  if (unreceived < 0 || unreceived > kMostUnreceived) {
    runtime_.fail(
        base::format("the peer of {} has sent messages before number {}, and those before {} were received; "
                     "this cannot be",
                     describe(end), note.next, end.received.next()));
    return;
  }
  end.moves.is_answered = true;
  end.moves.stopped_round = note.round;
  end.moves.promised = note.next;
  end.moves.sizes = std::move(sizes);
  bool all_answered = true;
  const ElementId element{end.key.self_collection, end.key.self_index};
  ends_.for_each_of(element.collection, element.index, [&](const ChannelEnd& other) {
    // An end that has been made meanwhile is asked when prepare_to_move() is called again.
    all_answered &= !other.moves.is_asking || other.moves.is_answered || other.peer_is_closed;
  });
  if (all_answered) chares().move_again(element);
}

}  // namespace weft::channel
