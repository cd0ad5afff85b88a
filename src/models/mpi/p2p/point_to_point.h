// Messages between ranks: sending, matching, and handing the bytes to receives.
//
// A message of up to kEagerBytes travels in one block, is kept here if no receive waits for it, and is copied into the
// receive's memory. A larger one, and device memory, travels as an attachment: the receive that matches it gives the place
// where it lands. If there is none, the message is deferred, and its bytes stay at the sender.
//
// Order: messages of a pair of PEs carry a number and are matched in its order, whatever the order of their arrival.
// Memory: what a sender has sent in blocks and no receive has matched is bounded by a window for each peer. Past it, a
// small send completes when a receive has matched, and a larger one travels as an attachment.
//
// Threads: the PE's. All that a peer sends is checked here; a message that cannot be right ends the job with a sentence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "weft/runtime/message.h"
#include "weft/runtime/messenger.h"
#include "weft/runtime/model.h"

#include "models/mpi/p2p/answers.h"
#include "models/mpi/p2p/data_view.h"
#include "models/mpi/p2p/device_elements.h"
#include "models/mpi/p2p/header.h"
#include "models/mpi/p2p/match_table.h"
#include "models/mpi/p2p/request.h"

namespace weft::mpi {

class SendRequest;
class ReceiveRequest;

// Where a message goes, and what a receiver sees of it.
struct SendAddress {
  std::uint64_t context = 0;
  int source = 0;  // this rank, in the communicator
  int tag = 0;
  int pe = 0;  // of the destination
};

enum class SendMode : std::uint8_t {
  kStandard,
  kSynchronous,  // completes after a receive has matched
};

// A message that no receive has taken, or that a matched probe has.
struct ArrivedMessage : ArrivedEntry {
  runtime::MessagePtr message;
  int source_pe = 0;
  std::size_t size_bytes = 0;

  Outcome outcome() const {
    return {.source = key.source, .tag = key.tag, .size_bytes = static_cast<std::int64_t>(size_bytes)};
  }
};

class PointToPoint {
 public:
  // Offsets in the range of handlers: a message in a block; one with its bytes beside it; an answer.
  enum Handler : runtime::HandlerId { kBlock, kAnnounced, kAnswer };
  static constexpr runtime::HandlerId kNumHandlers = 3;
  // Larger messages travel as attachments. Not measured yet: the size at which copies cost as much as an announcement.
  static constexpr std::size_t kEagerBytes = 4096;

  PointToPoint(runtime::Messenger& messenger, runtime::HandlerId first_handler);
  ~PointToPoint();
  PointToPoint(const PointToPoint&) = delete;
  PointToPoint& operator=(const PointToPoint&) = delete;

  runtime::Messenger& messenger() { return messenger_; }
  runtime::HandlerId first_handler() const { return first_handler_; }
  int num_pes() const { return static_cast<int>(peers_.size()); }
  // A number for the context of a new communicator: no other process gives it, and this one never again.
  std::uint64_t new_context_base() {
    return (static_cast<std::uint64_t>(messenger_.pe()) + 1) << 32 | ++last_context_;
  }
  // Completes all requests that wait for a match: none will come.
  void close();

  // Sends it if it then is complete at once: the bytes are in the message's block. Returns whether it was sent.
  bool send_at_once(const SendAddress& address, const DataView& view);
  Ref<SendRequest> make_send(const SendAddress& address, const DataView& view, SendMode mode);
  Ref<ReceiveRequest> make_receive(const MatchKey& key, const DataView& view);
  // The same, started.
  Ref<SendRequest> send(const SendAddress& address, const DataView& view, SendMode mode);
  Ref<ReceiveRequest> receive(const MatchKey& key, const DataView& view);

  // The first message that matches, which stays where it is; null if there is none.
  const ArrivedMessage* probe(const MatchKey& key) const;
  // The same, and no other receive gets the message. The caller passes it to receive_probed() or drop_probed().
  ArrivedMessage* take_probed(const MatchKey& key);
  void start_probed(ReceiveRequest& request, ArrivedMessage* arrived);
  void drop_probed(ArrivedMessage* arrived);

  std::size_t num_posted() const { return posted_.size(); }
  std::size_t num_unexpected() const { return unexpected_.size(); }

 private:
  friend class SendRequest;
  friend class ReceiveRequest;

  struct Peer {
    std::uint32_t next_sent = 0;
    std::uint32_t next_matched = 0;
    // What is left of the window for sends to the peer.
    std::int64_t room_bytes = 0;
    // Room that messages of the peer have given back here, and the peer has not been told of.
    std::int64_t owed_bytes = 0;
    // Messages that have arrived before their turn.
    std::map<std::uint32_t, runtime::MessagePtr> early;
  };

  // What a message in a block takes of the window.
  static std::int64_t charge_of(std::size_t size_bytes);

  // --- Sending
  Peer& peer(int pe) { return peers_[static_cast<std::size_t>(pe)]; }
  void send_block(const SendAddress& address, const DataView& view, std::uint32_t flags, std::uint64_t reply);
  void start_send(SendRequest& request);
  base::Result<runtime::Attachment> pack_for(SendRequest& request);
  void start_attached(SendRequest& request);

  // --- Arrivals
  void on_block(runtime::MessagePtr message);
  runtime::Posting on_announced(runtime::MessagePtr& message, std::span<runtime::Landing> landings);
  void on_landed(runtime::MessagePtr message);
  void on_dropped(runtime::Message& message);
  void on_answer(runtime::MessagePtr message);
  MessageHeader checked_header(const runtime::Message& message) const;
  // Whether it is the message's turn; if not, the message is kept.
  bool is_in_turn(const MessageHeader& header, Peer& peer, runtime::MessagePtr& message);
  void match_one(const MessageHeader& header, runtime::MessagePtr message);
  // A receive has taken the message: answers, and gives room back.
  void matched(const MessageHeader& header, const runtime::Message& message);
  void match_early(Peer& peer);
  void answer(int pe, const Answer& answer);

  // --- Receiving
  void start_receive(ReceiveRequest& request);
  void deliver(ReceiveRequest& request, const MessageHeader& header, runtime::MessagePtr message);
  // For receives in device memory: of bytes that came in the message's block, and of packed bytes on the same device.
  void land_on_device(ReceiveRequest& request, runtime::MessagePtr message);
  void unpack_on_device(ReceiveRequest& request, runtime::Attachment block);
  void choose_landing_block(ReceiveRequest& request, runtime::Landing& landing);
  void choose_landing(ReceiveRequest& request, runtime::Message& message, runtime::Landing& landing);
  ArrivedMessage* keep(const MessageHeader& header, runtime::MessagePtr message);
  runtime::MessagePtr forget(ArrivedMessage* arrived);

  runtime::Messenger& messenger_;
  const runtime::HandlerId first_handler_;
  const std::int64_t window_bytes_;
  std::vector<Peer> peers_;
  std::uint32_t last_context_ = 0;
  PostedQueue posted_;
  UnexpectedQueue unexpected_;
  AwaitedAnswers<SendRequest> awaited_;
  DeviceElements device_elements_;
};

}  // namespace weft::mpi
