// The receives of this PE that are posted in shared memory, so that senders on other PEs of the host may copy
// into their buffers.
//
// Each is posted with its tag as well. The sender alone decides which way its message takes, so the receive
// completes by whichever comes, and the other half is withdrawn.
//
// Threads: the PE's. Invariants: a receive completes exactly once, and not while a sender may still copy into
// its buffer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "weft/base/status.h"
#include "weft/memory/buffer.h"

#include "machine/peer_memory/exports.h"
#include "machine/peer_memory/mailbox.h"
#include "machine/peer_memory/peer_operation.h"
#include "machine/peer_memory/peer_stream.h"

namespace weft::machine {

class PostedReceives {
 public:
  explicit PostedReceives(PeerContext& context);
  ~PostedReceives();
  PostedReceives(const PostedReceives&) = delete;
  PostedReceives& operator=(const PostedReceives&) = delete;

  // Starts a receive with its tag and posts it: the contract of Machine::tag_receive with a full mask.
  // Nothing is returned and nothing was done if the receive cannot be posted.
  std::optional<base::Status> start(IncomingStream& stream, StreamMessage message,
                                    const memory::Buffer& buffer, base::Completion* user);
  // PE `pe` cannot open the file of that mailbox: its stream is posted to no more.
  void abandon_mailbox(int pe, std::uint64_t number);

  bool is_empty() const { return receives_.empty(); }
  // Completes the receives whose bytes are there. Returns whether there was one.
  bool poll();
  // Has senders send a message after each copy, until the next poll(). False if poll() has something to do.
  bool before_sleep();
  // After the machine has ended the tagged halves. Waits up to 200 ms for copies that senders have begun.
  void close();

  // The first reasons for which receives could not be posted; ok if there are none.
  const base::Status& mailbox_failure() const { return mailbox_failure_; }
  const base::Status& export_failure() const { return exports_.first_failure(); }

 private:
  struct Receive;

  bool can_post(IncomingStream& stream);
  void open_mailbox(IncomingStream& stream);
  void post(Receive& receive, std::shared_ptr<Exports::Export> exported);
  void stream_is_done(Receive& receive);
  bool look(Receive& receive);

  PeerContext& context_;
  Exports exports_;
  std::vector<std::unique_ptr<Receive>> receives_;
  std::optional<MailboxFile> mailboxes_;
  base::Status mailbox_failure_;
  std::vector<IncomingStream*> streams_;  // by the number of their mailbox
  bool is_asleep_ = false;                // senders may still think so
};

}  // namespace weft::machine
