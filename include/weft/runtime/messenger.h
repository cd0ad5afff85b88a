// Messages between PEs: sending, broadcasting, and handing each arrival to its handler.
//
// src/runtime/message/ has the wire format and the landing of out-of-band buffers. Threads: the PE's.
#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "weft/runtime/attachment.h"
#include "weft/runtime/direct_message.h"
#include "weft/runtime/message.h"
#include "weft/runtime/metering/processor_share.h"
#include "weft/runtime/scheduler.h"
#include "weft/runtime/target.h"

namespace weft::runtime {

class FlowControl;
struct Watermarks;
struct FlowPeer;
class Outgoing;
class ReceiveBufferPool;
class Receiving;

class Messenger : public Scheduler {
 public:
  // REQUIRES: the same handlers are set on every PE before run().
  void set_handler(HandlerId id, MessageHandler handler, void* context);
  // `poster` chooses where the attachments of messages to handler `id` land; it gets the handler's context.
  // Without a poster the runtime allocates memory of the sender's kind. `dropped`: see MessageDropped.
  void set_poster(HandlerId id, MessagePoster poster, MessageDropped dropped = nullptr);
  // As set_handler(). Messages to this handler have kUrgentFlag, and are handled inside progress(), also while a call
  // waits. The handler runs no code of the program, and calls no progress(). Messages without kControlFlag count for quiescence and flow
  // control, as others.
  void set_urgent_handler(HandlerId id, MessageHandler handler, void* context);
  // Sets the function for send_direct() messages to handler `id`. It gets the handler's context. REQUIRES: the handler is set.
  void set_direct_handler(HandlerId id, DirectHandler handler);
  // The context of set_handler(); null for a handler that is not set.
  void* handler_context(HandlerId id) const;
  // Where buffers land whose handler has no memory for them. It outlives the models: programs may keep such memory.
  ReceiveBufferPool& receive_buffer_pool();

  // Never blocks. A message to this PE goes through the queue too. Attached buffers are sent in place: they
  // must not change until they are released, or until the completion of report_sending() is called. Throws
  // Error if the PE does not exist.
  void send(int pe, MessagePtr message);
  // Sends a small message to another PE at once, if there is a direct way; both parts are free afterwards. Returns false if
  // there is none now: send() finds another way, or says what is wrong. `Header` travels as it lies in memory.
  template <class Header>
  bool send_direct(int pe, HandlerId id, const Header& header, std::span<const std::byte> payload);
  // To every PE, this one included, down a spanning tree rooted here. Attached buffers land in the runtime's
  // memory on each other PE and are forwarded from there, see Message::attach(). Throws Error if there are
  // attachments and the handler has a poster.
  void broadcast(MessagePtr message);
  // As send(), for calls of user code, which flow control holds back, see Watermarks. If too much is on its way to the PE,
  // or waits there, send_call() moves communication forward until there is room. Throws Error if waiting cannot help.
  // In a completion or a handler of the machine it never waits.
  void send_call(int pe, MessagePtr message);
  void broadcast_call(MessagePtr message);
  // Waits until send_call() of a message with that payload would neither wait nor throw. Throws as send_call(). Returns false if
  // send_call() would drop the message, because the job ends.
  [[nodiscard]] bool await_room(int pe, std::size_t payload_bytes);
  // For data that passes through other PEs, in messages of theirs: charges that many bytes to the account with PE `pe`, as a message
  // would. That PE calls part_handled() with this PE and the same bytes. REQUIRES: both PEs exist.
  void charge_part(int pe, std::size_t bytes);
  void part_handled(int pe, std::size_t bytes);
  // Whether the PE is not past its first watermark; for `pe` < 0, whether no PE is.
  bool has_room(int pe) const;
  // How far the PE is from its first watermark; negative if it is past it.
  std::int64_t room_bytes(int pe) const;
  // Posts `work` when has_room(pe).
  void when_room(int pe, Work* work);
  // Undoes when_room() for work that has not been posted.
  void forget_room(Work* work);
  // Whether work waits for room.
  bool awaits_room() const;
  // Throws Error if too much work waits in this PE's queue. Called by calls to this PE that allocate a fresh block.
  [[gnu::cold, gnu::noinline]] void expect_queue_room(std::size_t block_bytes);
  // Adds the calls that wait for room.
  void list_flow_waits(WaitList& waits) const;
  // For --stats: how long calls have waited. Empty if none has.
  std::vector<std::string> flow_report() const;

