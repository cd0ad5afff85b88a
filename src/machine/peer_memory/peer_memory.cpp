#include "machine/peer_memory/peer_memory.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/format.h"

namespace weft::machine {

using base::Completion;
using base::Status;
using Posting = ReceiveStart::Posting;

PeerMemory::PeerMemory(TransportMachine& machine, memory::Memory& memory, TransferCounts& counts, Reach reach,
                       bool has_peers_on_host)
    : machine_(machine),
      memory_(memory),
      reach_(reach),
      has_peers_on_host_(has_peers_on_host),
      control_(machine, [this](const ControlMessage& message) { on_message(message); }),
      context_{machine, memory, counts, control_, 0, {}},
      exports_(memory,
               [this](int pe, std::uint64_t number) {
                 control_.send(pe, {.type = ControlMessage::Type::kForget, .number = number, .file = {}});
               }),
      imports_(memory,
               [this](int pe, std::uint64_t number) {
                 control_.send(pe, {.type = ControlMessage::Type::kForgotten, .number = number, .file = {}});
               }),
      pulls_(context_, imports_),
      receives_(context_, exports_, imports_, pulls_),
      copies_(context_, exports_, imports_),
      own_pe_(context_) {}

Status PeerMemory::open() {
  if (has_peers_on_host_) process_copies_ = allow_process_copies();
  shares_host_memory_ = has_peers_on_host_ && process_copies_.ok();
  return control_.open();
}

Status PeerMemory::send(OutgoingStream& stream, StreamMessage message, const memory::ConstBuffer& from,
                        Completion* completion) {
  const memory::ConstBuffer source = context_.without_idle_stream(from);
  const bool is_own_pe = stream.peer == machine_.pe();
  if (!is_own_pe && reaches_peers(source.place, source.size_bytes))
    return copies_.start(stream, message, source, completion);
  if (is_own_pe && reach_ != Reach::kNone && stream.on_this_pe != nullptr && !source.place.is_host())
    return own_pe_.send(*stream.on_this_pe, message, source, completion);
  return machine_.tag_send(stream.peer, message.tag, source, completion);
}

Status PeerMemory::receive(IncomingStream& stream, StreamMessage message, const memory::Buffer& into,
                           Completion* completion) {
  const memory::Buffer buffer = context_.without_idle_stream(into);
  std::optional<Status> started;
  const bool is_own_pe = stream.peer == machine_.pe();
  const bool is_other_pe = stream.peer >= 0 && !is_own_pe;
  const bool send_waits =
      is_other_pe && stream.held_sends > 0 && receives_.take_waiting(stream, message.number);
  if ((stream.held_sends > 0 && !is_other_pe) ||
      (is_own_pe && reach_ != Reach::kNone && !buffer.place.is_host())) {
    started = own_pe_.receive(stream, message, buffer, completion);
  } else if (!is_own_pe && reaches_peers(buffer.place, buffer.size_bytes)) {
    started = receives_.start(stream, message, buffer, {}, completion);
  }
  if (send_waits) receives_.answer(stream, message.number);
  return started ? *std::move(started) : machine_.tag_receive(message.tag, kFullTagMask, buffer, completion);
}

Status PeerMemory::receive_by_tag(IncomingStream& stream, StreamMessage message, const memory::Buffer& into,
                                  Completion* completion) {
  const bool is_other_pe = stream.peer >= 0 && stream.peer != machine_.pe();
  const bool send_waits =
      is_other_pe && stream.held_sends > 0 && receives_.take_waiting(stream, message.number);
  if (stream.held_sends > 0 && !is_other_pe) own_pe_.send_by_tag(message);
  Status status = machine_.tag_receive(message.tag, kFullTagMask, into, completion);
  if (send_waits) receives_.answer(stream, message.number);
  return status;
}

std::optional<Status> PeerMemory::receive_offered(IncomingStream& stream, std::uint32_t number,
                                                  const memory::Buffer& into, Completion* completion) {
  if (into.place.is_host() || into.size_bytes == 0 || stream.peer == machine_.pe() || reach_ != Reach::kHost)
    return {};
  const memory::Buffer buffer = context_.without_idle_stream(into);
  return receives_.start_alone(stream, {.number = number}, buffer, nullptr, completion);
}

std::optional<Status> PeerMemory::send_offered(OutgoingStream& stream, std::uint32_t number,
                                               const memory::ConstBuffer& from, Completion* completion) {
  if (from.place.is_host() || stream.peer == machine_.pe() || reach_ != Reach::kHost) return {};
  const memory::ConstBuffer source = context_.without_idle_stream(from);
  Status status = copies_.start_offered(stream, {.number = number}, source, completion);
  if (!status.is_pending()) return {};
  return status;
}

PeerMemory::AnnouncedSend PeerMemory::plan_announced(int pe, Tag stream, const memory::ConstBuffer& from,
                                                     bool is_movable) {
  AnnouncedSend plan;
  const std::size_t least_bytes = is_movable ? SharedCopy::kLeastAnnouncedBytes : SharedCopy::kLeastBytes;
  if (!copies_announced(pe, from.place, from.size_bytes, least_bytes)) return plan;
  OutgoingStream& out = announced_out_[pe];
  out.name = stream;
  out.peer = pe;
  plan.waits = copies_.knows_mailbox(out);
  if (!plan.waits || is_movable) return plan;
  if (from.place.is_host()) {
    if (copies_.shared().first_failure().code() == base::StatusCode::kUnsupported) return plan;
    plan.source.emplace();
    plan.source->buffer.allocation_base = reinterpret_cast<std::uintptr_t>(from.data);
    plan.source->buffer.size_bytes = from.size_bytes;
    plan.source->pid = static_cast<std::int32_t>(::getpid());
    static const auto kNothing = std::make_shared<char>();
    plan.named = kNothing;
    return plan;
  }
  // The receiver knows nothing of the work that is queued on the stream.
  if (context_.without_idle_stream(from).stream != nullptr) return plan;
  const std::shared_ptr<Exports::Export> exported = exports_.find(from);
  if (exported == nullptr) return plan;
  exported->tell(pe);
  plan.source.emplace();
  plan.source->buffer = Exports::name(*exported, from);
  std::ranges::copy(exported->bytes, plan.source->exported.begin());
  plan.named = exported;
  return plan;
}

Status PeerMemory::send_announced(int pe, Tag stream, StreamMessage message, const memory::ConstBuffer& from,
                                  const std::shared_ptr<void>& named, Completion* completion) {
  OutgoingStream& out = announced_out_[pe];
  out.name = stream;
  out.peer = pe;
  return copies_.start_announced(
      {out, message, context_.without_idle_stream(from), completion, nullptr, named});
}

Status PeerMemory::send_announced_movable(int pe, Tag stream, StreamMessage message, MovableSource& source,
                                          Completion* completion) {
  OutgoingStream& out = announced_out_[pe];
  out.name = stream;
  out.peer = pe;
  return copies_.start_announced(
      {out, message, {source.data, source.size_bytes}, completion, &source, nullptr});
}

// Copies the message out of the sender's memory. Nothing is returned if that cannot be done.
std::optional<Status> PeerMemory::receive_named(IncomingStream& stream, StreamMessage message,
                                                const SourceName& source, const memory::Buffer& buffer,
                                                Completion* completion) {
  if (source.buffer.place.is_host() != buffer.place.is_host() ||
      source.buffer.size_bytes != buffer.size_bytes || !reaches_peers(buffer.place, buffer.size_bytes)) {
    return {};
  }
  if (buffer.place.is_host())
    return receives_.start(stream, message, buffer, {Posting::kTaken, &source}, completion);
  // One message alone: its way is the shortest. Of several, both devices copy some.
  if (!receives_.has_open() && !pulls_.has_copies()) {
    if (auto started = receives_.start_alone(stream, message, buffer, &source, completion)) return started;
  }
  return pulls_.start(stream, message, source, buffer, completion);
}

Status PeerMemory::receive_announced(int pe, Tag stream, StreamMessage message, bool send_waits,
                                     const SourceName* source, const memory::Buffer& into,
                                     Completion* completion) {
  const memory::Buffer buffer = context_.without_idle_stream(into);
  const bool posts = copies_announced(pe, buffer.place, buffer.size_bytes, SharedCopy::kLeastBytes);
  if (pe == machine_.pe() || (!posts && !send_waits)) {
    return machine_.tag_receive(message.tag, kFullTagMask, buffer, completion);
  }
  IncomingStream& in = announced_in_[pe];
  in.name = stream;
  in.peer = pe;
  std::optional<Status> started;
  if (send_waits && source != nullptr) {
    started = receive_named(in, message, *source, buffer, completion);
    if (started && started->failed()) receives_.answer(in, message.number);
    if (started) return *std::move(started);
  }
  if (posts && send_waits) {
    started = receives_.start(in, message, buffer, {Posting::kByAnswer}, completion);
  } else if (posts) {
    receives_.announce_mailbox(in);
  }
  Status status =
      started ? *std::move(started) : machine_.tag_receive(message.tag, kFullTagMask, buffer, completion);
  if (send_waits) receives_.answer(in, message.number);
  return status;
}

std::vector<std::string> PeerMemory::obstacles() const {
  std::vector<std::string> found;
  for (const Status* status : {&receives_.mailbox_failure(), &copies_.open_failure(), &copies_.slow_failure(),
                               &receives_.bounce_failure(), &imports_.first_failure(), &process_copies_,
                               &copies_.shared().first_failure()}) {
    if (status->failed()) found.push_back(base::format("peer memory was not used: {}", status->message()));
  }
  if (const Status& why = exports_.first_failure(); why.failed()) {
    found.push_back(base::format(
        "some memory of this PE cannot be mapped by others, so its messages are bounced or pulled: {}",
        why.message()));
  }
  return found;
}

void PeerMemory::on_message(const ControlMessage& message) {
  switch (message.type) {
    case ControlMessage::Type::kMailbox:
      if (copies_.open_mailbox(message.source_pe, message.stream, message.number, message.file)) return;
      control_.send(message.source_pe,
                    {.type = ControlMessage::Type::kNoMailbox, .number = message.number, .file = {}});
      return;
    case ControlMessage::Type::kNoMailbox:
      return receives_.abandon_mailbox(message.source_pe, message.number);
    case ControlMessage::Type::kWaiting:
      return receives_.send_waits(message.source_pe, message.stream,
                                  static_cast<std::uint32_t>(message.number));
    case ControlMessage::Type::kPosted:
    case ControlMessage::Type::kByTag:
      return copies_.answered(message.source_pe, message.stream, static_cast<std::uint32_t>(message.number),
                              message.type == ControlMessage::Type::kPosted);
    case ControlMessage::Type::kBegun:
      return copies_.begun(message.source_pe, message.stream, static_cast<std::uint32_t>(message.number));
    case ControlMessage::Type::kPulled:
      return copies_.pulled(message.source_pe, message.stream, static_cast<std::uint32_t>(message.number));
    case ControlMessage::Type::kForget:
      return imports_.forget(message.source_pe, message.number);
    case ControlMessage::Type::kForgotten:
      return exports_.forgotten(message.source_pe, message.number);
    case ControlMessage::Type::kWake:
      return;
  }
}

bool PeerMemory::progress() {
  bool any = context_.memory_waits != 0 && memory_.progress();
  any |= context_.finish_all();
  if (copies_.has_waiting()) any |= copies_.poll_waiting();
  if (copies_.bounces().is_waiting()) any |= copies_.bounces().poll();
  if (!copies_.shared().is_empty()) any |= copies_.shared().poll();
  if (!receives_.is_empty()) any |= receives_.poll();
  return any;
}

void PeerMemory::begin_close() {
  control_.close();  // copies that end from now on tell no other PE: the transport is about to go
  copies_.begin_close();
  own_pe_.begin_close();
}

void PeerMemory::end_close() {
  copies_.bounces().end_waits();
  memory_.wait_for_devices([this] {
    memory_.progress();
    return !copies_.has_copies() && !pulls_.has_copies() && !own_pe_.has_copies();
  });
  copies_.end_close();
  pulls_.end_close();
  receives_.close();
  imports_.close();
  own_pe_.end_close();
  context_.finish_all();
}

}  // namespace weft::machine
