#include "weft/runtime/messenger.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "weft/base/error.h"

#include "base/format.h"
#include "base/refuse_claim.h"
#include "runtime/losses/losses.h"
#include "runtime/message/accounting.h"
#include "runtime/message/attached.h"
#include "runtime/message/flow_control.h"
#include "runtime/message/handlers.h"
#include "runtime/message/outgoing.h"
#include "runtime/message/receiving.h"
#include "runtime/tree/spanning_tree.h"

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

// Returns whether the message is to be sent.
[[gnu::cold, gnu::noinline]] bool admit_observed(Scheduler& scheduler, Message& message, int pe) {
  const Losses& losses = scheduler.losses();
  if (losses.are_survived() && !losses.may_send(pe, message)) {
    if (message.has_attachments())
      message.attached().end_sending(lost_status(pe, "the sending of arguments"));
    return false;
  }
  observe_sent(scheduler, message, pe);
  return true;
}

// An observer must see each message, so none goes directly then.
[[gnu::cold, gnu::noinline]] bool admits_direct(Scheduler& scheduler, int pe) {
  if (scheduler.closed() || scheduler.message_observer() != scheduler.losses().observer()) return false;
  return pe >= 0 && pe < scheduler.num_pes() && !scheduler.losses().is_lost(pe);
}

}  // namespace

Messenger::Messenger(Runtime& runtime, machine::Machine& machine, memory::Memory& memory, int local_pes,
                     const ProcessorShare& share, MessagingPath path, const Watermarks& watermarks)
    : Scheduler(runtime, machine, memory, local_pes, share),
      flow_(std::make_unique<FlowControl>(
          *this,
          [](Scheduler& self, int pe, MessagePtr message) {
            static_cast<Messenger&>(self).send(pe, std::move(message));
          },
          watermarks)),
      flow_peers_(flow_->peers()),
      outgoing_(std::make_unique<Outgoing>(*this, path, flow_.get())),
      receiving_(std::make_unique<Receiving>(*this, *flow_, [](Scheduler& self, Message& message) {
        static_cast<Messenger&>(self).forward(message);
      })) {
  set_urgent_handler(
      kFlowCreditHandler,
      [](void* flow, MessagePtr message) { static_cast<FlowControl*>(flow)->on_credit(std::move(message)); },
      flow_.get());
  set_urgent_handler(
      kFlowProbeHandler,
      [](void* flow, MessagePtr message) { static_cast<FlowControl*>(flow)->on_probe(std::move(message)); },
      flow_.get());
  losses().set_unblock([this](int pe) { flow_->lose(pe); });
  losses().on_loss([this](int) { receiving_->cancel_lost(); });
}

Messenger::~Messenger() = default;

// --- Sending

template <Messenger::Sender kSender>
void Messenger::send_as(int pe, MessagePtr message) {
  if (closed()) return;
  if (pe < 0 || pe >= num_pes()) [[unlikely]]
    refuse_pe(pe, num_pes());
  if (is_counted(message->envelope())) {
    message->envelope().root_pe = static_cast<std::uint32_t>(this->pe());
    const std::int64_t cost_bytes = FlowControl::cost_of(*message);
    if (!flow_peers_[pe].charge(cost_bytes) && kSender == Sender::kCall) [[unlikely]] {
      if (!flow_->admit(pe, cost_bytes)) return;
    }
    count_sent();
  }
  if (message_observer() != nullptr) [[unlikely]] {
    if (!admit_observed(*this, *message, pe)) return;
  }
  if (message->has_attachments()) [[unlikely]]
    return send_attached(pe, std::move(message));
  if (pe == this->pe()) return receiving_->enqueue(message.release());
  send_active_message(*this, pe, message.release());
}

bool Messenger::send_direct_bytes(int pe, std::span<const std::byte> header,
                                  std::span<const std::byte> payload) {
  if ((closed() || message_observer() != nullptr) && !admits_direct(*this, pe)) [[unlikely]]
    return false;
  return machine().am_send_at_once(pe, kDirectMessageAm, header, payload);
}

void Messenger::send(int pe, MessagePtr message) { send_as<Sender::kRuntime>(pe, std::move(message)); }
void Messenger::send_call(int pe, MessagePtr message) { send_as<Sender::kCall>(pe, std::move(message)); }

// Each PE gets the message once, down the tree, and reports to the root that it has handled it.
template <Messenger::Sender kSender>
void Messenger::broadcast_as(MessagePtr message) {
  if (closed()) return;
  const HandlerId handler = message->envelope().handler;
  if (message->has_attachments() && receiving_->has_poster(handler)) [[unlikely]] {
    throw base::Error(base::StatusCode::kInvalidArgument,
                      base::format("handler {} has a poster and cannot receive a broadcast with buffers; "
                                   "send to each PE",
                                   handler));
  }
  if (is_counted(message->envelope())) {
    for (int i = 0; i < num_pes(); ++i) flow_peers_[i].charge(FlowControl::cost_of(*message));
    if (kSender == Sender::kCall && !flow_->admit_broadcast(*message)) return;
    count_sent(num_pes());
  }
  send_down(std::move(message));
}

void Messenger::broadcast(MessagePtr message) { broadcast_as<Sender::kRuntime>(std::move(message)); }
void Messenger::broadcast_call(MessagePtr message) { broadcast_as<Sender::kCall>(std::move(message)); }

bool Messenger::await_room(int pe, std::size_t payload_bytes) {
  return !closed() &&
         flow_->await_room(pe, static_cast<std::int64_t>(payload_bytes) + FlowControl::kMessageBytes);
}

