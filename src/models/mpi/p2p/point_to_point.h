// Messages of one rank: sending, matching, and handing the bytes to receives. Each rank has an engine, a PointToPoint.
//
// A message of up to kEagerBytes travels in one block, or directly through memory that the PEs share, is kept here if no receive
// waits for it, and is copied into the receive's memory. A larger one, and device memory, travels as an attachment: the receive that matches it gives the place
// where it lands. If there is none, the message is deferred, and its bytes stay at the sender.
//
// A message to a rank on the same PE goes from memory to memory if a receive waits for it (local_sending.cpp). If none does,
// a small one is copied into a block, and a larger one stays where it is until a receive matches.
//
// Order: messages of a pair of ranks carry a number and are matched in its order, whatever the order of their arrival.
// Memory: what a PE has sent in blocks or directly and no receive has matched is bounded by a window for each peer. Past it, a
// small send completes when a receive has matched, and a larger one travels as an attachment.
//
// Threads: the PE's. All that a peer sends is checked here; a message that cannot be right ends the job with a sentence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "weft/runtime/message.h"
#include "weft/runtime/messenger.h"
#include "weft/runtime/model.h"
#include "weft/runtime/wait_list.h"

#include "models/mpi/objects/contexts.h"
#include "models/mpi/p2p/data_view.h"
#include "models/mpi/p2p/device_elements.h"
#include "models/mpi/p2p/matching/answers.h"
#include "models/mpi/p2p/matching/header.h"
#include "models/mpi/p2p/matching/match_table.h"
#include "models/mpi/p2p/receive_offers.h"
#include "models/mpi/p2p/request.h"
#include "models/mpi/p2p/shared_state.h"

namespace weft::mpi {

class SendRequest;
class ReceiveRequest;

// Where a message goes, and what a receiver sees of it.
struct SendAddress {
  std::uint64_t context = 0;
  int source = 0;  // this rank, in the communicator
  int tag = 0;
  int rank = 0;  // the destination, in MPI_COMM_WORLD
};

enum class SendMode : std::uint8_t {
  kStandard,
  kSynchronous,  // completes after a receive has matched
};

// A message that no receive has taken, or that a matched probe has.
struct ArrivedMessage : ArrivedEntry {
  runtime::MessagePtr message;
  // The send of a rank on this PE whose bytes are still in its memory; there is no `message` then.
  SendRequest* local_send = nullptr;
  std::size_t size_bytes = 0;

  Outcome outcome() const {
    return {.source = key.source, .tag = key.tag, .size_bytes = static_cast<std::int64_t>(size_bytes)};
  }
};

// Receives that have ended, for the next ones. Its engine and its receives share it: a receive may outlive the engine.
struct SpareReceives {
  // A burst of receives leaves no more than that.
  static constexpr int kMost = 1024;
  ReceiveRequest* first = nullptr;  // linked
  int count = 0;
  bool is_open = true;  // the engine is there
};

class PointToPoint {
 public:
  // Offsets in the range of handlers: a message in a block; one with its bytes out of band; an answer; a step of a move of ranks; an
  // offer.
  enum Handler : runtime::HandlerId { kBlock, kAnnounced, kAnswer, kMoved, kOffer };
  static constexpr runtime::HandlerId kNumHandlers = 5;
  // Larger messages travel as attachments. Not measured yet: the size at which copies cost as much as an announcement.
  static constexpr std::size_t kEagerBytes = 4096;

  // `rank`: in MPI_COMM_WORLD.
  PointToPoint(runtime::Messenger& messenger, const runtime::ModelRange& range, SharedState& shared,
               int rank);
  ~PointToPoint();
  PointToPoint(const PointToPoint&) = delete;
  PointToPoint& operator=(const PointToPoint&) = delete;

  runtime::Messenger& messenger() { return messenger_; }
  runtime::HandlerId first_handler() const { return first_handler_; }
  SharedState& shared() const { return shared_; }
  // This rank and the number of ranks, in MPI_COMM_WORLD.
  int rank() const { return rank_; }
  int num_ranks() const { return static_cast<int>(pairs_.size()); }
  // A number for the context of a new communicator: no other rank gives it, and this one never again.
  std::uint64_t new_context_base() { return (static_cast<std::uint64_t>(rank_) + 1) << 32 | ++last_context_; }
  // As new_context_base(), for a communicator with processes of several jobs: a random number, which no rank gives otherwise.
  static std::uint64_t new_outside_context_base();
  static bool is_outside_context_base(std::uint64_t base) { return base >> (kOutsideContextBits - 1) == 1; }
  // A number for a context of this rank and one peer, of this job or another one.
  std::uint64_t new_context_base_with(int peer);
  // Whether the peer may have made `base` with new_context_base_with(this rank).
  bool may_have_made(int peer, std::uint64_t base) const;
  // The last of them, which a rank that moves hands to its new engine.
  std::uint32_t last_context() const { return last_context_; }
  void set_last_context(std::uint32_t number) { last_context_ = number; }
  // Completes all requests that wait for a match: none will come.
  void close();

