// Channel messages of device memory that the sender's device copies into the receiver's buffer, mapped from
// the other process, without UCX: docs/decisions/direct-path.md has the protocol and its reasons.
//
// The direct path is an offer beside the tagged one and never a condition. A receive of device memory is
// posted with its tag as always, and in a mailbox as well; the sender, at send(), takes what it finds posted
// or sends with the tag. So the sender alone decides, once per message, and whatever is missing - a mailbox,
// a mapping, room - costs speed only. When the copy is done the receive with the tag is cancelled.
//
// Threads: the PE's. Invariants: an operation completes exactly once, the tagged receive's or the copy's end
// alone decides its outcome; a buffer is given back to the program only when no copy to it can be under way.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weft/memory/buffer.h"
#include "weft/runtime/runtime.h"

#include "models/channel/exports.h"
#include "models/channel/imports.h"
#include "models/channel/mailbox.h"

namespace weft::channel {

class Channels;
struct ChannelEnd;

// A channel end's part.
struct DirectEnd {
  Mailbox* inbox = nullptr;   // where this end posts
  bool has_asked = false;     // for an inbox: there may be none
  Mailbox* outbox = nullptr;  // where the peer's end posts
  const MailboxOwner* outbox_owner = nullptr;
};

class DirectPath final : public runtime::Poller {
 public:
  // `channels` must outlive it.
  DirectPath(runtime::Runtime& runtime, Channels& channels);
  ~DirectPath() override;
  DirectPath(const DirectPath&) = delete;
  DirectPath& operator=(const DirectPath&) = delete;

  // For measuring the tagged path alone: nothing is posted from now on.
  void turn_off() { is_on_ = false; }

  // What kept messages of device memory from the direct path, for people; the first of each sort.
  std::vector<std::string> obstacles() const;

  // Starts message `counter`, of device memory, if its receive is posted, or waits for its stream to look
  // again; else false, and nothing was done.
  bool send(ChannelEnd& end, std::uint32_t counter, const memory::ConstBuffer& source,
            runtime::OperationState* operation);
  // Starts the receive of message `counter` into device memory, on both paths, if this end can post it; else
  // false, and nothing was done.
  bool receive(ChannelEnd& end, std::uint32_t counter, const memory::Buffer& buffer,
               runtime::OperationState* operation);

  bool poll() override;
  bool before_sleep() override;
  // The machine and the memory layer are closed.
  void close();

 private:
  struct Receive;
  struct Copy;
  struct LateSend;

  bool can_post(ChannelEnd& end);
  void offer(Receive& receive, std::shared_ptr<Exports::Export> exported);
  void stream_is_done(Receive& receive);
  bool look(Receive& receive);
  static void tagged_ended(Receive& receive, base::Status status, std::size_t size_bytes);
  // Whether the copy has begun; if not, the message is the tagged path's: the receiver waits on both.
  bool copy(ChannelEnd& end, std::uint32_t counter, const memory::ConstBuffer& source,
            runtime::OperationState* operation);
  bool start_copy(ChannelEnd& end, std::uint32_t counter, Slot& slot, const memory::ConstBuffer& source,
                  runtime::OperationState* operation);
  void copied(Copy& copy, base::Status status);
  void stream_is_done(const LateSend& late, base::Status status);
  void wake(const ChannelEnd& end);

  // Messages of the direct path.
  void open_inbox(ChannelEnd& end);
  void on_mailbox(runtime::MessagePtr message);
  void on_no_mailbox(runtime::MessagePtr message);
  void on_forget(runtime::MessagePtr message);
  template <class... Values>
  void tell(int pe, runtime::HandlerId handler, const Values&... values);

  runtime::Runtime& runtime_;
  Channels& channels_;
  bool is_on_ = true;
  bool is_polling_ = false;
  bool is_asleep_ = false;  // or was, and senders may still think so
  Exports exports_;
  Imports imports_;
  // Receives that are posted, wait for their stream to be posted, or whose tagged half is to be cancelled.
  std::vector<std::unique_ptr<Receive>> receives_;
  std::optional<MailboxFile> own_mailboxes_;
  base::Status create_failure_;
  base::Status open_failure_;  // the first
  std::size_t num_mailboxes_ = 0;
  std::map<int, std::optional<MailboxFile>> peer_mailboxes_;  // nothing: it could not be opened
};

}  // namespace weft::channel
