// The sends of host memory of this PE that it copies together with their receivers (shared_copy.h).
//
// Threads: the PE's. Invariant: a send completes exactly once, and not while its receiver may still read the source.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "weft/base/status.h"
#include "weft/memory/buffer.h"

#include "machine/peer_memory/mapping/mailbox.h"
#include "machine/peer_memory/mapping/peer_operation.h"
#include "machine/peer_memory/mapping/peer_stream.h"

namespace weft::machine {

class SharedSends {
 public:
  explicit SharedSends(PeerContext& context) : context_(context) {}
  SharedSends(const SharedSends&) = delete;
  SharedSends& operator=(const SharedSends&) = delete;

  // Begins to copy the message into the posted buffer of `slot`, which the caller has taken. Pending if the copy has
  // begun. Ok if the message must go with its tag, because this process cannot write to process `pid`.
  base::Status start(const OutgoingStream& stream, StreamMessage message, MailboxSlot& slot, std::int32_t pid,
                     const memory::ConstBuffer& source, base::Completion* user);
  // The receiver has begun to copy a message out of the memory that its announcement named, into the buffer of `slot`:
  // joins it. The operation is pending.
  void join(const OutgoingStream& stream, StreamMessage message, MailboxSlot& slot, std::int32_t pid,
            const memory::ConstBuffer& source, base::Completion* user);

  bool is_empty() const { return sends_.empty(); }
  // Copies one chunk, of the first message that has one left, or completes a send. Returns whether anything happened.
  bool poll();
  void close();

  // The first reason for which a message was not copied; ok if there is none.
  const base::Status& first_failure() const { return first_failure_; }

 private:
  struct Send;

  void finish_former(MailboxSlot& slot);
  bool can_write(const MailboxOwner& owner, std::int32_t pid);
  bool advance(Send& send);
  bool end_without_receiver(Send& send);
  void send_with_tag(Send& send);
  void fail(Send& send, const base::Status& status);
  void end(Send& send, base::Status status, std::size_t size_bytes);
  void wake(const Send& send);

  PeerContext& context_;
  std::vector<Send*> sends_;
  base::Status first_failure_;
  std::set<std::int32_t> writable_;  // processes that this one has written to
};

}  // namespace weft::machine
