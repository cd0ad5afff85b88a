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

int source_of(const runtime::Message& message) { return static_cast<int>(message.envelope().source_pe); }

}  // namespace

void PointToPoint::refuse_message(int source_pe, const std::string& what) {
  base::refuse_claim(base::format("an MPI message from PE {} {}", source_pe, what),
                     "do all PEs run the same version of Weft?");
}
void PointToPoint::refuse_size(const runtime::DirectArrival& arrival) {
  refuse_message(arrival.source_pe, base::format("has a header of {} bytes, not {}", arrival.header.size(),
                                                 sizeof(MessageHeader)));
}

// Messages may be left that no receive has taken.
void PointToPoint::close() {
  while (auto* const posted = static_cast<ReceiveRequest*>(posted_.any()))
    posted->end_without_message({.cancelled = true});
  for (SendRequest* const unanswered : awaited_.take_all()) unanswered->happened(SendRequest::kAnswered);
  for (SendRequest* const failed : std::exchange(failed_sends_, {})) failed->happened(SendRequest::kSent);
  while (ArrivedEntry* const entry = unexpected_.oldest()) {
    unexpected_.remove(*entry);
    drop(static_cast<ArrivedMessage*>(entry));
  }
}

PointToPoint::~PointToPoint() {
  close();
  last_on_device_.clear();
  free_spare_receives();
}

// --- Arrivals

std::size_t PointToPoint::bytes_of(const MessageHeader& header, const runtime::Message& message) {
  if (message.has_attachments()) return message.attachments()[0].buffer().size_bytes;
  return message.payload_bytes() - sizeof header - trailer_bytes(header.flags);
}

// Most messages have no flag but kCharged.
inline void PointToPoint::check_header(const MessageHeader& header, int source_pe,
                                       std::size_t size_bytes) const {
  const bool is_plain = (header.flags & ~std::uint32_t{kCharged}) == 0 && (header.source | header.tag) >= 0;
  if (!is_plain) [[unlikely]]
    check_special(header, source_pe, size_bytes);
  if (!shared_.is_on(header.from, source_pe) || header.to != rank_) [[unlikely]]
    refuse_route(header, source_pe);
}

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

void PointToPoint::refuse_route(const MessageHeader& header, int source_pe) const {
  refuse_message(source_pe, base::format("is from rank {} to rank {}, and rank {} on this PE got it",
                                         header.from, header.to, rank_));
}

void PointToPoint::check_special(const MessageHeader& header, int source_pe, std::size_t size_bytes) {
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
  receive->match(header.source, header.tag, receive->view_.size_bytes);
  receive->accepted();
}

