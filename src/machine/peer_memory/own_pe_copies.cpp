#include "machine/peer_memory/own_pe_copies.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/format.h"

namespace weft::machine {

using base::Completion;
using base::Status;
using base::StatusCode;

namespace {

Status second_message() {
  return {StatusCode::kCorrupt, "a second message with its tag arrived while the first was copied"};
}

}  // namespace

// A send that came before its receive.
struct OwnPeCopies::HeldSend final : PeerOperation {
  HeldSend(OwnPeCopies& copies_in, IncomingStream& stream_in, StreamMessage message_in,
           const memory::ConstBuffer& source_in, Completion* user)
      : PeerOperation(user), copies(copies_in), stream(stream_in), message(message_in), source(source_in) {
    ++stream.held_sends;
  }
  ~HeldSend() { --stream.held_sends; }
  void cancel() override {}  // a send that is cancelled would leave its receive without a message

  OwnPeCopies& copies;
  IncomingStream& stream;
  StreamMessage message;
  memory::ConstBuffer source;
};

// A send that waits for its stream. Deletes itself.
struct OwnPeCopies::LateSend final : Completion, PeerOperation {
  LateSend(OwnPeCopies& copies_in, IncomingStream& stream_in, StreamMessage message_in,
           const memory::ConstBuffer& source_in, Completion* user)
      : Completion([](Completion* self, Status status, std::size_t) {
          const std::unique_ptr<LateSend> late(static_cast<LateSend*>(self));
          if (late->copies != nullptr) late->stream_is_done(std::move(status));
        }),
        PeerOperation(user),
        copies(&copies_in),
        stream(stream_in),
        message(message_in),
        source(source_in) {}
  void cancel() override {}

  void stream_is_done(Status status) {
    PeerContext& context = copies->context_;
    --context.memory_waits;
    std::erase(copies->late_sends_, this);
    if (status.failed()) return complete(std::move(status), 0);
    Completion* const user = take_user();
    if (copies->deliver(stream, message, source, user).is_pending()) return;
    context.send_tagged(context.machine.pe(), message.tag, source, user);
  }

  OwnPeCopies* copies;  // null after close()
  IncomingStream& stream;
  StreamMessage message;
  memory::ConstBuffer source;  // without its stream
};

// A receive, with its tag and here. Deleted when it is over and none of its completions will be called.
struct OwnPeCopies::Receive final : PeerOperation {
  struct Half : Completion {
    Half(Function on_complete, Receive* receive_in) : Completion(on_complete), receive(receive_in) {}
    Receive* receive;
    bool is_pending = false;
  };
  // The send that has taken the receive.
  struct Send {
    memory::ConstBuffer source;
    Completion* user;
  };

  Receive(OwnPeCopies& copies_in, IncomingStream& stream_in, StreamMessage message_in,
          const memory::Buffer& buffer_in, Completion* user)
      : PeerOperation(user), copies(&copies_in), stream(stream_in), message(message_in), buffer(buffer_in) {
    ++stream.receives;
    destination.stream = nullptr;
    copies->receives_.push_back(this);
  }

  ~Receive() { --stream.receives; }

  void cancel() override {
    if (tagged.is_pending && !send) copies->context_.machine.cancel(&tagged);
  }
  bool is_waited_for() const { return tagged.is_pending || stream_done.is_pending || copied.is_pending; }

  void tagged_ended(Status status, std::size_t size_bytes) {
    if (is_over()) return;
    if (send) {
      // The send that has taken the receive completes it.
      tagged_failure = status.failed() ? std::move(status) : second_message();
      return;
    }
    copies->waiting_receives_.erase(message.tag);
    complete(std::move(status), size_bytes);
  }

  void stream_ended(const Status& status) {
    --copies->context_.memory_waits;
    if (!send || is_over()) return;
    const Send taken = *send;
    if (status.ok()) {
      if (copies->start_copy(*this, taken.source, taken.user)) return;
      send.reset();
      expect_tagged();
      copies->context_.send_tagged(copies->context_.machine.pe(), message.tag, taken.source, taken.user);
      return;
    }
    send.reset();
    complete(status, 0);
    taken.user->function(
        taken.user, {StatusCode::kPeerFailed, base::format("its receive failed: {}", status.message())}, 0);
  }