  // Sends it if it then is complete at once: the bytes are in the message's block, or in shared memory. Returns whether it was sent.
  bool send_at_once(const SendAddress& address, const DataView& view);
  // As send_at_once(), for at most kEagerBytes of host memory to a rank on another PE of this host: the way of most messages.
  bool send_bytes_at_once(const SendAddress& address, std::span<const std::byte> bytes);
  // A request that is complete, of a message that was sent at once. All of them share it, and the engine keeps it; those of a virtual
  // rank have their own, which are counted.
  Request* sent_request() {
    if (sent_at_once_) [[likely]]
      return sent_at_once_.get();
    return make_sent_request();
  }
  Ref<SendRequest> make_send(const SendAddress& address, const DataView& view, SendMode mode);
  // `from`: the rank of the source in MPI_COMM_WORLD, for receives in device memory; kAny if it is not known.
  Ref<ReceiveRequest> make_receive(const MatchKey& key, const DataView& view, int from = kAny);
  // Makes and starts the request.
  Ref<SendRequest> send(const SendAddress& address, const DataView& view, SendMode mode);
  Ref<ReceiveRequest> receive(const MatchKey& key, const DataView& view, int from = kAny);
  // As receive(), for one dense range of host memory.
  Ref<ReceiveRequest> receive_bytes(const MatchKey& key, std::span<std::byte> bytes);

  // The first message that matches, which stays where it is; null if there is none.
  const ArrivedMessage* probe(const MatchKey& key);
  // As probe(), and no other receive gets the message. The caller passes it to receive_probed() or drop_probed().
  ArrivedMessage* take_probed(const MatchKey& key);
  void start_probed(ReceiveRequest& request, ArrivedMessage* arrived);
  void drop_probed(ArrivedMessage* arrived);

  // --- Messages for this rank, which RankEngines hands over
  void on_block(runtime::MessagePtr message);
  // As on_block(), for a message that has no block, see Messenger::send_direct().
  // Returns whether the last receive that was posted has its message: what comes next is better left in shared memory.
  bool on_direct(const runtime::DirectArrival& arrival);

  runtime::Posting on_announced(runtime::MessagePtr& message,
                                std::span<runtime::ReceiveBuffer> receive_buffers);
  static void on_landed(runtime::MessagePtr message);
  static void on_dropped(runtime::Message& message);
  // A rank offers a receive for the next message to it.
  void on_offer(const ReceiveOffer& offer) { offers_.told(offer); }
  // Rank `from` has matched the message that waits under this number. Returns false if none does.
  bool answered(std::uint64_t number, int from);
  // --- Ranks that are lost, see Troubles
  // The rank is lost: ends what waits for it, and drops what has come of it but cannot be received.
  void lose(int rank);
  // Ends the receives and the messages that troubles() ends.
  void meet_troubles();
  // The program has acknowledged losses: receives in that context that any source can complete are pending again.
  void acknowledged(std::uint64_t context);

  // Whether a message waits until that rank has matched it.
  bool awaits_answer_of(int rank) const { return awaited_.awaits(rank); }
  // A message, or an answer, of an outsider, as OutsideWay::send() has sent it. Throws Error if it cannot be right.
  void on_outside(int from, OutsideWay::Type type, std::span<const std::byte> bytes);

  // The rank itself if it shares its process: messages that arrive wake it. Null: none.
  void set_virtual_rank(VirtualRank* rank) { virtual_rank_ = rank; }

  // How many messages have been sent to that rank, and how many have come from it in their order. Modulo 2^32.
  std::uint32_t num_sent_to(int rank) const { return pairs_[static_cast<std::size_t>(rank)].next_sent; }
  std::uint32_t num_arrived_from(int rank) const {
    return pairs_[static_cast<std::size_t>(rank)].next_matched;
  }
  const ReceiveOffers& offers() const { return offers_; }
  std::size_t num_posted() const { return posted_.size(); }
  std::size_t num_unexpected() const { return unexpected_.size(); }
  // A call waits for a message that matches, which stays where it is. The key lives until probe_ended().
  void probe_began(const MatchKey& key) { probed_.push_back(&key); }
  void probe_ended(const MatchKey& key) { std::erase(probed_, &key); }
  std::span<const MatchKey* const> probed() const { return probed_; }
  // What a call that polls waits for, see waits/polled_wait.h; null if none does.
  void set_polled_wait(const std::function<runtime::Wait()>* describe) { polled_wait_ = describe; }
  const std::function<runtime::Wait()>* polled_wait() const { return polled_wait_; }
  // The rank itself if it shares its process.
  VirtualRank* virtual_rank() const { return virtual_rank_; }
  // Call visit(key) for each receive that waits, and visit(message) for each message that waits for one, for reports.
  template <class Visit>
  void for_each_posted(const Visit& visit) const {
    posted_.for_each([&](const PostedEntry& entry) { visit(entry.key); });
  }
  template <class Visit>
  void for_each_unexpected(const Visit& visit) const {
    for (const ArrivedEntry* one = unexpected_.oldest(); one != nullptr; one = one->newer)
      visit(static_cast<const ArrivedMessage&>(*one));
  }

