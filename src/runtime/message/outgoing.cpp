#include "runtime/message/outgoing.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "machine/peer_memory/peer_memory.h"
#include "runtime/message/accounting.h"
#include "runtime/message/attached.h"
#include "runtime/message/boundary.h"
#include "runtime/message/flow_control.h"
#include "runtime/message/payload_tag.h"

namespace weft::runtime {

namespace {

// Up to here one active message is the faster path for host memory (benchmarks/payload_pingpong.cpp; figures
// in benchmarks/FIGURES.md): what comes eagerly is copied once more, into its place. Device memory is
// announced and tagged, as in what was published: neither path is faster there from one run to the next.
constexpr std::size_t kMaxActiveBytes = 1024;

// From this size on, a call first tries to send from the caller's memory. All arguments that travel out of band are
// as large. Measured from 64 KiB on, see benchmarks/results/2026-11-22-values.
constexpr std::size_t kLeastUncopiedBytes = std::size_t{32} << 10;
// A call polls, for the receiver to take bytes, once for each kBytesPerPoll of the message and of the bytes that are taken. It
// takes about twice as long as the copy. After it has waited in vain, kSkips calls to that PE do not wait, unless the PE has
// kManyBytes to take.
constexpr std::size_t kBytesPerPoll = 256;
constexpr std::size_t kMostSpinBudgetBytes = std::size_t{16} << 20;
constexpr int kSkips = 15;
constexpr std::uint64_t kManyBytes = std::uint64_t{16} << 20;

std::int64_t polls_for(std::size_t size_bytes) {
  return static_cast<std::int64_t>(size_bytes / kBytesPerPoll);
}

// Whether the receiver reads the caller's memory now.
bool is_being_read(const Attached& attached) {
  return std::ranges::any_of(attached.sources,
                             [](const machine::MovableSource& source) { return source.is_fixed; });
}

// Makes the copies that a send still reads from the caller's memory.
void copy_unsent(Attached& attached) noexcept {
  if (attached.unsent_sources == 0) return;
  for (std::size_t i = 0; i < attached.sources.size(); ++i) {
    attached.buffers[i].copy_now();
    attached.sources[i].data = static_cast<const std::byte*>(attached.buffers[i].buffer().data);
  }
}

}  // namespace

namespace {

void send_wire(Scheduler& scheduler, int pe, machine::AmId id, std::span<const std::byte> header,
               std::size_t left_out_bytes, Message* message) {
  message->base::Completion::function = [](base::Completion* completion, base::Status status, std::size_t) {
    MessagePtr sent(static_cast<Message*>(completion));
    Scheduler& owner = sent->scheduler();
    owner.send_ended();
    owner.check_sent(-1, status);
  };
  base::Status status = scheduler.machine().am_send(
      pe, id, header,
      memory::ConstBuffer(message->wire() + left_out_bytes, message->wire_bytes() - left_out_bytes), message);
  // No completion runs inside am_send(), so the message is counted only if it stays.
  if (status.is_pending()) [[unlikely]]
    return scheduler.send_started();  // the message is its completion's
  MessagePtr sent(message);
  scheduler.check_sent(pe, status);
}

}  // namespace

void send_active_message(Scheduler& scheduler, int pe, Message* message) {
  const bool is_short = message->envelope().has_usual_start();
  send_wire(scheduler, pe, is_short ? kShortMessageAm : kMessageAm, {},
            is_short ? Envelope::kUsualStartBytes : 0, message);
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
  machine::Tag tag;                            // 0: an active message's payload
  machine::MovableSource* uncopied = nullptr;  // of a send from memory that is not copied yet
  std::int64_t held_bytes = 0;  // of a copy that stays at this PE until the receiver fetches it
};

void Outgoing::send(int pe, MessagePtr message) {
  Attached& attached = message->attached();
  attached.state = Attached::BufferState::kGiven;
  attached.unsent = 1;  // and the loop that starts them
  attached.sending_bytes = attached.size_bytes();
  MessagePtr share = message->share();
  // Whatever ends this call: afterwards the caller's memory is not read.
  struct CopyAtEnd {
    ~CopyAtEnd() {
      outgoing.finish_reads(attached);
      copy_unsent(attached);
    }
    Outgoing& outgoing;
    Attached& attached;
  } copy_at_end{*this, attached};
  if (goes_active(*message)) {
    send_active(pe, std::move(message));
  } else {
    send_tagged(pe, std::move(message));
    if (attached.unsent_sources > 0) offer(consumption_of(pe), attached);
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

struct Outgoing::Announced {
  std::vector<Announcement> buffers;
  // As many as needed: for each buffer that is named, what its name needs.
  std::vector<std::shared_ptr<void>> named;
  std::vector<std::byte> names;

  // The announcements, then the names. Called once, when all buffers are announced.
  std::span<const std::byte> header() {
    const auto announcements = std::as_bytes(std::span(buffers));
    if (names.empty()) return announcements;
    names.insert(names.begin(), announcements.begin(), announcements.end());
    return names;
  }
  void name(std::size_t which, const machine::PeerMemory::AnnouncedSend& plan, std::size_t most_bytes) {
    const std::size_t size_bytes = plan.source->wire_bytes();
    const std::size_t used_bytes = buffers.capacity() * sizeof(Announcement) + names.size();
    if (used_bytes + size_bytes > most_bytes) return;
    const auto* const first = reinterpret_cast<const std::byte*>(&*plan.source);
    names.insert(names.end(), first, first + size_bytes);
    buffers[which].name_bytes = static_cast<std::uint16_t>(size_bytes);
    named.resize(which + 1);
    named[which] = plan.named;
  }
};

Outgoing::Announced Outgoing::announce(int pe, Message& message) {
  Announced announced;
  announced.buffers.reserve(message.attachments().size());
  for (std::size_t i = 0; i < message.attachments().size(); ++i) {
    const Attachment& one = message.attachments()[i];
    const memory::Buffer& buffer = one.buffer();
    announced.buffers.push_back({static_cast<std::uint32_t>(scheduler_.pe()), next_counter_,
                                 buffer.size_bytes, message.attached().first_kind(i)});
    const bool may_wait =
        !buffer.place.is_host() || buffer.size_bytes >= machine::PeerMemory::kLeastWaitingBytes;
    if (may_wait) [[unlikely]] {
      machine::Machine& machine = scheduler_.machine();
      const machine::Tag stream = payload_tag(announced.buffers[i].source_pe, 0);
      // A buffer that is not copied yet has no final address.
      const bool is_movable = one.uncopied() != nullptr;
      const auto plan = machine.peer_memory().plan_announced(pe, stream, buffer, is_movable);
      announced.buffers[i].send_waits = plan.waits ? 1 : 0;
      if (plan.source) announced.name(i, plan, machine.max_am_header_bytes());
    }
    next_counter_ = (next_counter_ + 1) & kPayloadCounterMask;
  }
  return announced;
}

void Outgoing::send_tagged(int pe, MessagePtr message) {
  Attached& attached = message->attached();
  const bool is_uncopied = sends_uncopied(pe, attached);
  Announced all = announce(pe, *message);
  const std::vector<Announcement>& announced = all.buffers;
  // Made before anything leaves: what has been announced is sent or revoked.
  std::vector<std::unique_ptr<Sending>> sendings(announced.size());
  for (std::size_t i = 0; i < announced.size(); ++i) {
    if (announced[i].size_bytes == 0) continue;  // the announcement says it all
    const machine::Tag tag = payload_tag(announced[i].source_pe, announced[i].counter);
    sendings[i] = std::make_unique<Sending>(*this, message->share(), pe, tag);
  }
  Consumption* consumption = nullptr;
  if (is_uncopied) {
    consumption = &consumption_of(pe);
    attached.sources.resize(announced.size());
  }
  // The announcement first: the receiver posts its receives while the buffers are on their way.
  send_wire(scheduler_, pe, kMessageAm, all.header(), 0, message.release());
  for (std::size_t i = 0; i < announced.size(); ++i) {
    if (sendings[i] == nullptr) continue;
    const machine::Tag tag = sendings[i]->tag;
    ++attached.unsent;
    hold(*sendings[i], attached.buffers[i]);
    if (consumption != nullptr && attached.buffers[i].uncopied() != nullptr) {
      machine::MovableSource& source = attached.sources[i];
      source = {static_cast<const std::byte*>(attached.buffers[i].uncopied()), announced[i].size_bytes,
                &consumption->read_bytes};
      sendings[i]->uncopied = &source;
      ++attached.unsent_sources;
      Sending::start(std::move(sendings[i]), [&](base::Completion* done) {
        return start_uncopied(announced[i], *static_cast<Sending*>(done));
      });
      continue;
    }
    attached.buffers[i].copy_now();
    Sending::start(std::move(sendings[i]), [&](base::Completion* done) {
      const memory::Buffer& buffer = attached.buffers[i].buffer();
      if (announced[i].send_waits == 0) return scheduler_.machine().tag_send(pe, tag, buffer, done);
      return scheduler_.machine().peer_memory().send_announced(
          pe, payload_stream(tag), {announced[i].counter, tag}, buffer,
          i < all.named.size() ? all.named[i] : nullptr, done);
    });
  }
}

// Counts a large copy in flow control until the receiver has fetched it.
void Outgoing::hold(Sending& sending, const Attachment& buffer) {
  if (flow_ == nullptr || !buffer.is_given_away() || buffer.buffer().size_bytes < machine::kLeastHeldBytes)
    return;
  sending.held_bytes = static_cast<std::int64_t>(buffer.buffer().size_bytes);
  flow_->copies_made(sending.pe, sending.held_bytes);
}

base::Status Outgoing::start_uncopied(const Announcement& announced, Sending& sending) {
  machine::Machine& machine = scheduler_.machine();
  if (announced.send_waits == 0)
    return machine.tag_send_movable(sending.pe, sending.tag, *sending.uncopied, &sending);
  return machine.peer_memory().send_announced_movable(
      sending.pe, payload_stream(sending.tag), {announced.counter, sending.tag}, *sending.uncopied, &sending);
}

bool Outgoing::sends_uncopied(int pe, const Attached& attached) {
  std::size_t uncopied_bytes = 0;
  for (const Attachment& one : attached.buffers) {
    if (one.uncopied() != nullptr) uncopied_bytes += one.buffer().size_bytes;
  }
  return uncopied_bytes >= kLeastUncopiedBytes && scheduler_.may_progress() &&
         !scheduler_.shares_processor() && scheduler_.machine().can_move_source(pe);
}

Outgoing::Consumption& Outgoing::consumption_of(int pe) {
  if (consumptions_.empty()) consumptions_.resize(static_cast<std::size_t>(scheduler_.num_pes()));
  return consumptions_[static_cast<std::size_t>(pe)];
}

// Has the receiver take the bytes from the caller's memory, if it does so at once.
void Outgoing::offer(Consumption& consumption, const Attached& attached) {
  std::size_t size_bytes = 0;
  for (const machine::MovableSource& source : attached.sources) size_bytes += source.size_bytes;
  consumption.sent_bytes += size_bytes;
  const bool are_many = consumption.sent_bytes > consumption.read_bytes + size_bytes + kManyBytes;
  if (consumption.skips_left > 0 && !are_many) {
    --consumption.skips_left;
  } else {
    await_consumption(consumption, attached, size_bytes);
  }
}

// Moves communication forward until the buffers are sent. Gives up when the receiver takes too few bytes, of this
// message and earlier ones, for the polls.
void Outgoing::await_consumption(Consumption& consumption, const Attached& attached, std::size_t size_bytes) {
  std::int64_t polls_left = polls_for(std::min(size_bytes, kMostSpinBudgetBytes));
  std::uint64_t read_bytes = consumption.read_bytes;
  while (attached.unsent_sources > 0) {
    if ((--polls_left < 0 || scheduler_.stopped()) && !is_being_read(attached)) {
      consumption.skips_left = kSkips;
      return;
    }
    scheduler_.progress();
    polls_left += polls_for(consumption.read_bytes - read_bytes);
    read_bytes = consumption.read_bytes;
  }
}

void Outgoing::finish_reads(const Attached& attached) noexcept {
  while (is_being_read(attached)) {
    at_boundary(scheduler_, "a callback, while a large argument was sent,",
                [this] { scheduler_.progress(); });
  }
}

void Outgoing::send_active(int pe, MessagePtr message) {
  message->attachments()[0].copy_now();
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
  if (sending.uncopied != nullptr) {
    --attached.unsent_sources;
    sending.uncopied->is_fixed = false;
  }
  if (sending.held_bytes > 0) flow_->copies_sent(sending.pe, sending.held_bytes);
  if (status.failed()) {
    if (sending.uncopied != nullptr)
      consumption_of(sending.pe).read_bytes += sending.uncopied->size_bytes;  // no longer awaited
    if (sending.tag != 0) {
      revoke(sending.pe, sending.tag);
    } else {
      if (flow_ != nullptr) flow_->not_sent(sending.pe, message);
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