void Messenger::charge_part(int pe, std::size_t bytes) {
  flow_->charge_part(pe, static_cast<std::int64_t>(bytes));
}

void Messenger::part_handled(int pe, std::size_t bytes) {
  FlowPeer& peer = flow_peers_[pe];
  ++peer.handled;
  if (peer.window.owed.add(static_cast<std::int64_t>(bytes))) [[unlikely]]
    flow_->pay(pe);
}

bool Messenger::has_room(int pe) const { return flow_->has_room(pe); }
std::int64_t Messenger::room_bytes(int pe) const { return flow_->room_bytes(pe); }
void Messenger::when_room(int pe, Work* work) { flow_->when_room(pe, work); }
void Messenger::forget_room(Work* work) { flow_->forget_waiter(work); }
bool Messenger::awaits_room() const { return flow_->has_waiters(); }
void Messenger::expect_queue_room(std::size_t block_bytes) { flow_->expect_queue_room(block_bytes); }
void Messenger::list_flow_waits(WaitList& waits) const { flow_->list_waits(waits); }
std::vector<std::string> Messenger::flow_report() const { return flow_->report(); }
void Messenger::close_flow() { flow_->close(); }

void Messenger::charge_buffers(int pe, Message& message) {
  if (!is_counted(message.envelope())) return;
  Attached& attached = message.attached();
  attached.flow_bytes =
      FlowControl::cost_of_buffers(attached, FlowControl::counted_of(message.envelope(), pe == this->pe()));
  flow_peers_[pe].window.room.take(attached.flow_bytes);
}

void Messenger::send_attached(int pe, MessagePtr message) {
  charge_buffers(pe, *message);
  if (pe != this->pe()) return outgoing_->send(pe, std::move(message));
  Attached& attached = message->attached();
  for (Attachment& one : attached.buffers) one.copy_now();
  if (attached.sending != nullptr) attached.sending_bytes = attached.size_bytes();
  receiving_->enqueue_to_post(message.release());
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
    receiving_->enqueue_landed(message.release());
  } else {
    receiving_->enqueue(message.release());
  }
}

template <class Visit>
void Messenger::for_living_children(int root, int pe, const Visit& visit) {
  SpanningTree(root, pe, num_pes(), host_groups()).for_children([&](int child) {
    if (losses().count() == 0 || !losses().is_lost(child)) [[likely]]
      return visit(child);
    for_living_children(root, child, visit);
  });
}

// Sends the broadcast to this PE's children in its tree. Afterwards `message` is for this PE only.
void Messenger::forward(Message& message) {
  // While the job ends, PEs handle the messages of the end only. The PEs below may have stopped already, so
  // other messages to them would never arrive.
  const HandlerId handler = message.envelope().handler;
  if (exiting() && handler != kExitHandler && handler != kCloseHandler) return;
  const auto root = static_cast<int>(message.envelope().root_pe);
  for_living_children(root, pe(), [&](int child) {
    // Each child gets a copy, because a message has one completion.
    MessagePtr copy = Message::create(*this, message.envelope().handler, message.payload_bytes());
    const std::uint8_t traced = copy->envelope().flags & kTracedFlag;  // the copy has its own number, or none
    copy->envelope() = message.envelope();
    copy->envelope().flags = static_cast<std::uint8_t>((copy->envelope().flags & ~kTracedFlag) | traced);
    if (message_observer() != nullptr) [[unlikely]]
      observe_sent(*this, *copy, child);
    std::copy_n(message.payload(), message.payload_bytes(), copy->payload());
    if (message.has_attachments()) [[unlikely]] {
      message.share_attachments(*copy);
      outgoing_->send(child, std::move(copy));
    } else {
      send_active_message(*this, child, copy.release());
    }
  });
  message.envelope().flags &= static_cast<std::uint8_t>(~kBroadcastFlag);
}

void Messenger::deliver(const Target& target, std::span<const std::byte> result) {
  constexpr std::uint8_t kKnownFlags = kBroadcastFlag | kControlFlag;
  if (!receiving_->has_handler(target.handler) || (target.flags & ~kKnownFlags) != 0) {
    base::refuse_claim(base::format("a result is for handler {} with flags {:#x}, which PE {} does not have",
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

void Messenger::set_handler(HandlerId id, MessageHandler handler, void* context) {
  receiving_->set_handler(id, handler, context);
}

void Messenger::set_urgent_handler(HandlerId id, MessageHandler handler, void* context) {
  receiving_->set_urgent_handler(id, handler, context);
}

void Messenger::set_direct_handler(HandlerId id, DirectHandler handler) {
  receiving_->set_direct_handler(id, handler);
}

void Messenger::set_poster(HandlerId id, MessagePoster poster, MessageDropped dropped) {
  receiving_->set_poster(id, poster, dropped);
}

ReceiveBufferPool& Messenger::receive_buffer_pool() { return receiving_->receive_buffer_pool(); }

void* Messenger::handler_context(HandlerId id) const { return receiving_->handler_context(id); }

std::vector<ReceiveBuffer> Messenger::receive_buffers_of(Message& message) const {
  return receiving_->receive_buffers_of(message);
}

void Messenger::place(MessagePtr message, std::span<ReceiveBuffer> receive_buffers) {
  receiving_->place(std::move(message), receive_buffers);
}

void Messenger::post_again(MessagePtr message) { receiving_->post_again(std::move(message)); }

void Messenger::end_job(int code, Ending* ending) {
  Scheduler::end_with(code, ending);
  receiving_->refuse_deferred();
}

}  // namespace weft::runtime