 private:
  friend class SendRequest;
  friend class ReceiveRequest;

  // Bits of the number in a communicator with processes of several jobs: the engine of collectives takes 56 bits of a context. The
  // highest one is set, so that it is no number with a rank.
  static constexpr int kOutsideContextBits = 56 - kContextUseBits;

  // Numbers of messages to and from one rank.
  struct Pair {
    std::uint32_t next_sent = 0;
    std::uint32_t next_matched = 0;
  };
  Pair& pair(int rank) { return pairs_[static_cast<std::size_t>(rank)]; }

  // --- Sending
  // With the number of the next message to that rank, which the message takes by count_sent() when nothing can fail any more:
  // a number that is never sent would hold up all later ones.
  MessageHeader next_header(const SendAddress& address, std::uint32_t flags) {
    return {.context = address.context,
            .sequence = pair(address.rank).next_sent,
            .source = address.source,
            .tag = address.tag,
            .from = rank_,
            .to = address.rank,
            .flags = flags};
  }
  void count_sent(const MessageHeader& header) { ++pair(header.to).next_sent; }
  void send_message(const MessageHeader& header, runtime::MessagePtr message);
  [[gnu::cold, gnu::noinline]] Request* make_sent_request();
  // `reply`: the number for the answer, sent if the flags have kWantsAnswer. They throw if there is no memory.
  runtime::MessagePtr block_message(const MessageHeader& header, const DataView& view, std::uint64_t reply);
  runtime::MessagePtr attached_message(SendRequest& request, const MessageHeader& header,
                                       std::uint64_t reply);
  void start_send(SendRequest& request);
  [[gnu::cold, gnu::noinline]] void send_outside(SendRequest& request);
  base::Result<runtime::Attachment> pack_for(SendRequest& request);
  // Whether the message goes into a receive that its rank has offered. `has_waited`: in vain for an offer.
  bool accept_offer(SendRequest& request, bool& has_waited);

  // --- Sending to a rank on this PE
  // Whether no message of that rank is on its way here, so that the next one may be matched at once.
  bool is_next_from(const PointToPoint& sender) const;
  void count_local(PointToPoint& sender);
  // Hands the bytes to a receive, or keeps a copy of a small message. Returns false if neither can be done at once.
  bool take_local(PointToPoint& sender, const SendAddress& address, const DataView& view);
  // Hands the bytes to a receive, or keeps the request until one matches. Returns false if the message must go through the
  // queue of the PE.
  bool take_local(PointToPoint& sender, SendRequest& request);
  static void land_local(ReceiveRequest& request, const SendAddress& address, const DataView& view);
  bool keep_copy(PointToPoint& sender, const SendAddress& address, const DataView& view);
  void receive_local(ReceiveRequest& request, SendRequest& send);

  // --- Arrivals
  MessageHeader checked_header(const runtime::Message& message) const;
  // `size_bytes`: of what is behind the header.
  void check_header(const MessageHeader& header, int source_pe, std::size_t size_bytes) const;
  [[gnu::cold, gnu::noinline]] static void check_special(const MessageHeader& header, int source_pe,
                                                         std::size_t size_bytes);
  // They end the job: the peer has sent what cannot be right.
  [[noreturn, gnu::cold, gnu::noinline]] static void refuse_message(int source_pe, const std::string& what);
  [[noreturn, gnu::cold, gnu::noinline]] static void refuse_size(const runtime::DirectArrival& arrival);
  [[noreturn, gnu::cold, gnu::noinline]] void refuse_route(const MessageHeader& header, int source_pe) const;
  // With the header that was checked: the peer may write the bytes of the arrival meanwhile.
  runtime::MessagePtr block_of(const MessageHeader& header, const runtime::DirectArrival& arrival) const;
  // A message that is the next one of its pair has come.
  void count_arrived(const MessageHeader& header) {
    ++pair(header.from).next_matched;
    if (offers_.has_open() && (header.flags & kOffered) == 0) [[unlikely]]
      revoke_offer(header.from);
  }
  void revoke_offer(int from);
  void match_offered(const MessageHeader& header, const runtime::Message& message);
  // Whether it is the message's turn; if not, the message is kept.
  bool is_in_turn(const MessageHeader& header, runtime::MessagePtr& message);
  void match_one(const MessageHeader& header, runtime::MessagePtr message);
  // A receive has taken the message: answers, and gives room back.
  void matched(const MessageHeader& header, const runtime::Message& message);
  void matched(const MessageHeader& header, int source_pe, std::size_t size_bytes, std::uint64_t reply);
  void match_early(int from);
  void answer(int pe, const Answer& answer);
  void answered_outside(int from, std::span<const std::byte> bytes);

