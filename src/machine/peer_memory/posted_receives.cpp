#include "machine/peer_memory/posted_receives.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "machine/peer_memory/posted_receive.h"
#include "machine/peer_memory/waiting_sends.h"

namespace weft::machine {

using base::Completion;
using base::Status;
using base::StatusCode;

namespace {

// How long close() waits for copies that senders have begun.
constexpr auto kArrivalLimit = std::chrono::milliseconds(200);
constexpr std::uint32_t kPollsPerLateHalf = 64;
// A sender that waits for the posting finds it within a microsecond.
constexpr auto kPushTimeout = std::chrono::microseconds(20);

Status closed_before_arrival() {
  return {StatusCode::kClosed, "the machine was closed before the message arrived"};
}

}  // namespace

PostedReceives::PostedReceives(PeerContext& peer_context, Exports& exports, Imports& imports, Pulls& pulls)
    : Owner(peer_context), exports_(exports), pulls_(pulls), arrivals_(peer_context, exports, imports) {}

PostedReceives::~PostedReceives() = default;

// --- Posting

bool PostedReceives::can_post(IncomingStream& stream) {
  if (stream.mailbox == nullptr && !stream.has_asked_for_mailbox && stream.peer >= 0 &&
      !blind_pes_.contains(stream.peer)) {
    stream.has_asked_for_mailbox = true;
    open_mailbox(stream);
  }
  return stream.mailbox != nullptr;
}

void PostedReceives::open_mailbox(IncomingStream& stream) {
  if (!mailboxes_ && mailbox_failure_.ok()) {
    auto file = MailboxFile::create();
    mailbox_failure_ = file.status();
    if (file.ok()) mailboxes_ = std::move(file).value();
  }
  if (!mailboxes_) return;
  std::size_t number = streams_.size();
  if (auto& free = free_mailboxes_[stream.peer]; stream.takes_used_mailbox && !free.empty()) {
    number = free.back();
    free.pop_back();
    streams_[number] = &stream;
  } else if (number < kMailboxes) {
    streams_.push_back(&stream);
  } else {
    return;
  }
  stream.mailbox = &mailboxes_->mailbox(number);
  context.control.send(stream.peer, {.type = ControlMessage::Type::kMailbox,
                                     .number = number,
                                     .stream = stream.name,
                                     .file = mailboxes_->name()});
}

void PostedReceives::abandon_mailbox(int pe, std::uint64_t number) {
  if (number >= streams_.size() || streams_[number] == nullptr) return;
  if (streams_[number]->peer != pe) return;
  streams_[number]->mailbox = nullptr;
  blind_pes_.insert(pe);
}

void PostedReceives::forget(IncomingStream& stream) {
  held_sends_.forget(stream);
  const auto known = std::ranges::find(streams_, &stream);
  if (known == streams_.end()) return;
  *known = nullptr;
  const auto number = static_cast<std::size_t>(known - streams_.begin());
  Mailbox& mailbox = mailboxes_->mailbox(number);
  mailbox.receives_by_ring.store(0, std::memory_order_relaxed);
  const bool is_free = std::ranges::all_of(mailbox.slots, [](const MailboxSlot& slot) {
    return slot.word.load(std::memory_order_relaxed) == MailboxSlot::kFree;
  });
  if (is_free) free_mailboxes_[stream.peer].push_back(number);
  stream.mailbox = nullptr;
}

void PostedReceives::withdraw(IncomingStream& stream) {
  for (const auto& receive : receives_) {
    if (&receive->stream != &stream || receive->is_over() || !receive->withdraw()) continue;
    receive->bounced.reset();
    receive->exported.reset();
  }
  forget(stream);
  stream.has_asked_for_mailbox = false;
}

void PostedReceives::remove_last() {
  static_cast<void>(receives_.back()->take_user());
  receives_.pop_back();
}

std::optional<Status> PostedReceives::start(IncomingStream& stream, StreamMessage message,
                                            const memory::Buffer& buffer, const ReceiveStart& how,
                                            Completion* user) {
  using Posting = ReceiveStart::Posting;
  if (!can_post(stream)) return {};
  std::shared_ptr<Exports::Export> exported;
  bool is_to_be_posted = how.posting == Posting::kUsual;
  bool is_by_ring = false;
  if (is_to_be_posted && !buffer.place.is_host()) {
    exported = exports_.find(buffer);
    is_by_ring = exported == nullptr && can_bounce(stream, buffer);
    is_to_be_posted = exported != nullptr || is_by_ring;
    stream.mailbox->receives_by_ring.store(is_by_ring, std::memory_order_relaxed);
    // The rest is posted only if its send waits for that, which small messages do not.
    if (!is_to_be_posted && buffer.size_bytes < WaitingSends::kLeastBytes) return {};
  }
  MailboxSlot& slot = stream.mailbox->slot(message.number);
  if (how.posting == Posting::kTaken && slot.word.load(std::memory_order_relaxed) != MailboxSlot::kFree)
    return {};
  PostedReceive& receive = add(stream, message, buffer, TaggedHalf::kLate, user);
  if (is_by_ring && buffer.size_bytes >= WaitingSends::kLeastBytes) {
    has_late_halves_ = true;
  } else if (Status status = receive.start_tagged_half(); !status.is_pending()) {
    remove_last();
    return status;
  }
  if (buffer.stream == nullptr) {
    if (is_to_be_posted) post(receive, std::move(exported));
  } else {
    if (is_to_be_posted) advance(receive.posted, PostedEvent::kDefer);
    // If the stream cannot be waited for, the message comes with its tag.
    if (context.wait_for_stream(buffer.place, buffer.stream, &receive.stream_done))
      advance(receive.stream_wait, StreamEvent::kWait);
  }
  if (how.posting == Posting::kTaken) post_taken(receive, slot, *how.source);
  context.machine.attention().wanted = true;
  // Chunks that have come for earlier receives are copied now: a PE that starts many receives polls for none of them meanwhile.
  if (arrivals_.has_arrivals()) poll_arrivals();
  return Status::pending();
}

std::optional<Status> PostedReceives::start_alone(IncomingStream& stream, StreamMessage message,
                                                  const memory::Buffer& buffer, const SourceName* source,
                                                  Completion* user) {
  if (buffer.stream != nullptr || !can_post(stream)) return {};
  std::shared_ptr<Exports::Export> exported = exports_.find(buffer);
  if (exported == nullptr) return {};
  PostedReceive& receive =
      add(stream, message, buffer, source == nullptr ? TaggedHalf::kNone : TaggedHalf::kPull, user);
  post(receive, std::move(exported));
  if (!receive.is_posted()) {
    remove_last();
    return {};
  }
  if (source != nullptr) {
    receive.source = *source;
    receive.posted_at = std::chrono::steady_clock::now();
  }
  context.machine.attention().wanted = true;
  return Status::pending();
}

void PostedReceives::stream_has_ended(PostedReceive& receive, const Status& status) {
  --context.memory_waits;
  const bool is_asked = receive.stream_wait == StreamWait::kAnswerDue;
  advance(receive.stream_wait, StreamEvent::kDone);
  if (status.ok()) stream_is_done(receive);
  if (is_asked) answer(receive.stream, receive.message.number);
}

void PostedReceives::stream_is_done(PostedReceive& receive) {
  if (receive.is_over() || receive.posted != PostedHalf::kAfterStream || receive.stream.mailbox == nullptr)
    return;
  auto exported = exports_.find(receive.buffer);
  if (exported != nullptr || can_bounce(receive.stream, receive.buffer)) post(receive, std::move(exported));
}

bool PostedReceives::can_bounce(const IncomingStream& stream, const memory::Buffer& buffer) {
  return exports_.cannot_export(buffer) && arrivals_.ring_for(stream.peer, buffer.place, *mailboxes_);
}

void PostedReceives::post(PostedReceive& receive, std::shared_ptr<Exports::Export> exported) {
  MailboxSlot& slot = receive.stream.mailbox->slot(receive.message.number);
  if (slot.word.load(std::memory_order_relaxed) != MailboxSlot::kFree) return;  // of message number - kSlots
  // Clear a stale outcome: numbers wrap, so it may be that of an earlier message with this number.
  const std::uint64_t outcome = slot.outcome.load(std::memory_order_relaxed);
  if (outcome == MailboxSlot::done(receive.message.number) ||
      outcome == MailboxSlot::shared_by(receive.message.number)) {
    slot.outcome.store(0);
  }
  if (receive.buffer.place.is_host()) {
    post_host(receive, slot, MailboxSlot::posted(receive.message.number));
    return;
  }
  if (exported == nullptr) return post_bounce(receive, slot);
  exported->tell(receive.stream.peer);
  slot.buffer = Exports::name(*exported, receive.buffer);
  std::ranges::copy(exported->bytes, slot.exported.begin());
  receive.post(slot, MailboxSlot::posted(receive.message.number));
  receive.exported = std::move(exported);
}

void PostedReceives::post_host(PostedReceive& receive, MailboxSlot& slot, std::uint64_t word) {
  const memory::Buffer& buffer = receive.buffer;
  slot.buffer = {.offset_bytes = reinterpret_cast<std::uintptr_t>(buffer.data),
                 .size_bytes = buffer.size_bytes,
                 .place = {}};
  receive.post(slot, word);
}

void PostedReceives::post_taken(PostedReceive& receive, MailboxSlot& slot, const SourceName& source) {
  const std::uint32_t number = receive.message.number;
  slot.shared.begin(number, source.buffer.allocation_base, source.pid, 0);
  post_host(receive, slot, MailboxSlot::taken(number));
  slot.outcome.store(MailboxSlot::shared_by(number), std::memory_order_release);
  context.control.send(
      receive.stream.peer,
      {.type = ControlMessage::Type::kBegun, .number = number, .stream = receive.stream.name, .file = {}});
}

void PostedReceives::post_bounce(PostedReceive& receive, MailboxSlot& slot) {
  const auto ring = arrivals_.ring_for(receive.stream.peer, receive.buffer.place, *mailboxes_);
  slot.buffer = {
      .offset_bytes = *ring, .size_bytes = receive.buffer.size_bytes, .place = receive.buffer.place};
  memory::Buffer into = receive.buffer;
  into.stream = nullptr;  // its work is done
  receive.bounced.emplace(BouncedReceive{into, 0, 0, {}});
  receive.post(slot, MailboxSlot::posted(receive.message.number));
}

PostedReceive* PostedReceives::find(int pe, Tag stream, std::uint32_t message) {
  for (const auto& receive : receives_) {
    const bool is_it = receive->message.number == message && receive->stream.name == stream &&
                       receive->stream.peer == pe && !receive->is_over();
    if (is_it) return receive.get();
  }
  return nullptr;
}

BouncedReceive* PostedReceives::find_bounced(int peer, Tag stream, std::uint32_t message) {
  PostedReceive* const receive = find(peer, stream, message);
  if (receive == nullptr || !receive->is_posted() || !receive->bounced ||
      receive->tagged == TaggedHalf::kArrived)
    return nullptr;
  const bool is_taken = receive->slot->word.load(std::memory_order_relaxed) == MailboxSlot::taken(message);
  return is_taken ? &*receive->bounced : nullptr;
}

// --- Sends that wait

void PostedReceives::send_waits(int pe, Tag stream, std::uint32_t message) {
  const auto known = std::ranges::find_if(streams_, [&](const IncomingStream* one) {
    return one != nullptr && one->name == stream && one->peer == pe;
  });
  const bool is_started = known == streams_.end() || static_cast<std::int32_t>((*known)->next - message) > 0;
  if (is_started || !held_sends_.add(**known, message)) {
    answer(pe, stream, message, find(pe, stream, message));
  }
}

bool PostedReceives::take_waiting(IncomingStream& stream, std::uint32_t message) {
  return held_sends_.take(stream, message);
}

void PostedReceives::answer(const IncomingStream& stream, std::uint32_t message) {
  answer(stream.peer, stream.name, message, find(stream.peer, stream.name, message));
}

void PostedReceives::answer(int pe, Tag stream, std::uint32_t message, PostedReceive* receive) {
  if (receive != nullptr) {
    advance(receive->stream_wait, StreamEvent::kAsk);
    if (receive->stream_wait == StreamWait::kAnswerDue) return;
  }
  const bool is_unposted = receive != nullptr && !receive->is_posted() && receive->stream.mailbox != nullptr;
  if (is_unposted && receive->buffer.place.is_host()) {
    if (receive->buffer.size_bytes >= SharedCopy::kLeastBytes) post(*receive, nullptr);
  } else if (is_unposted) {
    // The transport is slow for the sender's memory, so mapping the buffer pays already at its first use.
    auto exported = exports_.make(receive->buffer);
    if (exported != nullptr || can_bounce(receive->stream, receive->buffer))
      post(*receive, std::move(exported));
  }
  const bool is_posted = receive != nullptr && receive->is_posted();
  context.control.send(pe, {.type = is_posted ? ControlMessage::Type::kPosted : ControlMessage::Type::kByTag,
                            .number = message,
                            .stream = stream,
                            .file = {}});
}

// --- Polling

bool PostedReceives::poll(PostedReceive& receive) {
  if (receive.is_over()) {
    if (receive.tagged == TaggedHalf::kPending) context.machine.cancel(&receive.tagged_done);
    return false;
  }
  if (receive.tagged == TaggedHalf::kPull && pull_late(receive)) return true;
  if (receive.tagged == TaggedHalf::kArrived) {
    if (receive.bounced->copies_under_way > 0) return false;
    receive.end_with(std::move(receive.tagged_status), receive.tagged_bytes);
    return true;
  }
  if (receive.is_shared() && receive.copy_chunk() && !receive.is_copied()) return true;
  if (!receive.is_copied()) return false;
  receive.end_copied();
  return true;
}

// Whether the sender has not begun in time, so that this PE's device copies.
bool PostedReceives::pull_late(PostedReceive& receive) {
  const std::uint32_t number = receive.message.number;
  if (receive.slot->word.load(std::memory_order_relaxed) != MailboxSlot::posted(number) ||
      !pulls_.has_room() || std::chrono::steady_clock::now() - receive.posted_at < kPushTimeout ||
      !receive.withdraw())
    return false;
  Completion* const user = receive.take_user();
  const auto started = pulls_.start(receive.stream, receive.message, *receive.source, receive.buffer, user);
  if (started && started->is_pending()) return true;
  // The sender is told that its message must come with its tag.
  answer(receive.stream.peer, receive.stream.name, number, nullptr);
  Status status = started
                      ? *started
                      : context.machine.tag_receive(receive.message.tag, kFullTagMask, receive.buffer, user);
  if (!status.is_pending()) context.finish_later(user, std::move(status), receive.buffer.size_bytes);
  return true;
}

bool PostedReceives::poll_arrivals() {
  return arrivals_.poll(
      [this](int peer, Tag stream, std::uint32_t message) { return find_bounced(peer, stream, message); });
}

bool PostedReceives::poll() {
  if (std::exchange(is_asleep_, false)) mailboxes_->owner().is_asleep.store(0, std::memory_order_relaxed);
  bool any = poll_arrivals();
  // A completion may start other receives, which grows the list.
  std::size_t next = 0;
  while (next < receives_.size()) any |= poll(*receives_[next++]);
  std::erase_if(receives_, [](const auto& receive) { return receive->can_go(); });
  // Every kPollsPerLateHalf-th poll starts one even if all polls find something to do.
  if (has_late_halves_ && (!any || ++num_polls_ % kPollsPerLateHalf == 0)) any |= start_late_tagged_half();
  return any;
}

// One at a time: copies that end meanwhile wait for this call.
bool PostedReceives::start_late_tagged_half() {
  const auto late =
      std::ranges::find_if(receives_, [](const auto& receive) { return receive->lacks_tagged_half(); });
  if (late == receives_.end()) {
    has_late_halves_ = false;
    return false;
  }
  PostedReceive& receive = **late;
  if (Status status = receive.start_tagged_half(); !status.is_pending())
    receive.tagged_ended(std::move(status), receive.buffer.size_bytes);
  return true;
}

bool PostedReceives::before_sleep() {
  if (receives_.empty()) return true;
  is_asleep_ = true;
  mailboxes_->owner().is_asleep.store(1, std::memory_order_relaxed);
  // Orders the flag before these looks. A sender looks at the flag after its outcome, so one side sees the
  // other's store.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return !arrivals_.has_arrivals() && std::ranges::none_of(receives_, [](const auto& receive) {
    return receive->is_over() || receive->lacks_tagged_half() || receive->is_copied() ||
           receive->may_be_pulled() || (receive->is_shared() && receive->posted != PostedHalf::kUnreadable);
  });
}

