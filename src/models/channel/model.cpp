// Channels as a model of the runtime: its handlers and options, and how ends are made and found.
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/refuse_claim.h"
#include "models/channel/channels.h"
#include "runtime/losses/losses.h"

namespace weft::channel {

Channels::Channels(runtime::Runtime& runtime, const runtime::ModelRange& range)
    : runtime_(runtime),
      range_(range),
      failed_sends_(runtime, ends_, handler(kFailedSend)),
      checked_messages_(runtime, ends_, handler(kDescription)),
      limit_bytes_(runtime::Watermarks::for_job(runtime.num_pes(), runtime.num_pes()).third_bytes),
      closed_ends_(
          runtime, ends_, [this](ChannelEnd& end) { end_is_over(end); },
          [this](ChannelEnd& end) { poll_moves(end); }) {
  runtime_.losses().on_loss([this](int pe) { on_loss(pe); });
  runtime_.set_handler(
      handler(kAnnouncement),
      [](void* context, runtime::MessagePtr message) {
        static_cast<Channels*>(context)->on_announcement(std::move(message));
      },
      this);
  runtime_.set_urgent_handler(
      handler(kReceived),
      [](void* context, runtime::MessagePtr message) {
        static_cast<Channels*>(context)->on_received(std::move(message));
      },
      this);
  runtime_.set_handler(
      handler(kEndClosed),
      [](void* context, runtime::MessagePtr message) {
        static_cast<Channels*>(context)->on_end_closed(std::move(message));
      },
      this);
  runtime_.set_handler(
      handler(kMoveNote),
      [](void* context, runtime::MessagePtr message) {
        static_cast<Channels*>(context)->on_note(std::move(message));
      },
      this);
}

void Channels::close() {
  // Sends whose peer has not made its end, or has not received what was sent before.
  const base::Status closed(base::StatusCode::kClosed,
                            "the job ended before the peer received earlier messages");
  std::vector<std::shared_ptr<void>> chares;
  ends_.for_each([&](ChannelEnd& end) {
    end.attached = nullptr;
    end.handed_over.clear();
    while (!end.waiting_sends.empty()) end.waiting_sends.pop().operation->complete(closed, 0);
    if (end.chare != nullptr) chares.push_back(std::exchange(end.chare, nullptr));
  });
  checked_messages_.close();
}

std::vector<runtime::ModelOption> Channels::options() {
  return {{"WEFT_CHECK", "1 or 0",
           [this](std::string_view value) {
             is_checked_ = value == "1";
             return value.empty() || value == "0" || value == "1";
           }},
          {"WEFT_CALL_LIMIT", "a number of MiB, 1 or more", [this](std::string_view value) {
             if (value.empty()) return true;
             std::int64_t limit_mib = 0;
             const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), limit_mib);
             limit_bytes_ = limit_mib << 20;
             return error == std::errc() && end == value.data() + value.size() && limit_mib > 0;
           }}};
}

std::vector<std::pair<std::string, std::string>> Channels::fingerprint() const {
  return {{"check mode of channels (WEFT_CHECK)", is_checked_ ? "on" : "off"}};
}

// --- Elements that are moved, saved or removed

base::Status Channels::obstacle_to_moving(runtime::ElementId element) const {
  base::Status obstacle;
  ends_.for_each_of(element.collection, element.index, [&](const ChannelEnd& end) {
    if (!end.is_queued) return;
    obstacle = {base::StatusCode::kInvalidArgument,
                base::format("{} is a queued channel that is connected; close it before, at both ends",
                             describe(end))};
  });
  return obstacle;
}

// It is asked after quiescence, which waits until each message has been received: new ends of both sides then go on where these are.
base::Status Channels::obstacle_to_saving(runtime::ElementId element) const {
  base::Status obstacle;
  ends_.for_each_of(element.collection, element.index, [&](const ChannelEnd& end) {
    if (end.is_closed || end.peer_is_closed) return;
    const std::size_t num_open =
        end.receives_in_flight() + end.num_kept + end.waiting_sends.size() + end.attached_state.num_busy;
    if (num_open == 0) return;
    obstacle = {base::StatusCode::kInvalidArgument,
                base::format("{} has {} sends or receives that are not over; await them before",
                             describe(end), num_open)};
  });
  return obstacle;
}

base::Status Channels::obstacle_to_removing(runtime::ElementId element) const {
  base::Status obstacle;
  ends_.for_each_of(element.collection, element.index, [&](const ChannelEnd& end) {
    obstacle = {base::StatusCode::kInvalidArgument,
                base::format("{} is open; a chare with channels cannot be removed", describe(end))};
  });
  return obstacle;
}

ChannelEnd& Channels::restored_end(const ChannelKey& key) {
  const chare::Collection& self = chares().collection(key.self_collection);
  const chare::Collection& peer = chares().collection(key.peer_collection);
  if (key.self_index >= self.shape().size() || key.peer_index >= peer.shape().size() ||
      self.home(key.self_index) != runtime_.pe()) {
    base::refuse_claim("its state has a channel of another chare", "is the checkpoint damaged?");
  }
  if (ChannelEnd* const found = ends_.find(key); found != nullptr) return *found;
  ChannelEnd& end = make_end(key);
  announce(end);
  return end;
}

// --- Ends

ChannelEnd& Channels::end(const chare::ChareBase& self, const Peer& peer, std::uint64_t id) {
  return end_of({self.collection().id(), self.linear_index(), peer.collection->id(), peer.index, id});
}

