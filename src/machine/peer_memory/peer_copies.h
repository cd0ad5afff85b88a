// The sends of this PE that its devices copy into buffers of other PEs of the host, which it has mapped.
//
// A send looks for its receive once: if the receive is posted, the message is copied, else it goes with its
// tag. A send that names a stream and finds nothing posted looks again when the stream is done, since until
// then its tagged message would wait too.
//
// Threads: the PE's. Invariant: a send completes exactly once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "weft/base/status.h"
#include "weft/memory/buffer.h"

#include "machine/peer_memory/bounce/sends.h"
#include "machine/peer_memory/mapping/exports.h"
#include "machine/peer_memory/mapping/imports.h"
#include "machine/peer_memory/mapping/mailbox.h"
#include "machine/peer_memory/mapping/peer_operation.h"
#include "machine/peer_memory/mapping/peer_stream.h"
#include "machine/peer_memory/shared_sends.h"
#include "machine/peer_memory/waiting_sends.h"

namespace weft::machine {

class PeerCopies {
 public:
  // All must outlive it.
  PeerCopies(PeerContext& context, Exports& exports, Imports& imports)
      : context_(context),
        imports_(imports),
        exports_(exports),
        bounces_(context, exports, imports),
        waiting_(context),
        shared_(context) {}
  PeerCopies(const PeerCopies&) = delete;
  PeerCopies& operator=(const PeerCopies&) = delete;

  // Starts a send: the contract of Machine::tag_send. If it fails, the caller must end its receive.
  base::Status start(OutgoingStream& stream, StreamMessage message, const memory::ConstBuffer& source,
                     base::Completion* user);

  // Starts to copy into a receive that is posted. Ok if it is not, or cannot be copied into: nothing was done then.
  base::Status start_offered(OutgoingStream& stream, StreamMessage message, const memory::ConstBuffer& source,
                             base::Completion* user);

  // Whether the receiver of the stream has a mailbox for it.
  bool knows_mailbox(OutgoingStream& stream);
  // Keeps a send until its receiver has answered; the model has announced it. REQUIRES: knows_mailbox(send.stream).
  base::Status start_announced(const WaitingSends::Send& send);

  // The receiver of a stream posts in a mailbox of `file`. False when the file cannot be opened.
  bool open_mailbox(int pe, Tag stream, std::uint64_t number, const MailboxFileName& file);
  // The stream ends. REQUIRES: no send of it is in flight.
  void forget(OutgoingStream& stream);

  // The receiver has answered a send that waits: its receive is posted, or will not be.
  void answered(int pe, Tag stream, std::uint32_t message, bool is_posted);
  bool has_waiting() const { return !waiting_.is_empty(); }
  // Begins the sends whose receives are posted by now. Returns whether there was one.
  bool poll_waiting();
  // The receiver has begun to copy a send that waits, out of the memory that its announcement named.
  void begun(int pe, Tag stream, std::uint32_t message);
  // The receiver has copied it.
  void pulled(int pe, Tag stream, std::uint32_t message);

  BounceSends& bounces() { return bounces_; }
  const BounceSends& bounces() const { return bounces_; }
  SharedSends& shared() { return shared_; }
  const SharedSends& shared() const { return shared_; }
  bool has_copies() const { return !copies_.empty() || bounces_.has_copies(); }
  // Ends the sends that wait for a stream.
  void begin_close();
  // Ends the copies that devices do not finish.
  void end_close();

  // The first reasons for which messages were not copied; ok if there are none.
  const base::Status& open_failure() const { return open_failure_; }
  const base::Status& slow_failure() const { return slow_failure_; }

 private:
  struct Copy;
  struct LateSend;

  Outbox& outbox(int pe, Tag stream) { return outboxes_[{pe, stream}]; }
  enum class Found : std::uint8_t { kPosted, kNothing };
  // Pending when the copy has begun, ok when the message must go another way. `found` says whether the receive is
  // posted.
  base::Status copy(Found& found, const OutgoingStream& stream, StreamMessage message,
                    const memory::ConstBuffer& source, base::Completion* user);
  base::Status start_copy(const OutgoingStream& stream, StreamMessage message, MailboxSlot& slot,
                          const memory::ConstBuffer& source, base::Completion* user);
  void copied(Copy& copy, base::Status status);
  void stream_is_done(LateSend& late, base::Status status);
  // Whether the transport is slow for the message.
  bool is_slow(const OutgoingStream& stream, const memory::ConstBuffer& source);
  void record_slow(const WaitingSends::Send& send, const char* why);
  void refuse(const WaitingSends::Send& send, const char* claim);
  // Begins a send that waits no more.
  void begin(WaitingSends::Send& send, bool is_posted);
  // Takes a message that is not copied: with its tag, now or when the receiver has answered.
  void send_otherwise(const WaitingSends::Send& send, Found found);
  void wake(int pe, const MailboxOwner& owner);

  PeerContext& context_;
  Imports& imports_;
  Exports& exports_;
  BounceSends bounces_;
  WaitingSends waiting_;
  SharedSends shared_;
  std::map<std::pair<int, Tag>, Outbox> outboxes_;
  std::map<int, std::optional<MailboxFile>> files_;  // by PE; nothing: it could not be opened
  std::map<int, std::size_t> num_mailboxes_;         // announced, by PE
  base::Status slow_failure_;                        // the first message of slow memory that was not copied
  base::Status open_failure_;                        // the first
  std::vector<Copy*> copies_;
  std::vector<LateSend*> late_sends_;
};

}  // namespace weft::machine