  void copy_ended(Status status) {
    --copies->num_copies_;
    --copies->context_.memory_waits;
    const Send taken = *std::exchange(send, {});
    if (status.ok()) {
      taken.user->function(taken.user, {}, buffer.size_bytes);
      complete({}, buffer.size_bytes);
    } else {
      expect_tagged();  // the caller of the send ends the receive by its tag
      taken.user->function(taken.user, std::move(status), 0);
    }
  }

  // The message, or an empty one in its place, comes with its tag now.
  void expect_tagged() {
    if (tagged.is_pending) return;
    Status status = tagged_failure.failed() ? tagged_failure : post_tagged();
    if (!status.is_pending()) complete(std::move(status), buffer.size_bytes);
  }
  Status post_tagged() {
    tagged.is_pending = true;
    Status status = copies->context_.machine.tag_receive(message.tag, kFullTagMask, buffer, &tagged);
    tagged.is_pending = status.is_pending();
    return status;
  }

  OwnPeCopies* copies;  // null after close()
  IncomingStream& stream;
  StreamMessage message;
  memory::Buffer buffer;
  memory::Buffer destination = buffer;  // without its stream
  std::optional<Send> send;
  Status tagged_failure;
  Half tagged{[](Completion* self, Status status, std::size_t size_bytes) {
                auto& half = *static_cast<Half*>(self);
                half.is_pending = false;
                if (half.receive->copies == nullptr) return half.receive->remove_orphan();
                half.receive->tagged_ended(std::move(status), size_bytes);
                half.receive->copies->remove_if_over(*half.receive);
              },
              this};
  Half stream_done{[](Completion* self, Status status, std::size_t) {
                     Receive& receive = *static_cast<Half*>(self)->receive;
                     receive.stream_done.is_pending = false;
                     if (receive.copies == nullptr) return receive.remove_orphan();
                     receive.stream_ended(status);
                     receive.copies->remove_if_over(receive);
                   },
                   this};
  Half copied{[](Completion* self, Status status, std::size_t) {
                Receive& receive = *static_cast<Half*>(self)->receive;
                receive.copied.is_pending = false;
                if (receive.copies == nullptr) return receive.remove_orphan();
                receive.copy_ended(std::move(status));
                receive.copies->remove_if_over(receive);
              },
              this};

