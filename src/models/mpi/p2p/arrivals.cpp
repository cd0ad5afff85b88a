// The part of PointToPoint that handles receives and messages that arrive.
#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "weft/base/error.h"
#include "weft/mpi/mpi.h"

#include "base/format.h"
#include "base/refuse_claim.h"
#include "memory/memory.h"
#include "models/mpi/p2p/point_to_point.h"
#include "models/mpi/p2p/point_to_point_requests.h"

namespace weft::mpi {

namespace {

constexpr std::uint32_t kMostEarly = 1U << 20;

[[noreturn, gnu::cold, gnu::noinline]] void refuse_message(int source_pe, const std::string& what) {
  base::refuse_claim(base::format("an MPI message from PE {} {}", source_pe, what),
                     "do all PEs run the same version of Weft?");
}

int source_of(const runtime::Message& message) { return static_cast<int>(message.envelope().source_pe); }

std::size_t bytes_of(const MessageHeader& header, const runtime::Message& message) {
  if (message.has_attachments()) return message.attachments()[0].buffer().size_bytes;
  return message.payload_bytes() - sizeof header - trailer_bytes(header.flags);
}

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

// Messages may be left that no receive has taken.
void PointToPoint::close() {
  while (auto* const posted = static_cast<ReceiveRequest*>(posted_.any())) posted->end_without_message();
  for (SendRequest* const unanswered : awaited_.take_all()) unanswered->happened(SendRequest::kAnswered);
  while (ArrivedEntry* const entry = unexpected_.any()) {
    unexpected_.remove(*entry);
    drop(static_cast<ArrivedMessage*>(entry));
  }
}

PointToPoint::~PointToPoint() { close(); }

// --- Arrivals

MessageHeader PointToPoint::checked_header(const runtime::Message& message) const {
  MessageHeader header;
  if (message.payload_bytes() < sizeof header) {
    refuse_message(source_of(message), base::format("has {} bytes, and its header alone has {}",
                                                    message.payload_bytes(), sizeof header));
  }
  std::memcpy(&header, const_cast<runtime::Message&>(message).payload(), sizeof header);
  if (message.envelope().source_pe >= static_cast<std::uint32_t>(messenger_.num_pes())) {
    refuse_message(source_of(message),
                   base::format("names its sender wrongly: there are {} PEs", messenger_.num_pes()));
  }
  check_header(header, source_of(message), message.payload_bytes() - sizeof header);
  return header;
}

void PointToPoint::check_header(const MessageHeader& header, int source_pe, std::size_t size_bytes) const {
  if (header.source < 0 || header.tag < 0 || (header.flags & ~kKnownMessageFlags) != 0 ||
      size_bytes < trailer_bytes(header.flags)) {
    refuse_message(source_pe, base::format("has rank {}, tag {}, flags {:#x} and {} bytes behind its header",
                                           header.source, header.tag, header.flags, size_bytes));
  }
  const bool is_offered = (header.flags & kOffered) != 0;
  if (is_offered && (header.flags != kOffered || size_bytes != trailer_bytes(kOffered))) {
    refuse_message(source_pe,
                   base::format("accepts an offer, with flags {:#x} and {} bytes behind its header",
                                header.flags, size_bytes));
  }
  if (!shared_.map().has(header.from) || shared_.map().pe_of(header.from) != source_pe ||
      header.to != rank_) {
    refuse_message(source_pe, base::format("is from rank {} to rank {}, and rank {} on this PE got it",
                                           header.from, header.to, rank_));
  }
}

bool PointToPoint::is_in_turn(const MessageHeader& header, runtime::MessagePtr& message) {
  const Pair& from = pair(header.from);
  if (header.sequence == from.next_matched) [[likely]] {
    count_arrived(header);
    return true;
  }
  const std::pair<int, std::uint32_t> place(header.from, header.sequence);
  if (header.sequence - from.next_matched > kMostEarly || early_.contains(place)) {
    refuse_message(source_of(*message), base::format("has number {}, and number {} is the next to come",
                                                     header.sequence, from.next_matched));
  }
  early_.emplace(place, std::move(message));
  return false;
}

void PointToPoint::match_early(int from) {
  while (!early_.empty()) {
    const auto first = early_.find({from, pair(from).next_matched});
    if (first == early_.end()) return;
    runtime::MessagePtr message = std::move(first->second);
    early_.erase(first);
    const MessageHeader header = checked_header(*message);
    count_arrived(header);
    match_one(header, std::move(message));
  }
}

// Revokes the offer to rank `from`, because a message has come that is not the one that the offer was for.
void PointToPoint::revoke_offer(int from) {
  if (!offers_.revoke(from))
    refuse_message(shared_.destination(from).pe, "has not accepted an offer, and bytes go into the receive");
}

void PointToPoint::match_offered(const MessageHeader& header, const runtime::Message& message) {
  std::uint64_t number = 0;
  std::memcpy(&number, const_cast<runtime::Message&>(message).payload() + sizeof header, sizeof number);
  PostedEntry* const posted = posted_.find({header.context, header.source, header.tag});
  auto* const receive = static_cast<ReceiveRequest*>(posted);
  if (receive == nullptr || offers_.take(header.from, number) != receive) {
    refuse_message(source_of(message),
                   base::format("accepts offer {}, and there is no such receive of rank {}", number, rank_));
  }
  posted_.remove(*posted);
  receive->posted_ = false;
  receive->match(header.source, header.tag, receive->view_.size_bytes);
  receive->accepted();
}

void PointToPoint::match_one(const MessageHeader& header, runtime::MessagePtr message) {
  if ((header.flags & kOffered) != 0) [[unlikely]]
    return match_offered(header, *message);
  PostedEntry* const posted = posted_.take({header.context, header.source, header.tag});
  if (posted == nullptr) {
    keep(header, std::move(message));
  } else {
    deliver(*static_cast<ReceiveRequest*>(posted), header, std::move(message));
  }
}

void PointToPoint::on_block(runtime::MessagePtr message) {
  const MessageHeader header = checked_header(*message);
  if (message->has_attachments())
    refuse_message(source_of(*message), "has a buffer beside it that it should not have");
  if (!is_in_turn(header, message)) return;
  match_one(header, std::move(message));
  if (!early_.empty()) [[unlikely]]
    match_early(header.from);
}

// From shared memory to the memory of the receive. What cannot go there now gets a block.
bool PointToPoint::on_direct(const runtime::DirectArrival& arrival) {
  MessageHeader header;
  if (arrival.header.size() != sizeof header) [[unlikely]] {
    refuse_message(arrival.source_pe,
                   base::format("has a header of {} bytes, not {}", arrival.header.size(), sizeof header));
  }
  std::memcpy(&header, arrival.header.data(), sizeof header);
  check_header(header, arrival.source_pe, arrival.payload.size());
  if (header.sequence != pair(header.from).next_matched || (header.flags & (kWantsAnswer | kOffered)) != 0)
      [[unlikely]] {
    on_block(block_of(header, arrival));
    return false;
  }
  count_arrived(header);
  auto* const posted =
      static_cast<ReceiveRequest*>(posted_.take({header.context, header.source, header.tag}));
  if (posted == nullptr) {
    keep(header, block_of(header, arrival));
  } else if (posted->view_.place.is_host()) [[likely]] {
    matched(header, arrival.source_pe, arrival.payload.size(), 0);
    posted->posted_ = false;
    posted->match(header.source, header.tag, arrival.payload.size());
    posted->landed(arrival.payload.data(), arrival.payload.size());
  } else {
    deliver(*posted, header, block_of(header, arrival));
  }
  if (!early_.empty()) [[unlikely]]
    match_early(header.from);
  return posted != nullptr && posted_.size() == 0;
}

runtime::MessagePtr PointToPoint::block_of(const MessageHeader& header,
                                           const runtime::DirectArrival& arrival) const {
  runtime::MessagePtr message =
      runtime::Message::for_arrival(messenger_, sizeof header + arrival.payload.size());
  message->envelope() = {.handler = static_cast<runtime::HandlerId>(first_handler_ + kBlock),
                         .flags = runtime::kControlFlag | runtime::kUrgentFlag,
                         .source_pe = static_cast<std::uint32_t>(arrival.source_pe)};
  std::memcpy(message->payload(), &header, sizeof header);
  std::ranges::copy(arrival.payload, message->payload() + sizeof header);
  return message;
}

runtime::Posting PointToPoint::on_announced(runtime::MessagePtr& message,
                                            std::span<runtime::ReceiveBuffer> receive_buffers) {
  const MessageHeader header = checked_header(*message);
  if (receive_buffers.size() != 1 || (header.flags & kOffered) != 0) {
    refuse_message(source_of(*message),
                   base::format("has {} buffers and flags {:#x}", receive_buffers.size(), header.flags));
  }
  if (!is_in_turn(header, message)) return runtime::Posting::kDefer;
  if ((header.flags & kAwaitsOffers) != 0) offers_.wanted(header.from);
  PostedEntry* const posted = posted_.take({header.context, header.source, header.tag});
  if (posted == nullptr) {
    keep(header, std::move(message));
  } else {
    matched(header, *message);
    choose_receive_buffer(*static_cast<ReceiveRequest*>(posted), *message, receive_buffers[0]);
  }
  match_early(header.from);
  return posted == nullptr ? runtime::Posting::kDefer : runtime::Posting::kHandle;
}

// The bytes of an announced message have landed. A message to this handler without a buffer has had no poster.
void PointToPoint::on_landed(runtime::MessagePtr message) {
  if (!message->was_posted()) refuse_message(source_of(*message), "has no buffer beside it");
  ReceiveRequest& request = remembered_receive(*message);
  const memory::Buffer& buffer = message->attachments()[0].buffer();
  // There is none if the message was far too large for the receive.
  if (!request.view_.place.is_host() && !request.view_.is_dense() && buffer.data != nullptr) [[unlikely]]
    return request.engine_.unpack_on_device(request, std::move(message->attachments()[0]));
  request.landed(static_cast<const std::byte*>(buffer.data), buffer.size_bytes);
}

void PointToPoint::on_dropped(runtime::Message& message) {
  ReceiveRequest& request = remembered_receive(message);
  request.fail(MPI_ERR_OTHER);
}

void PointToPoint::matched(const MessageHeader& header, const runtime::Message& message) {
  std::uint64_t reply = 0;
  if ((header.flags & kWantsAnswer) != 0) {
    const std::byte* const end = const_cast<runtime::Message&>(message).payload() + message.payload_bytes();
    std::memcpy(&reply, end - sizeof reply, sizeof reply);
  }
  matched(header, source_of(message), bytes_of(header, message), reply);
}

void PointToPoint::matched(const MessageHeader& header, int source_pe, std::size_t size_bytes,
                           std::uint64_t reply) {
  std::uint64_t room_bytes = 0;
  if ((header.flags & kCharged) != 0)
    room_bytes = shared_.give_back(source_pe, SharedState::charge_of(size_bytes));
  if (reply != 0 || room_bytes != 0) [[unlikely]]
    answer(source_pe, {.reply = reply, .room_bytes = room_bytes, .from = rank_, .to = header.from});
}

void PointToPoint::answer(int pe, const Answer& reply) {
  runtime::MessagePtr message = runtime::Message::create(messenger_, first_handler_ + kAnswer, sizeof reply);
  std::memcpy(message->payload(), &reply, sizeof reply);
  message->envelope().flags |= runtime::kControlFlag | runtime::kUrgentFlag;
  messenger_.send(pe, std::move(message));
}

bool PointToPoint::answered(std::uint64_t number, int from) {
  SendRequest* const request = awaited_.take(number, from);
  if (request != nullptr) request->happened(SendRequest::kAnswered);
  return request != nullptr;
}

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
  const MessageHeader header = checked_header(*message);
  deliver(request, header, std::move(message));
}

const ArrivedMessage* PointToPoint::probe(const MatchKey& key) const {
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

Ref<ReceiveRequest> PointToPoint::make_receive(const MatchKey& key, const DataView& view, int from) {
  return Request::make<ReceiveRequest>(messenger_, *this, key, view, from);
}

Ref<ReceiveRequest> PointToPoint::receive(const MatchKey& key, const DataView& view, int from) {
  Ref<ReceiveRequest> request = make_receive(key, view, from);
  request->start();
  return request;
}

void PointToPoint::start_receive(ReceiveRequest& request) {
  request.acquire();  // until a message has landed, or the receive is cancelled
  ArrivedMessage* const arrived = take_probed(request.key);
  if (arrived == nullptr) {
    request.posted_ = true;
    posted_.post(request);
    if (!request.view_.place.is_host() && request.from != kAny) [[unlikely]]
      offer(request);
    return;
  }
  hand_over(request, arrived);
}

// If the next message of its source can match no other receive, and is not likely to be for an earlier one.
void PointToPoint::offer(ReceiveRequest& request) {
  if (virtual_rank_ != nullptr) return;  // ranks that move leave no streams behind
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
  request.posted_ = false;
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
  request.posted_ = false;
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

// --- ReceiveRequest

void ReceiveRequest::start() {
  activate();
  engine_.start_receive(*this);
}

int ReceiveRequest::cancel() {
  if (!posted_ || !engine_.offers_.revoke(*this)) return MPI_SUCCESS;
  posted_ = false;
  engine_.posted_.remove(*this);
  end({.cancelled = true});
  return MPI_SUCCESS;
}

void ReceiveRequest::end_without_message() {
  posted_ = false;
  engine_.posted_.remove(*this);
  found_ = {.cancelled = true};
  if (engine_.offers_.revoke(*this)) return end(found_);
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
  if (status.ok()) return self->end(self->found_);
  self->fail(MPI_ERR_OTHER);
}

void ReceiveRequest::accepted() {
  const bool has_landed = state == OfferState::kLanded;
  state = has_landed ? OfferState::kNone : OfferState::kAccepted;
  if (has_landed) end(found_);
}

void ReceiveRequest::match(int source, int tag, std::size_t size_bytes) {
  found_ = {.source = source, .tag = tag, .size_bytes = static_cast<std::int64_t>(size_bytes)};
  if (size_bytes > view_.size_bytes) [[unlikely]] {
    found_.error = MPI_ERR_TRUNCATE;
    found_.size_bytes = static_cast<std::int64_t>(view_.size_bytes);
  }
}

void ReceiveRequest::landed(const std::byte* packed, std::size_t packed_bytes) {
  if (packed != view_.data && view_.place.is_host()) view_.unpack(packed, packed_bytes);
  end(found_);
}

void ReceiveRequest::fail(int error_class) {
  found_.error = error_class;
  end(found_);
}

void ReceiveRequest::end(const Outcome& outcome) {
  complete(outcome);
  release();
}

}  // namespace weft::mpi