  // Whether a message is for an operation that has ended: it is dropped then, and its sender is answered.
  bool drops(const MessageHeader& header) const {
    return shared_.troubles().any() && shared_.troubles().drops(header.context);
  }
  // Ends a receive if it cannot complete. REQUIRES: troubles().any().
  [[gnu::cold, gnu::noinline]] void meet_troubles(ReceiveRequest& request);
  [[gnu::cold, gnu::noinline]] void meet_troubles(SendRequest& request, int* error) const;
  void drop_unexpected();

  // The bytes that a message carries, or announces.
  static std::size_t bytes_of(const MessageHeader& header, const runtime::Message& message);

  // --- Receiving
  void start_receive(ReceiveRequest& request);
  // Null if none is kept, and for a virtual rank, whose requests are counted as they come and go.
  ReceiveRequest* take_spare_receive();
  void free_spare_receives();
  void offer(ReceiveRequest& request);
  void deliver(ReceiveRequest& request, const MessageHeader& header, runtime::MessagePtr message);
  // For receives in device memory: of bytes that came in the message's block, and of packed bytes on the same device.
  void land_on_device(ReceiveRequest& request, runtime::MessagePtr message);
  void unpack_on_device(ReceiveRequest& request, runtime::Attachment block);
  void choose_receive_block(ReceiveRequest& request, runtime::ReceiveBuffer& receive_buffer);
  void choose_receive_buffer(ReceiveRequest& request, runtime::Message& message,
                             runtime::ReceiveBuffer& receive_buffer);
  // Gives the receive a message that waits here.
  void hand_over(ReceiveRequest& request, ArrivedMessage* arrived);
  ArrivedMessage* keep(const MatchKey& key, std::size_t size_bytes);
  void keep(const MessageHeader& header, runtime::MessagePtr message);
  // Frees the entry. The caller ends what it has referred to.
  runtime::MessagePtr forget(ArrivedMessage* arrived);
  void drop(ArrivedMessage* arrived);

  runtime::Messenger& messenger_;
  const runtime::HandlerId first_handler_;
  SharedState& shared_;
  const int rank_;
  VirtualRank* virtual_rank_ = nullptr;
  std::vector<Pair> pairs_;  // by rank
  // Messages that have arrived before their turn: their sender, their number.
  std::map<std::pair<int, std::uint32_t>, runtime::MessagePtr> early_;
  std::uint32_t last_context_ = 0;
  PostedQueue posted_;
  UnexpectedQueue unexpected_;
  std::vector<const MatchKey*> probed_;  // by calls that wait
  const std::function<runtime::Wait()>* polled_wait_ = nullptr;
  AwaitedAnswers<SendRequest> awaited_;
  // They have failed because their receiver is lost, and complete when this process has been told.
  std::vector<SendRequest*> failed_sends_;
  Ref<FinishedRequest> sent_at_once_;  // null of a virtual rank
  std::shared_ptr<SpareReceives> spares_ = std::make_shared<SpareReceives>();
  ReceiveOffers offers_;
  // The last receives in device memory from each rank; empty until there is one.
  std::vector<Ref<ReceiveRequest>> last_on_device_;
  DeviceElements device_elements_;
};

// Here, so that the entry points need no call and put the address into the message at once.
inline bool PointToPoint::send_bytes_at_once(const SendAddress& address, std::span<const std::byte> bytes) {
  const SharedState::Destination& to = shared_.destination(address.rank);
  runtime::SendRoom& room = shared_.window(to.pe).room;
  const std::int64_t charge = SharedState::charge_of(bytes.size());
  if (to.here != nullptr || !room.has(charge)) [[unlikely]]
    return false;
  const MessageHeader header = next_header(address, kCharged);
  if (!messenger_.send_direct(to.pe, first_handler_ + kBlock, header, bytes)) [[unlikely]]
    return false;
  count_sent(header);
  room.take(charge);
  return true;
}

}  // namespace weft::mpi
