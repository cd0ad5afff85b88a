#include "runtime/message/attachments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>

#include "weft/base/error.h"

#include "machine/tag.h"
#include "memory/memory.h"
#include "runtime/collective/spanning_tree.h"
#include "runtime/handlers.h"
#include "runtime/message/arrival.h"
#include "runtime/message/attached.h"
#include "runtime/parts.h"

namespace weft::runtime {

using Announcement = Attachments::Announcement;
using State = Message::Attached::State;

namespace {

// Up to here one active message is the faster path for host memory (benchmarks/payload_pingpong.cpp; figures
// in ARCHITECTURE.md, "Payloads"): what comes eagerly is copied once more, into its place. Device memory is
// announced and tagged, as in what was published: neither path is faster there from one run to the next.
constexpr std::size_t kMaxActiveBytes = 1024;

}  // namespace

static_assert(Message::kMaxAttachments * sizeof(Announcement) <= machine::kMaxAmHeaderBytes);
static_assert(std::is_trivially_copyable_v<Announcement> && sizeof(Announcement) == 24);

// --- What a message has of them

void Message::AttachedRelease::operator()(Attached* attached) const { delete attached; }

Message::Attached& Message::attached() {
  if (attached_ == nullptr) attached_.reset(new Attached);
  return *attached_;
}

std::span<Attachment> Message::attached_list() const { return attached_->buffers; }

void Message::attach(Attachment attachment) {
  std::vector<Attachment>& buffers = attached().buffers;
  if (buffers.size() == kMaxAttachments) {
    throw base::Error(
        base::StatusCode::kOutOfRange,
        fmt::format("at most {} buffers can travel with one message; send more messages", kMaxAttachments));
  }
  buffers.push_back(std::move(attachment));
}

OperationState* Message::report_sending() {
  OperationState* state = OperationState::create(*runtime_);
  state->started(base::Status::pending(), 0);
  attached().sending = state;
  return state;
}

void Message::report_jointly() {
  if (attached_->sending == nullptr) return;
  std::size_t size_bytes = 0;
  for (const Attachment& one : attached_->buffers) size_bytes += one.buffer().size_bytes;
  attached_->joint = std::make_shared<JointSending>(std::exchange(attached_->sending, nullptr), size_bytes);
}

void Message::share_attachments(Message& other) {
  report_jointly();
  Attached& theirs = other.attached();
  theirs.buffers.reserve(attached_->buffers.size());
  for (Attachment& one : attached_->buffers) theirs.buffers.push_back(one.share());
  theirs.joint = attached_->joint;
  theirs.first_kinds = attached_->first_kinds;
}

bool Message::owns_attachments() const {
  if (attached_ == nullptr || attached_->state != State::kLanded) return false;
  return std::ranges::none_of(attached_->buffers, &Attachment::is_shared);
}

void Message::keep(std::shared_ptr<void> kept) { attached().kept = std::move(kept); }

std::shared_ptr<void> Message::take_kept() {
  return attached_ == nullptr ? nullptr : std::exchange(attached_->kept, nullptr);
}

// --- Sending

// One buffer on its way out; shares the message, whose last share gives the buffer back.
struct Attachments::Sending final : base::Completion {
  Sending(Attachments& owner_in, MessagePtr message_in, int pe_in, machine::Tag tag_in)
      : base::Completion(&Sending::ended),
        owner(owner_in),
        message(std::move(message_in)),
        pe(pe_in),
        tag(tag_in) {}
  static void ended(base::Completion* completion, base::Status status, std::size_t) {
    std::unique_ptr<Sending> self(static_cast<Sending*>(completion));
    self->owner.sent(*self, std::move(status));
  }
  // Starts it with what the machine's start function returns, given the completion.
  template <class Start>
  static void start(std::unique_ptr<Sending> sending, Start start_function) {
    ++sending->owner.runtime_.outstanding_sends_;
    base::Status status = start_function(sending.get());
    if (status.is_pending()) {
      static_cast<void>(sending.release());  // its completion's
    } else {
      sending->owner.sent(*sending, std::move(status));
    }
  }

