#include "runtime/message/outgoing.h"

#include <cstring>
#include <memory>
#include <utility>

#include "runtime/message/accounting.h"
#include "runtime/message/attached.h"
#include "runtime/message/boundary.h"
#include "runtime/message/payload_tag.h"

namespace weft::runtime {

namespace {

// Up to here one active message is the faster path for host memory (benchmarks/payload_pingpong.cpp; figures
// in ARCHITECTURE.md, "Payloads"): what comes eagerly is copied once more, into its place. Device memory is
// announced and tagged, as in what was published: neither path is faster there from one run to the next.
constexpr std::size_t kMaxActiveBytes = 1024;

}  // namespace

void send_active_message(Scheduler& scheduler, int pe, std::span<const std::byte> header, Message* message) {
  message->base::Completion::function = [](base::Completion* completion, base::Status status, std::size_t) {
    MessagePtr sent(static_cast<Message*>(completion));
    Scheduler& owner = sent->scheduler();
    owner.send_ended();
    owner.check_sent(-1, status);
  };
  scheduler.send_started();
  base::Status status = scheduler.machine().am_send(
      pe, kMessageAm, header, memory::ConstBuffer(message->wire(), message->wire_bytes()), message);
  if (status.is_pending()) return;  // the message is its completion's
  MessagePtr sent(message);
  scheduler.send_ended();
  scheduler.check_sent(pe, status);
}

// One buffer on its way out; shares the message, whose last share gives the buffer back.
struct Outgoing::Sending final : base::Completion {
  Sending(Outgoing& owner_in, MessagePtr message_in, int pe_in, machine::Tag tag_in)
      : base::Completion(&Sending::ended),
        owner(owner_in),
        message(std::move(message_in)),
        pe(pe_in),
        tag(tag_in) {}
  static void ended(base::Completion* completion, base::Status status, std::size_t) {
    std::unique_ptr<Sending> self(static_cast<Sending*>(completion));
    at_boundary(self->owner.scheduler_, "a send that ended",
                [&] { self->owner.sent(*self, std::move(status)); });
  }
  // Starts it with what the machine's start function returns, given the completion.
  template <class Start>
  static void start(std::unique_ptr<Sending> sending, Start start_function) {
    sending->owner.scheduler_.send_started();
    base::Status status = start_function(sending.get());
    if (status.is_pending()) {
      static_cast<void>(sending.release());  // its completion's
    } else {
      sending->owner.sent(*sending, std::move(status));
    }
  }

  Outgoing& owner;
  MessagePtr message;
  int pe;
  machine::Tag tag;  // 0: an active message's payload
};

void Outgoing::send(int pe, MessagePtr message) {
  Attached& attached = message->attached();
  attached.state = Attached::State::kGiven;
  attached.unsent = 1;  // and the loop that starts them
  attached.sending_bytes = attached.size_bytes();
  MessagePtr share = message->share();
  if (goes_active(*message)) {
    send_active(pe, std::move(message));
  } else {
    send_tagged(pe, std::move(message));
  }
  if (--attached.unsent == 0) attached.end_sending(attached.failure);
}

bool Outgoing::goes_active(Message& message) const {
  const std::vector<Attachment>& buffers = message.attached().buffers;
  if (buffers.size() != 1 ||
      sizeof(Announcement) + message.wire_bytes() > scheduler_.machine().max_am_header_bytes())
    return false;
  if (path_ != MessagingPath::kAuto) return path_ == MessagingPath::kActive;
  const memory::Buffer& buffer = buffers[0].buffer();
  return buffer.place.is_host() && buffer.size_bytes <= kMaxActiveBytes;
}

std::vector<Announcement> Outgoing::announce(Message& message) {
  std::vector<Announcement> announced;
  announced.reserve(message.attachments().size());
  for (std::size_t i = 0; i < message.attachments().size(); ++i) {
    announced.push_back({static_cast<std::uint32_t>(scheduler_.pe()), next_counter_,
                         message.attachments()[i].buffer().size_bytes, message.attached().first_kind(i)});
    next_counter_ = (next_counter_ + 1) & kPayloadCounterMask;
  }
  return announced;
}

void Outgoing::send_tagged(int pe, MessagePtr message) {
  std::vector<Announcement> announced = announce(*message);
  // Made before anything leaves: what has been announced is sent or revoked.
  std::vector<std::unique_ptr<Sending>> sendings(announced.size());
  for (std::size_t i = 0; i < announced.size(); ++i) {
    if (announced[i].size_bytes == 0) continue;  // the announcement says it all
    const machine::Tag tag = payload_tag(announced[i].source_pe, announced[i].counter);
    sendings[i] = std::make_unique<Sending>(*this, message->share(), pe, tag);
  }
  Attached& attached = message->attached();
  // The announcement first: the receiver posts its receives while the buffers are on their way.
  send_active_message(scheduler_, pe, std::as_bytes(std::span(announced)), message.release());
  for (std::size_t i = 0; i < announced.size(); ++i) {
    if (sendings[i] == nullptr) continue;
    const machine::Tag tag = sendings[i]->tag;
    ++attached.unsent;
    Sending::start(std::move(sendings[i]), [&](base::Completion* done) {
      return scheduler_.machine().tag_send(pe, tag, attached.buffers[i].buffer(), done);
    });
  }
}

void Outgoing::send_active(int pe, MessagePtr message) {
  const memory::Buffer& buffer = message->attachments()[0].buffer();
  Announcement announced{0, 0, buffer.size_bytes, message->attached().first_kind(0)};
  std::byte header[machine::kMaxAmHeaderBytes];
  std::memcpy(header, &announced, sizeof announced);
  std::memcpy(header + sizeof announced, message->wire(), message->wire_bytes());
  std::span<const std::byte> used(header, sizeof announced + message->wire_bytes());
  ++message->attached().unsent;
  Sending::start(std::make_unique<Sending>(*this, message->share(), pe, 0), [&](base::Completion* done) {
    return scheduler_.machine().am_send(pe, kBufferMessageAm, used, buffer, done);
  });
}

void Outgoing::sent(Sending& sending, base::Status status) {
  scheduler_.send_ended();
  Message& message = *sending.message;
  Attached& attached = message.attached();
  if (status.failed()) {
    if (sending.tag != 0) {
      revoke(sending.pe, sending.tag);
    } else {
      count_lost(scheduler_, message.envelope(), sending.pe);  // nothing of it has left
    }
    if (!attached.is_reported()) scheduler_.check_sent(sending.pe, status);
    if (attached.failure.ok()) attached.failure = std::move(status);
  }
  if (--attached.unsent == 0) attached.end_sending(attached.failure);
}

struct Outgoing::Revocation final : base::Completion {
  explicit Revocation(Scheduler& scheduler_in)
      : base::Completion(&Revocation::ended), scheduler(scheduler_in) {}
  static void ended(base::Completion* completion, base::Status, std::size_t) {
    auto* revocation = static_cast<Revocation*>(completion);
    revocation->scheduler.send_ended();
    delete revocation;
  }
  Scheduler& scheduler;
};

void Outgoing::revoke(int pe, machine::Tag tag) {
  auto* revocation = new Revocation(scheduler_);
  scheduler_.send_started();
  // A receiver that is gone needs none.
  base::Status status = scheduler_.machine().tag_send(pe, tag, {}, revocation);
  if (!status.is_pending()) Revocation::ended(revocation, {}, 0);
}

}  // namespace weft::runtime
