// The receives of this PE that are posted in shared memory, so that senders on other PEs of the host may copy
// into their buffers.
//
// Each is posted with its tag as well. The sender alone decides which way its message takes, so the receive
// completes by whichever comes, and the other half is withdrawn.
//
// Threads: the PE's. Invariants: a receive completes exactly once, and not while a sender may still copy into
// its buffer.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "weft/base/status.h"
#include "weft/memory/buffer.h"

#include "machine/peer_memory/bounce/arrivals.h"
#include "machine/peer_memory/held_sends.h"
#include "machine/peer_memory/mapping/exports.h"
#include "machine/peer_memory/mapping/imports.h"
#include "machine/peer_memory/mapping/mailbox.h"
#include "machine/peer_memory/mapping/peer_operation.h"
#include "machine/peer_memory/mapping/peer_stream.h"
#include "machine/peer_memory/mapping/source_name.h"
#include "machine/peer_memory/posted_receive.h"
#include "machine/peer_memory/pulls.h"

namespace weft::machine {

class PostedReceives final : private PostedReceive::Owner {
 public:
  // All must outlive it.
  PostedReceives(PeerContext& context, Exports& exports, Imports& imports, Pulls& pulls);
  ~PostedReceives();
  PostedReceives(const PostedReceives&) = delete;
  PostedReceives& operator=(const PostedReceives&) = delete;

  // Starts a receive with its tag and posts it: the contract of Machine::tag_receive with a full mask.
  // Nothing is returned and nothing was done if the receive cannot be posted.
  std::optional<base::Status> start(IncomingStream& stream, StreamMessage message,
                                    const memory::Buffer& buffer, base::Completion* user);
  // As start(), for a receive whose send waits: answer() must be called after it. The buffer is posted also at its first
  // use.
  std::optional<base::Status> start_awaited(IncomingStream& stream, StreamMessage message,
                                            const memory::Buffer& buffer, base::Completion* user);
  // As start(), for host memory whose sender has named its own: begins to copy it, and tells the sender. answer() must not
  // be called. Nothing is returned and nothing was done if the receive cannot be posted.
  std::optional<base::Status> start_named(IncomingStream& stream, StreamMessage message,
                                          const SourceName& source, const memory::Buffer& buffer,
                                          base::Completion* user);
  // As start(), for device memory whose sender has named its own. It is posted for the sender's device, whose writes take less time
  // than reads of this PE's (two H200, 8 bytes: 6.7 us and 9.6 us). If the sender has not begun after kPushTimeout, because it
  // computes, this PE's device reads. answer() must not be called. Nothing is returned and nothing was done if the receive
  // cannot be posted at once.
  std::optional<base::Status> start_pushed(IncomingStream& stream, StreamMessage message,
                                           const SourceName& source, const memory::Buffer& buffer,
                                           base::Completion* user);
  // Posts a receive that has no tag: see PeerMemory::receive_offered(). Nothing is returned and nothing was done if it cannot
  // be posted at once.
  std::optional<base::Status> start_offered(IncomingStream& stream, StreamMessage message,
                                            const memory::Buffer& buffer, base::Completion* user);
  // Tells the sender of the stream where its receives will be posted.
  void announce_mailbox(IncomingStream& stream) { static_cast<void>(can_post(stream)); }
  // PE `pe` cannot open the file of that mailbox: its streams are posted to no more.
  void abandon_mailbox(int pe, std::uint64_t number);
  // The stream ends: its mailbox serves another one of the same sender. REQUIRES: no receive of it is in flight, no send of it waits, and its
  // sender sends no more.
  void forget(IncomingStream& stream);

  // The sender of the stream changes: its receives are posted no more, and come with their tags. The stream gets a new
  // mailbox later. REQUIRES: no send of the former sender is in flight.
  void withdraw(IncomingStream& stream);

  // For tests.
  BounceArrivals& arrivals() { return arrivals_; }
  // The send of that message waits until its receive is posted: it is answered, now or when the receive is started.
  void send_waits(int pe, Tag stream, std::uint32_t message);
  // Whether the send of a message whose receive is about to start waits. Then answer() must be called after the start.
  bool take_waiting(IncomingStream& stream, std::uint32_t message);
  void answer(const IncomingStream& stream, std::uint32_t message);

  bool is_empty() const { return receives_.empty(); }
  // Whether one waits for its bytes.
  bool has_open() const {
    return std::ranges::any_of(receives_, [](const auto& receive) { return !receive->is_over(); });
  }
  // Completes the receives whose bytes are there. Returns whether there was one.
  bool poll();
  // Has senders send a message after each copy, until the next poll(). False if poll() has something to do.
  bool before_sleep();
  // After the machine has ended the tagged halves. Waits up to 200 ms for copies that senders have begun.
  void close();

  // The first reasons for which receives could not be posted; ok if there are none.
  const base::Status& mailbox_failure() const { return mailbox_failure_; }
  const base::Status& bounce_failure() const { return arrivals_.first_failure(); }

 private:
  bool can_post(IncomingStream& stream);
  // `exported` is null for a buffer that is not posted yet, or with a bounce buffer.
  base::Status start(IncomingStream& stream, StreamMessage message, const memory::Buffer& buffer,
                     std::shared_ptr<Exports::Export> exported, bool is_to_be_posted, base::Completion* user);
  void open_mailbox(IncomingStream& stream);
  // A receive of device memory that is posted now and has no tag; null if it cannot be posted.
  PostedReceive* post_alone(IncomingStream& stream, StreamMessage message, const memory::Buffer& buffer,
                            base::Completion* user);
  // Whether a receive into memory that cannot be exported may be posted with a bounce buffer.
  bool can_bounce(const IncomingStream& stream, const memory::Buffer& buffer);
  void post(PostedReceive& receive, std::shared_ptr<Exports::Export> exported);
  void post_host(const PostedReceive& receive, MailboxSlot& slot, std::uint64_t word);
  void post_bounce(PostedReceive& receive, MailboxSlot& slot);
  bool poll_arrivals();
  PostedReceive* find(int pe, Tag stream, std::uint32_t message);
  void answer(int pe, Tag stream, std::uint32_t message, PostedReceive* receive);
  BouncedReceive* find_bounced(int peer, Tag stream, std::uint32_t message);
  PostedReceive::Owner& as_owner() { return *this; }
  void stream_has_ended(PostedReceive& receive, const base::Status& status) override;
  void stream_is_done(PostedReceive& receive);
  bool poll(PostedReceive& receive);
  bool pull_late(PostedReceive& receive);
  bool start_late_tagged_half();

  Exports& exports_;
  Pulls& pulls_;
  BounceArrivals arrivals_;
  std::vector<std::unique_ptr<PostedReceive>> receives_;
  std::optional<MailboxFile> mailboxes_;
  base::Status mailbox_failure_;
  std::set<int> blind_pes_;               // those that cannot open the file
  std::vector<IncomingStream*> streams_;  // by the number of their mailbox; null: forgotten
  // By sender: another PE must not get one whose former sender may still look at a shared copy in it.
  std::map<int, std::vector<std::size_t>> free_mailboxes_;
  HeldSends held_sends_;
  bool is_asleep_ = false;        // senders may still think so
  bool has_late_halves_ = false;  // maybe
  std::uint32_t num_polls_ = 0;
};

}  // namespace weft::machine