  Attachments& owner;
  MessagePtr message;
  int pe;
  machine::Tag tag;  // 0: an active message's payload
};

void Attachments::send(int pe, MessagePtr message) {
  Message::Attached& attached = *message->attached_;
  attached.state = State::kGiven;
  attached.unsent = 1;  // and the loop that starts them
  attached.sending_bytes = 0;
  for (const Attachment& one : attached.buffers) attached.sending_bytes += one.buffer().size_bytes;
  MessagePtr share = message->share();
  if (goes_active(*message)) {
    send_active(pe, std::move(message));
  } else {
    send_tagged(pe, std::move(message));
  }
  if (--attached.unsent == 0) attached.end_sending(attached.failure);
}

bool Attachments::goes_active(const Message& message) const {
  const std::vector<Attachment>& buffers = message.attached_->buffers;
  if (buffers.size() != 1 || sizeof(Announcement) + message.wire_bytes() > machine::kMaxAmHeaderBytes)
    return false;
  if (path_ != MessagingPath::kAuto) return path_ == MessagingPath::kActive;
  const memory::Buffer& buffer = buffers[0].buffer();
  return buffer.place.is_host() && buffer.size_bytes <= kMaxActiveBytes;
}

std::vector<Announcement> Attachments::announce(Message& message) {
  std::vector<Announcement> announced;
  announced.reserve(message.attachments().size());
  for (std::size_t i = 0; i < message.attachments().size(); ++i) {
    announced.push_back({static_cast<std::uint32_t>(runtime_.pe()), next_counter_,
                         message.attachments()[i].buffer().size_bytes, message.attached_->first_kind(i)});
    next_counter_ = (next_counter_ + 1) & machine::kDeviceCounterMask;
  }
  return announced;
}

void Attachments::send_tagged(int pe, MessagePtr message) {
  std::vector<Announcement> announced = announce(*message);
  MessagePtr share = message->share();
  // The announcement first: the receiver posts its receives while the buffers are on their way.
  runtime_.send_active_message(pe, std::as_bytes(std::span(announced)), message.release());
  for (std::size_t i = 0; i < announced.size(); ++i) {
    if (announced[i].size_bytes == 0) continue;  // the announcement says it all
    machine::Tag tag = machine::device_tag(announced[i].source_pe, announced[i].counter);
    ++share->attached_->unsent;
    Sending::start(std::make_unique<Sending>(*this, share->share(), pe, tag), [&](base::Completion* done) {
      return runtime_.machine().tag_send(pe, tag, share->attachments()[i].buffer(), done);
    });
  }
}

void Attachments::send_active(int pe, MessagePtr message) {
  const memory::Buffer& buffer = message->attachments()[0].buffer();
  Announcement announced{0, 0, buffer.size_bytes, message->attached_->first_kind(0)};
  std::byte header[machine::kMaxAmHeaderBytes];
  std::memcpy(header, &announced, sizeof announced);
  std::memcpy(header + sizeof announced, message->wire(), message->wire_bytes());
  std::span<const std::byte> used(header, sizeof announced + message->wire_bytes());
  ++message->attached_->unsent;
  Sending::start(std::make_unique<Sending>(*this, message->share(), pe, 0), [&](base::Completion* done) {
    return runtime_.machine().am_send(pe, kBufferMessageAm, used, buffer, done);
  });
}

void Attachments::sent(Sending& sending, base::Status status) {
  --runtime_.outstanding_sends_;
  Message& message = *sending.message;
  Message::Attached& attached = *message.attached_;
  if (status.failed()) {
    if (sending.tag != 0) {
      revoke(sending.pe, sending.tag);
    } else {
      count_lost(message, sending.pe);  // nothing of it has left
    }
    if (!attached.is_reported()) runtime_.check_sent(sending.pe, status);
    if (attached.failure.ok()) attached.failure = std::move(status);
  }
  if (--attached.unsent == 0) attached.end_sending(attached.failure);
}

struct Attachments::Revocation final : base::Completion {
  explicit Revocation(Runtime& runtime_in) : base::Completion(&Revocation::ended), runtime(runtime_in) {}
  static void ended(base::Completion* completion, base::Status, std::size_t) {
    auto* revocation = static_cast<Revocation*>(completion);
    --revocation->runtime.outstanding_sends_;
    delete revocation;
  }
  Runtime& runtime;
};

void Attachments::revoke(int pe, machine::Tag tag) {
  auto* revocation = new Revocation(runtime_);
  ++runtime_.outstanding_sends_;
  // A receiver that is gone needs none.
  base::Status status = runtime_.machine().tag_send(pe, tag, {}, revocation);
  if (!status.is_pending()) Revocation::ended(revocation, {}, 0);
}

void Attachments::send_to_self(MessagePtr message) {
  Message::Attached& attached = *message->attached_;
  if (attached.sending != nullptr) {
    attached.sending_bytes = 0;
    for (const Attachment& one : attached.buffers) attached.sending_bytes += one.buffer().size_bytes;
  }
  enqueue(std::move(message));
}

void Attachments::enqueue(MessagePtr message) {
  std::int32_t priority = message->envelope().priority;
  Message* raw = message.release();
  raw->Work::function = [](Work* self, Runtime& runtime, WorkAction action) {
    MessagePtr owned(static_cast<Message*>(self));
    if (!runtime.closed_) runtime.parts_->attachments.post(std::move(owned), action == WorkAction::kDrop);
  };
  runtime_.post(raw, priority);
}

// --- Receiving

void Attachments::expect_no_poster(Message& message) const {
  if (!has_poster(message)) return;
  throw base::Error(
      base::StatusCode::kInvalidArgument,
      fmt::format("handler {} has a poster: no broadcast with buffers can be for it; send to each PE",
                  message.envelope().handler));
}

void Attachments::arrived(MessagePtr message) {
  if (has_poster(*message)) {
    const Envelope& envelope = message->envelope();
    if ((envelope.flags & kBroadcastFlag) != 0) {
      return runtime_.fail(
          fmt::format("a broadcast from PE {} announces buffers for handler {}, which chooses where those of "
                      "each message land; do all PEs run the same program?",
                      envelope.source_pe, envelope.handler));
    }
    enqueue(std::move(message));
  } else {
    post(std::move(message), false);
  }
}

void Attachments::post(MessagePtr message, bool dropped) {
  Message::Attached& attached = *message->attached_;
  std::vector<Landing> landings(attached.buffers.size());
  for (std::size_t i = 0; i < landings.size(); ++i) {
    const memory::Buffer& buffer = attached.buffers[i].buffer();
    landings[i].size_bytes = buffer.size_bytes;
    landings[i].place = runtime_.own_place(attached.first_kind(i));
  }
  const HandlerId handler = message->envelope().handler;
  bool wanted = !dropped;
  if (wanted && has_poster(*message)) {
    try {
      wanted = posters_[handler].choose(runtime_.parts_->handlers[handler].context, *message, landings);
    } catch (...) {  // bytes that do not unpack; what user code throws was caught by its model
      wanted = false;
      runtime_.fail_unawaited(std::current_exception(), fmt::format("the posting of a message from PE {}",
                                                                    message->envelope().source_pe));
    }
  }
  // What is not wanted is landed all the same: its sender's buffers must come free.
  if (dropped && attached.state != State::kAwaited) return;
  Arrival::start(*this, std::move(message), landings, wanted);
}

void Attachments::drop(Message& message, bool was_posted) {
  const HandlerId handler = message.envelope().handler;
  // At the job's end whoever posted may have gone.
  if (was_posted && posters_[handler].dropped != nullptr && !runtime_.closed_) {
    posters_[handler].dropped(runtime_.parts_->handlers[handler].context, message);
  }
  count_lost(message, runtime_.pe());
}

// It is not handled on that PE, nor, a broadcast that is still to be forwarded, on those below.
void Attachments::count_lost(Message& message, int pe) {
  const Envelope& envelope = message.envelope();
  if ((envelope.flags & kControlFlag) != 0) return;
  int count = 1;
  if ((envelope.flags & kBroadcastFlag) != 0) {
    count = SpanningTree(static_cast<int>(envelope.root_pe), pe, runtime_.num_pes()).num_in_subtree();
  }
  for (int i = 0; i < count; ++i) runtime_.count_processed();
}

memory::Place Attachments::landing_place(memory::Kind kind) const {
  const memory::KindBackend* const backend = runtime_.memory().backend(kind);
  return backend == nullptr || backend->num_devices() == 0 ? memory::Place() : runtime_.own_place(kind);
}

base::Status Attachments::await(Message& message, const Announcement& announced) {
  if (announced.source_pe >= static_cast<std::uint32_t>(runtime_.num_pes()) ||
      announced.counter > machine::kDeviceCounterMask ||
      static_cast<int>(announced.kind) >= memory::kNumKinds ||
      announced.size_bytes > std::numeric_limits<std::size_t>::max() / 2) {
    return {
        base::StatusCode::kCorrupt,
        fmt::format("a message announces {} bytes of memory kind {}, numbered {} on PE {}; do all PEs run "
                    "the same program?",
                    announced.size_bytes, static_cast<int>(announced.kind), announced.counter,
                    announced.source_pe)};
  }
  Message::Attached& attached = message.attached();
  attached.state = State::kAwaited;
  attached.buffers.emplace_back(
      memory::Buffer{nullptr, announced.size_bytes, runtime_.own_place(announced.kind), nullptr});
  return {};
}

base::Status Attachments::expect(Message& message, std::span<const std::byte> header) {
  if (header.size() % sizeof(Announcement) != 0 ||
      header.size() / sizeof(Announcement) > Message::kMaxAttachments) {
    return {base::StatusCode::kCorrupt,
            fmt::format("a message header of {} bytes makes no sense", header.size())};
  }
  for (std::size_t at = 0; at < header.size(); at += sizeof(Announcement)) {
    Announcement announced;
    std::memcpy(&announced, header.data() + at, sizeof announced);
    if (base::Status status = await(message, announced); status.failed()) return status;
    message.attached_->tags.push_back(machine::device_tag(announced.source_pe, announced.counter));
  }
  return {};
}

base::Result<MessagePtr> Attachments::unwrap(machine::AmArrival& arrival) {
  Announcement announced;
  constexpr std::size_t kLeastBytes = sizeof announced + sizeof(Envelope);
  if (arrival.header.size() < kLeastBytes) {
    return base::Status(base::StatusCode::kCorrupt,
                        fmt::format("a message of {} bytes arrived, shorter than its envelope of {}",
                                    arrival.header.size(), kLeastBytes));
  }
  std::memcpy(&announced, arrival.header.data(), sizeof announced);
  std::span<const std::byte> wire = arrival.header.subspan(sizeof announced);
  MessagePtr message = Message::create(runtime_, 0, wire.size() - sizeof(Envelope));
  std::memcpy(message->wire(), wire.data(), wire.size());
  if (announced.size_bytes != arrival.payload_size_bytes) {
    return base::Status(base::StatusCode::kCorrupt,
                        fmt::format("a message announces {} bytes and carries {}", announced.size_bytes,
                                    arrival.payload_size_bytes));
  }
  if (base::Status status = await(*message, announced); status.failed()) return status;
  Message::Attached& attached = *message->attached_;
  if (announced.size_bytes == 0) return message;
  if (arrival.data == nullptr) {
    attached.payload = arrival.take();
    return message;
  }
  // An eager payload is on loan for this call only.
  base::Result<Attachment> room = landing_pool_.allocate(announced.size_bytes, {});
  if (!room.ok()) return room.status();
  std::memcpy(room->buffer().data, arrival.data, announced.size_bytes);
  attached.state = State::kLanded;
  attached.sender_kind = announced.kind;
  attached.buffers[0] = std::move(room).value();
  return message;
}

}  // namespace weft::runtime
