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

// How a receive that is started with its tag too is posted.
struct ReceiveStart {
  enum class Posting : std::uint8_t {
    // Now or when its stream is done. At its first use, device memory is posted by answer() alone, and only from
    // WaitingSends::kLeastBytes on.
    kUsual,
    // By answer(), which must be called after the start. Its send waits for that.
    kByAnswer,
    // Host memory: this process begins to copy from `source`, and tells the sender, which joins. answer() must not be called.
    kTaken,
  };
  Posting posting = Posting::kUsual;
  const SourceName* source = nullptr;  // the sender's memory, which it has named
};

class PostedReceives final : private PostedReceive::Owner {
 public:
  // All must outlive it.
  PostedReceives(PeerContext& context, Exports& exports, Imports& imports, Pulls& pulls);
  ~PostedReceives();
  PostedReceives(const PostedReceives&) = delete;
  PostedReceives& operator=(const PostedReceives&) = delete;

  // Starts a receive: the contract of Machine::tag_receive with a full mask. Nothing is returned and nothing was done if it
  // cannot be posted in that way.
  std::optional<base::Status> start(IncomingStream& stream, StreamMessage message,
                                    const memory::Buffer& buffer, const ReceiveStart& how,
                                    base::Completion* user);
  // As start(), for device memory, which is posted now and without its tag. answer() must not be called. Without a `source` the
  // receive is offered, see PeerMemory::receive_offered(). With a `source` the sender's device copies, whose writes take less
  // time than reads of this PE's (two H200, 8 bytes: 6.7 us and 9.6 us). If the sender has not begun after kPushTimeout,
  // because it computes, this PE's device reads.
  std::optional<base::Status> start_alone(IncomingStream& stream, StreamMessage message,
                                          const memory::Buffer& buffer, const SourceName* source,
                                          base::Completion* user);
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
  void open_mailbox(IncomingStream& stream);
  PostedReceive& add(IncomingStream& stream, StreamMessage message, const memory::Buffer& buffer,
                     TaggedHalf tagged, base::Completion* user) {
    receives_.push_back(std::make_unique<PostedReceive>(as_owner(), stream, message, buffer, tagged, user));
    return *receives_.back();
  }
  // Takes back the receive that add() has returned last.
  void remove_last();
  // Whether a receive into memory that cannot be exported may be posted with a bounce buffer.
  bool can_bounce(const IncomingStream& stream, const memory::Buffer& buffer);
  void post(PostedReceive& receive, std::shared_ptr<Exports::Export> exported);
  void post_host(PostedReceive& receive, MailboxSlot& slot, std::uint64_t word);
  void post_taken(PostedReceive& receive, MailboxSlot& slot, const SourceName& source);
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
