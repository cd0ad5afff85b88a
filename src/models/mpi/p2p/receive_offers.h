// Receives of device memory that their senders are told of before the messages are sent.
//
// A receive that names its source is posted in memory that both PEs share, and an offer tells the source so. It is for one
// message, by its number in the pair of ranks, if that message has the context, the tag and the size of the receive. A sender
// whose next message is that one accepts: its device begins to copy at once, and the message that follows says so (kOffered).
// Without an offer the device begins when an announcement has been answered.
//
// No other receive can match that message first: none was posted earlier with such a key, and what the source has sent before
// has been matched or kept. A message of the source that accepts nothing makes the offer void, and the receiver takes it back.
//
// A sender waits a moment for offers where that has paid (sender_spin.h). If none comes, its message says that it has waited
// (kAwaitsOffers). After offers in vain some receives are not offered.
//
// Threads: the PE's. Invariant: bytes land in an offered receive only if its message is the one that accepts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "weft/base/completion.h"
#include "weft/runtime/messenger.h"

#include "machine/peer_memory/mapping/peer_stream.h"
#include "models/mpi/p2p/data_view.h"
#include "models/mpi/p2p/matching/header.h"
#include "models/mpi/p2p/matching/match_table.h"
#include "models/mpi/p2p/sender_spin.h"
#include "models/mpi/p2p/shared_state.h"

namespace weft::mpi {

// The part of a receive that offers know. Its function is called when the bytes have landed, or the offer is over without them.
struct OfferedReceive : base::Completion {
  enum class OfferState : std::uint8_t {
    kNone,
    kOpen,      // posted for its source
    kLanded,    // the bytes are here, and the message is not
    kAccepted,  // the message is here, and the bytes are not
  };

  OfferedReceive(Function ended, int from_in) : base::Completion(ended), from(from_in) {}

  int from;  // the source in MPI_COMM_WORLD; kAny if it is not known
  OfferState state = OfferState::kNone;
};

class ReceiveOffers {
 public:
  // `rank`: this one. `tag_type`: of the model, for the names of streams.
  ReceiveOffers(runtime::Messenger& messenger, runtime::HandlerId offer_handler, const SharedState& shared,
                int rank, std::uint8_t tag_type)
      : messenger_(messenger),
        offer_handler_(offer_handler),
        shared_(shared),
        rank_(rank),
        tag_type_(tag_type),
        peers_(static_cast<std::size_t>(shared.map().num_ranks())) {}
  ReceiveOffers(const ReceiveOffers&) = delete;
  ReceiveOffers& operator=(const ReceiveOffers&) = delete;

  // --- The receiver
  // Offers the receive to its source for message number `sequence`, if that is possible and has paid lately. REQUIRES: the
  // receive is posted and names its source, and a message with its key can match no other one first.
  void make(OfferedReceive& receive, const MatchKey& key, const DataView& view, std::uint32_t sequence);
  bool has_open() const { return num_open_ > 0; }
  // A message of that rank accepts no offer: takes back what was offered to it. False if it has accepted that.
  [[nodiscard]] bool revoke(int from);
  // Takes back the offer of a receive that must end without a message. False if the offer was accepted.
  [[nodiscard]] bool revoke(OfferedReceive& receive);
  // The rank says that it has accepted this offer. Returns the receive, whose offer is over then; null if there is none.
  OfferedReceive* take(int from, std::uint64_t number);
  // That rank waits for offers.
  void wanted(int from) { peer(from).misses = peer(from).skips_left = 0; }
  // The receive of an offer has ended in another way.
  void forget(const OfferedReceive& receive);

  // --- The sender
  void told(const ReceiveOffer& offer);
  // The offer that such a message may accept; null if there is none. `num_heard`: how many messages of its receiver have come.
  // Waits a moment where that has paid, and moves communication forward meanwhile; `has_waited` tells if it was in vain.
  // REQUIRES: not inside progress(); `header` is that of the next message to the rank, also after the wait.
  const ReceiveOffer* find(const MessageHeader& header, const DataView& view, std::uint32_t num_heard,
                           bool& has_waited);
  // Begins to copy into that receive; `completion` is that of Machine::tag_send. False if nothing was done.
  [[nodiscard]] bool accept(const ReceiveOffer& offer, const DataView& view, base::Completion* completion);
  std::uint64_t num_made() const { return num_made_; }
  std::uint64_t num_accepted() const { return num_accepted_; }
  std::uint64_t num_waits() const { return num_waits_; }

 private:
  struct Unoffered {
    MessageHeader header;
    std::uint64_t size_bytes = 0;
  };
  // The offers between this rank and another one.
  struct Peer {
    machine::IncomingStream in;
    machine::OutgoingStream out;
    OfferedReceive* receive = nullptr;     // offered to the peer, and its message has not come
    std::uint32_t number = 0;              // of `receive`
    std::optional<std::uint32_t> offered;  // for this message an offer was made
    int misses = 0;                        // grows with each offer in vain, and each that cannot be made
    int skips_left = 0;                    // so many receives are not offered
    bool has_offer = false;                // `offer` is valid: of the peer to this rank
    ReceiveOffer offer;
    std::optional<Unoffered> unoffered;  // the last message to the peer, if it found no offer
    SenderSpin spin;

    void missed() { skips_left = misses = times_to_skip(misses); }
  };
  Peer& peer(int rank);
  static bool is_for(const ReceiveOffer& offer, const MessageHeader& header, std::uint64_t size_bytes);
  void await(Peer& of, const MessageHeader& header, std::uint64_t size_bytes);
  Peer* known_peer(int rank) const { return peers_[static_cast<std::size_t>(rank)].get(); }
  void close(Peer& peer);

  runtime::Messenger& messenger_;
  const runtime::HandlerId offer_handler_;
  const SharedState& shared_;
  const int rank_;
  const std::uint8_t tag_type_;
  // By rank; null until one of the two offers. The machine keeps references to the streams.
  std::vector<std::unique_ptr<Peer>> peers_;
  int num_open_ = 0;
  std::uint64_t num_made_ = 0;
  std::uint64_t num_accepted_ = 0;
  std::uint64_t num_waits_ = 0;
};

}  // namespace weft::mpi
