#include "runtime/message/receiving.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <utility>
#include <vector>

#include "weft/base/error.h"

#include "base/format.h"
#include "runtime/losses/losses.h"
#include "runtime/message/accounting.h"
#include "runtime/message/announcement.h"
#include "runtime/message/attached.h"
#include "runtime/message/boundary.h"
#include "runtime/message/outgoing.h"

namespace weft::runtime {

namespace {

// The root of a message that is fetched without the start of its envelope, until its source is here. No PE has that number.
constexpr std::uint32_t kSameAsSource = ~std::uint32_t{0};

// Rare cases. They are out of line, so that the functions on the path of each message save no registers for them.

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

[[gnu::cold, gnu::noinline]] void fail_direct(Scheduler& scheduler, std::size_t header_bytes) {
  scheduler.fail(base::format(
      "a direct message arrived with a header of {} bytes, or without its bytes; do all PEs run the same "
      "program?",
      header_bytes));
}

}  // namespace

Receiving::Receiving(Scheduler& scheduler, FlowControl& flow, Forward forward)
    : scheduler_(scheduler),
      flow_(flow),
      flow_peers_(flow.peers()),
      forward_(forward),
      receive_buffer_pool_(scheduler) {
  machine::Machine& machine = scheduler.machine();
  base::check(machine.set_am_handler(
      kMessageAm,
      [](void* context, machine::AmArrival& arrival) {
        auto* self = static_cast<Receiving*>(context);
        at_boundary(self->scheduler_, "the receipt of a message", [&] { self->receive_arrival(arrival, 0); });
      },
      this));
  base::check(machine.set_am_handler(
      kShortMessageAm,
      [](void* context, machine::AmArrival& arrival) {
        auto* self = static_cast<Receiving*>(context);
        at_boundary(self->scheduler_, "the receipt of a message",
                    [&] { self->receive_arrival(arrival, Envelope::kUsualStartBytes); });
      },
      this));
  base::check(machine.set_am_handler(
      kBufferMessageAm,
      [](void* context, machine::AmArrival& arrival) {
        auto* self = static_cast<Receiving*>(context);
        at_boundary(self->scheduler_, "the receipt of a message",
                    [&] { self->receive_with_buffer(arrival); });
      },
      this));
  base::check(machine.set_am_handler(
      kDirectMessageAm,
      [](void* context, machine::AmArrival& arrival) {
        auto* self = static_cast<Receiving*>(context);
        at_boundary(self->scheduler_, "the receipt of a message", [&] { self->receive_direct(arrival); });
      },
      this));
}

void Receiving::set_handler(HandlerId id, MessageHandler handler, void* context) {
  handlers_.at(id).function = handler;
  handlers_.at(id).context = context;
}

void Receiving::set_urgent_handler(HandlerId id, MessageHandler handler, void* context) {
  set_handler(id, handler, context);
  handlers_.at(id).is_urgent = true;
}

void Receiving::set_poster(HandlerId id, MessagePoster poster, MessageDropped dropped) {
  handlers_.at(id).choose = poster;
  handlers_.at(id).dropped = dropped;
}

void Receiving::set_direct_handler(HandlerId id, DirectHandler handler) { handlers_.at(id).direct = handler; }

// --- From the machine

inline void Receiving::receive_arrival(machine::AmArrival& arrival, std::size_t left_out_bytes) {
  Message* const message = message_for(left_out_bytes + arrival.payload_size_bytes);
  if (message == nullptr) [[unlikely]]
    return;
  if (!arrival.header.empty() || arrival.data == nullptr) [[unlikely]]
    return receive_in_parts(MessagePtr(message), arrival, left_out_bytes);
  std::memcpy(message->wire() + left_out_bytes, arrival.data, arrival.payload_size_bytes);
  if (left_out_bytes > 0) message->envelope().root_pe = message->envelope().source_pe;
  receive(message);
}

Message* Receiving::message_for(std::size_t size_bytes) {
  // The difference wraps if the size is less than an envelope.
  if (size_bytes - sizeof(Envelope) > Message::kMaxPayloadBytes) [[unlikely]] {
    fail_size(scheduler_, size_bytes);
    return nullptr;
  }
  try {
    return Message::for_arrival(scheduler_, size_bytes - sizeof(Envelope)).release();
  } catch (const std::bad_alloc&) {
    scheduler_.fail(base::format("there is no memory for a message of {} bytes", size_bytes));
    return nullptr;
  }
}

void Receiving::receive_in_parts(MessagePtr message, machine::AmArrival& arrival,
                                 std::size_t left_out_bytes) {
  if (!arrival.header.empty()) {
    base::Status status = expect_tagged(*message, arrival.header);
    if (status.failed()) return scheduler_.fail(status.to_string());
  }
  Envelope& envelope = message->envelope();
  if (left_out_bytes > 0) envelope.root_pe = kSameAsSource;
  std::byte* const into = message->wire() + left_out_bytes;
  if (arrival.data != nullptr) {
    std::copy_n(arrival.data, arrival.payload_size_bytes, into);
    return fetched(std::move(message), {});
  }
  message->receiving = this;
  message->base::Completion::function = [](base::Completion* completion, base::Status status, std::size_t) {
    MessagePtr received(static_cast<Message*>(completion));
    Receiving& self = *received->receiving;
    at_boundary(self.scheduler_, "the receipt of a message",
                [&] { self.fetched(std::move(received), status); });
  };
  Message* raw = message.release();
  base::Status status = scheduler_.machine().am_receive(
      arrival.take(), memory::Buffer{into, raw->wire_bytes() - left_out_bytes, {}, nullptr}, raw);
  if (!status.is_pending()) fetched(MessagePtr(raw), status);
}

void Receiving::receive_with_buffer(machine::AmArrival& arrival) {
  Announcement announced;
  constexpr std::size_t kLeastBytes = sizeof announced + sizeof(Envelope);
  if (arrival.header.size() < kLeastBytes) {
    scheduler_.fail(base::format("a message of {} bytes arrived, shorter than its envelope of {}",
                                 arrival.header.size(), kLeastBytes));
    return;
  }
  std::memcpy(&announced, arrival.header.data(), sizeof announced);
  std::span<const std::byte> wire = arrival.header.subspan(sizeof announced);
  MessagePtr message = Message::for_arrival(scheduler_, wire.size() - sizeof(Envelope));
  std::memcpy(message->wire(), wire.data(), wire.size());
  base::Status status = expect_payload(*message, announced, arrival.payload_size_bytes);
  if (status.failed()) return scheduler_.fail(status.to_string());
  Attached& attached = message->attached();
  if (announced.size_bytes > 0 && arrival.data == nullptr) {
    attached.payload = arrival.take();
  } else if (announced.size_bytes > 0) {
    // An eager payload is valid during this call only.
    base::Result<Attachment> room = receive_buffer_pool_.allocate(announced.size_bytes, {});
    if (!room.ok()) return scheduler_.fail(room.status().to_string());
    std::memcpy(room->buffer().data, arrival.data, announced.size_bytes);
    attached.state = Attached::BufferState::kLanded;
    attached.sender_kind = announced.kind;
    attached.buffers[0] = std::move(room).value();
  }
  receive(message.release());
}

void Receiving::receive_direct(machine::AmArrival& arrival) {
  DirectEnvelope envelope;
  // Peers of this version send direct messages through the shared queue alone, so their bytes are always here.
  if (arrival.header.size() < sizeof envelope || (arrival.data == nullptr && arrival.payload_size_bytes > 0))
      [[unlikely]]
    return fail_direct(scheduler_, arrival.header.size());
  std::memcpy(&envelope, arrival.header.data(), sizeof envelope);
  if (envelope.handler >= kNumHandlers || handlers_[envelope.handler].direct == nullptr ||
      envelope.source_pe >= static_cast<std::uint32_t>(scheduler_.num_pes()) ||
      envelope.source_pe == static_cast<std::uint32_t>(scheduler_.pe())) [[unlikely]]
    return fail_unknown(scheduler_, {.handler = envelope.handler, .source_pe = envelope.source_pe});
  const Handler& handler = handlers_[envelope.handler];
  try {
    arrival.is_enough = handler.direct(handler.context, {static_cast<int>(envelope.source_pe),
                                                         arrival.header.subspan(sizeof envelope),
                                                         {arrival.data, arrival.payload_size_bytes}});
  } catch (...) {  // the bytes cannot be right
    fail_handling(scheduler_, envelope.source_pe);
  }
}

void Receiving::fetched(MessagePtr message, const base::Status& status) {
  if (status.ok()) {
    Envelope& envelope = message->envelope();
    if (envelope.root_pe == kSameAsSource) envelope.root_pe = envelope.source_pe;
    receive(message.release());
  } else if (!scheduler_.exiting() && !scheduler_.losses().explain(-1, status)) {
    scheduler_.fail(base::format("a message of {} bytes could not be fetched from its sender: {}",
                                 message->wire_bytes(), status.to_string()));
  }
}

inline void Receiving::receive_urgent(MessagePtr&& message) {
  const Envelope& envelope = message->envelope();
  const Handler& handler = handlers_[envelope.handler];
  if (!handler.is_urgent || envelope.source_pe >= static_cast<std::uint32_t>(scheduler_.num_pes()) ||
      message->has_attachments())
    return fail_unknown(scheduler_, envelope);
  const std::uint32_t source_pe = envelope.source_pe;
  if (is_counted(envelope)) {
    scheduler_.count_processed();
    count_handled(*message);
    if (scheduler_.message_observer() != nullptr) observe_delivered(scheduler_, *message);
  }
  try {
    handler.function(handler.context, std::move(message));
  } catch (...) {  // the bytes do not unpack
    fail_handling(scheduler_, source_pe);
  }
}

inline void Receiving::receive(Message* message) {
  const Envelope& envelope = message->envelope();
  if (envelope.handler >= kNumHandlers || handlers_[envelope.handler].function == nullptr ||
      envelope.root_pe >= static_cast<std::uint32_t>(scheduler_.num_pes())) [[unlikely]] {
    const MessagePtr dropped(message);
    return fail_unknown(scheduler_, envelope);
  }
  if ((envelope.flags & (kTracedFlag | kBroadcastFlag | kUrgentFlag)) == 0 && !message->has_attachments())
      [[likely]]
    return enqueue(message);
  receive_special(MessagePtr(message));
}

void Receiving::receive_special(MessagePtr message) {
  const Envelope& envelope = message->envelope();
  if ((envelope.flags & kTracedFlag) != 0 && !message->split_trace()) {
    scheduler_.fail(base::format("a message from PE {} is too short for the number that its flags announce",
                                 envelope.source_pe));
    return;
  }
  // Most messages of a job with a trace.
  if ((envelope.flags & (kBroadcastFlag | kUrgentFlag)) == 0 && !message->has_attachments())
    return enqueue(message.release());
  if ((envelope.flags & kUrgentFlag) != 0) return receive_urgent(std::move(message));
  if (message->has_attachments())
    message->attached().flow_bytes =
        FlowControl::cost_of_buffers(message->attached(), FlowControl::counted_of(envelope, false));
  const bool is_broadcast = (envelope.flags & kBroadcastFlag) != 0;
  // A PE that waits inside a call handles the message later. The wait must not depend on PEs that have ended.
  if (envelope.handler == kExitHandler) scheduler_.announce_end();
  if (!message->has_attachments()) {
    if (is_broadcast) forward(*message);
    enqueue(message.release());
  } else if (handlers_[envelope.handler].choose == nullptr) {
    MessagePtr complete = land(std::move(message), false);
    if (complete != nullptr) landed(std::move(complete), true);
  } else if (is_broadcast) {
    scheduler_.fail(
        base::format("a broadcast from PE {} announces buffers for handler {}, which cannot receive a "
                     "broadcast with buffers; do all PEs run the same program?",
                     envelope.source_pe, envelope.handler));
  } else {
    enqueue_to_post(message.release());
  }
}

void Receiving::forward(Message& message) {
  try {
    forward_(scheduler_, message);
  } catch (const std::bad_alloc&) {
    scheduler_.fail(
        base::format("no memory to forward a broadcast of {} bytes from PE {}; send in smaller parts",
                     message.payload_bytes(), message.envelope().source_pe));
  }
}

// --- In the queue

template <auto kHandle>
void Receiving::enqueue_for(Message* message) {
  message->receiving = this;
  message->Work::function = [](Work* self, Runtime&, WorkAction action) {
    MessagePtr owned(static_cast<Message*>(self));
    Receiving& receiving = *owned->receiving;
    if (!receiving.scheduler_.closed()) (receiving.*kHandle)(std::move(owned), action);
  };
  scheduler_.post(message, message->envelope().priority);
}

void Receiving::enqueue(Message* message) { enqueue_for<&Receiving::handle>(message); }
void Receiving::enqueue_landed(Message* message) { enqueue_for<&Receiving::handle_landed>(message); }
void Receiving::enqueue_to_post(Message* message) { enqueue_for<&Receiving::handle_unlanded>(message); }

inline void Receiving::handle(MessagePtr&& message, WorkAction action) {
  if (action == WorkAction::kDrop && is_counted(message->envelope())) return count_dropped(*message);
  dispatch(std::move(message));
}

void Receiving::handle_landed(MessagePtr&& message, WorkAction action) {
  count_buffers_handled(*message);
  handle(std::move(message), action);
}

void Receiving::handle_unlanded(MessagePtr&& message, WorkAction action) {
  MessagePtr complete = land(std::move(message), action == WorkAction::kDrop);
  if (complete != nullptr) handle_landed(std::move(complete), WorkAction::kRun);
}

void Receiving::count_buffers_handled(Message& message) {
  if (!is_counted(message.envelope()) || !message.has_attachments()) return;
  flow_peers_[message.envelope().root_pe].window.owed.add(std::exchange(message.attached().flow_bytes, 0));
}

// In this function and not in a handler: a message counts as handled when its handling begins.
inline void Receiving::count_handled(const Message& message) {
  const std::uint32_t pe = message.envelope().root_pe;
  FlowPeer& peer = flow_peers_[pe];
  ++peer.handled;
  if (peer.window.owed.add(FlowControl::cost_of(message))) [[unlikely]]
    flow_.pay(static_cast<int>(pe));
}

// Counts a message that is dropped while the job ends as handled, because its sender may wait for that inside a call.
void Receiving::count_dropped(Message& message) {
  count_buffers_handled(message);
  count_handled(message);
}

inline void Receiving::dispatch(MessagePtr&& message) {
  if (is_counted(message->envelope())) {
    scheduler_.count_processed();
    count_handled(*message);
  }
  const Handler& handler = handlers_[message->envelope().handler];
  std::uint32_t source_pe = message->envelope().source_pe;
  if (scheduler_.message_observer() != nullptr) [[unlikely]]
    observe_delivered(scheduler_, *message);
  try {
    handler.function(handler.context, std::move(message));
  } catch (...) {  // the bytes do not unpack; the models catch the exceptions of user code
    fail_handling(scheduler_, source_pe);
  }
}

// --- Receive buffers

// Asks the poster and lands the buffers. Returns the message if it can be handled at once, else null.
MessagePtr Receiving::land(MessagePtr message, bool dropped) {
  Attached& attached = message->attached();
  // Buffers of a dropped message land too if they are still at their sender, which waits for that.
  if (dropped && attached.state != Attached::BufferState::kAwaited) {
    if (is_counted(message->envelope())) count_dropped(*message);
    return nullptr;
  }
  std::vector<ReceiveBuffer> receive_buffers = receive_buffers_of(*message);
  Posting posting = dropped ? Posting::kDrop : Posting::kHandle;
  attached.posted = false;
  if (!dropped && handlers_[message->envelope().handler].choose != nullptr)
    posting = choose(message, receive_buffers);
  if (message == nullptr) return nullptr;  // deferred
  return land_at(std::move(message), receive_buffers, posting == Posting::kHandle);
}

// Asks the poster. `message` is null afterwards if the poster deferred it.
Posting Receiving::choose(MessagePtr& message, std::span<ReceiveBuffer> receive_buffers) {
  const Handler& handler = handlers_[message->envelope().handler];
  MessagePtr asked = message->share();
  Posting posting = Posting::kDrop;
  try {
    posting = handler.choose(handler.context, message, receive_buffers);
  } catch (...) {  // the bytes do not unpack; the models catch the exceptions of user code
    scheduler_.fail_unawaited(std::current_exception(), base::format("the posting of a message from PE {}",
                                                                     asked->envelope().source_pe));
  }
  if (message == nullptr && asked->is_shared() && !scheduler_.ending()) {
    defer(*asked);
    return Posting::kDefer;
  }
  if (message == nullptr || posting == Posting::kDefer) posting = Posting::kDrop;
  if (message == nullptr) message = std::move(asked);  // released, or taken while the job ends
  message->attached().posted = posting == Posting::kHandle;
  return posting;
}

// Returns the message if it can be handled at once, else null.
MessagePtr Receiving::land_at(MessagePtr message, std::span<ReceiveBuffer> receive_buffers, bool wanted) {
  // A poster that refused the message, or failed, may have chosen memory before. That memory is not used: its
  // owner may let other data land there.
  if (!wanted) {
    for (ReceiveBuffer& receive_buffer : receive_buffers) receive_buffer.into = Attachment();
  }
  Arrival::Landed landed =
      Arrival::start(*this, receive_buffer_pool_, std::move(message), receive_buffers, wanted);
  if (landed.message == nullptr || landed.complete) return std::move(landed.message);
  drop(*landed.message);
  return nullptr;
}

void Receiving::landed(MessagePtr message, bool complete) {
  if (!complete) return drop(*message);
  if ((message->envelope().flags & kBroadcastFlag) != 0) forward(*message);
  enqueue_landed(message.release());
}

void Receiving::cancel_lost() {
  const std::vector<Arrival*> all(arrivals_.begin(), arrivals_.end());
  for (Arrival* arrival : all) {
    // The end of one may end others.
    if (arrivals_.contains(arrival) && arrival->comes_from_lost()) arrival->cancel();
  }
}

void Receiving::drop(Message& message) {
  const Handler& handler = handlers_[message.envelope().handler];
  // When the runtime closes, the poster's owner may be destroyed already.
  if (message.attached().posted && handler.dropped != nullptr && !scheduler_.closed()) {
    handler.dropped(handler.context, message);
  }
  if (is_counted(message.envelope())) count_dropped(message);
  count_lost(scheduler_, message.envelope(), scheduler_.pe());
}

}  // namespace weft::runtime
