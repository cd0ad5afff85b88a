// A message to a handler on some PE: an envelope and, behind it, a payload, in one block of memory. Sending
// it is one active message, and no byte is copied on the way to the machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
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
  kUrgentFlag = 8,     // handled on arrival, inside progress(), see Messenger::set_urgent_handler()
};

// How a message with one out-of-band buffer travels. kTagged: an active message announces the buffer, which
// follows as a tagged message. kActive: one active message. kAuto: the faster path for the size. The other
// two values are for measuring.
enum class MessagingPath : std::uint8_t { kAuto, kTagged, kActive };

// The wire format in front of every payload.
struct Envelope {
  std::int32_t priority = 0;
  // The PE that gets the credit for the message, see FlowControl: of a broadcast the root of its tree, else the PE
  // that has sent it last.
  std::uint32_t root_pe = 0;
  // A message that has_usual_start() travels from here on.
  HandlerId handler = 0;
  std::uint8_t flags = 0;
  std::uint8_t reserved = 0;
  std::uint32_t source_pe = 0;

  static constexpr std::size_t kUsualStartBytes = 8;
  bool has_usual_start() const { return priority == 0 && root_pe == source_pe; }
};
static_assert(sizeof(Envelope) == 16 && offsetof(Envelope, handler) == Envelope::kUsualStartBytes);

class Message;
class Receiving;
struct MessageRelease {
  void operator()(Message* message) const;
};
// Shared by reference count while several sends of one broadcast are in flight.
using MessagePtr = std::unique_ptr<Message, MessageRelease>;

// The state of a message with attachments, besides its block. Private to the message layer.
struct Attached;
struct AttachedRelease {
  void operator()(Attached* attached) const;
};

// As a Work it is queued to be handled. As a Completion it completes its send or its receive, one at a time.
class Message final : public Work, public base::Completion {
 public:
  static MessagePtr create(Scheduler& scheduler, HandlerId handler, std::size_t payload_bytes);
  // For an arriving message: the caller fills in the envelope. It has no number for observers.
  static MessagePtr for_arrival(Scheduler& scheduler, std::size_t payload_bytes);
  // 1 TiB. A larger size comes from a corrupt message.
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

  // The bytes on the wire: the envelope and, right behind it, the payload.
  std::byte* wire() { return reinterpret_cast<std::byte*>(&envelope_); }
  std::size_t wire_bytes() const { return sizeof(Envelope) + payload_bytes_ + trailer_bytes_; }

  // The number for observers, see MessageEvent; 0 for none.
  std::uint64_t trace_id() const {
    std::uint64_t id = 0;
    if (trailer_bytes_ > 0)
      std::memcpy(&id, reinterpret_cast<const std::byte*>(this + 1) + payload_bytes_, sizeof id);
    return id;
  }
  // For an arrival with kTracedFlag: takes the number off the end of the payload. Returns false if the
  // payload is too short for it.
  bool split_trace();
  // `pe`: see MessageEvent.
  MessageEvent event(int pe) const {
    return {.id = trace_id(),
            .handler = envelope_.handler,
            .pe = pe,
            .payload_bytes = payload_bytes_,
            .is_control = (envelope_.flags & kControlFlag) != 0};
  }

  MessagePtr share() {
    ++references_;
    return MessagePtr(this);
  }

  bool is_shared() const { return references_ > 1; }

  // Adds a buffer that travels out of band. Throws Error if there are kMaxAttachments already. The
  // handler may move the attachments away. Those of a broadcast are read-only: on the sender's PE they are
  // the sender's memory; elsewhere they may still be in flight to other PEs.
  static constexpr std::size_t kMaxAttachments = 128;
  void attach(Attachment attachment);
  bool has_attachments() const { return attached_ != nullptr; }
  std::span<Attachment> attachments() const {
    return attached_ == nullptr ? std::span<Attachment>() : attached_list();
  }
  // Calls `sent` once when the attachments have been sent, with their number of bytes, or with the failure if
  // one of them could not be sent. The message is then dropped. For a broadcast, `sent` is called, with the
  // first failure if there is one, when both are true:
  //   - the attachments have been sent to all children in the tree;
  //   - this PE's handler has released its message and all messages that share the attachments.
  // `sent` is called as a Completion is, or when the message is released. REQUIRES: at most one call, before
  // send() or broadcast().
  void report_sending(base::Completion* sent);
  // `other` then carries the same buffers, see Attachment::share(), and reports to the same completion.
  // REQUIRES: this message has attachments and `other` has none.
  void share_attachments(Message& other);
  // Whether the attachments have landed on this PE and no other message holds them. The handler may then
  // write to them, also in a broadcast.
  bool owns_attachments() const;
  // A poster keeps an object for the handler with the message. Dropping the message releases the object.
  // take_kept() returns it once, then null. REQUIRES for keep(): the message has attachments.
  void keep(std::shared_ptr<void> kept);
  std::shared_ptr<void> take_kept();

  // Whether this PE's poster has returned kHandle for the message.
  bool was_posted() const;

  // For the message layer only: the attached state, made on first use, and what has the message queued or fetches it.
  Attached& attached();
  Receiving* receiving = nullptr;

 private:
  friend struct MessageRelease;

  Message(Scheduler& scheduler, std::size_t payload_bytes)
      : scheduler_(&scheduler), payload_bytes_(payload_bytes) {}
  std::span<Attachment> attached_list() const;
  // Releases a message with attachments for its last holder. Out of line, so that the release of other messages saves
  // no registers for it.
  [[gnu::noinline]] void release_attached();
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
