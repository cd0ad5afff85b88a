// The meaning of UCX's failures for the program.
#include <chrono>
#include <string>
#include <string_view>

#include "base/format.h"
#include "machine/ucx/handles/quiet.h"
#include "machine/ucx/setup/library.h"
#include "machine/ucx/ucx_machine.h"

namespace weft::machine::ucx {
namespace {

std::string_view operation_name(TransportOperation operation) {
  switch (operation) {
    case TransportOperation::kTagSend:
      return "sending a message";
    case TransportOperation::kTagReceive:
      return "receiving a message";
    case TransportOperation::kAmSend:
      return "sending an active message";
    case TransportOperation::kAmReceive:
      return "receiving an active message";
    case TransportOperation::kPut:
      return "a put";
    case TransportOperation::kGet:
      return "a get";
    case TransportOperation::kFlush:
      return "a flush";
  }
  return "an operation";
}

bool means_peer_failed(ucs_status_t status) {
  switch (status) {
    case UCS_ERR_ENDPOINT_TIMEOUT:
    case UCS_ERR_CONNECTION_RESET:
    case UCS_ERR_UNREACHABLE:
    case UCS_ERR_REJECTED:
    case UCS_ERR_NOT_CONNECTED:
    case UCS_ERR_TIMED_OUT:
    case UCS_ERR_IO_ERROR:
      return true;
    default:
      return false;
  }
}

}  // namespace

base::Status UcxMachine::translate(const Request& request) const {
  if (request.status == UCS_ERR_MESSAGE_TRUNCATED) {
    return {
        base::StatusCode::kTruncated,
        base::format(
            "a message of {} bytes does not fit the buffer of {} bytes posted for it on PE {}; post one of "
            "at least the message's size",
            request.received_bytes, request.size_bytes, pe())};
  }
  return translate({request.operation, request.peer, request.size_bytes}, request.status);
}

base::Status UcxMachine::translate(const Started& started, ucs_status_t status) const {
  const bool names_peer = started.peer >= 0;
  // An active message's payload comes from a peer that UCX does not name, and no one cancels its receive.
  const bool has_peer_failed =
      names_peer ? endpoints_.has_failed(started.peer)
                 : started.operation == TransportOperation::kAmReceive && endpoints_.has_lost();
  if (status == UCS_ERR_CANCELED && !is_closed() && !has_peer_failed) return base::Status::cancelled();
  const std::string what =
      names_peer ? base::format("{} of {} bytes between PE {} and PE {}", operation_name(started.operation),
                                started.size_bytes, pe(), started.peer)
                 : base::format("{} of {} bytes on PE {}", operation_name(started.operation),
                                started.size_bytes, pe());
  if (is_closed()) {
    return {base::StatusCode::kClosed, base::format("{} did not finish before the machine was closed", what)};
  }
  if (has_peer_failed && names_peer && endpoints_.has_lost()) {
    return {base::StatusCode::kPeerFailed, base::format("PE {} is lost, during {}", started.peer, what)};
  }
  if (means_peer_failed(status) || has_peer_failed) {
    return {base::StatusCode::kPeerFailed,
            names_peer
                ? base::format("PE {} has failed ({}), during {}", started.peer, status_text(status), what)
                : base::format("the other PE has failed ({}), during {}", status_text(status), what)};
  }
  if (status == UCS_ERR_NO_MEMORY) {
    return {base::StatusCode::kOutOfMemory, base::format("{}: UCX has no memory left", what)};
  }
  return {base::StatusCode::kInternal, base::format("{} failed in UCX: {}", what, status_text(status))};
}

// On one host UCX does not notice that a peer has gone, so its endpoint is closed by force. A PE that has no endpoint to the peer may still
// fetch a message of it, with UCX's own, to which a first connection leads.
base::Status UcxMachine::transport_lose_peer(int pe) {
  // UCX ends the operations of a closed endpoint in the first polls.
  constexpr auto kLimit = std::chrono::seconds(2);
  const QuietUcx quiet;
  if (endpoints_.find(pe) == nullptr && !endpoints_.has_failed(pe) && tracker_.is_in_flight_to(-1))
    static_cast<void>(endpoints_.connect(worker_.get(), pe));
  const std::vector<base::Completion*> unsent = queues_.lose(pe);
  endpoints_.lose(pe);
  close_failed_peers();
  for (base::Completion* completion : unsent) completion->function(completion, lost_peer(pe), 0);
  const auto limit = std::chrono::steady_clock::now() + kLimit;
  while (tracker_.is_in_flight_to(pe)) {
    ucp_worker_progress(worker_.get());
    if (std::chrono::steady_clock::now() > limit) {
      return {base::StatusCode::kInternal,
              base::format("PE {} is lost, and UCX has not ended an operation of PE {} with it within {} s",
                           pe, this->pe(), kLimit.count())};
    }
  }
  return {};
}

}  // namespace weft::machine::ucx
