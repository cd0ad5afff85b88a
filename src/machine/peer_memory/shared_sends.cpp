#include "machine/peer_memory/shared_sends.h"

#include <unistd.h>

#include <atomic>
#include <memory>
#include <utility>

#include "base/format.h"
#include "machine/peer_memory/mapping/process_copy.h"

namespace weft::machine {

using base::Completion;
using base::Status;
using base::StatusCode;

namespace {

// A receiver that sleeps is woken to help with messages from this size on; waking takes about 20 us.
constexpr std::size_t kWakeBytes = std::size_t{1} << 20;
// How many polls find nothing before one finds out whether the receiver lives. They take longer than a copy of a chunk.
constexpr std::uint32_t kPollsPerProbe = 4096;

}  // namespace

// Deleted by poll(), finish_former() or close().
struct SharedSends::Send final : PeerOperation {
  Send(const OutgoingStream& stream, StreamMessage message_in, MailboxSlot& slot_in, std::int32_t pid_in,
       const memory::ConstBuffer& source_in, Completion* user)
      : PeerOperation(user),
        peer(stream.peer),
        owner(*stream.outbox->owner),
        message(message_in),
        slot(slot_in),
        pid(pid_in),
        source(source_in) {}
  void cancel() override {}  // the receiver may be reading the source

  bool is_done() const { return slot.shared.is_done(message.number, source.size_bytes); }
  // The slot names the destination until the chunk is counted.
  Status copy(const SharedCopy::Chunk& chunk) {
    const std::uint64_t destination = slot.buffer.allocation_base + slot.buffer.offset_bytes;
    Status status =
        write_to_process(pid, destination + chunk.offset_bytes,
                         static_cast<const std::byte*>(source.data) + chunk.offset_bytes, chunk.size_bytes);
    if (status.ok()) slot.shared.add(chunk.size_bytes);
    return status;
  }

