#include "weft/runtime/messenger.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <list>
#include <new>
#include <utility>
#include <vector>

#include "weft/base/error.h"

#include "base/format.h"
#include "machine/machine.h"
#include "memory/memory.h"
#include "runtime/collective/spanning_tree.h"
#include "runtime/handlers.h"
#include "runtime/message/accounting.h"
#include "runtime/message/announcement.h"
#include "runtime/message/arrival.h"
#include "runtime/message/attached.h"
#include "runtime/message/boundary.h"
#include "runtime/message/flow_control.h"
#include "runtime/message/landing_pool.h"
#include "runtime/message/outgoing.h"

namespace weft::runtime {

namespace {

// Rare cases. They are out of line, so that the functions on the path of each message save no registers for them.

[[noreturn, gnu::cold, gnu::noinline]] void refuse_pe(int pe, int num_pes) {
  throw base::Error(base::StatusCode::kOutOfRange,
                    base::format("PE {} does not exist; this job has PEs 0 to {}", pe, num_pes - 1));
}

[[gnu::cold, gnu::noinline]] void observe_sent(Scheduler& scheduler, const Message& message, int pe) {
  scheduler.message_observer()->message_sent(message.event(pe));
}

[[gnu::cold, gnu::noinline]] void observe_delivered(Scheduler& scheduler, const Message& message) {
  const auto source_pe = static_cast<int>(message.envelope().source_pe);
  scheduler.message_observer()->message_delivered(message.event(source_pe));
}

[[gnu::cold, gnu::noinline]] void fail_unknown(Scheduler& scheduler, const Envelope& envelope) {
  scheduler.fail(base::format(
      "a message from PE {} names handler {}, which this PE does not have; do all PEs run the same "
      "program?",
      envelope.source_pe, envelope.handler));
}

// REQUIRES: called in a catch block.
[[gnu::cold, gnu::noinline]] void fail_handling(Scheduler& scheduler, std::uint32_t source_pe) {
  scheduler.fail_unawaited(std::current_exception(),
                           base::format("the handling of a message from PE {}", source_pe));
}

[[gnu::cold, gnu::noinline]] void fail_size(Scheduler& scheduler, std::size_t size_bytes) {
  scheduler.fail(
      base::format("a message of {} bytes arrived; a message has {} to {} bytes; do all PEs run the same "
                   "program?",
                   size_bytes, sizeof(Envelope), sizeof(Envelope) + Message::kMaxPayloadBytes));
}

}  // namespace

// The state that messages with buffers need.
namespace {

FlowControl::Counted counted_buffers(const Message& message, bool is_to_own_pe) {
  return is_to_own_pe || (message.envelope().flags & kBroadcastFlag) != 0
             ? FlowControl::Counted::kAll
             : FlowControl::Counted::kBelowFetched;
}

}  // namespace

class Messenger::Buffers final : public Arrival::Owner {
 public:
  Buffers(Messenger& messenger, MessagingPath path)
      : landing_pool(messenger), outgoing(messenger, path, messenger.flow_.get()), messenger_(messenger) {}
  void landed(MessagePtr message, bool complete) override { messenger_.landed(std::move(message), complete); }

  LandingPool landing_pool;
  Outgoing outgoing;
  // Their posters hold them.
  std::list<Message*> deferred;

