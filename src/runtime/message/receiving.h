// The messages that arrive at a PE, from other PEs and from itself, on their way through its queue to their handlers.
//
// A message with buffers is queued for its poster first, which chooses where they land. The message is handled when they
// have landed. A message that its poster deferred is listed here, so that the end of the job can refuse it.
//
// Private to the message layer. Threads: the PE's. Invariant: each counted message is counted as handled once, whether it
// is handled, dropped or refused.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <set>
#include <span>
#include <vector>

#include "weft/base/status.h"
#include "weft/runtime/attachment.h"
#include "weft/runtime/direct_message.h"
#include "weft/runtime/message.h"
#include "weft/runtime/scheduler.h"

#include "machine/machine.h"
#include "runtime/message/arrival.h"
#include "runtime/message/flow_control.h"
#include "runtime/message/handlers.h"
#include "runtime/message/receive_buffer_pool.h"

namespace weft::runtime {

class Receiving final : private Arrival::Owner {
 public:
  // Sends a broadcast that has arrived to the PEs below this one. May throw std::bad_alloc.
  using Forward = void (*)(Scheduler& scheduler, Message& message);
  Receiving(Scheduler& scheduler, FlowControl& flow, Forward forward);
  Receiving(const Receiving&) = delete;
  Receiving& operator=(const Receiving&) = delete;

  // See Messenger.
  void set_handler(HandlerId id, MessageHandler handler, void* context);
  void set_urgent_handler(HandlerId id, MessageHandler handler, void* context);
  void set_poster(HandlerId id, MessagePoster poster, MessageDropped dropped);
  void set_direct_handler(HandlerId id, DirectHandler handler);
  void* handler_context(HandlerId id) const { return handlers_.at(id).context; }
  bool has_handler(HandlerId id) const { return id < kNumHandlers && handlers_[id].function != nullptr; }
  // REQUIRES: has_handler(id).
  bool has_poster(HandlerId id) const { return handlers_[id].choose != nullptr; }

  // Queues a message of this PE to itself. They take over one share of the message; a MessagePtr would cost each message
  // more.
  void enqueue(Message* message);
  // For a message whose buffers are where the handler gets them.
  void enqueue_landed(Message* message);
  // For a message whose poster is to be asked, or whose buffers are to land.
  void enqueue_to_post(Message* message);

  ReceiveBufferPool& receive_buffer_pool() { return receive_buffer_pool_; }

  // See Messenger.
  std::vector<ReceiveBuffer> receive_buffers_of(Message& message) const;
  void place(MessagePtr message, std::span<ReceiveBuffer> receive_buffers);
  void post_again(MessagePtr message);
  // Their holders will not place them any more, and their senders wait for that.
  void refuse_deferred();
  // Ends the receives of buffers that a lost PE was to send.
  void cancel_lost();

 private:
  struct Handler {
    MessageHandler function = nullptr;
    void* context = nullptr;
    MessagePoster choose = nullptr;
    MessageDropped dropped = nullptr;
    DirectHandler direct = nullptr;
    bool is_urgent = false;
  };

  // `left_out_bytes`: of the start of the envelope.
  void receive_arrival(machine::AmArrival& arrival, std::size_t left_out_bytes);
  void receive_with_buffer(machine::AmArrival& arrival);
  void receive_direct(machine::AmArrival& arrival);
  // Null after a failure of the job.
  [[gnu::noinline]] Message* message_for(std::size_t size_bytes);
  // Receives a message whose buffers are announced, or whose bytes are still at the sender and are fetched.
  [[gnu::cold, gnu::noinline]] void receive_in_parts(MessagePtr message, machine::AmArrival& arrival,
                                                     std::size_t left_out_bytes);
  void fetched(MessagePtr message, const base::Status& status);
  // Takes over one share of the message; a MessagePtr would cost each message more.
  void receive(Message* message);
  // Receives a message that has attachments, is a broadcast, is urgent, or has a number for observers.
  [[gnu::noinline]] void receive_special(MessagePtr message);
  void receive_urgent(MessagePtr&& message);
  void forward(Message& message);

  // kHandle gets the message in its turn.
  template <auto kHandle>
  void enqueue_for(Message* message);
  void handle(MessagePtr&& message, WorkAction action);
  void handle_landed(MessagePtr&& message, WorkAction action);
  void handle_unlanded(MessagePtr&& message, WorkAction action);
  void dispatch(MessagePtr&& message);
  void count_handled(const Message& message);
  [[gnu::noinline]] void count_buffers_handled(Message& message);
  [[gnu::noinline]] void count_dropped(Message& message);

  MessagePtr land(MessagePtr message, bool dropped);
  Posting choose(MessagePtr& message, std::span<ReceiveBuffer> receive_buffers);
  MessagePtr land_at(MessagePtr message, std::span<ReceiveBuffer> receive_buffers, bool wanted);
  void landed(MessagePtr message, bool complete) override;
  void begun(Arrival& arrival) override { arrivals_.insert(&arrival); }
  void over(Arrival& arrival) override { arrivals_.erase(&arrival); }
  void drop(Message& message);

  void defer(Message& message);
  void undefer(Message& message);
  void refuse(MessagePtr message);

  Scheduler& scheduler_;
  FlowControl& flow_;
  FlowPeer* flow_peers_;  // in flow_
  Forward forward_;
  std::array<Handler, kNumHandlers> handlers_;
  ReceiveBufferPool receive_buffer_pool_;
  std::set<Arrival*> arrivals_;   // empty unless the job outlives losses
  std::list<Message*> deferred_;  // their posters hold them
};

}  // namespace weft::runtime
