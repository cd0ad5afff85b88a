// The part of PointToPoint that keeps messages until a receive matches, and the receives. arrivals.cpp gives each message its receive.
#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "weft/mpi/mpi-ext.h"
#include "weft/mpi/mpi.h"

#include "models/mpi/p2p/point_to_point.h"
#include "models/mpi/p2p/point_to_point_requests.h"
#include "runtime/losses/losses.h"

namespace weft::mpi {

namespace {

// The receive that a message lands for replaces the context in its header, which is not needed any more.
void remember_receive(runtime::Message& message, ReceiveRequest* request) {
  const auto address = std::uint64_t{reinterpret_cast<std::uintptr_t>(request)};
  std::memcpy(message.payload() + offsetof(MessageHeader, context), &address, sizeof address);
}
ReceiveRequest& remembered_receive(runtime::Message& message) {
  std::uint64_t address = 0;
  std::memcpy(&address, message.payload() + offsetof(MessageHeader, context), sizeof address);
  return *reinterpret_cast<ReceiveRequest*>(static_cast<std::uintptr_t>(address));
}

}  // namespace

// --- Messages that wait for a receive

ArrivedMessage* PointToPoint::keep(const MatchKey& key, std::size_t size_bytes) {
  auto* const arrived = new (messenger_.pool().allocate(sizeof(ArrivedMessage))) ArrivedMessage;
  arrived->key = key;
  arrived->size_bytes = size_bytes;
  unexpected_.add(*arrived);
  // It may wait in a probe.
  if (virtual_rank_ != nullptr) [[unlikely]]
    virtual_rank_->wake();
  return arrived;
}

void PointToPoint::keep(const MessageHeader& header, runtime::MessagePtr message) {
  const std::size_t size_bytes = bytes_of(header, *message);
  keep({header.context, header.source, header.tag}, size_bytes)->message = std::move(message);
}

runtime::MessagePtr PointToPoint::forget(ArrivedMessage* arrived) {
  runtime::MessagePtr message = std::move(arrived->message);
  std::destroy_at(arrived);
  messenger_.pool().deallocate(arrived, sizeof(ArrivedMessage));
  return message;
}

void PointToPoint::drop(ArrivedMessage* arrived) {
  SendRequest* const send = arrived->local_send;
  forget(arrived);
  if (send != nullptr) send->happened(SendRequest::kAnswered);
}

void PointToPoint::hand_over(ReceiveRequest& request, ArrivedMessage* arrived) {
  SendRequest* const send = arrived->local_send;
  runtime::MessagePtr message = forget(arrived);
  if (send != nullptr) return receive_local(request, *send);
  MessageHeader header;  // checked when it came
  std::memcpy(&header, message->payload(), sizeof header);
  deliver(request, header, std::move(message));
}

const ArrivedMessage* PointToPoint::probe(const MatchKey& key) {
  return static_cast<const ArrivedMessage*>(unexpected_.find(key));
}

ArrivedMessage* PointToPoint::take_probed(const MatchKey& key) {
  auto* const arrived = static_cast<ArrivedMessage*>(unexpected_.find(key));
  if (arrived != nullptr) unexpected_.remove(*arrived);
  return arrived;
}

void PointToPoint::start_probed(ReceiveRequest& request, ArrivedMessage* arrived) {
  request.activate();
  request.acquire();
  hand_over(request, arrived);
}

void PointToPoint::drop_probed(ArrivedMessage* arrived) { drop(arrived); }

// --- Receiving

inline ReceiveRequest* PointToPoint::take_spare_receive() {
  if (spares_->first == nullptr || VirtualRank::current() != nullptr) [[unlikely]]
    return nullptr;
  --spares_->count;
  return std::exchange(spares_->first, spares_->first->next_spare_);
}

Ref<ReceiveRequest> PointToPoint::make_receive(const MatchKey& key, const DataView& view, int from) {
  ReceiveRequest* const receive = take_spare_receive();
  if (receive == nullptr) return Request::make<ReceiveRequest>(messenger_, *this, key, view, from);
  receive->renew_for(key, from);
  receive->view_ = view;
  return Ref<ReceiveRequest>::adopt(receive);
}

void PointToPoint::free_spare_receives() {
  spares_->is_open = false;
  while (spares_->first != nullptr) {
    ReceiveRequest* const receive = std::exchange(spares_->first, spares_->first->next_spare_);
    receive->Request::destroy();
  }
}

inline void PointToPoint::start_receive(ReceiveRequest& request) {
  ArrivedMessage* arrived = nullptr;
  if (unexpected_.size() != 0) [[unlikely]]
    arrived = take_probed(request.key);
  if (arrived == nullptr) [[likely]]
    posted_.post(request);  // it throws if there is no memory, and nothing has changed then
  request.activate();
  request.acquire();  // until a message has landed, or the receive is cancelled
  if (arrived != nullptr) [[unlikely]]
    return hand_over(request, arrived);
  request.posted_ = true;
  if (!request.view_.place.is_host() && request.from != kAny) [[unlikely]]
    offer(request);
}

Ref<ReceiveRequest> PointToPoint::receive(const MatchKey& key, const DataView& view, int from) {
  Ref<ReceiveRequest> request = make_receive(key, view, from);
  request->start();
  return request;
}

Ref<ReceiveRequest> PointToPoint::receive_bytes(const MatchKey& key, std::span<std::byte> bytes) {
  Ref<ReceiveRequest> request = Ref<ReceiveRequest>::adopt(take_spare_receive());
  if (!request) [[unlikely]]
    return receive(key, DataView::of_bytes(bytes.data(), bytes.size()));
  request->renew_for(key, kAny);
  request->view_.data = bytes.data();
  request->view_.size_bytes = bytes.size();
  start_receive(*request);
  return request;
}

// If the next message of its source can match no other receive, and is not likely to be for an earlier one.
void PointToPoint::offer(ReceiveRequest& request) {
  if (virtual_rank_ != nullptr) return;  // ranks that move leave no streams behind
  if (shared_.is_outside(request.from)) return;
  try {
    if (last_on_device_.empty()) last_on_device_.resize(pairs_.size());
    Ref<ReceiveRequest>& last = last_on_device_[static_cast<std::size_t>(request.from)];
    const bool has_earlier = last && last.get() != &request && last->posted_;
    last = Ref<ReceiveRequest>(request);
    const bool is_first =
        request.key.tag == kAny ? posted_.size() == 1 : posted_.find(request.key) == &request;
    if (has_earlier || !is_first) return;
    offers_.make(request, request.key, request.view_, pair(request.from).next_matched);
  } catch (const std::bad_alloc&) {
    return;  // the message takes its usual way
  }
}

void PointToPoint::deliver(ReceiveRequest& request, const MessageHeader& header,
                           runtime::MessagePtr message) {
  matched(header, *message);
  if (request.is_complete()) [[unlikely]]
    request.reopen();
  if (message->has_attachments()) {
    std::vector<runtime::ReceiveBuffer> receive_buffers = messenger_.receive_buffers_of(*message);
    choose_receive_buffer(request, *message, receive_buffers[0]);
    return messenger_.place(std::move(message), receive_buffers);
  }
  const std::size_t size_bytes = bytes_of(header, *message);
  request.match(header.source, header.tag, size_bytes);
  const std::byte* const bytes = message->payload() + sizeof(MessageHeader);
  if (request.view_.place.is_host()) [[likely]]
    return request.landed(bytes, size_bytes);
  land_on_device(request, std::move(message));
}

// As many bytes land as the receive has room for: those of a dense receive in its memory, others in a block of the pool.
void PointToPoint::choose_receive_buffer(ReceiveRequest& request, runtime::Message& message,
                                         runtime::ReceiveBuffer& receive_buffer) {
  MessageHeader header;
  std::memcpy(&header, message.payload(), sizeof header);
  if (request.is_complete()) [[unlikely]]
    request.reopen();
  request.match(header.source, header.tag, receive_buffer.size_bytes);
  remember_receive(message, &request);
  const DataView& view = request.view_;
  if (view.is_dense()) {
    receive_buffer.into = runtime::Attachment({view.data, view.size_bytes, view.place, view.stream});
    return;
  }
  if (!view.place.is_host()) return choose_receive_block(request, receive_buffer);
  runtime::BlockPool& pool = messenger_.pool();
  const std::size_t size_bytes = std::min(receive_buffer.size_bytes, view.size_bytes);
  receive_buffer.into = runtime::Attachment(
      {pool.allocate(size_bytes), size_bytes, {}, nullptr},
      [](void* owner, const memory::Buffer& buffer) {
        static_cast<runtime::BlockPool*>(owner)->deallocate(buffer.data, buffer.size_bytes);
      },
      &pool);
}

// The bytes of an announced message have landed. A message to this handler without a buffer has had no poster.
void PointToPoint::on_landed(runtime::MessagePtr message) {
  if (!message->was_posted())
    refuse_message(static_cast<int>(message->envelope().source_pe), "has no buffer beside it");
  ReceiveRequest& request = remembered_receive(*message);
  const memory::Buffer& buffer = message->attachments()[0].buffer();
  // There is none if the message was far too large for the receive.
  if (!request.view_.place.is_host() && !request.view_.is_dense() && buffer.data != nullptr) [[unlikely]]
    return request.engine_.unpack_on_device(request, std::move(message->attachments()[0]));
  request.landed(static_cast<const std::byte*>(buffer.data), buffer.size_bytes);
}

void PointToPoint::on_dropped(runtime::Message& message) {
  ReceiveRequest& request = remembered_receive(message);
  const bool is_lost =
      request.engine_.messenger().losses().is_lost(static_cast<int>(message.envelope().source_pe));
  request.fail(is_lost ? MPIX_ERR_PROC_FAILED : MPI_ERR_OTHER);
}

// --- ReceiveRequest

void ReceiveRequest::start() {
  engine_.start_receive(*this);
  if (engine_.shared_.troubles().any()) [[unlikely]]
    engine_.meet_troubles(*this);
}

int ReceiveRequest::cancel() {
  if (!posted_ || !engine_.offers_.revoke(*this)) return MPI_SUCCESS;
  posted_ = false;
  engine_.posted_.remove(*this);
  set_outcome({.cancelled = true});
  end();
  return MPI_SUCCESS;
}

void ReceiveRequest::end_without_message(const Outcome& outcome) {
  posted_ = false;
  engine_.posted_.remove(*this);
  set_outcome(outcome);
  if (engine_.offers_.revoke(*this)) return end();
  // The sender may still copy.
  engine_.offers_.forget(*this);
  accepted();
}

void ReceiveRequest::on_offered(base::Completion* completion, base::Status status, std::size_t) {
  auto* const self = static_cast<ReceiveRequest*>(completion);
  const bool is_matched = self->state == OfferState::kAccepted;
  self->state = status.ok() && !is_matched ? OfferState::kLanded : OfferState::kNone;
  if (status.failed()) self->engine_.offers_.forget(*self);
  if (!is_matched) return;
  if (status.ok()) return self->end();
  self->fail(MPI_ERR_OTHER);
}

void ReceiveRequest::accepted() {
  const bool has_landed = state == OfferState::kLanded;
  state = has_landed ? OfferState::kNone : OfferState::kAccepted;
  if (has_landed) end();
}

void ReceiveRequest::destroy() {
  SpareReceives& spares = *spares_;
  if (maker() != nullptr || !spares.is_open || spares.count == SpareReceives::kMost) [[unlikely]]
    return Request::destroy();
  ++spares.count;
  retire();
  if (view_.layout != nullptr || !view_.place.is_host()) [[unlikely]]
    view_ = {};
  next_spare_ = std::exchange(spares.first, this);
}

void ReceiveRequest::cut() {
  Outcome outcome = this->outcome();
  outcome.error = MPI_ERR_TRUNCATE;
  outcome.size_bytes = static_cast<std::int64_t>(view_.size_bytes);
  set_outcome(outcome);
}

void ReceiveRequest::fail(int error_class) {
  Outcome outcome = this->outcome();
  outcome.error = error_class;
  set_outcome(outcome);
  end();
}

}  // namespace weft::mpi