void PostedReceives::close() {
  // A sender that has taken a posting may still write to the buffer, unless it is gone.
  const auto limit = std::chrono::steady_clock::now() + kArrivalLimit;
  for (const auto& receive : receives_) {
    const bool comes_by_posting_only =
        !receive->is_over() && (receive->tagged == TaggedHalf::kLate || receive->tagged == TaggedHalf::kNone);
    if (comes_by_posting_only && receive->withdraw()) receive->end_with(closed_before_arrival(), 0);
    while (!receive->is_over() && !receive->is_copied() && std::chrono::steady_clock::now() < limit) {
      const bool has_copied =
          poll_arrivals() || context.memory.progress() || (receive->is_shared() && receive->copy_chunk());
      if (!has_copied) std::this_thread::yield();
    }
    if (receive->is_over()) continue;
    if (receive->is_copied()) {
      receive->end_copied();
    } else {
      receive->end_with(
          receive->tagged == TaggedHalf::kFailed ? receive->tagged_status : closed_before_arrival(), 0);
    }
  }
  for (auto& receive : receives_) {
    if (receive->stream_wait == StreamWait::kNone) continue;
    receive->owner = nullptr;
    static_cast<void>(receive.release());  // deletes itself when the memory layer closes
  }
  arrivals_.close();
  receives_.clear();
}

}  // namespace weft::machine