  // --- Deferred messages
  // A message that its poster deferred belongs to the poster. Its buffers are fetched once, by place() or
  // after post_again(). Until then the sender's operation does not complete. Exception: a buffer so small
  // that it came with the message waits in this PE's memory. Releasing the message refuses it: the sender's
  // memory becomes free, and the message is not handled. The end of the job refuses all deferred messages.
  //
  // One receive buffer for each buffer of the message, for place().
  std::vector<ReceiveBuffer> receive_buffers_of(Message& message) const;
  // Fetches the buffers into the places in `receive_buffers`; then the message is handled. REQUIRES: the poster
  // deferred the message and has returned, and the message has no other holder.
  void place(MessagePtr message, std::span<ReceiveBuffer> receive_buffers);
  // Calls the poster again, in a later turn. REQUIRES: as place().
  void post_again(MessagePtr message);

  // Calls Scheduler::end_with() and refuses all deferred messages.
  void end_job(int code, Ending* ending);

  // Sends `result` to `target`. Throws Error if `target` is invalid, because it may come from a peer.
  void deliver(const Target& target, std::span<const std::byte> result);

 protected:
  Messenger(Runtime& runtime, machine::Machine& machine, memory::Memory& memory, int local_pes,
            const ProcessorShare& share, MessagingPath path, const Watermarks& watermarks);
  ~Messenger();
  // Ends the waits for room.
  void close_flow();

 private:
  // Whose message it is: the runtime's messages never wait.
  enum class Sender : bool { kRuntime, kCall };

  bool send_direct_bytes(int pe, std::span<const std::byte> header, std::span<const std::byte> payload);
  template <Sender kSender>
  void send_as(int pe, MessagePtr message);
  template <Sender kSender>
  void broadcast_as(MessagePtr message);
  void send_down(MessagePtr message);
  // Calls visit(child) for the children of `pe` in the tree of a broadcast. The children of a lost PE take its place.
  template <class Visit>
  void for_living_children(int root, int pe, const Visit& visit);
  void forward(Message& message);
  // send() for messages with attachments.
  [[gnu::noinline]] void send_attached(int pe, MessagePtr message);
  [[gnu::noinline]] void charge_buffers(int pe, Message& message);

  std::unique_ptr<FlowControl> flow_;
  FlowPeer* flow_peers_;  // in *flow_
  std::unique_ptr<Outgoing> outgoing_;
  std::unique_ptr<Receiving> receiving_;
};

template <class Header>
bool Messenger::send_direct(int pe, HandlerId id, const Header& header, std::span<const std::byte> payload) {
  if (payload.size() > kMostDirectBytes) return false;
  struct Wire {
    DirectEnvelope envelope;
    Header header;
  };
  static_assert(std::has_unique_object_representations_v<Wire>, "padding would travel");
  const Wire wire{{.handler = id, .source_pe = static_cast<std::uint32_t>(this->pe())}, header};
  return send_direct_bytes(pe, std::as_bytes(std::span(&wire, 1)), payload);
}

// Awaitable, for a loop of calls without results: the coroutine continues when no PE is past its first watermark.
inline auto room(Messenger& messenger) {
  struct RoomAwaiter : ResumeWork {
    explicit RoomAwaiter(Messenger& messenger_in) : messenger(messenger_in) {}
    bool await_ready() const { return messenger.has_room(-1) && !messenger.spend_ready_await(); }
    void await_suspend(std::coroutine_handle<> waiting) {
      suspend(waiting, messenger.meter());
      if (messenger.has_room(-1)) {
        messenger.post_for_next_turn(this);
      } else {
        messenger.when_room(-1, this);
      }
    }
    void await_resume() { handle = nullptr; }
    // A frame that is destroyed while it waits must not be resumed.
    ~RoomAwaiter() {
      if (handle) messenger.forget_room(this);
    }
    Messenger& messenger;
  };
  return RoomAwaiter(messenger);
}

}  // namespace weft::runtime