void PointToPoint::match_one(const MessageHeader& header, runtime::MessagePtr message) {
  if ((header.flags & kOffered) != 0) [[unlikely]]
    return match_offered(header, *message);
  PostedEntry* const posted = posted_.take({header.context, header.source, header.tag});
  if (posted == nullptr) {
    if (drops(header)) [[unlikely]]
      return matched(header, *message);
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

inline void PointToPoint::matched(const MessageHeader& header, int source_pe, std::size_t size_bytes,
                                  std::uint64_t reply) {
  std::uint64_t room_bytes = 0;
  if ((header.flags & kCharged) != 0)
    room_bytes = shared_.give_back(source_pe, SharedState::charge_of(size_bytes));
  if (reply != 0 || room_bytes != 0) [[unlikely]]
    answer(source_pe, {.reply = reply, .room_bytes = room_bytes, .from = rank_, .to = header.from});
}

// From shared memory to the memory of the receive. What cannot go there now gets a block.
bool PointToPoint::on_direct(const runtime::DirectArrival& arrival) {
  MessageHeader header;
  if (arrival.header.size() != sizeof header) [[unlikely]]
    refuse_size(arrival);
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
    if (drops(header)) [[unlikely]] {
      matched(header, arrival.source_pe, arrival.payload.size(), 0);
    } else {
      keep(header, block_of(header, arrival));
    }
  } else if (posted->view_.place.is_host()) [[likely]] {
    matched(header, arrival.source_pe, arrival.payload.size(), 0);
    posted->match(header.source, header.tag, arrival.payload.size());
    posted->view_.unpack(arrival.payload.data(), arrival.payload.size());
    posted->end();
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
  // Not std::ranges::copy, which GCC 12 makes a loop over bytes.
  if (!arrival.payload.empty())
    std::memcpy(message->payload() + sizeof header, arrival.payload.data(), arrival.payload.size());
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
    if (drops(header)) [[unlikely]] {
      matched(header, *message);
      match_early(header.from);
      return runtime::Posting::kDrop;
    }
    keep(header, std::move(message));
  } else {
    matched(header, *message);
    choose_receive_buffer(*static_cast<ReceiveRequest*>(posted), *message, receive_buffers[0]);
  }
  match_early(header.from);
  return posted == nullptr ? runtime::Posting::kDefer : runtime::Posting::kHandle;
}

void PointToPoint::matched(const MessageHeader& header, const runtime::Message& message) {
  std::uint64_t reply = 0;
  if ((header.flags & kWantsAnswer) != 0) {
    const std::byte* const end = const_cast<runtime::Message&>(message).payload() + message.payload_bytes();
    std::memcpy(&reply, end - sizeof reply, sizeof reply);
  }
  matched(header, source_of(message), bytes_of(header, message), reply);
}

void PointToPoint::answer(int pe, const Answer& reply) {
  if (shared_.is_outside(reply.to)) [[unlikely]] {
    const Outsiders& outsiders = shared_.outsiders();
    outsiders.way->send(outsiders.name_of(reply.to), OutsideWay::Type::kAnswer,
                        std::as_bytes(std::span(&reply.reply, 1)));
    return;
  }
  runtime::MessagePtr message = runtime::Message::create(messenger_, first_handler_ + kAnswer, sizeof reply);
  std::memcpy(message->payload(), &reply, sizeof reply);
  message->envelope().flags |= runtime::kControlFlag | runtime::kUrgentFlag;
  messenger_.send(pe, std::move(message));
}

void PointToPoint::on_outside(int from, OutsideWay::Type type, std::span<const std::byte> bytes) {
  if (type == OutsideWay::Type::kAnswer) return answered_outside(from, bytes);
  MessageHeader header;
  if (bytes.size() < sizeof header) refuse_message(from, "of another job is shorter than its header");
  std::memcpy(&header, bytes.data(), sizeof header);
  check_special(header, from, bytes.size() - sizeof header);
  if ((header.flags & ~std::uint32_t{kWantsAnswer}) != 0)
    refuse_message(from, "of another job has wrong flags");
  const bool is_agreed = (header.context >> 63) != 0;  // see AgreementContext
  if (!is_agreed && !is_outside_context_base(header.context >> kContextUseBits))
    refuse_message(from, "of another job is for a communicator of this job alone");
  header.from = from;
  header.to = rank_;
  runtime::MessagePtr message = runtime::Message::for_arrival(messenger_, bytes.size());
  message->envelope() = {.handler = static_cast<runtime::HandlerId>(first_handler_ + kBlock),
                         .flags = runtime::kControlFlag | runtime::kUrgentFlag,
                         .source_pe = static_cast<std::uint32_t>(from)};
  std::memcpy(message->payload(), bytes.data(), bytes.size());
  std::memcpy(message->payload(), &header, sizeof header);
  match_one(header, std::move(message));
}

void PointToPoint::answered_outside(int from, std::span<const std::byte> bytes) {
  std::uint64_t reply = 0;
  if (bytes.size() == sizeof reply) std::memcpy(&reply, bytes.data(), sizeof reply);
  if (!answered(reply, from)) refuse_message(from, "of another job answers a message that does not wait");
}

bool PointToPoint::answered(std::uint64_t number, int from) {
  SendRequest* const request = awaited_.take(number, from);
  if (request != nullptr) request->happened(SendRequest::kAnswered);
  return request != nullptr;
}

}  // namespace weft::mpi
