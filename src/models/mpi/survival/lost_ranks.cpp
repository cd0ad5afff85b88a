// The part of PointToPoint that ends what cannot complete when ranks are lost, or a communicator is revoked: see Troubles.
#include <cstring>
#include <utility>
#include <vector>

#include "weft/mpi/mpi-ext.h"
#include "weft/mpi/mpi.h"

#include "models/mpi/p2p/point_to_point.h"
#include "models/mpi/p2p/point_to_point_requests.h"

namespace weft::mpi {

// Small messages that have come stay: they can still be received.
void PointToPoint::lose(int rank) {
  for (auto place = early_.lower_bound({rank, 0}); place != early_.end() && place->first.first == rank;)
    place = early_.erase(place);
  for (SendRequest* const unanswered : awaited_.take_of(rank)) unanswered->happened(SendRequest::kAnswered);
  std::vector<SendRequest*> failed = std::exchange(failed_sends_, {});
  for (SendRequest* const request : failed) {
    if (request->address_.rank == rank) {
      request->happened(SendRequest::kSent);
    } else {
      failed_sends_.push_back(request);
    }
  }
  meet_troubles();
}

void PointToPoint::meet_troubles() {
  std::vector<ReceiveRequest*> posted;
  posted_.for_each([&](const PostedEntry& entry) {
    posted.push_back(const_cast<ReceiveRequest*>(static_cast<const ReceiveRequest*>(&entry)));
  });
  for (ReceiveRequest* const request : posted) meet_troubles(*request);
  drop_unexpected();
}

// Messages whose bytes are still at a sender that is lost, and those for operations that have ended.
void PointToPoint::drop_unexpected() {
  const ArrivedEntry* next = nullptr;
  for (ArrivedEntry* entry = unexpected_.oldest(); entry != nullptr;
       entry = const_cast<ArrivedEntry*>(next)) {
    next = entry->newer;
    auto& arrived = static_cast<ArrivedMessage&>(*entry);
    bool is_dropped = shared_.troubles().drops(arrived.key.context);
    if (arrived.message != nullptr) {
      MessageHeader header;  // checked when it came
      std::memcpy(&header, arrived.message->payload(), sizeof header);
      const bool is_at_lost = arrived.message->has_attachments() && shared_.troubles().is_lost(header.from);
      if (is_dropped && !is_at_lost) matched(header, *arrived.message);
      is_dropped = is_dropped || is_at_lost;
    }
    if (!is_dropped) continue;
    unexpected_.remove(arrived);
    drop(&arrived);
  }
}

void PointToPoint::meet_troubles(ReceiveRequest& request) {
  if (!request.posted_) return;
  int fate = shared_.troubles().fate_of_receive(request.key.context, request.key.source, request.from);
  if (fate == MPI_SUCCESS) return;
  if (fate == MPIX_ERR_PROC_FAILED_PENDING) {
    // The program has a handle of it, and can wait again.
    if (request.scope()) return request.hold_up();
    fate = MPIX_ERR_PROC_FAILED;
  }
  request.end_without_message({.error = fate});
}

void PointToPoint::meet_troubles(SendRequest& request, int* error) const {
  const int fate = shared_.troubles().fate_of_send(request.address_.context, request.address_.rank);
  if (fate != MPI_SUCCESS) *error = fate;
}

void PointToPoint::acknowledged(std::uint64_t context) {
  posted_.for_each([&](const PostedEntry& entry) {
    auto& request = const_cast<ReceiveRequest&>(static_cast<const ReceiveRequest&>(entry));
    if (request.key.context == context && request.is_complete()) request.reopen();
  });
}

void SendRequest::end_when_told() {
  error_ = MPIX_ERR_PROC_FAILED;
  if (engine_.shared().troubles().is_lost(address_.rank)) return happened(kSent);
  engine_.failed_sends_.push_back(this);
}

void ReceiveRequest::hold_up() { complete({.error = MPIX_ERR_PROC_FAILED_PENDING}); }

}  // namespace weft::mpi