ChannelEnd& Channels::end_of(const ChannelKey& key) {
  if (ChannelEnd* const found = ends_.find(key); found != nullptr) return *found;
  const chare::Collection& self = chares().collection(key.self_collection);
  const chare::Collection& peer = chares().collection(key.peer_collection);
  peer.expect_alive();
  self.expect_alive();
  const auto early = early_.find(key);
  if (early != early_.end() && early->second.is_closed) {  // its end overtakes that of its collection
    throw base::Error(
        base::StatusCode::kClosed,
        base::format("{} on PE {} asks for a channel to {}: the collection {} has been destroyed",
                     self.element_name(key.self_index), runtime_.pe(), peer.element_name(key.peer_index),
                     peer.name()));
  }
  ChannelEnd& end = make_end(key);
  announce(end);
  if (early != early_.end()) {
    const EarlyEnd known = early->second;
    early_.erase(early);
    end.moves.peer_round = known.round;
    end.moves.peer_moves = known.moves;
    connect(end, known.address, known.version);
  }
  return end;
}

ChannelEnd& Channels::make_end(const ChannelKey& key) {
  if (ends_.num_made() == kMaxEndNumber) {
    throw base::Error(base::StatusCode::kOutOfRange,
                      base::format("PE {} has {} channel ends, the most that tags can tell apart",
                                   runtime_.pe(), kMaxEndNumber));
  }
  ChannelEnd& end = ends_.add(key);
  end.runtime = &runtime_;
  end.channels = this;
  end.failed_sends = &failed_sends_;
  end.closed_ends = &closed_ends_;
  if (is_checked_) end.checks = &checked_messages_;
  end.receives_specially = is_checked_;
  end.receive_tags = EndTags(range_.tag_type, end.number);
  end.in.name = end.receive_tags[0];
  end.in.takes_used_mailbox = true;
  end.out.next = first_counter_;
  end.in.next = first_counter_;
  end.received.start_at(first_counter_);
  return end;
}

ChannelEnd& Channels::out_of_band_end(ChannelEnd& end) {
  if (!end.is_closed && end.out_of_band != nullptr) [[likely]]
    return *end.out_of_band;
  ChannelKey key = end.key;
  key.id |= kOutOfBand;
  end.out_of_band = ends_.find(key);
  if (end.out_of_band != nullptr) return *end.out_of_band;
  // An end that is open has its chare on this PE, also while the constructor runs, when no collection knows the chare yet.
  if (end.is_closed) base::throw_status(closed_status(end));
  end.out_of_band = &end_of(key);
  return *end.out_of_band;
}

// --- What chares wait for at their ends

namespace {

constexpr std::uint64_t kProgramIds = 0xffffffff;

runtime::NamedParty party_of(const ChannelEnd& end, std::uint64_t collection, std::uint64_t index) {
  auto& chares = end.runtime->model<chare::Chares>();
  return {{collection, index}, chares.collection(collection).element_name(index)};
}

runtime::NamedParty self_of(const ChannelEnd& end) {
  return party_of(end, end.key.self_collection, end.key.self_index);
}

runtime::NamedParty peer_of(const ChannelEnd& end) {
  return party_of(end, end.key.peer_collection, end.key.peer_index);
}

// "Cell[4], channel id 0", and whether that chare has no such channel.
std::string peer_text(const ChannelEnd& end) {
  return base::format("{}, channel id {}{}", peer_of(end).name, end.key.id & kProgramIds,
                      end.peer.number == 0 ? ", which it has not made" : "");
}

// "3 receives", "a receive".
std::string counted(std::size_t count, const char* what) {
  return count == 1 ? base::format("a {}", what) : base::format("{} {}s", count, what);
}

}  // namespace

bool Channels::describe_operation(const runtime::OperationState& operation, runtime::Wait& wait,
                                  runtime::WaitList& waits) const {
  const ChannelEnd* found = nullptr;
  if (const std::optional<std::size_t> bytes = asked_bytes(operation)) {
    found = static_cast<const ChannelEnd*>(operation.finisher_context());
    wait.what = base::format("recv of {} bytes from {}", *bytes, peer_text(*found));
  } else if (FailedSends::watches(operation)) {
    found = static_cast<const ChannelEnd*>(operation.finisher_context());
    wait.what = base::format("a send to {}, which no recv has taken", peer_text(*found));
  } else {
    ends_.for_each([&](const ChannelEnd& end) {
      if (end.waiting_sends.contains(operation)) found = &end;
    });
    if (found == nullptr) return false;
    wait.what = base::format("a send to {}, behind earlier ones that no recv has taken", peer_text(*found));
    if (found->peer.number == 0) wait.what = base::format("a send to {}", peer_text(*found));
  }
  wait.on.push_back(peer_of(*found));
  waits.tell(found);
  return true;
}

void Channels::list_waits(runtime::WaitList& waits) const {
  ends_.for_each([&](const ChannelEnd& end) {
    if (end.is_closed || end.peer_is_closed || (end.key.id & ~kProgramIds) != 0) return;
    if (end.out.next > 0)
      waits.add(runtime::StreamCount{
          .from = self_of(end), .to = peer_of(end), .id = end.key.id, .sent = end.out.next});
    if (end.in.next > 0)
      waits.add(runtime::StreamCount{
          .from = peer_of(end), .to = self_of(end), .id = end.key.id, .received = end.in.next});
    if (waits.is_told(&end)) return;
    const auto add = [&](const std::string& what) {
      waits.add({.who = self_of(end), .what = what, .on = {peer_of(end)}});
    };
    if (end.receives_in_flight() > 0)
      add(base::format("{} from {}", counted(end.receives_in_flight(), "recv"), peer_text(end)));
    if (end.watched_sends > 0)
      add(base::format("{} to {}, not taken by a recv", counted(end.watched_sends, "send"), peer_text(end)));
    if (!end.waiting_sends.empty())
      add(base::format("{} to {}", counted(end.waiting_sends.size(), "waiting send"), peer_text(end)));
  });
}

}  // namespace weft::channel
