#include "models/channel/local_path.h"

#include <optional>
#include <utility>

#include "machine/machine.h"
#include "machine/tag.h"
#include "memory/memory.h"
#include "models/channel/channels.h"

namespace weft::channel {

using base::Completion;
using base::Status;
using base::StatusCode;

// A receive on both ways, until its operation is over and nothing will call its completions any more.
struct LocalPath::Receive {
  struct Half : Completion {
    Half(Function on_complete, Receive* receive_in) : Completion(on_complete), receive(receive_in) {}
    Receive* receive;
    bool is_pending = false;
  };

  Receive(LocalPath& path_in, ChannelEnd& end_in, std::uint32_t counter_in, const memory::Buffer& buffer_in,
          runtime::OperationState* operation_in)
      : path(path_in), end(end_in), counter(counter_in), buffer(buffer_in), operation(operation_in) {}

  void end_with(const Status& status, std::size_t size_bytes) {
    if (send) {
      FailedSends::unwatch(send->operation);
      std::exchange(send, std::nullopt)->operation->complete(status, size_bytes);
    }
    std::exchange(operation, nullptr)->complete(status, size_bytes);
  }
  // Its send is known and nothing is left to wait for.
  void start() {
    const Status status = path.copy(buffer, operation, *send);
    if (!status.is_pending()) return end_with(status, 0);
    send.reset();
    operation = nullptr;
  }
  void go_if_over() {
    if (operation == nullptr && !tagged.is_pending && !stream_done.is_pending) delete this;
  }

  LocalPath& path;
  ChannelEnd& end;
  std::uint32_t counter;
  memory::Buffer buffer;
  runtime::OperationState* operation;  // null when it is over, or the copy's affair
  std::optional<HeldSend> send;        // that has taken it and waits for its stream
  Half tagged{[](Completion* self, Status status, std::size_t size_bytes) {
                auto& half = *static_cast<Half*>(self);
                Receive& receive = *half.receive;
                half.is_pending = false;
                if (receive.operation != nullptr && !receive.send) {
                  receive.end.local.receives.erase(receive.counter);
                  receive.end_with(status, size_bytes);
                }
                receive.go_if_over();
              },
              this};
  Half stream_done{[](Completion* self, Status status, std::size_t) {
                     auto& half = *static_cast<Half*>(self);
                     Receive& receive = *half.receive;
                     half.is_pending = false;
                     if (receive.send && status.ok()) {
                       receive.start();
                     } else if (receive.send) {
                       receive.end_with(status, 0);
                     }
                     receive.go_if_over();
                   },
                   this};
};

// A send that waits for its stream.
struct LocalPath::LateSend : Completion {
  LateSend(LocalPath& path_in, ChannelEnd& end_in, std::uint32_t counter_in, const HeldSend& send_in)
      : Completion([](Completion* self, Status status, std::size_t) {
          const std::unique_ptr<LateSend> late(static_cast<LateSend*>(self));
          const auto& [source, operation] = late->send;
          if (status.failed()) {
            operation->complete(std::move(status), 0);
          } else if (!late->path.deliver(late->end, late->counter, source, operation)) {
            send_tagged(late->end, late->counter, source, operation);
          }
        }),
        path(path_in),
        end(end_in),
        counter(counter_in),
        send(send_in) {}

  LocalPath& path;
  ChannelEnd& end;
  std::uint32_t counter;
  HeldSend send;
};

struct LocalPath::Copy : Completion {
  Copy(runtime::OperationState* receiving_in, runtime::OperationState* sending_in)
      : Completion([](Completion* self, Status status, std::size_t size_bytes) {
          const std::unique_ptr<Copy> copy(static_cast<Copy*>(self));
          copy->sending->complete(status, size_bytes);
          copy->receiving->complete(std::move(status), size_bytes);
        }),
        receiving(receiving_in),
        sending(sending_in) {}

