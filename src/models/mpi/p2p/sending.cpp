// Sending, and the requests. arrivals.cpp has the other side.
#include <sys/random.h>

#include <cstdio>
#include <cstring>
#include <new>
#include <utility>

#include "weft/base/error.h"
#include "weft/mpi/mpi.h"

#include "models/mpi/p2p/point_to_point.h"
#include "models/mpi/p2p/point_to_point_requests.h"
#include "runtime/losses/losses.h"

namespace weft::mpi {

namespace {

// Past the window, a message of at most this size waits for its match; as an attachment it would come at once.
constexpr std::size_t kLeastAttachedBytes = 1024;

void report_device_outside() {
  static bool is_reported = false;
  if (std::exchange(is_reported, true)) return;
  std::fputs(
      "weft: a message in device memory to a process of another job is not sent; copy it to host memory "
      "first\n",
      stderr);
}

}  // namespace

PointToPoint::PointToPoint(runtime::Messenger& messenger, const runtime::ModelRange& range,
                           SharedState& shared, int rank)
    : messenger_(messenger),
      first_handler_(range.first_handler),
      shared_(shared),
      rank_(rank),
      pairs_(static_cast<std::size_t>(shared.map().num_ranks())),
      offers_(messenger, range.first_handler + kOffer, shared, rank, range.tag_type),
      device_elements_(messenger) {}

std::uint64_t PointToPoint::new_outside_context_base() {
  std::uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) != sizeof number)
    throw base::Error(base::StatusCode::kInternal, "the system gives no random numbers (getrandom)");
  return (number >> (64 - kOutsideContextBits)) | std::uint64_t{1} << (kOutsideContextBits - 1);
}

std::uint64_t PointToPoint::new_context_base_with(int peer) {
  return shared_.is_outside(peer) ? new_outside_context_base() : new_context_base();
}

bool PointToPoint::may_have_made(int peer, std::uint64_t base) const {
  if (shared_.is_outside(peer)) return base >> (kOutsideContextBits - 1) == 1;
  return base >> 32 == static_cast<std::uint64_t>(peer) + 1;
}

// --- Sending

bool PointToPoint::send_at_once(const SendAddress& address, const DataView& view) {
  const SharedState::Destination& to = shared_.destination(address.rank);
  if (to.here != nullptr && to.here->take_local(*this, address, view)) [[unlikely]]
    return true;
  if (view.size_bytes > kEagerBytes || !view.place.is_host()) return false;
  if (view.is_dense() && send_bytes_at_once(address, {view.data, view.size_bytes})) return true;
  runtime::SendRoom& room = shared_.window(to.pe).room;
  const std::int64_t charge = SharedState::charge_of(view.size_bytes);
  if (!room.has(charge)) [[unlikely]]
    return false;
  const MessageHeader header = next_header(address, kCharged);
  send_message(header, block_message(header, view, 0));
  room.take(charge);
  return true;
}

Request* PointToPoint::make_sent_request() {
  Ref<FinishedRequest> made = Request::make<FinishedRequest>(messenger_, Request::Type::kSend, Outcome());
  if (virtual_rank_ != nullptr) {
    made->start();
    return made.leave();
  }
  made->start_shared();
  sent_at_once_ = std::move(made);
  return sent_at_once_.get();
}

runtime::MessagePtr PointToPoint::block_message(const MessageHeader& header, const DataView& view,
                                                std::uint64_t reply) {
  const std::size_t trailer = trailer_bytes(header.flags);
  runtime::MessagePtr message = runtime::Message::create(messenger_, first_handler_ + kBlock,
                                                         sizeof(MessageHeader) + view.size_bytes + trailer);
  std::memcpy(message->payload(), &header, sizeof header);
  if (view.size_bytes > 0) view.pack(message->payload() + sizeof header);
  if (trailer > 0) std::memcpy(message->payload() + sizeof header + view.size_bytes, &reply, trailer);
  // The window counts the message; the runtime need not.
  message->envelope().flags |= runtime::kControlFlag | runtime::kUrgentFlag;
  return message;
}

