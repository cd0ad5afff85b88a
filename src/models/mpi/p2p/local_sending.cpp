// Messages between ranks on one PE: from the memory of the send to the memory of the receive, without the queue of the PE.
//
// Host memory only. Other messages to this PE go through its queue, as do those that come while one of them is in the queue:
// the numbers of the pair show it.
#include <cstring>

#include "models/mpi/p2p/point_to_point.h"
#include "models/mpi/p2p/point_to_point_requests.h"

namespace weft::mpi {

bool PointToPoint::is_next_from(const PointToPoint& sender) const {
  return sender.pairs_[static_cast<std::size_t>(rank_)].next_sent ==
         pairs_[static_cast<std::size_t>(sender.rank_)].next_matched;
}

void PointToPoint::count_local(PointToPoint& sender) {
  ++sender.pair(rank_).next_sent;
  ++pair(sender.rank_).next_matched;
}

void PointToPoint::land_local(ReceiveRequest& request, const SendAddress& address, const DataView& view) {
  request.match(address.source, address.tag, view.size_bytes);
  view.copy_to(request.view_);
  request.end();
}

bool PointToPoint::take_local(PointToPoint& sender, const SendAddress& address, const DataView& view) {
  if (!view.place.is_host() || !is_next_from(sender)) [[unlikely]]
    return false;
  auto* const posted =
      static_cast<ReceiveRequest*>(posted_.find({address.context, address.source, address.tag}));
  if (posted == nullptr) return view.size_bytes <= kEagerBytes && keep_copy(sender, address, view);
  if (!posted->view_.place.is_host()) [[unlikely]]
    return false;
  posted_.remove(*posted);
  count_local(sender);
  land_local(*posted, address, view);
  return true;
}

bool PointToPoint::keep_copy(PointToPoint& sender, const SendAddress& address, const DataView& view) {
  runtime::CreditWindow& window = shared_.window(shared_.pe());
  const std::int64_t charge = SharedState::charge_of(view.size_bytes);
  if (!window.room.has(charge)) return false;
  runtime::MessagePtr message =
      runtime::Message::create(messenger_, first_handler_ + kBlock, sizeof(MessageHeader) + view.size_bytes);
  message->envelope().source_pe = static_cast<std::uint32_t>(shared_.pe());
  const MessageHeader header = sender.next_header(address, kCharged);
  std::memcpy(message->payload(), &header, sizeof header);
  if (view.size_bytes > 0) view.pack(message->payload() + sizeof header);
  keep(header, std::move(message));
  count_local(sender);
  window.room.take(charge);
  return true;
}

bool PointToPoint::take_local(PointToPoint& sender, SendRequest& request) {
  const SendAddress& address = request.address_;
  const DataView& view = request.view_;
  if (!view.place.is_host() || !is_next_from(sender)) [[unlikely]]
    return false;
  const MatchKey key{address.context, address.source, address.tag};
  auto* const posted = static_cast<ReceiveRequest*>(posted_.find(key));
  if (posted != nullptr) {
    if (!posted->view_.place.is_host()) return false;
    posted_.remove(*posted);
    count_local(sender);
    land_local(*posted, address, view);
    request.complete({});
    return true;
  }
  if (request.mode_ == SendMode::kStandard && view.size_bytes <= kEagerBytes &&
      keep_copy(sender, address, view)) {
    request.complete({});
    return true;
  }
  keep(key, view.size_bytes)->local_send = &request;
  count_local(sender);
  request.acquire();  // until a receive matches
  request.waits_ = SendRequest::kAnswered;
  return true;
}

// A receive matches a send whose bytes are still in their memory.
void PointToPoint::receive_local(ReceiveRequest& request, SendRequest& send) {
  if (request.view_.place.is_host()) [[likely]] {
    land_local(request, send.address_, send.view_);
  } else {
    // A copy in a block, which lands as one that has arrived.
    const std::size_t size_bytes = send.view_.size_bytes;
    runtime::MessagePtr message =
        runtime::Message::create(messenger_, first_handler_ + kBlock, sizeof(MessageHeader) + size_bytes);
    if (size_bytes > 0) send.view_.pack(message->payload() + sizeof(MessageHeader));
    request.match(send.address_.source, send.address_.tag, size_bytes);
    land_on_device(request, std::move(message));
  }
  send.happened(SendRequest::kAnswered);
}

}  // namespace weft::mpi