  int peer;
  const MailboxOwner& owner;
  StreamMessage message;
  MailboxSlot& slot;
  std::int32_t pid;
  memory::ConstBuffer source;
  bool can_write = true;  // false: this process tries only the chunk that the receiver gives back
  std::uint32_t idle_polls = 0;
};

Status SharedSends::start(const OutgoingStream& stream, StreamMessage message, MailboxSlot& slot,
                          std::int32_t pid, const memory::ConstBuffer& source, Completion* user) {
  finish_former(slot);
  if (first_failure_.code() == StatusCode::kUnsupported) return {};
  auto send = std::make_unique<Send>(stream, message, slot, pid, source, user);
  // The first chunk shows that this process may write there, before the receiver relies on it. Once it is known, the
  // receiver begins at once with a message that is alone. In a window it has others to copy meanwhile.
  const bool is_announced_first = sends_.empty() && writable_.contains(pid);
  slot.shared.begin(message.number, reinterpret_cast<std::uintptr_t>(source.data),
                    static_cast<std::int32_t>(::getpid()), is_announced_first ? 0 : 1);
  if (!is_announced_first) {
    if (Status status = send->copy(SharedCopy::chunk(0, source.size_bytes)); status.failed()) {
      static_cast<void>(send->take_user());
      if (first_failure_.ok()) first_failure_ = std::move(status);
      return {};
    }
    writable_.insert(pid);
  }
  slot.outcome.store(MailboxSlot::shared_by(message.number), std::memory_order_release);
  if (source.size_bytes >= kWakeBytes) wake(*send);
  sends_.push_back(send.release());
  context_.count(TransferType::kPeerCopy, TransferPath::kShared, source, user);
  context_.machine.attention().wanted = true;
  return Status::pending();
}

void SharedSends::join(const OutgoingStream& stream, StreamMessage message, MailboxSlot& slot,
                       std::int32_t pid, const memory::ConstBuffer& source, Completion* user) {
  context_.count(TransferType::kPeerCopy, TransferPath::kShared, source, user);
  // The slot may serve a later message by now, whose send must not end.
  if (!slot.shared.is_of(message.number)) return context_.finish_later(user, {}, source.size_bytes);
  finish_former(slot);
  auto send = std::make_unique<Send>(stream, message, slot, pid, source, user);
  send->can_write = can_write(send->owner, pid);
  sends_.push_back(send.release());
  context_.machine.attention().wanted = true;
}

// Finds out, once for each process, by a word of the receiver's own page.
bool SharedSends::can_write(const MailboxOwner& owner, std::int32_t pid) {
  if (writable_.contains(pid)) return true;
  if (first_failure_.code() == StatusCode::kUnsupported) return false;
  const std::uint32_t word = 1;
  Status status = write_to_process(pid, owner.scratch_address, &word, sizeof word);
  const bool is_writable = status.ok();
  if (is_writable) {
    writable_.insert(pid);
  } else if (first_failure_.ok()) {
    first_failure_ = std::move(status);
  }
  return is_writable;
}

// The receiver has posted again in the slot, so the former message in it has been copied.
void SharedSends::finish_former(MailboxSlot& slot) {
  for (auto former = sends_.begin(); former != sends_.end(); ++former) {
    if (&(*former)->slot != &slot) continue;
    const std::unique_ptr<Send> send(*former);
    sends_.erase(former);
    context_.finish_later(send->take_user(), {}, send->source.size_bytes);
    return;
  }
}

bool SharedSends::poll() {
  for (Send* send : sends_) {
    if (advance(*send)) return true;  // the list may have changed
  }
  return false;
}

// Off the list first: a completion may start other sends.
void SharedSends::end(Send& send, Status status, std::size_t size_bytes) {
  std::erase(sends_, &send);
  const std::unique_ptr<Send> over(&send);
  over->complete(std::move(status), size_bytes);
}

// Copies a chunk, or ends the send.
bool SharedSends::advance(Send& send) {
  SharedCopy& shared = send.slot.shared;
  const std::size_t size_bytes = send.source.size_bytes;
  if (send.is_done()) {
    wake(send);
    end(send, {}, size_bytes);
    return true;
  }
  SharedCopy::Chunk chunk;
  if (send.can_write) chunk = shared.take(send.message.number, size_bytes);
  const bool is_returned = chunk.size_bytes == 0;
  if (is_returned) chunk = shared.take_returned(send.message.number, size_bytes);
  if (chunk.size_bytes == 0) return ++send.idle_polls % kPollsPerProbe == 0 && end_without_receiver(send);
  const Status status = send.copy(chunk);
  if (status.ok()) {
    send.can_write = true;
  } else if (is_returned && status.code() == StatusCode::kUnsupported) {
    send_with_tag(send);
  } else {
    fail(send, status);
  }
  return true;
}

// The system lets neither process copy. The receiver copies nothing more, and has the message's tag posted.
void SharedSends::send_with_tag(Send& send) {
  std::erase(sends_, &send);
  const std::unique_ptr<Send> over(&send);
  context_.send_tagged(over->peer, over->message.tag, over->source, over->take_user());
}

// The receiver copies what is left. If it was killed meanwhile, it neither ends that nor gives it back.
bool SharedSends::end_without_receiver(Send& send) {
  const Status status = probe_process(send.pid);
  // It may have copied the last byte before its end.
  if (status.ok() || send.is_done()) return false;
  fail(send, status);
  return true;
}

void SharedSends::fail(Send& send, const Status& status) {
  end(send,
      {status.code(),
       base::format("message {} to PE {}: {}", send.message.number, send.peer, status.message())},
      0);
}

void SharedSends::wake(const Send& send) {
  // Orders the outcome and the count before this look; PostedReceives::before_sleep() does it the other way round.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (send.owner.is_asleep.load(std::memory_order_relaxed) == 0) [[likely]]
    return;
  context_.control.send(send.peer, {.type = ControlMessage::Type::kWake, .file = {}});
}

void SharedSends::close() {
  for (Send* send : std::exchange(sends_, {})) {
    const std::unique_ptr<Send> over(send);
    const bool is_done = send->is_done();
    send->complete(is_done
                       ? Status()
                       : Status(StatusCode::kClosed, "the machine was closed before the message was sent"),
                   is_done ? send->source.size_bytes : 0);
  }
}

}  // namespace weft::machine