void PointToPoint::send_message(const MessageHeader& header, runtime::MessagePtr message) {
  messenger_.send(shared_.destination(header.to).pe, std::move(message));
  count_sent(header);
}

Ref<SendRequest> PointToPoint::make_send(const SendAddress& address, const DataView& view, SendMode mode) {
  return Request::make<SendRequest>(messenger_, *this, address, view, mode);
}

Ref<SendRequest> PointToPoint::send(const SendAddress& address, const DataView& view, SendMode mode) {
  Ref<SendRequest> request = make_send(address, view, mode);
  request->start();
  return request;
}

void PointToPoint::start_send(SendRequest& request) {
  const DataView& view = request.view_;
  if (shared_.troubles().any()) [[unlikely]] {
    int error = MPI_SUCCESS;
    meet_troubles(request, &error);
    if (error != MPI_SUCCESS) return request.complete({.error = error});
  }
  if (shared_.is_outside(request.address_.rank)) [[unlikely]]
    return send_outside(request);
  PointToPoint* const here = shared_.destination(request.address_.rank).here;
  if (here != nullptr && here->take_local(*this, request)) return;
  if (request.mode_ == SendMode::kStandard && send_at_once(request.address_, view))
    return request.complete({});
  bool has_waited = false;
  if (!view.place.is_host() && request.mode_ == SendMode::kStandard && accept_offer(request, has_waited))
    return;
  request.acquire();  // until the last awaited thing has happened
  const bool is_synchronous = request.mode_ == SendMode::kSynchronous;
  const bool is_attached = !view.place.is_host() || view.size_bytes > kEagerBytes ||
                           (!is_synchronous && view.size_bytes > kLeastAttachedBytes);
  const bool wants_answer = is_synchronous || !is_attached;
  const MessageHeader header =
      next_header(request.address_, (wants_answer ? kWantsAnswer : 0U) | (has_waited ? kAwaitsOffers : 0U));
  runtime::MessagePtr message;
  std::uint64_t reply = 0;
  int error = MPI_SUCCESS;
  try {
    if (wants_answer) reply = awaited_.add(&request, header.to);
    message = is_attached ? attached_message(request, header, reply) : block_message(header, view, reply);
  } catch (const std::bad_alloc&) {
    error = MPI_ERR_NO_MEM;
  } catch (const base::Error& failure) {
    error = failure.code() == base::StatusCode::kOutOfMemory ? MPI_ERR_NO_MEM : MPI_ERR_OTHER;
  }
  if (message == nullptr) [[unlikely]] {
    if (reply != 0) awaited_.take(reply, header.to);
    request.error_ = error;
    request.waits_ = SendRequest::kSent;
    return request.happened(SendRequest::kSent);
  }
  request.waits_ = static_cast<SendRequest::Waits>((is_attached ? SendRequest::kSent : 0) |
                                                   (wants_answer ? SendRequest::kAnswered : 0));
  send_message(header, std::move(message));
}

// The bytes are free when the message has been sent.
void PointToPoint::send_outside(SendRequest& request) {
  const DataView& view = request.view_;
  if (!view.place.is_host()) {
    report_device_outside();
    return request.complete({.error = MPI_ERR_UNSUPPORTED_OPERATION});
  }
  const bool is_synchronous = request.mode_ == SendMode::kSynchronous;
  const MessageHeader header{.context = request.address_.context,
                             .source = request.address_.source,
                             .tag = request.address_.tag,
                             .flags = is_synchronous ? kWantsAnswer : 0U};
  const Outsiders& outsiders = shared_.outsiders();
  std::vector<std::byte> packed;
  std::span<const std::byte> bytes(view.data, view.size_bytes);
  if (!view.is_dense()) {
    packed.resize(view.size_bytes);
    view.pack(packed.data());
    bytes = packed;
  }
  std::uint64_t reply = 0;
  if (is_synchronous) reply = awaited_.add(&request, request.address_.rank);
  outsiders.way->send(outsiders.name_of(request.address_.rank), OutsideWay::Type::kMessage,
                      std::as_bytes(std::span(&header, 1)), bytes,
                      std::as_bytes(std::span(&reply, 1)).first(trailer_bytes(header.flags)));
  if (!is_synchronous) return request.complete({});
  request.acquire();  // until the answer
  request.waits_ = SendRequest::kAnswered;
}

