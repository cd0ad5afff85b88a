#include "models/channel/local_path.h"

#include <utility>

#include "machine/machine.h"
#include "machine/tag.h"
#include "memory/memory.h"
#include "models/channel/channels.h"

namespace weft::channel {

using base::Completion;
using base::Status;
using base::StatusCode;

// A receive that is posted with its tag as well. Goes when that half is over.
struct LocalPath::Receive : Completion {
  Receive(ChannelEnd& end_in, std::uint32_t counter_in, const memory::Buffer& buffer_in,
          runtime::OperationState* operation_in)
      : Completion([](Completion* self, Status status, std::size_t size_bytes) {
          const std::unique_ptr<Receive> receive(static_cast<Receive*>(self));
          if (receive->operation == nullptr) return;
          receive->end.local.receives.erase(receive->counter);
          receive->operation->complete(std::move(status), size_bytes);
        }),
        end(end_in),
        counter(counter_in),
        buffer(buffer_in),
        operation(operation_in) {}

  ChannelEnd& end;
  std::uint32_t counter;
  memory::Buffer buffer;
  runtime::OperationState* operation;  // null when a send has taken it
};

struct LocalPath::Copy : Completion {
  Copy(runtime::OperationState* receiving_in, runtime::OperationState* sending_in)
      : Completion([](Completion* self, Status status, std::size_t size_bytes) {
          std::unique_ptr<Copy>(static_cast<Copy*>(self))->end_with(status, size_bytes);
        }),
        receiving(receiving_in),
        sending(sending_in) {}

  void end_with(const Status& status, std::size_t size_bytes) const {
    sending->complete(status, size_bytes);
    receiving->complete(status, size_bytes);
  }

  runtime::OperationState* receiving;
  runtime::OperationState* sending;
};

bool LocalPath::leads_to_this_pe(const ChannelEnd& end) const {
  const auto pe = static_cast<int>(end.peer.pe);
  return end.peer.number != 0 && pe == runtime_.pe() && runtime_.machine().may_pass_by(pe);
}

bool LocalPath::send(ChannelEnd& end, std::uint32_t counter, const memory::ConstBuffer& source,
                     runtime::OperationState* operation) {
  if (!leads_to_this_pe(end)) return false;
  ChannelEnd* const peer = channels_.find(end.peer.number);
  if (peer == nullptr) return false;
  const bool is_posted = static_cast<std::int32_t>(peer->next_receive - counter) > 0;
  if (!is_posted) {
    peer->local.held_sends.emplace(counter, HeldSend{source, operation});
    return true;
  }
  const auto found = peer->local.receives.find(counter);
  // Sizes that disagree are told of on the tagged path.
  if (found == peer->local.receives.end() || found->second->buffer.size_bytes != source.size_bytes) {
    return false;
  }
  Receive& receive = *found->second;
  peer->local.receives.erase(found);
  runtime::OperationState* const receiving = std::exchange(receive.operation, nullptr);
  const memory::Buffer destination = receive.buffer;
  runtime_.machine().cancel(&receive);
  copy(destination, receiving, source, operation);
  return true;
}

bool LocalPath::receive(ChannelEnd& end, std::uint32_t counter, const memory::Buffer& buffer,
                        runtime::OperationState* operation) {
  if (!leads_to_this_pe(end)) return false;
  if (const auto held = end.local.held_sends.find(counter); held != end.local.held_sends.end()) {
    const HeldSend send = held->second;
    end.local.held_sends.erase(held);
    if (send.source.size_bytes == buffer.size_bytes) {
      copy(buffer, operation, send.source, send.operation);
      return true;
    }
    send_tagged(*channels_.find(end.peer.number), counter, send.source, send.operation);
    return false;
  }
  if (buffer.place.is_host()) return false;
  auto receive = std::make_unique<Receive>(end, counter, buffer, operation);
  const machine::Tag tag = machine::channel_tag(end.number, counter);
  Status status = runtime_.machine().tag_receive(tag, machine::kFullTagMask, buffer, receive.get());
  if (!status.is_pending()) {
    operation->started(std::move(status), buffer.size_bytes);
    return true;
  }
  end.local.receives.emplace(counter, receive.release());
  return true;
}

void LocalPath::copy(const memory::Buffer& destination, runtime::OperationState* receiving,
                     const memory::ConstBuffer& source, runtime::OperationState* sending) {
  auto copy = std::make_unique<Copy>(receiving, sending);
  const Status status = runtime_.memory().copy(destination, source, copy.get());
  if (!status.is_pending()) return copy->end_with(status, status.ok() ? source.size_bytes : 0);
  static_cast<void>(copy.release());
  runtime_.machine().count_transfer(machine::TransferType::kTagSend, machine::TransferPath::kOwnPe,
                                    source.place.kind, source.size_bytes);
}

void LocalPath::close(ChannelEnd& end) {
  for (const auto& [counter, send] : std::exchange(end.local.held_sends, {})) {
    send.operation->complete(Status(StatusCode::kClosed, "the job ended before its receive was posted"), 0);
  }
}

}  // namespace weft::channel
