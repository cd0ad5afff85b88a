#include "machine/peer_memory/peer_memory.h"

#include <optional>
#include <utility>

namespace weft::machine {

using base::Completion;
using base::Status;

PeerMemory::PeerMemory(TransportMachine& machine, memory::Memory& memory, TransferCounts& counts, Reach reach,
                       bool has_peers_on_host)
    : machine_(machine),
      memory_(memory),
      reach_(reach),
      has_peers_on_host_(has_peers_on_host),
      control_(machine, [this](const ControlMessage& message) { on_message(message); }),
      context_{machine, memory, counts, control_, 0, {}},
      receives_(context_),
      copies_(context_),
      own_pe_(context_) {}

Status PeerMemory::open() {
  if (has_peers_on_host_) process_copies_ = allow_process_copies();
  shares_host_memory_ = has_peers_on_host_ && process_copies_.ok();
  return control_.open();
}

Status PeerMemory::send(OutgoingStream& stream, StreamMessage message, const memory::ConstBuffer& source,
                        Completion* completion) {
  if (stream.peer != machine_.pe()) {
    if (reaches_peers(source.place, source.size_bytes)) {
      return copies_.start(stream, message, source, completion);
    }
  } else if (reach_ != Reach::kNone && stream.on_this_pe != nullptr && !source.place.is_host()) {
    return own_pe_.send(*stream.on_this_pe, message, source, completion);
  }
  return machine_.tag_send(stream.peer, message.tag, source, completion);
}

Status PeerMemory::receive(IncomingStream& stream, StreamMessage message, const memory::Buffer& buffer,
                           Completion* completion) {
  std::optional<Status> started;
  const bool is_own_pe = stream.peer == machine_.pe();
  if (stream.held_sends > 0 || (is_own_pe && reach_ != Reach::kNone && !buffer.place.is_host())) {
    started = own_pe_.receive(stream, message, buffer, completion);
  } else if (!is_own_pe && reaches_peers(buffer.place, buffer.size_bytes)) {
    started = receives_.start(stream, message, buffer, completion);
  }
  return started ? *std::move(started) : machine_.tag_receive(message.tag, kFullTagMask, buffer, completion);
}

std::vector<std::string> PeerMemory::obstacles() const {
  std::vector<std::string> found;
  for (const Status* status :
       {&receives_.mailbox_failure(), &copies_.open_failure(), &receives_.export_failure(),
        &copies_.import_failure(), &process_copies_, &copies_.shared().first_failure()}) {
    if (status->failed()) found.emplace_back(status->message());
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
    case ControlMessage::Type::kForget:
      return copies_.forget(message.source_pe, message.number);
    case ControlMessage::Type::kWake:
      return;
  }
}

bool PeerMemory::progress() {
  bool any = context_.memory_waits != 0 && memory_.progress();
  any |= context_.finish_all();
  if (!copies_.shared().is_empty()) any |= copies_.shared().poll();
  if (!receives_.is_empty()) any |= receives_.poll();
  return any;
}

void PeerMemory::begin_close() {
  copies_.begin_close();
  own_pe_.begin_close();
}

void PeerMemory::end_close() {
  control_.close();
  memory_.wait_for_devices([this] {
    memory_.progress();
    return !copies_.has_copies() && !own_pe_.has_copies();
  });
  copies_.end_close();
  receives_.close();
  own_pe_.end_close();
  context_.finish_all();
}

}  // namespace weft::machine
