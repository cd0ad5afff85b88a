#include "models/channel/channels.h"

#include <chrono>
#include <cstring>
#include <utility>

#include "base/format.h"
#include "machine/machine.h"
#include "machine/peer_memory/peer_memory.h"
#include "machine/tag.h"
#include "memory/memory.h"

namespace weft::channel {

namespace {

// A peer's end has received all messages before number `next`.
struct Received {
  std::uint32_t to_end = 0;
  std::uint32_t from_end = 0;
  std::uint32_t next = 0;
};

// Waiting sends may hold this much before a call waits.
constexpr std::int64_t kFreelyHeldBytes = std::int64_t{16} << 20;
// A call waits at most that long. The receiver may wait for this PE, which no message would tell.
constexpr std::chrono::milliseconds kLongestWait{100};
// After such a wait in vain, calls pass for this part of the way to the limit.
constexpr std::int64_t kPassShare = 64;

// The size and the number that a receive was started with, in its operation's extra bytes.
struct Asked {
  std::size_t size_bytes;
  std::uint32_t counter;
  bool takes_less;  // a smaller message is as good

  bool fits(const base::Status& status, std::size_t received_bytes) const {
    return received_bytes == size_bytes || (takes_less && status.ok() && received_bytes < size_bytes);
  }
};

bool is_sent_by_copy(const memory::ConstBuffer& buffer) {
  return buffer.place.is_host() && buffer.size_bytes <= kCopyLimitBytes;
}

// A message in place goes by the machine's peer memory, which may send it with its tag. It is out of line, so that small
// messages do not pay for it, and watched: a chare stays while its memory is sent.
[[gnu::noinline]] void start_send_in_place(ChannelEnd& end, const memory::ConstBuffer& buffer,
                                           runtime::OperationState* operation) {
  const std::uint32_t counter = end.out.next++;
  FailedSends::watch(end, counter, operation);
  end.sent_in_place.push(counter, buffer.size_bytes);
  if (end.window.count(buffer.size_bytes)) Channels::end_segment(end);
  const machine::StreamMessage message{counter, end.send_tags[counter]};
  operation->started(
      end.runtime->machine().peer_memory().send(end.out, message, buffer, operation->completion()),
      buffer.size_bytes);
}

static_assert(machine::SharedCopy::kLeastBytes <= machine::kLeastHeldBytes);

[[gnu::always_inline]] inline void start_copied_send(ChannelEnd& end, const memory::ConstBuffer& copy,
                                                     runtime::OperationState* operation) {
  const std::uint32_t counter = end.out.next++;
  if (end.window.count_small(copy.size_bytes)) [[unlikely]]
    Channels::end_segment(end);
  base::Status status = end.runtime->machine().tag_send(static_cast<int>(end.peer.pe), end.send_tags[counter],
                                                        copy, operation->completion());
  // Host memory that the machine has taken fails only with the peer, and then the job ends.
  if (status.failed()) [[unlikely]]
    end.failed_sends->tell(end, counter, status);
  operation->started(std::move(status), copy.size_bytes);
}

[[gnu::noinline]] void start_device_receive(ChannelEnd& end, machine::StreamMessage message,
                                            const memory::Buffer& buffer,
                                            runtime::OperationState* operation) {
  operation->started(
      end.runtime->machine().peer_memory().receive(end.in, message, buffer, operation->completion()),
      buffer.size_bytes);
}

// A send that is not usual, begun before.
[[gnu::cold, gnu::noinline]] void start_late_send(ChannelEnd& end, const memory::ConstBuffer& source,
                                                  runtime::OperationState* operation) {
  if (is_sent_by_copy(source)) {
    start_copied_send(end, source, operation);
  } else {
    start_send_in_place(end, source, operation);
  }
}

// A send before the peer is known or after it is gone, or in check mode.
void start_special_send(ChannelEnd& end, const memory::ConstBuffer& source,
                        runtime::OperationState* operation, const Contents* contents) {
  if (end.is_closed || end.peer_is_closed) {
    end.runtime->count_processed();
    operation->observe();  // a message that is not received is no failure of the program
    return operation->started(Channels::closed_status(end, "a send"), 0);
  }
  const Description description =
      end.checks != nullptr ? Description(contents, source.size_bytes) : Description();
  const bool is_stopped = end.moves.peer_moves || end.moves.next_peer.number != 0 || end.peer.number == 0;
  if (is_stopped || !end.window.is_open() || !end.waiting_sends.empty()) {
    const std::size_t copied_bytes = is_sent_by_copy(source) ? source.size_bytes : 0;
    end.waiting_sends.push({source, operation, description,
                            static_cast<std::int64_t>(copied_bytes) + machine::kKeptMessageBytes});
    end.channels->used_while_asking(end);
    return;
  }
  if (end.checks != nullptr) end.checks->tell(end, end.out.next, description);
  start_late_send(end, source, operation);
  end.channels->used_while_asking(end);
}

[[gnu::noinline]] void start_special_receive(ChannelEnd& end, machine::StreamMessage message,
                                             const memory::Buffer& buffer, runtime::OperationState* operation,
                                             const Contents* contents) {
  if (end.is_closed) {
    // The number stays: the peer's message with it is dropped.
    --end.in.next;
    operation->set_finisher(nullptr, nullptr);
    operation->observe();
    return operation->started(Channels::closed_status(end, "a receive"), 0);
  }
  if (end.peer_is_closed && static_cast<std::int32_t>(message.number - end.incoming_end) >= 0) {
    end.runtime->count_sent();  // check_received() counts it as processed
    return operation->started(Channels::closed_status(end), 0);
  }
  end.channels->used_while_asking(end);
  if (end.checks == nullptr) return start_device_receive(end, message, buffer, operation);
  base::Completion* const data =
      end.checks->expect(end, message.number, Description(contents, buffer.size_bytes), operation);
  end.checks->started(data, end.runtime->machine().peer_memory().receive(end.in, message, buffer, data),
                      buffer.size_bytes);
}

// For a receive that got another size than it asked for, or nothing: an empty message may stand for a send
// that failed.
[[gnu::noinline]] void explain_received(runtime::OperationState* operation, const ChannelEnd& end,
                                        const Asked& asked) {
  const std::size_t size_bytes = operation->size_bytes();
  base::StatusCode code = operation->status().code();
  std::string why(operation->status().message());
  if (code == base::StatusCode::kOk && size_bytes == 0) {
    why = end.failed_sends->take_reason(end, asked.counter);
    if (!why.empty()) {
      const bool was_to_come =
          !end.peer_is_closed || static_cast<std::int32_t>(end.incoming_end - asked.counter) > 0;
      code = was_to_come || end.lost_pe >= 0 ? base::StatusCode::kPeerFailed : base::StatusCode::kClosed;
    }
  }
  if (code != base::StatusCode::kOk) {
    why = base::format("{}: a receive of {} bytes: {}", describe(end), asked.size_bytes, why);
  } else if (!asked.fits(operation->status(), size_bytes)) {
    code = base::StatusCode::kTruncated;
    why = base::format("{}: a receive of {} bytes met a send of {} bytes; both ends must name the same size",
                       describe(end), asked.size_bytes, size_bytes);
  } else {
    return;
  }
  operation->set_outcome(base::Status(code, std::move(why)), size_bytes);
}

// The rare end of a receive: a report to the sender is due, or the receive is empty or not as it was asked for.
[[gnu::cold, gnu::noinline]] void end_special_receive(runtime::OperationState* operation, ChannelEnd& end,
                                                      const Asked& asked) {
  // If the sizes differ, the sender has counted another one.
  if (end.received.is_due() || !asked.fits(operation->status(), operation->size_bytes()))
    end.channels->report_received(end);
  explain_received(operation, end, asked);
  if (!end.needs_poll) return;
  // The chare of a closed end cannot observe it, and a receive that a closed peer ends is no failure of the program.
  if (end.is_closed || end.lost_pe >= 0 || operation->status().code() == base::StatusCode::kClosed)
    operation->observe();
  end.closed_ends->poll_later(end);
}

// A receive must have got exactly what it asked for.
void check_received(runtime::OperationState* operation, void* context) {
  auto& end = *static_cast<ChannelEnd*>(context);
  end.runtime->count_processed();
  const auto& asked = *reinterpret_cast<const Asked*>(operation->extra());
  const std::size_t size_bytes = operation->size_bytes();
  const bool is_expected = asked.fits(operation->status(), size_bytes);
  const bool is_due = end.received.count(is_expected ? size_bytes : asked.size_bytes);
  if (!is_due && operation->status().ok() && is_expected && size_bytes != 0) [[likely]]
    return;
  end_special_receive(operation, end, asked);
}

}  // namespace

// --- Flow control

void Channels::start_waiting_sends(ChannelEnd& end) {
  if (end.is_closed || end.peer_is_closed || end.moves.peer_moves || end.moves.next_peer.number != 0) return;
  while (!end.waiting_sends.empty() && end.window.is_open()) {
    const WaitingSend send = end.waiting_sends.pop();
    if (end.checks != nullptr) end.checks->tell(end, end.out.next, send.description);
    start_late_send(end, send.buffer, send.operation);
  }
  end.sends_at_once = end.checks == nullptr && end.window.is_open() && end.waiting_sends.empty() &&
                      !end.moves.is_asking && end.peer.number != 0;
  if (end.moves.waits && end.waiting_sends.empty()) end.closed_ends->poll_later(end);
}

void Channels::end_segment(ChannelEnd& end) {
  end.window.end_segment(end.out.next);
  if (!end.window.is_open()) end.sends_at_once = false;
}

void Channels::report_received(ChannelEnd& end) {
  if (end.peer.number == 0 || end.is_closed || end.peer_is_closed || runtime_.exiting()) return;
  // A peer that has sent nothing may not know this end yet.
  if (end.received.next() == first_counter_) return;
  const std::uint32_t next = end.received.report();
  if (end.out.peer == runtime_.pe()) {
    ChannelEnd* const sender = ends_.find(end.peer.number);
    if (sender == nullptr) return;
    sender->window.received(next);
    sender->sent_in_place.forget_before(next);
    if (sender->peer.number != 0) start_waiting_sends(*sender);
    return;
  }
  auto message =
      runtime::Message::pack(runtime_, handler(kReceived), Received{end.peer.number, end.number, next});
  message->envelope().flags |= runtime::kControlFlag | runtime::kUrgentFlag;
  runtime_.send(end.out.peer, std::move(message));
}

void Channels::on_received(runtime::MessagePtr message) {
  Received received;
  message->unpacker() | received;
  const std::uint32_t pe = message->envelope().source_pe;
  ChannelEnd* const end = ends_.find(received.to_end, {pe, received.from_end});
  if (end == nullptr && ends_.is_gone(received.to_end)) return;
  if (end == nullptr || end->peer.number == 0) {
    runtime_.fail(base::format(
        "PE {} reports messages that its channel end {} has received from end {} of PE {}; these "
        "ends are not connected",
        pe, received.from_end, received.to_end, runtime_.pe()));
    return;
  }
  end->window.received(received.next);
  end->sent_in_place.forget_before(received.next);
  start_waiting_sends(*end);
}

void Channels::await_room(ChannelEnd& end) {
  WaitingSends& waiting = end.waiting_sends;
  if (waiting.held_bytes() <= kFreelyHeldBytes) {
    waiting.passes_until_bytes = 0;
    return;
  }
  using Clock = std::chrono::steady_clock;
  struct Wait {
    const WaitingSends& sends;
    Clock::time_point until;
  };
  if (waiting.held_bytes() > waiting.passes_until_bytes && runtime_.may_progress() &&
      end.out.peer != runtime_.pe() && !end.moves.peer_moves) {
    Wait wait{waiting, Clock::now() + kLongestWait};
    runtime_.progress_until(
        [](void* context) {
          const Wait& until = *static_cast<const Wait*>(context);
          return until.sends.held_bytes() <= kFreelyHeldBytes || Clock::now() > until.until;
        },
        &wait);
    waiting.passes_until_bytes = waiting.held_bytes() + limit_bytes_ / kPassShare;
  }
  if (waiting.held_bytes() <= limit_bytes_ || runtime_.exiting()) return;
  throw base::Error(
      base::StatusCode::kOutOfMemory,
      base::format(
          "{}: {} sends hold {} MiB and wait for the peer to receive earlier messages; the limit is {} MiB. "
          "Await sends now and then, so that they wait for the receiver",
          describe(end), waiting.size(), waiting.held_bytes() >> 20, limit_bytes_ >> 20));
}

// --- The channel

Channel::Channel(chare::ChareBase& self, const Peer& peer, std::uint32_t id)
    : end_(&self.runtime().model<Channels>().end(self, peer, id)) {}

namespace {

// For load balancing: the running chare, which is the end's, sends to its peer.
[[gnu::cold, gnu::noinline]] void count_message(const ChannelEnd& end, std::size_t size_bytes) {
  end.runtime->meter().count_message({end.key.peer_collection, end.key.peer_index}, size_bytes);
}

// Makes the operation of a send. `source` becomes the copy, in the operation, if `is_copied`. `extra_bytes`: of one in place.
[[gnu::always_inline]] inline runtime::OperationState* begin_send(
    ChannelEnd& end, memory::ConstBuffer& source, bool is_copied,
    std::size_t extra_bytes = FailedSends::kExtraBytes) {
  runtime::Runtime& runtime = *end.runtime;
  auto* const operation =
      runtime::OperationState::create(runtime, is_copied ? source.size_bytes : extra_bytes);
  if (is_copied && source.size_bytes > 0) {
    std::memcpy(operation->extra(), source.data, source.size_bytes);
    source.data = operation->extra();
  }
  if (runtime.meter().counts_messages()) [[unlikely]]
    count_message(end, source.size_bytes);
  runtime.count_sent();
  return operation;
}

// A send that may have to wait, or in check mode.
[[gnu::cold, gnu::noinline]] runtime::Operation send_specially(ChannelEnd& end,
                                                               const memory::ConstBuffer& buffer,
                                                               const Contents* contents) {
  Channels::expect_open(end, "a send");
  end.channels->await_room(end);
  memory::ConstBuffer source = buffer;
  const bool is_copied = is_sent_by_copy(buffer);
  const bool is_checked = end.checks != nullptr && !is_copied && buffer.place.is_host();
  runtime::OperationState* const operation = begin_send(
      end, source, is_copied,
      is_checked ? UnchangedSends::extra_bytes(FailedSends::kExtraBytes) : FailedSends::kExtraBytes);
  if (is_checked) UnchangedSends::note(operation, FailedSends::kExtraBytes, buffer);
  start_special_send(end, source, operation, contents);
  return runtime::Operation(operation);
}

struct BegunReceive {
  runtime::OperationState* operation;
  std::uint32_t counter;
};
[[gnu::always_inline]] inline BegunReceive begin_receive(ChannelEnd& end, std::size_t size_bytes,
                                                         bool takes_less = false) {
  auto* const operation = runtime::OperationState::create(*end.runtime, sizeof(Asked));
  const std::uint32_t counter = end.in.next++;
  new (operation->extra()) Asked{size_bytes, counter, takes_less};
  operation->set_finisher(&check_received, &end);
  return {operation, counter};
}

// A receive in check mode, or of an end that is closed or whose peer is.
[[gnu::cold, gnu::noinline]] runtime::Operation receive_specially(ChannelEnd& end,
                                                                  const memory::Buffer& buffer,
                                                                  const Contents* contents,
                                                                  bool takes_less = false) {
  Channels::expect_open(end, "a receive");
  if (end.num_kept != 0) end.channels->stay_for_now(end);
  const auto [operation, counter] = begin_receive(end, buffer.size_bytes, takes_less);
  start_special_receive(end, {counter, end.receive_tags[counter]}, buffer, operation, contents);
  return runtime::Operation(operation);
}

}  // namespace

std::optional<std::size_t> Channels::asked_bytes(const runtime::OperationState& operation) {
  if (operation.finisher() != &check_received) return std::nullopt;
  return reinterpret_cast<const Asked*>(operation.extra())->size_bytes;
}

runtime::Operation Channel::send(const memory::ConstBuffer& buffer, const Contents* contents) {
  if (!end_->sends_at_once) [[unlikely]]
    return send_specially(*end_, buffer, contents);
  const bool is_copied = is_sent_by_copy(buffer);
  memory::ConstBuffer source = buffer;
  runtime::OperationState* const operation = begin_send(*end_, source, is_copied);
  if (is_copied) [[likely]] {
    start_copied_send(*end_, source, operation);
  } else {
    start_send_in_place(*end_, source, operation);
  }
  return runtime::Operation(operation);
}

runtime::Operation Channel::recv(const memory::Buffer& buffer, const Contents* contents) {
  if (end_->receives_specially) [[unlikely]]
    return receive_specially(*end_, buffer, contents);
  const auto [operation, counter] = begin_receive(*end_, buffer.size_bytes);
  const machine::Tag tag = end_->receive_tags[counter];
  if (!buffer.place.is_host() || buffer.size_bytes >= machine::SharedCopy::kLeastBytes ||
      end_->in.held_sends > 0) [[unlikely]] {
    start_device_receive(*end_, {counter, tag}, buffer, operation);
  } else {
    // A receive that is over at once found its message waiting; the machine has checked that it fits.
    operation->started(
        end_->runtime->machine().tag_receive(tag, machine::kFullTagMask, buffer, operation->completion()),
        buffer.size_bytes);
  }
  return runtime::Operation(operation);
}

runtime::Operation Channel::recv_up_to(const memory::Buffer& buffer) {
  if (end_->receives_specially) [[unlikely]]
    return receive_specially(*end_, buffer, nullptr, true);
  const auto [operation, counter] = begin_receive(*end_, buffer.size_bytes, true);
  const machine::StreamMessage message{counter, end_->receive_tags[counter]};
  if (end_->in.held_sends > 0) [[unlikely]] {
    start_device_receive(*end_, message, buffer, operation);
  } else {
    operation->started(end_->runtime->machine().tag_receive(message.tag, machine::kFullTagMask, buffer,
                                                            operation->completion()),
                       buffer.size_bytes);
  }
  return runtime::Operation(operation);
}

memory::Buffer Channel::locate(const void* data, std::size_t size_bytes) const {
  memory::Place place = size_bytes == 0 ? memory::Place{} : end_->runtime->memory().place_of(data);
  return {const_cast<void*>(data), size_bytes, place, nullptr};
}

bool Channel::is_checked() const { return end_->checks != nullptr; }

std::shared_ptr<void> Channel::hold() const { return end_->channels->hold(*end_); }

Channel Channel::out_of_band() const { return Channel(end_->channels->out_of_band_end(*end_)); }

std::shared_ptr<void>& Channel::attached() const { return end_->attached; }

AttachedState& Channel::attached_state() const { return end_->attached_state; }

void Channel::attached_is_idle() const {
  if (end_->moves.waits) end_->closed_ends->poll_later(*end_);
}

void Channel::pup(Pup& p) {
  ChannelKey key;
  if (!p.is_unpacking() && end_ != nullptr) key = end_->key;
  bool is_restored = chare::pup_collection_id(p, key.self_collection);
  p | key.self_index;
  is_restored |= chare::pup_collection_id(p, key.peer_collection);
  p | key.peer_index | key.id;
  if (!p.is_unpacking()) return;
  end_ = nullptr;
  if (key == ChannelKey{}) return;
  auto& runtime = *static_cast<runtime::Runtime*>(p.context());
  end_ =
      is_restored ? &runtime.model<Channels>().restored_end(key) : runtime.model<Channels>().ends().find(key);
  if (end_ != nullptr) return;
  throw base::Error(
      base::StatusCode::kInvalidArgument,
      base::format("a channel arrives on PE {} without its chare; a weft::Channel belongs to the "
                   "chare that has made it, and moves only in that chare's pup function",
                   runtime.pe()));
}

std::string Channel::description() const { return describe(*end_); }

}  // namespace weft::channel
