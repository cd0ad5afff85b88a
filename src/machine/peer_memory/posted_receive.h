// One receive that is posted: in a slot in shared memory, with its tag, or both.
//
// Threads: the PE's. Invariant: it completes once, by the half that ends first, and not while a sender may still copy into its
// buffer.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "weft/base/completion.h"
#include "weft/base/status.h"
#include "weft/memory/buffer.h"

#include "machine/peer_memory/bounce/arrivals.h"
#include "machine/peer_memory/mapping/exports.h"
#include "machine/peer_memory/mapping/mailbox.h"
#include "machine/peer_memory/mapping/peer_operation.h"
#include "machine/peer_memory/mapping/peer_stream.h"
#include "machine/peer_memory/mapping/source_name.h"
#include "machine/peer_memory/receive_states.h"

namespace weft::machine {

// Deleted when it is over and none of its completions will be called.
struct PostedReceive final : PeerOperation {
  // All receives of a PE.
  struct Owner {
    explicit Owner(PeerContext& context_in) : context(context_in) {}
    // The stream that the receive waited for is done, or has failed.
    virtual void stream_has_ended(PostedReceive& receive, const base::Status& status) = 0;
    PeerContext& context;

   protected:
    ~Owner() = default;
  };

  struct Half : base::Completion {
    Half(Function on_complete, PostedReceive* receive_in)
        : base::Completion(on_complete), receive(receive_in) {}
    PostedReceive* receive;
  };

  PostedReceive(Owner& owner_in, IncomingStream& stream_in, StreamMessage message_in,
                const memory::Buffer& buffer_in, TaggedHalf tagged_in, base::Completion* user)
      : PeerOperation(user),
        owner(&owner_in),
        stream(stream_in),
        message(message_in),
        buffer(buffer_in),
        tagged(tagged_in) {
    ++stream.receives;
  }
  ~PostedReceive() { --stream.receives; }

  bool can_go() const {
    return is_over() && tagged != TaggedHalf::kPending && stream_wait == StreamWait::kNone;
  }
  bool lacks_tagged_half() const { return tagged == TaggedHalf::kLate && !is_over(); }
  bool is_posted() const { return posted >= PostedHalf::kPosted; }
  bool is_copied() const {
    if (bounced) return bounced->is_over();
    if (!is_posted()) return false;
    const std::uint64_t outcome = slot->outcome.load(std::memory_order_acquire);
    return outcome == MailboxSlot::done(message.number) ||
           (outcome == MailboxSlot::shared_by(message.number) &&
            slot->shared.is_done(message.number, buffer.size_bytes));
  }
  bool may_be_pulled() const {
    return tagged == TaggedHalf::kPull && is_posted() &&
           slot->word.load(std::memory_order_relaxed) == MailboxSlot::posted(message.number);
  }
  bool is_shared() const {
    return is_posted() &&
           slot->outcome.load(std::memory_order_acquire) == MailboxSlot::shared_by(message.number);
  }
  void end_with(base::Status status, std::size_t size_bytes) {
    if (is_posted()) {
      slot->word.store(MailboxSlot::kFree, std::memory_order_release);
      advance(posted, PostedEvent::kUnpost);
    }
    exported.reset();
    complete(std::move(status), size_bytes);
  }
  // The bytes are there, or cannot come.
  void end_copied() {
    base::Status status = bounced ? bounced->failure : base::Status();
    const std::size_t size_bytes = status.ok() ? buffer.size_bytes : 0;
    end_with(std::move(status), size_bytes);
  }
  // Posts it in that slot, whose other fields are written.
  void post(MailboxSlot& in, std::uint64_t word) {
    in.word.store(word, std::memory_order_release);
    slot = &in;
    advance(posted, PostedEvent::kPost);
  }
  // Whether no sender has taken the posting, nor will.
  bool withdraw() {
    if (bounced && bounced->copies_under_way > 0) return false;
    std::uint64_t word = MailboxSlot::posted(message.number);
    if (is_posted() && !slot->word.compare_exchange_strong(word, MailboxSlot::kFree)) return false;
    advance(posted, PostedEvent::kUnpost);
    return true;
  }
  // Copies a chunk of a message that both sides copy. A chunk that this process cannot read is left to the sender.
  bool copy_chunk();
  void cancel() override;
  // Ok or a failure if it has ended at once.
  base::Status start_tagged_half();
  // The message came with its tag, or will not come so any more.
  void tagged_ended(base::Status status, std::size_t size_bytes);

  Owner* owner;  // null after close()
  IncomingStream& stream;
  StreamMessage message;
  memory::Buffer buffer;
  PostedHalf posted = PostedHalf::kNone;
  TaggedHalf tagged;
  StreamWait stream_wait = StreamWait::kNone;
  MailboxSlot* slot = nullptr;            // valid while it is posted
  std::optional<BouncedReceive> bounced;  // posted with a bounce buffer
  // The source of TaggedHalf::kPull: the memory that this PE's device copies from if the sender's device does not copy.
  std::optional<SourceName> source;
  std::chrono::steady_clock::time_point posted_at;
  // How the tagged half ended: of TaggedHalf::kArrived and kFailed.
  base::Status tagged_status;
  std::size_t tagged_bytes = 0;
  std::shared_ptr<Exports::Export> exported;  // what is posted
  Half tagged_done{tagged_half_has_ended, this};
  Half stream_done{stream_is_done, this};

 private:
  static void tagged_half_has_ended(base::Completion* self, base::Status status, std::size_t size_bytes);
  static void stream_is_done(base::Completion* self, base::Status status, std::size_t size_bytes);
};

}  // namespace weft::machine