  runtime::OperationState* receiving;
  runtime::OperationState* sending;
};

ChannelEnd* LocalPath::local_peer(const ChannelEnd& end) const {
  const auto pe = static_cast<int>(end.peer.pe);
  if (!is_on_ || end.peer.number == 0 || pe != runtime_.pe() || !runtime_.machine().may_pass_by(pe)) {
    return nullptr;
  }
  ChannelEnd* const peer = channels_.find(end.peer.number);
  return peer != nullptr && peer->peer.number != 0 ? peer : nullptr;
}

bool LocalPath::wait_for_stream(memory::Place place, memory::StreamHandle stream, Completion* completion) {
  return runtime_.memory().when_stream_done(place, stream, completion).is_pending();
}

bool LocalPath::send(ChannelEnd& end, std::uint32_t counter, const memory::ConstBuffer& source,
                     runtime::OperationState* operation) {
  if (local_peer(end) == nullptr) return false;
  if (source.stream == nullptr) return deliver(end, counter, source, operation);
  HeldSend send{source, operation};
  send.source.stream = nullptr;
  auto late = std::make_unique<LateSend>(*this, end, counter, send);
  if (!wait_for_stream(source.place, source.stream, late.get())) return false;
  static_cast<void>(late.release());
  return true;
}

bool LocalPath::deliver(ChannelEnd& end, std::uint32_t counter, const memory::ConstBuffer& source,
                        runtime::OperationState* operation) {
  ChannelEnd* const peer = local_peer(end);
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
  if (receive.stream_done.is_pending) {
    receive.send = HeldSend{source, operation};
  } else if (copy(receive.buffer, receive.operation, {source, operation}).is_pending()) {
    receive.operation = nullptr;
  } else {
    return false;
  }
  peer->local.receives.erase(found);
  runtime_.machine().cancel(&receive.tagged);  // after which `receive` may be gone
  return true;
}

bool LocalPath::receive(ChannelEnd& end, std::uint32_t counter, const memory::Buffer& buffer,
                        runtime::OperationState* operation) {
  const auto held = end.local.held_sends.find(counter);
  const bool is_held = held != end.local.held_sends.end();
  if (!is_held && (buffer.place.is_host() || local_peer(end) == nullptr)) return false;

  memory::Buffer destination = buffer;
  destination.stream = nullptr;
  auto receive = std::make_unique<Receive>(*this, end, counter, destination, operation);
  if (buffer.stream != nullptr) {
    receive->stream_done.is_pending = wait_for_stream(buffer.place, buffer.stream, &receive->stream_done);
  }
  const bool can_wait = buffer.stream == nullptr || receive->stream_done.is_pending;

  if (is_held) {
    const HeldSend send = held->second;
    end.local.held_sends.erase(held);
    const bool fits = can_wait && send.source.size_bytes == buffer.size_bytes;
    if (fits && receive->stream_done.is_pending) {
      receive->send = send;
      static_cast<void>(receive.release());
      return true;
    }
    if (fits && copy(destination, operation, send).is_pending()) return true;
    send_tagged(*channels_.find(end.peer.number), counter, send.source, send.operation);
  }
  receive->tagged.is_pending = true;
  Status status = runtime_.machine().tag_receive(end.receive_tags[counter], machine::kFullTagMask, buffer,
                                                 &receive->tagged);
  if (status.is_pending()) {
    // Without its stream's end nothing but the tag is left.
    if (can_wait && !is_held) end.local.receives.emplace(counter, receive.get());
    static_cast<void>(receive.release());
    return true;
  }
  receive->tagged.is_pending = false;
  receive->operation = nullptr;
  receive.release()->go_if_over();
  operation->started(std::move(status), buffer.size_bytes);
  return true;
}

Status LocalPath::copy(const memory::Buffer& destination, runtime::OperationState* receiving,
                       const HeldSend& send) {
  auto copy = std::make_unique<Copy>(receiving, send.operation);
  Status status = runtime_.memory().copy(destination, send.source, copy.get());
  if (!status.is_pending()) return status;
  static_cast<void>(copy.release());
  FailedSends::unwatch(send.operation);
  runtime_.machine().count_transfer(machine::TransferType::kTagSend, machine::TransferPath::kOwnPe,
                                    send.source.place.kind, send.source.size_bytes);
  return status;
}

void LocalPath::close(ChannelEnd& end) {
  for (const auto& [counter, send] : std::exchange(end.local.held_sends, {})) {
    send.operation->complete(Status(StatusCode::kClosed, "the job ended before its receive was posted"), 0);
  }
}

}  // namespace weft::channel