 private:
  Messenger& messenger_;
};

Messenger::Messenger(Runtime& runtime, machine::Machine& machine, memory::Memory& memory, int local_pes,
                     MessagingPath path, const FlowMarks& marks)
    : Scheduler(runtime, machine, memory, local_pes),
      flow_(std::make_unique<FlowControl>(
          *this,
          [](Scheduler& self, int pe, MessagePtr message) {
            static_cast<Messenger&>(self).send(pe, std::move(message));
          },
          marks)),
      flow_peers_(flow_->peers()),
      buffers_(std::make_unique<Buffers>(*this, path)) {
  set_urgent_handler(
      kFlowCreditHandler,
      [](void* flow, MessagePtr message) { static_cast<FlowControl*>(flow)->on_credit(std::move(message)); },
      flow_.get());
  set_urgent_handler(
      kFlowProbeHandler,
      [](void* flow, MessagePtr message) { static_cast<FlowControl*>(flow)->on_probe(std::move(message)); },
      flow_.get());
  base::check(machine.set_am_handler(
      kMessageAm,
      [](void* context, machine::AmArrival& arrival) {
        auto* self = static_cast<Messenger*>(context);
        at_boundary(*self, "the receipt of a message", [&] { self->receive_arrival(arrival); });
      },
      this));
  base::check(machine.set_am_handler(
      kBufferMessageAm,
      [](void* context, machine::AmArrival& arrival) {
        auto* self = static_cast<Messenger*>(context);
        at_boundary(*self, "the receipt of a message", [&] { self->receive_with_buffer(arrival); });
      },
      this));
}

Messenger::~Messenger() = default;

void Messenger::set_handler(HandlerId id, MessageHandler handler, void* context) {
  handlers_.at(id).function = handler;
  handlers_.at(id).context = context;
}

void Messenger::set_urgent_handler(HandlerId id, MessageHandler handler, void* context) {
  set_handler(id, handler, context);
  handlers_.at(id).is_urgent = true;
}

void Messenger::set_poster(HandlerId id, MessagePoster poster, MessageDropped dropped) {
  handlers_.at(id).choose = poster;
  handlers_.at(id).dropped = dropped;
}

// --- Sending

template <Messenger::Sender kSender>
void Messenger::send_as(int pe, MessagePtr message) {
  if (closed()) return;
  if (pe < 0 || pe >= num_pes()) [[unlikely]]
    refuse_pe(pe, num_pes());
  if (is_counted(message->envelope())) {
    message->envelope().root_pe = static_cast<std::uint32_t>(this->pe());
    FlowPeer& peer = flow_peers_[pe];
    ++peer.sent;
    peer.room_bytes -= FlowControl::cost_of(*message);
    if (kSender == Sender::kCall && peer.room_bytes < 0) [[unlikely]] {
      if (!flow_->admit(pe, *message)) return;
    }
    count_sent();
  }
  if (message_observer() != nullptr) [[unlikely]]
    observe_sent(*this, *message, pe);
  if (message->has_attachments()) [[unlikely]]
    return send_attached(pe, std::move(message));
  if (pe == this->pe()) return enqueue(message.release());
  send_active_message(*this, pe, {}, message.release());
}

void Messenger::send(int pe, MessagePtr message) { send_as<Sender::kRuntime>(pe, std::move(message)); }
void Messenger::send_call(int pe, MessagePtr message) { send_as<Sender::kCall>(pe, std::move(message)); }

// Each PE gets the message once, down the tree, and reports to the root that it has handled it.
template <Messenger::Sender kSender>
void Messenger::broadcast_as(MessagePtr message) {
  if (closed()) return;
  const HandlerId handler = message->envelope().handler;
  if (message->has_attachments() && handlers_[handler].choose != nullptr) [[unlikely]] {
    throw base::Error(base::StatusCode::kInvalidArgument,
                      base::format("handler {} has a poster and cannot receive a broadcast with buffers; "
                                   "send to each PE",
                                   handler));
  }
  if (is_counted(message->envelope())) {
    for (int i = 0; i < num_pes(); ++i) {
      FlowPeer& peer = flow_peers_[i];
      ++peer.sent;
      peer.room_bytes -= FlowControl::cost_of(*message);
    }
    if (kSender == Sender::kCall && !flow_->admit_broadcast(*message)) return;
    count_sent(num_pes());
  }
  send_down(std::move(message));
}

void Messenger::broadcast(MessagePtr message) { broadcast_as<Sender::kRuntime>(std::move(message)); }
void Messenger::broadcast_call(MessagePtr message) { broadcast_as<Sender::kCall>(std::move(message)); }

bool Messenger::has_room(int pe) const { return flow_->has_room(pe); }
void Messenger::when_room(int pe, Work* work) { flow_->when_room(pe, work); }
void Messenger::forget_room(Work* work) { flow_->forget_waiter(work); }
void Messenger::expect_queue_room(std::size_t block_bytes) { flow_->expect_queue_room(block_bytes); }
std::vector<std::string> Messenger::flow_report() const { return flow_->report(); }
void Messenger::close_flow() { flow_->close(); }

void Messenger::charge_buffers(int pe, Message& message) {
  if (!is_counted(message.envelope())) return;
  Attached& attached = message.attached();
  attached.flow_bytes = FlowControl::cost_of_buffers(attached, counted_buffers(message, pe == this->pe()));
  flow_peers_[pe].room_bytes -= attached.flow_bytes;
}

void Messenger::send_attached(int pe, MessagePtr message) {
  charge_buffers(pe, *message);
  if (pe != this->pe()) return buffers_->outgoing.send(pe, std::move(message));
  Attached& attached = message->attached();
  for (Attachment& one : attached.buffers) one.copy_now();
  if (attached.sending != nullptr) attached.sending_bytes = attached.size_bytes();
  enqueue_to_post(message.release());
}

void Messenger::send_down(MessagePtr message) {
  Envelope& envelope = message->envelope();
  if (message->has_attachments()) [[unlikely]] {
    for (Attachment& one : message->attached().buffers) one.copy_now();
    message->attached().report_jointly(*this);
  }
  envelope.flags |= kBroadcastFlag;
  envelope.root_pe = static_cast<std::uint32_t>(pe());
  const bool has_buffers = message->has_attachments();
  if (has_buffers) {
    for (int i = 0; i < num_pes(); ++i) charge_buffers(i, *message);
  }
  forward(*message);
  if (message_observer() != nullptr) [[unlikely]]
    observe_sent(*this, *message, pe());
  if (has_buffers) {
    enqueue_attached(message.release());
  } else {
    enqueue(message.release());
  }
}

// Sends the broadcast to this PE's children in its tree. Afterwards `message` is for this PE only.
void Messenger::forward(Message& message) {
  // While the job ends, PEs handle the messages of the end only. The PEs below may have stopped already, so
  // other messages to them would never arrive.
  const HandlerId handler = message.envelope().handler;
  if (exiting() && handler != kExitHandler && handler != kCloseHandler) return;
  SpanningTree tree(static_cast<int>(message.envelope().root_pe), pe(), num_pes());
  for (int i = 0; i < tree.num_children(); ++i) {
    // Each child gets a copy, because a message has one completion.
    MessagePtr copy = Message::create(*this, message.envelope().handler, message.payload_bytes());
    const std::uint8_t traced = copy->envelope().flags & kTracedFlag;  // the copy has its own number, or none
    copy->envelope() = message.envelope();
    copy->envelope().flags = static_cast<std::uint8_t>((copy->envelope().flags & ~kTracedFlag) | traced);
    if (message_observer() != nullptr) [[unlikely]]
      observe_sent(*this, *copy, tree.child(i));
    std::copy_n(message.payload(), message.payload_bytes(), copy->payload());
    if (message.has_attachments()) [[unlikely]] {
      message.share_attachments(*copy);
      buffers_->outgoing.send(tree.child(i), std::move(copy));
    } else {
      send_active_message(*this, tree.child(i), {}, copy.release());
    }
  }
  message.envelope().flags &= static_cast<std::uint8_t>(~kBroadcastFlag);
}

void Messenger::forward_from_callback(Message& message) {
  try {
    forward(message);
  } catch (const std::bad_alloc&) {
    fail(base::format("no memory to forward a broadcast of {} bytes from PE {}; send in smaller parts",
                      message.payload_bytes(), message.envelope().source_pe));
  }
}

void Messenger::deliver(const Target& target, std::span<const std::byte> result) {
  constexpr std::uint8_t kKnownFlags = kBroadcastFlag | kControlFlag;
  if (target.handler >= kNumHandlers || handlers_[target.handler].function == nullptr ||
      (target.flags & ~kKnownFlags) != 0) {
    throw base::Error(
        base::StatusCode::kCorrupt,
        base::format("a result is for handler {} with flags {:#x}, which PE {} does not have; do all PEs run "
                     "the same program?",
                     target.handler, target.flags, pe()));
  }
  MessagePtr message = Message::create(*this, target.handler, target.prefix.size() + result.size());
  std::copy(result.begin(), result.end(),
            std::copy(target.prefix.begin(), target.prefix.end(), message->payload()));
  message->envelope().flags |= target.flags;
  if ((target.flags & kBroadcastFlag) != 0) {
    broadcast(std::move(message));
  } else {
    send(static_cast<int>(target.pe), std::move(message));
  }
}

// --- Receiving

void Messenger::receive_arrival(machine::AmArrival& arrival) {
  std::size_t size_bytes = arrival.payload_size_bytes;
  // The difference wraps if the size is less than an envelope.
  if (size_bytes - sizeof(Envelope) > Message::kMaxPayloadBytes) [[unlikely]]
    return fail_size(*this, size_bytes);
  MessagePtr message;
  try {
    message = Message::for_arrival(*this, size_bytes - sizeof(Envelope));
  } catch (const std::bad_alloc&) {
    fail(base::format("there is no memory for a message of {} bytes", size_bytes));
    return;
  }
  if (!arrival.header.empty()) [[unlikely]] {
    base::Status status = expect_tagged(*message, arrival.header);
    if (status.failed()) return fail(status.to_string());
  }
  if (arrival.data == nullptr) [[unlikely]]
    return fetch(std::move(message), arrival);
  std::copy_n(arrival.data, size_bytes, message->wire());
  receive(std::move(message));
}

void Messenger::fetch(MessagePtr message, machine::AmArrival& arrival) {
  message->messenger = this;
  message->base::Completion::function = [](base::Completion* completion, base::Status status, std::size_t) {
    MessagePtr received(static_cast<Message*>(completion));
    Messenger& self = *received->messenger;
    at_boundary(self, "the receipt of a message", [&] { self.fetched(std::move(received), status); });
  };
  Message* raw = message.release();
  base::Status status =
      machine().am_receive(arrival.take(), memory::Buffer{raw->wire(), raw->wire_bytes(), {}, nullptr}, raw);
  if (!status.is_pending()) fetched(MessagePtr(raw), status);
}

void Messenger::receive_with_buffer(machine::AmArrival& arrival) {
  Announcement announced;
  constexpr std::size_t kLeastBytes = sizeof announced + sizeof(Envelope);
  if (arrival.header.size() < kLeastBytes) {
    fail(base::format("a message of {} bytes arrived, shorter than its envelope of {}", arrival.header.size(),
                      kLeastBytes));
    return;
  }
  std::memcpy(&announced, arrival.header.data(), sizeof announced);
  std::span<const std::byte> wire = arrival.header.subspan(sizeof announced);
  MessagePtr message = Message::for_arrival(*this, wire.size() - sizeof(Envelope));
  std::memcpy(message->wire(), wire.data(), wire.size());
  base::Status status = expect_payload(*message, announced, arrival.payload_size_bytes);
  if (status.failed()) return fail(status.to_string());
  Attached& attached = message->attached();
  if (announced.size_bytes > 0 && arrival.data == nullptr) {
    attached.payload = arrival.take();
  } else if (announced.size_bytes > 0) {
    // An eager payload is valid during this call only.
    base::Result<Attachment> room = buffers_->landing_pool.allocate(announced.size_bytes, {});
    if (!room.ok()) return fail(room.status().to_string());
    std::memcpy(room->buffer().data, arrival.data, announced.size_bytes);
    attached.state = Attached::State::kLanded;
    attached.sender_kind = announced.kind;
    attached.buffers[0] = std::move(room).value();
  }
  receive(std::move(message));
}

void Messenger::fetched(MessagePtr message, const base::Status& status) {
  if (status.ok()) {
    receive(std::move(message));
  } else if (!exiting()) {
    fail(base::format("a message of {} bytes could not be fetched from its sender: {}", message->wire_bytes(),
                      status.to_string()));
  }
}

void Messenger::receive(MessagePtr message) {
  const Envelope& envelope = message->envelope();
  if (envelope.handler >= kNumHandlers || handlers_[envelope.handler].function == nullptr ||
      envelope.root_pe >= static_cast<std::uint32_t>(num_pes())) [[unlikely]]
    return fail_unknown(*this, envelope);
  if ((envelope.flags & (kTracedFlag | kBroadcastFlag | kUrgentFlag)) == 0 && !message->has_attachments())
      [[likely]]
    return enqueue(message.release());
  receive_special(std::move(message));
}

void Messenger::receive_special(MessagePtr message) {
  const Envelope& envelope = message->envelope();
  if ((envelope.flags & kTracedFlag) != 0 && !message->split_trace()) {
    fail(base::format("a message from PE {} is too short for the number that its flags announce",
                      envelope.source_pe));
    return;
  }
  if ((envelope.flags & kUrgentFlag) != 0) return receive_urgent(std::move(message));
  if (message->has_attachments())
    message->attached().flow_bytes =
        FlowControl::cost_of_buffers(message->attached(), counted_buffers(*message, false));
  const bool is_broadcast = (envelope.flags & kBroadcastFlag) != 0;
  // A PE that waits inside a call handles the message later. The wait must not depend on PEs that have ended.
  if (envelope.handler == kExitHandler) announce_end();
  if (!message->has_attachments()) {
    if (is_broadcast) forward_from_callback(*message);
    enqueue(message.release());
  } else if (handlers_[envelope.handler].choose == nullptr) {
    MessagePtr complete = land(std::move(message), false);
    if (complete != nullptr) landed(std::move(complete), true);
  } else if (is_broadcast) {
    fail(
        base::format("a broadcast from PE {} announces buffers for handler {}, which cannot receive a "
                     "broadcast with buffers; do all PEs run the same program?",
                     envelope.source_pe, envelope.handler));
  } else {
    enqueue_to_post(message.release());
  }
}

void Messenger::receive_urgent(MessagePtr message) {
  const Envelope& envelope = message->envelope();
  const Handler& handler = handlers_[envelope.handler];
  if (!handler.is_urgent || envelope.source_pe >= static_cast<std::uint32_t>(num_pes()) ||
      message->has_attachments())
    return fail_unknown(*this, envelope);
  const std::uint32_t source_pe = envelope.source_pe;
  try {
    handler.function(handler.context, std::move(message));
  } catch (...) {  // the bytes do not unpack
    fail_handling(*this, source_pe);
  }
}

// --- In the queue

void Messenger::enqueue(Message* message) {
  message->messenger = this;
  message->Work::function = [](Work* self, Runtime&, WorkAction action) {
    MessagePtr owned(static_cast<Message*>(self));
    Messenger& messenger = *owned->messenger;
    if (messenger.closed()) return;
    if (action == WorkAction::kDrop && is_counted(owned->envelope())) return messenger.count_dropped(*owned);
    messenger.dispatch(std::move(owned));
  };
  post(message, message->envelope().priority);
}

void Messenger::enqueue_attached(Message* message) {
  message->messenger = this;
  message->Work::function = [](Work* self, Runtime&, WorkAction action) {
    MessagePtr owned(static_cast<Message*>(self));
    Messenger& messenger = *owned->messenger;
    if (messenger.closed()) return;
    if (action == WorkAction::kDrop && is_counted(owned->envelope())) return messenger.count_dropped(*owned);
    messenger.dispatch_attached(std::move(owned));
  };
  post(message, message->envelope().priority);
}

void Messenger::dispatch_attached(MessagePtr message) {
  count_buffers_handled(*message);
  dispatch(std::move(message));
}

void Messenger::count_buffers_handled(Message& message) {
  if (!is_counted(message.envelope()) || !message.has_attachments()) return;
  flow_peers_[message.envelope().root_pe].owed_bytes += std::exchange(message.attached().flow_bytes, 0);
}

// In this function and not in a handler: a message counts as handled when its handling begins.
inline void Messenger::count_handled(const Message& message) {
  const std::uint32_t pe = message.envelope().root_pe;
  FlowPeer& peer = flow_peers_[pe];
  ++peer.handled;
  peer.owed_bytes += FlowControl::cost_of(message);
  if (peer.owed_bytes >= 0) [[unlikely]]
    flow_->pay(static_cast<int>(pe));
}

// Of messages that are dropped while the job ends: a sender may wait for them inside a call.
void Messenger::count_dropped(Message& message) {
  count_buffers_handled(message);
  count_handled(message);
}

void Messenger::dispatch(MessagePtr&& message) {
  if (is_counted(message->envelope())) {
    count_processed();
    count_handled(*message);
  }
  const Handler& handler = handlers_[message->envelope().handler];
  std::uint32_t source_pe = message->envelope().source_pe;
  if (message_observer() != nullptr) [[unlikely]]
    observe_delivered(*this, *message);
  try {
    handler.function(handler.context, std::move(message));
  } catch (...) {  // the bytes do not unpack; the models catch the exceptions of user code
    fail_handling(*this, source_pe);
  }
}

void Messenger::enqueue_to_post(Message* message) {
  message->messenger = this;
  message->Work::function = [](Work* self, Runtime&, WorkAction action) {
    MessagePtr owned(static_cast<Message*>(self));
    Messenger& messenger = *owned->messenger;
    if (messenger.closed()) return;
    owned = messenger.land(std::move(owned), action == WorkAction::kDrop);
    if (owned != nullptr) messenger.dispatch_attached(std::move(owned));
  };
  post(message, message->envelope().priority);
}

// Asks the poster and lands the buffers. Returns the message if it can be handled at once, else null.
MessagePtr Messenger::land(MessagePtr message, bool dropped) {
  Attached& attached = message->attached();
  // Buffers of a dropped message land too if they are still at their sender, which waits for that.
  if (dropped && attached.state != Attached::State::kAwaited) {
    if (is_counted(message->envelope())) count_dropped(*message);
    return nullptr;
  }
  std::vector<Landing> landings = landings_of(*message);
  Posting posting = dropped ? Posting::kDrop : Posting::kHandle;
  attached.posted = false;
  if (!dropped && handlers_[message->envelope().handler].choose != nullptr)
    posting = choose(message, landings);
  if (message == nullptr) return nullptr;  // deferred
  return land_at(std::move(message), landings, posting == Posting::kHandle);
}

// Asks the poster. `message` is null afterwards if the poster deferred it.
Posting Messenger::choose(MessagePtr& message, std::span<Landing> landings) {
  const Handler& handler = handlers_[message->envelope().handler];
  MessagePtr asked = message->share();
  Posting posting = Posting::kDrop;
  try {
    posting = handler.choose(handler.context, message, landings);
  } catch (...) {  // the bytes do not unpack; the models catch the exceptions of user code
    fail_unawaited(std::current_exception(),
                   base::format("the posting of a message from PE {}", asked->envelope().source_pe));
  }
  if (message == nullptr && asked->is_shared() && !ending()) {
    defer(*asked);
    return Posting::kDefer;
  }
  if (message == nullptr || posting == Posting::kDefer) posting = Posting::kDrop;
  if (message == nullptr) message = std::move(asked);  // released, or taken while the job ends
  message->attached().posted = posting == Posting::kHandle;
  return posting;
}

// Returns the message if it can be handled at once, else null.
MessagePtr Messenger::land_at(MessagePtr message, std::span<Landing> landings, bool wanted) {
  // A poster that refused the message, or failed, may have chosen memory before. That memory is not used: its
  // owner may let other data land there.
  if (!wanted) {
    for (Landing& landing : landings) landing.into = Attachment();
  }
  Arrival::Landed landed =
      Arrival::start(*buffers_, buffers_->landing_pool, std::move(message), landings, wanted);
  if (landed.message == nullptr || landed.complete) return std::move(landed.message);
  drop(*landed.message);
  return nullptr;
}

void Messenger::landed(MessagePtr message, bool complete) {
  if (!complete) return drop(*message);
  if ((message->envelope().flags & kBroadcastFlag) != 0) forward_from_callback(*message);
  enqueue_attached(message.release());
}

void Messenger::drop(Message& message) {
  const Handler& handler = handlers_[message.envelope().handler];
  // When the runtime closes, the poster's owner may be destroyed already.
  if (message.attached().posted && handler.dropped != nullptr && !closed()) {
    handler.dropped(handler.context, message);
  }
  if (is_counted(message.envelope())) count_dropped(message);
  count_lost(*this, message.envelope(), pe());
}

// --- Deferred messages

std::vector<Landing> Messenger::landings_of(Message& message) const {
  const Attached& attached = message.attached();
  std::vector<Landing> landings(attached.buffers.size());
  for (std::size_t i = 0; i < landings.size(); ++i) {
    landings[i].size_bytes = attached.buffers[i].buffer().size_bytes;
    landings[i].place = own_place(attached.first_kind(i));
  }
  return landings;
}

void Messenger::place(MessagePtr message, std::span<Landing> landings) {
  if (ending()) return;  // it has been refused
  if (landings.size() != message->attachments().size()) {
    throw base::Error(base::StatusCode::kInvalidArgument,
                      base::format("{} places are given for the {} buffers of a message; fill in what "
                                   "landings_of() returned",
                                   landings.size(), message->attachments().size()));
  }
  undefer(*message);
  message->attached().posted = true;
  MessagePtr complete = land_at(std::move(message), landings, true);
  if (complete != nullptr) enqueue_attached(complete.release());
}

void Messenger::post_again(MessagePtr message) {
  if (ending()) return;  // it has been refused
  undefer(*message);
  enqueue_to_post(message.release());
}

void Messenger::defer(Message& message) {
  Attached& attached = message.attached();
  attached.deferred_at = buffers_->deferred.insert(buffers_->deferred.end(), &message);
  message.messenger = this;
  attached.on_release = [](MessagePtr released) {
    Messenger& self = *released->messenger;
    self.buffers_->deferred.erase(released->attached().deferred_at);
    at_boundary(self, "the release of a deferred message", [&] { self.refuse(std::move(released)); });
  };
}

void Messenger::undefer(Message& message) {
  Attached& attached = message.attached();
  if (std::exchange(attached.on_release, nullptr) == nullptr) return;
  buffers_->deferred.erase(attached.deferred_at);
}

// Lands the buffers, so that the sender's memory becomes free, and does not handle the message.
void Messenger::refuse(MessagePtr message) {
  if (closed()) return;
  std::vector<Landing> landings = landings_of(*message);
  land_at(std::move(message), landings, false);
}

void Messenger::end_job(int code, Ending* ending) {
  Scheduler::end_with(code, ending);
  // Their holders will not place them any more, and their senders wait for that.
  std::list<Message*> deferred = std::exchange(buffers_->deferred, {});
  for (Message* message : deferred) {
    message->attached().on_release = nullptr;
    refuse(message->share());
  }
}

}  // namespace weft::runtime
