// A message to a handler on some PE: an envelope that travels in front of a payload, in one block of memory,
// so that sending is one active message and nothing is copied on the way to the machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "weft/base/completion.h"
#include "weft/base/pup.h"
#include "weft/runtime/attachment.h"
#include "weft/runtime/handler_id.h"
#include "weft/runtime/scheduler.h"
#include "weft/runtime/work.h"

namespace weft::runtime {

enum EnvelopeFlag : std::uint8_t {
  kBroadcastFlag = 1,  // to be forwarded down the spanning tree of root_pe; then it is cleared
  kControlFlag = 2,    // the runtime's own; not counted by quiescence detection
  kTracedFlag = 4,     // the message's number for observers follows the payload, in 8 bytes
};

// How a message with one buffer beside it travels: announced, with the buffer as a tagged message, or as one
// active message. To compare them; by itself the runtime takes the faster for the size.
enum class MessagingPath : std::uint8_t { kAuto, kTagged, kActive };

// The wire format in front of every payload.
struct Envelope {
  HandlerId handler = 0;
  std::uint8_t flags = 0;
  std::uint8_t reserved = 0;
  std::uint32_t source_pe = 0;
  std::int32_t priority = 0;
  std::uint32_t root_pe = 0;
};
static_assert(sizeof(Envelope) == 16);

class Messenger;
class Message;
struct MessageRelease {
  void operator()(Message* message) const;
};
// Shared by reference count while several sends of one broadcast are in flight.
using MessagePtr = std::unique_ptr<Message, MessageRelease>;

// What a message with attachments has besides its block; the message layer's own.
struct Attached;
struct AttachedRelease {
  void operator()(Attached* attached) const;
};

// As a Work: its turn to be handled. As a Completion: its send or its receive; one at a time.
class Message final : public Work, public base::Completion {
 public:
  static MessagePtr create(Scheduler& scheduler, HandlerId handler, std::size_t payload_bytes);
  // For what has arrived: the envelope is still to be written, and observers do not see a creation.
  static MessagePtr for_arrival(Scheduler& scheduler, std::size_t payload_bytes);
  // No message is larger: a peer that names a larger one is damaged.
  static constexpr std::size_t kMaxPayloadBytes = std::size_t{1} << 40;

  // A message whose payload is `values`, packed in order.
  template <class... Values>
  static MessagePtr pack(Scheduler& scheduler, HandlerId handler, const Values&... values);

  Envelope& envelope() { return envelope_; }
  const Envelope& envelope() const { return envelope_; }
  std::byte* payload() { return reinterpret_cast<std::byte*>(this + 1); }
  std::size_t payload_bytes() const { return payload_bytes_; }
  std::span<std::byte> payload_span() { return {payload(), payload_bytes_}; }
  Pup unpacker() {
    Pup p = Pup::unpacker(payload(), payload_bytes_, &runtime());
    p.set_carrier(this);
    return p;
  }
  Scheduler& scheduler() { return *scheduler_; }
  Runtime& runtime() { return scheduler_->runtime(); }

  // What travels: the envelope and, right behind it, the payload.
  std::byte* wire() { return reinterpret_cast<std::byte*>(&envelope_); }
  std::size_t wire_bytes() const { return sizeof(Envelope) + payload_bytes_ + trailer_bytes_; }

  // The number for observers, see MessageEvent; 0 for none.
  std::uint64_t trace_id() const;
  // Of an arrival whose envelope says so: takes the number off the end of the payload. Returns false if the
  // payload is too short for it.
  bool split_trace();
  // `pe` as MessageEvent says.
  MessageEvent event(int pe) const;

  MessagePtr share() {
    ++references_;
    return MessagePtr(this);
  }

  bool is_shared() const { return references_ > 1; }

  // Buffers that travel beside the payload, at most kMaxAttachments (Error). The handler may move them
  // elsewhere; those of a broadcast it only reads: on the sender's PE they are the sender's, elsewhere memory
  // that is being sent on.
  static constexpr std::size_t kMaxAttachments = 128;
  void attach(Attachment attachment);
  bool has_attachments() const { return attached_ != nullptr; }
  std::span<Attachment> attachments() const {
    return attached_ == nullptr ? std::span<Attachment>() : attached_list();
  }
  // Has `sent` called once, with the number of bytes, when all attachments have been sent, or with the
  // failure when one could not be and the message is given up. That of a broadcast is called when it has been
  // sent to all children in the tree and this PE's handler has released its message and all that shares with
  // it; with the first failure. It is called as a Completion is, or from the message's release. REQUIRES:
  // called once, before send() or broadcast().
  void report_sending(base::Completion* sent);
  // Has `other` carry the same buffers, see Attachment::share(), and report to the same completion. REQUIRES:
  // there are attachments here and none there.
  void share_attachments(Message& other);
  // Whether the attachments are memory that has landed on this PE and has no other holder. The handler may then
  // write to it, also in a broadcast.
  bool owns_attachments() const;
  // What a poster leaves for the handler, with a message that has attachments; goes with a message that is
  // dropped. take_kept() is for any message, and gives it once.
  void keep(std::shared_ptr<void> kept);
  std::shared_ptr<void> take_kept();

  // Whether this PE's poster has said kHandle for the message, and so has chosen where the buffers landed.
  bool was_posted() const;

  // For the message layer: what it keeps beside the block, made on first use; who has the message queued or
  // in flight.
  Attached& attached();
  Messenger* messenger = nullptr;

 private:
  friend struct MessageRelease;

  Message(Scheduler& scheduler, std::size_t payload_bytes)
      : scheduler_(&scheduler), payload_bytes_(payload_bytes) {}
  std::span<Attachment> attached_list() const;
  static constexpr std::uint32_t kTraceBytes = sizeof(std::uint64_t);
  static MessagePtr create_traced(Scheduler& scheduler, HandlerId handler, std::size_t payload_bytes);

  Scheduler* scheduler_;
  std::size_t payload_bytes_;
  std::uint32_t references_ = 1;
  std::uint32_t trailer_bytes_ = 0;  // behind the payload: 8 for a number for observers
  std::unique_ptr<Attached, AttachedRelease> attached_;
  alignas(16) Envelope envelope_;
};
// The payload follows the envelope without a gap.
static_assert(sizeof(Message) % 16 == 0);

using MessageHandler = void (*)(void* context, MessagePtr message);

template <class... Values>
MessagePtr Message::pack(Scheduler& scheduler, HandlerId handler, const Values&... values) {
  std::size_t size_bytes = (std::size_t{0} + ... + base::packed_size(values, &scheduler.runtime()));
  MessagePtr message = create(scheduler, handler, size_bytes);
  Pup p = Pup::packer(message->payload(), size_bytes, &scheduler.runtime());
  ((p | values), ...);
  return message;
}

}  // namespace weft::runtime