bool PointToPoint::accept_offer(SendRequest& request, bool& has_waited) {
  const MessageHeader header = next_header(request.address_, kOffered);
  const ReceiveOffer* const offer =
      offers_.find(header, request.view_, pair(header.to).next_matched, has_waited);
  if (offer == nullptr) return false;
  // Made first: nothing may fail once the device copies.
  runtime::MessagePtr message;
  try {
    message = block_message(header, {}, offer->number);
  } catch (const std::bad_alloc&) {
    return false;
  }
  request.acquire();
  request.waits_ = SendRequest::kSent;
  request.is_offered_ = offers_.accept(*offer, request.view_, &request);
  if (!request.is_offered_) {
    request.release();
    return false;
  }
  send_message(header, std::move(message));
  return true;
}

// The packed form of a view with gaps, on its device or in a block that the request keeps.
base::Result<runtime::Attachment> PointToPoint::pack_for(SendRequest& request) {
  const DataView& view = request.view_;
  if (!view.place.is_host()) return device_elements_.pack(view);
  request.packed_ = static_cast<std::byte*>(messenger_.pool().allocate(view.size_bytes));
  view.pack(request.packed_);
  return runtime::Attachment({request.packed_, view.size_bytes, {}, nullptr});
}

runtime::MessagePtr PointToPoint::attached_message(SendRequest& request, const MessageHeader& header,
                                                   std::uint64_t reply) {
  const DataView& view = request.view_;
  runtime::Attachment attachment({view.data, view.size_bytes, view.place, view.stream});
  if (!view.is_dense()) {
    base::Result<runtime::Attachment> packed = pack_for(request);
    base::check(packed.status());
    attachment = std::move(packed).value();
  }
  const std::size_t trailer = trailer_bytes(header.flags);
  runtime::MessagePtr message =
      runtime::Message::create(messenger_, first_handler_ + kAnnounced, sizeof(MessageHeader) + trailer);
  std::memcpy(message->payload(), &header, sizeof header);
  if (trailer > 0) std::memcpy(message->payload() + sizeof header, &reply, trailer);
  message->attach(std::move(attachment));
  message->report_sending(&request);
  return message;
}

// --- SendRequest

SendRequest::~SendRequest() { release_packed(); }

void SendRequest::start() {
  activate();
  base::Completion::function = &SendRequest::on_sent;
  error_ = MPI_SUCCESS;
  is_offered_ = false;
  engine_.start_send(*this);
}

void SendRequest::on_sent(base::Completion* completion, base::Status status, std::size_t) {
  auto* const self = static_cast<SendRequest*>(completion);
  if (status.failed()) {
    const int pe = self->engine_.shared().destination(self->address_.rank).pe;
    if (self->engine_.messenger().losses().explain(pe, status)) return self->end_when_told();
    self->error_ = MPI_ERR_OTHER;
    // The receiver waits for the copy.
    if (self->is_offered_) self->engine_.messenger().check_sent(pe, status);
  }
  self->happened(kSent);
}

void SendRequest::happened(Waits which) {
  waits_ &= static_cast<std::uint8_t>(~which);
  if (waits_ != 0) return;
  release_packed();
  if (engine_.shared().troubles().any()) [[unlikely]]
    engine_.meet_troubles(*this, &error_);
  Outcome outcome;
  outcome.error = error_;
  complete(outcome);
  release();
}

void SendRequest::release_packed() {
  if (packed_ != nullptr)
    engine_.messenger().pool().deallocate(std::exchange(packed_, nullptr), view_.size_bytes);
}

}  // namespace weft::mpi
