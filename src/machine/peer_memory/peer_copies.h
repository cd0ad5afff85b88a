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

#include "machine/peer_memory/imports.h"
#include "machine/peer_memory/mailbox.h"
#include "machine/peer_memory/peer_operation.h"
#include "machine/peer_memory/peer_stream.h"
#include "machine/peer_memory/shared_sends.h"

namespace weft::machine {

class PeerCopies {
 public:
  explicit PeerCopies(PeerContext& context) : context_(context), imports_(context.memory), shared_(context) {}
  PeerCopies(const PeerCopies&) = delete;
  PeerCopies& operator=(const PeerCopies&) = delete;

  // Starts a send: the contract of Machine::tag_send. If it fails, the caller must end its receive.
  base::Status start(OutgoingStream& stream, StreamMessage message, const memory::ConstBuffer& source,
                     base::Completion* user);

  // The receiver of a stream posts in a mailbox of `file`. False when the file cannot be opened.
  bool open_mailbox(int pe, Tag stream, std::uint64_t number, const MailboxFileName& file);
  void forget(int pe, std::uint64_t export_number) { imports_.forget(pe, export_number); }

  bool has_copies() const { return !copies_.empty(); }
  SharedSends& shared() { return shared_; }
  const SharedSends& shared() const { return shared_; }
  // Ends the sends that wait for a stream.
  void begin_close();
  // Ends the copies that devices do not finish, and unmaps what no copy uses.
  void end_close();

  // The first reasons for which messages were not copied; ok if there are none.
  const base::Status& open_failure() const { return open_failure_; }
  const base::Status& import_failure() const { return imports_.first_failure(); }

 private:
  struct Copy;
  struct LateSend;

  const Outbox& outbox(int pe, Tag stream) { return outboxes_[{pe, stream}]; }
  // Pending when the copy has begun, ok when the message must go with its tag.
  base::Status copy(const OutgoingStream& stream, StreamMessage message, const memory::ConstBuffer& source,
                    base::Completion* user);
  base::Status start_copy(const OutgoingStream& stream, StreamMessage message, Slot& slot,
                          const memory::ConstBuffer& source, base::Completion* user);
  void copied(Copy& copy, base::Status status);
  void stream_is_done(LateSend& late, base::Status status);
  void wake(int pe, const MailboxOwner& owner);

  PeerContext& context_;
  Imports imports_;
  SharedSends shared_;
  std::map<std::pair<int, Tag>, Outbox> outboxes_;
  std::map<int, std::optional<MailboxFile>> files_;  // by PE; nothing: it could not be opened
  std::map<int, std::size_t> num_mailboxes_;         // announced, by PE
  base::Status open_failure_;                        // the first
  std::vector<Copy*> copies_;
  std::vector<LateSend*> late_sends_;
};

}  // namespace weft::machine
