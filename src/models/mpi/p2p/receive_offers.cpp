#include "models/mpi/p2p/receive_offers.h"

#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

#include "weft/runtime/message.h"

#include "machine/peer_memory/peer_memory.h"
#include "machine/tag.h"

namespace weft::mpi {

namespace {

// How long a sender waits for an offer. Between two GPUs, in a ping-pong of 8 B, 85 % of the offers come within 0.6 us, and 99.9 %
// within 6 us; the latency is the same (benchmarks/results/2026-11-26-gpu). A wait polls at least once, which may take longer.
constexpr std::chrono::microseconds kSpinBudget{2};
constexpr int kLeastPolls = 1;

}  // namespace

ReceiveOffers::Peer& ReceiveOffers::peer(int rank) {
  std::unique_ptr<Peer>& known = peers_[static_cast<std::size_t>(rank)];
  if (known == nullptr) {
    known = std::make_unique<Peer>();
    Peer& one = *known;
    // A stream is named by its sender, which is unlike all others as long as a PE has one rank.
    one.in.name = machine::make_tag(tag_type_, static_cast<std::uint64_t>(rank));
    one.out.name = machine::make_tag(tag_type_, static_cast<std::uint64_t>(rank_));
    one.in.peer = one.out.peer = shared_.destination(rank).pe;
  }
  return *known;
}

// --- The receiver

void ReceiveOffers::make(OfferedReceive& receive, const MatchKey& key, const DataView& view,
                         std::uint32_t sequence) {
  if (receive.from == kAny || view.place.is_host() || !view.is_dense() || shared_.map().shares_pes() ||
      shared_.destination(receive.from).here != nullptr)
    return;
  Peer& to = peer(receive.from);
  // One offer for each message of the source bounds those that it has not read yet.
  if (to.receive != nullptr || to.offered == sequence) return;
  if (to.skips_left > 0) {
    --to.skips_left;
    return;
  }
  const std::uint32_t number = to.in.next;
  const std::optional<base::Status> posted = messenger_.machine().peer_memory().receive_offered(
      to.in, number, {view.data, view.size_bytes, view.place, view.stream}, &receive);
  if (!posted) return to.missed();
  receive.state = OfferedReceive::OfferState::kOpen;
  ++to.in.next;
  to.receive = &receive;
  to.number = number;
  to.offered = sequence;
  ++num_open_;
  ++num_made_;
  const ReceiveOffer offer{.context = key.context,
                           .size_bytes = view.size_bytes,
                           .sequence = sequence,
                           .number = number,
                           .source = key.source,
                           .tag = key.tag,
                           .from = rank_,
                           .to = receive.from};
  runtime::MessagePtr message = runtime::Message::create(messenger_, offer_handler_, sizeof offer);
  std::memcpy(message->payload(), &offer, sizeof offer);
  message->envelope().flags |= runtime::kControlFlag | runtime::kUrgentFlag;
  messenger_.send(to.in.peer, std::move(message));
}

void ReceiveOffers::close(Peer& peer) {
  peer.receive = nullptr;
  --num_open_;
}

bool ReceiveOffers::revoke(int from) {
  Peer* const to = known_peer(from);
  if (to == nullptr || to->receive == nullptr) return true;
  to->missed();
  return revoke(*to->receive);
}

bool ReceiveOffers::revoke(OfferedReceive& receive) {
  if (receive.state == OfferedReceive::OfferState::kNone) return true;
  // Its completion is called inside, or the sender copies.
  messenger_.machine().cancel(&receive);
  return receive.state == OfferedReceive::OfferState::kNone;
}

OfferedReceive* ReceiveOffers::take(int from, std::uint64_t number) {
  Peer* const to = known_peer(from);
  if (to == nullptr || to->receive == nullptr || to->number != number) return nullptr;
  to->misses = 0;
  OfferedReceive* const receive = to->receive;
  close(*to);
  return receive;
}

void ReceiveOffers::forget(const OfferedReceive& receive) {
  Peer* const to = known_peer(receive.from);
  if (to != nullptr && to->receive == &receive) close(*to);
}

// --- The sender

bool ReceiveOffers::is_for(const ReceiveOffer& offer, const MessageHeader& header, std::uint64_t size_bytes) {
  return offer.sequence == header.sequence && offer.context == header.context &&
         offer.source == header.source && (offer.tag == header.tag || offer.tag == kAny) &&
         offer.size_bytes == size_bytes;
}

void ReceiveOffers::told(const ReceiveOffer& offer) {
  Peer& of = peer(offer.from);
  of.offer = offer;
  of.has_offer = true;
  of.spin.told(of.unoffered && is_for(offer, of.unoffered->header, of.unoffered->size_bytes));
}

const ReceiveOffer* ReceiveOffers::find(const MessageHeader& header, const DataView& view,
                                        std::uint32_t num_heard, bool& has_waited) {
  Peer* const of = known_peer(header.to);
  if (of == nullptr || !view.is_dense() || view.size_bytes == 0) return nullptr;
  const auto is_here = [&] { return of->has_offer && is_for(of->offer, header, view.size_bytes); };
  const bool waits = of->spin.may_wait(num_heard) && !is_here() && !messenger_.shares_processor();
  if (waits) await(*of, header, view.size_bytes);
  const bool has_offer = is_here();
  has_waited = waits && !has_offer;
  of->spin.sent(waits, has_offer);
  of->unoffered.reset();
  if (!has_offer) of->unoffered = Unoffered{header, view.size_bytes};
  return has_offer ? &of->offer : nullptr;
}

void ReceiveOffers::await(Peer& of, const MessageHeader& header, std::uint64_t size_bytes) {
  ++num_waits_;
  struct Wait {
    const Peer& of;
    const MessageHeader& header;
    std::uint64_t size_bytes;
    std::chrono::steady_clock::time_point until;
    int polls;
  } wait{of, header, size_bytes, std::chrono::steady_clock::now() + kSpinBudget, 0};
  messenger_.progress_until(
      [](void* context) {
        Wait& waits = *static_cast<Wait*>(context);
        if (waits.of.has_offer && is_for(waits.of.offer, waits.header, waits.size_bytes)) return true;
        return waits.polls++ >= kLeastPolls && std::chrono::steady_clock::now() >= waits.until;
      },
      &wait);
}

bool ReceiveOffers::accept(const ReceiveOffer& offer, const DataView& view, base::Completion* completion) {
  Peer& of = peer(offer.from);
  of.has_offer = false;
  const bool has_begun = messenger_.machine()
                             .peer_memory()
                             .send_offered(of.out, offer.number,
                                           {view.data, view.size_bytes, view.place, view.stream}, completion)
                             .has_value();
  if (has_begun) ++num_accepted_;
  return has_begun;
}

}  // namespace weft::mpi
