// Messages between PEs: sending, broadcasting, and handing each arrival to its handler.
//
// src/runtime/message/ has the wire format and the landing of buffers beside a message. Threads: the PE's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "weft/runtime/attachment.h"
#include "weft/runtime/message.h"
#include "weft/runtime/scheduler.h"
#include "weft/runtime/target.h"

namespace weft::machine {
class AmArrival;
}

namespace weft::runtime {

class Messenger : public Scheduler {
 public:
  // REQUIRES: the same handlers are set on every PE before run().
  void set_handler(HandlerId id, MessageHandler handler, void* context);
  // `poster` chooses where the attachments of messages to handler `id` land; it gets the handler's context.
  // Without a poster the runtime allocates memory of the sender's kind. `dropped`: see MessageDropped.
  void set_poster(HandlerId id, MessagePoster poster, MessageDropped dropped = nullptr);
  // The context of set_handler(); null for a handler that is not set.
  void* handler_context(HandlerId id) const { return handlers_.at(id).context; }

  // Never blocks. A message to this PE goes through the queue too. Attached buffers are sent in place: they
  // must not change until they are released, or until the completion of report_sending() is called. Throws
  // Error if the PE does not exist.
  void send(int pe, MessagePtr message);
  // To every PE, this one included, down a spanning tree rooted here. Attached buffers land in the runtime's
  // memory on each other PE and are forwarded from there, see Message::attach(). Throws Error if there are
  // attachments and the handler has a poster.
  void broadcast(MessagePtr message);
  // --- Deferred messages
  // A message that its poster deferred belongs to the poster. Its buffers are fetched once, by place() or
  // after post_again(). Until then the sender's operation does not complete. Exception: a buffer so small
  // that it came with the message waits in this PE's memory. Releasing the message refuses it: the sender's
  // memory becomes free, and the message is not handled. The end of the job refuses all deferred messages.
  //
  // One landing for each buffer of the message, for place().
  std::vector<Landing> landings_of(Message& message) const;
  // Fetches the buffers into the places in `landings`; then the message is handled. REQUIRES: the poster
  // deferred the message and has returned, and the message has no other holder.
  void place(MessagePtr message, std::span<Landing> landings);
  // Calls the poster again, in a later turn. REQUIRES: as place().
  void post_again(MessagePtr message);

  // Calls Scheduler::end_with() and refuses all deferred messages.
  void end_job(int code, Ending* ending);

  // Sends `result` to `target`. Throws Error if `target` is invalid, because it may come from a peer.
  void deliver(const Target& target, std::span<const std::byte> result);

 protected:
  Messenger(Runtime& runtime, machine::Machine& machine, memory::Memory& memory, int local_pes,
            MessagingPath path);
  ~Messenger();

 private:
  struct Handler {
    MessageHandler function = nullptr;
    void* context = nullptr;
    MessagePoster choose = nullptr;
    MessageDropped dropped = nullptr;
  };
  class Buffers;

  void forward(Message& message);
  void forward_from_callback(Message& message);
  void receive_arrival(machine::AmArrival& arrival);
  void receive_with_buffer(machine::AmArrival& arrival);
  void fetched(MessagePtr message, const base::Status& status);
  void receive(MessagePtr message);
  void enqueue(Message* message);
  void dispatch(MessagePtr&& message);
  // Fetches a message whose bytes are still at the sender.
  [[gnu::noinline]] void fetch(MessagePtr message, machine::AmArrival& arrival);
  // Receives a message that has attachments, is a broadcast, or has a number for observers.
  [[gnu::noinline]] void receive_special(MessagePtr message);
  // Of messages with attachments.
  [[gnu::noinline]] void send_attached(int pe, MessagePtr message);
  void enqueue_to_post(Message* message);
  MessagePtr land(MessagePtr message, bool dropped);
  Posting choose(MessagePtr& message, std::span<Landing> landings);
  MessagePtr land_at(MessagePtr message, std::span<Landing> landings, bool wanted);
  void landed(MessagePtr message, bool handled);
  void drop(Message& message);
  void defer(Message& message);
  void undefer(Message& message);
  void refuse(MessagePtr message);

  std::array<Handler, kNumHandlers> handlers_;
  std::unique_ptr<Buffers> buffers_;
};

}  // namespace weft::runtime