  void remove_orphan() {
    if (!is_waited_for()) delete this;
  }
};

OwnPeCopies::OwnPeCopies(PeerContext& context) : context_(context) {}
OwnPeCopies::~OwnPeCopies() = default;

// Withdraws the tagged half of a receive that is over.
void OwnPeCopies::remove_if_over(Receive& receive) {
  if (!receive.is_over()) return;
  if (receive.tagged.is_pending) return context_.machine.cancel(&receive.tagged);
  if (receive.is_waited_for()) return;
  std::erase(receives_, &receive);
  delete &receive;
}

// --- Sending

Status OwnPeCopies::send(IncomingStream& stream, StreamMessage message, const memory::ConstBuffer& source,
                         Completion* user) {
  if (source.stream == nullptr) {
    if (deliver(stream, message, source, user).is_pending()) return Status::pending();
  } else {
    memory::ConstBuffer without_stream = source;
    without_stream.stream = nullptr;
    auto late = std::make_unique<LateSend>(*this, stream, message, without_stream, user);
    if (context_.wait_for_stream(source.place, source.stream, late.get())) {
      late_sends_.push_back(late.release());
      return Status::pending();
    }
    static_cast<void>(late->take_user());
  }
  return context_.machine.tag_send(context_.machine.pe(), message.tag, source, user);
}

Status OwnPeCopies::deliver(IncomingStream& stream, StreamMessage message, const memory::ConstBuffer& source,
                            Completion* user) {
  const bool is_started = static_cast<std::int32_t>(stream.next - message.number) > 0;
  if (!is_started) {
    held_sends_.emplace(message.tag, std::make_unique<HeldSend>(*this, stream, message, source, user));
    return Status::pending();
  }
  const auto found = waiting_receives_.find(message.tag);
  // If the sizes disagree, the receiver finds out by the tagged message.
  if (found == waiting_receives_.end() || found->second->buffer.size_bytes != source.size_bytes) return {};
  Receive& receive = *found->second;
  if (receive.stream_done.is_pending) {
    receive.send = Receive::Send{source, user};
  } else if (!start_copy(receive, source, user)) {
    return {};
  }
  waiting_receives_.erase(found);
  return Status::pending();
}

// Whether the copy has begun; if not, nothing was done.
bool OwnPeCopies::start_copy(Receive& receive, const memory::ConstBuffer& source, Completion* sender) {
  if (!context_.began(context_.memory.copy(receive.destination, source, &receive.copied))) return false;
  receive.copied.is_pending = true;
  receive.send = Receive::Send{source, sender};
  ++num_copies_;
  context_.count(TransferType::kTagSend, TransferPath::kOwnPe, source, sender);
  return true;
}

// --- Receiving

std::optional<Status> OwnPeCopies::receive(IncomingStream& stream, StreamMessage message,
                                           const memory::Buffer& buffer, Completion* user) {
  auto held = held_sends_.extract(message.tag);
  if (held.empty() && (buffer.place.is_host() || stream.peer != context_.machine.pe())) return {};
  auto* const receive = new Receive(*this, stream, message, buffer, user);
  if (buffer.stream != nullptr) {
    receive->stream_done.is_pending =
        context_.wait_for_stream(buffer.place, buffer.stream, &receive->stream_done);
  }
  const bool can_wait = buffer.stream == nullptr || receive->stream_done.is_pending;
  if (!held.empty()) {
    HeldSend& send = *held.mapped();
    Completion* const sender = send.take_user();
    if (can_wait && send.source.size_bytes == buffer.size_bytes) {
      receive->send = Receive::Send{send.source, sender};
      if (receive->stream_done.is_pending || start_copy(*receive, send.source, sender)) {
        return Status::pending();
      }
      receive->send.reset();
    }
    context_.send_tagged(context_.machine.pe(), message.tag, send.source, sender);
  } else if (can_wait) {
    waiting_receives_.emplace(message.tag, receive);
  }
  Status status = receive->post_tagged();
  if (status.is_pending()) return status;
  waiting_receives_.erase(message.tag);
  static_cast<void>(receive->take_user());
  remove_if_over(*receive);
  return status;
}

void OwnPeCopies::send_by_tag(StreamMessage message) {
  const auto held = held_sends_.extract(message.tag);
  if (held.empty()) return;
  HeldSend& send = *held.mapped();
  context_.send_tagged(context_.machine.pe(), message.tag, send.source, send.take_user());
}

// --- The end

void OwnPeCopies::begin_close() {
  const Status closed{StatusCode::kClosed, "the machine was closed before the message was received"};
  for (LateSend* late : std::exchange(late_sends_, {})) {
    --context_.memory_waits;
    late->copies = nullptr;
    late->complete(closed, 0);
  }
  for (auto& [tag, held] : std::exchange(held_sends_, {})) held->complete(closed, 0);
}

void OwnPeCopies::end_close() {
  const Status closed{StatusCode::kClosed, "the machine was closed during a copy within its PE"};
  waiting_receives_.clear();
  for (Receive* receive : std::exchange(receives_, {})) {
    context_.memory_waits -= (receive->stream_done.is_pending ? 1 : 0) + (receive->copied.is_pending ? 1 : 0);
    receive->copies = nullptr;
    if (auto taken = std::exchange(receive->send, {})) taken->user->function(taken->user, closed, 0);
    if (!receive->is_over()) {
      receive->complete(receive->tagged_failure.ok() ? closed : receive->tagged_failure, 0);
    }
    receive->remove_orphan();
  }
}

}  // namespace weft::machine
