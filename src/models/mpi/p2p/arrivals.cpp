// What PointToPoint does with messages that arrive, and with receives.
#include <algorithm>
#include <cstring>
#include <utility>

#include "weft/base/error.h"
#include "weft/mpi/mpi.h"

#include "base/format.h"
#include "memory/memory.h"
#include "models/mpi/p2p/point_to_point.h"
#include "models/mpi/p2p/point_to_point_requests.h"

namespace weft::mpi {

namespace {

constexpr std::uint32_t kMostEarly = 1U << 20;

[[noreturn, gnu::cold, gnu::noinline]] void refuse_message(const runtime::Message& message,
                                                           const std::string& what) {
  throw base::Error(base::StatusCode::kCorrupt,
                    base::format("an MPI message from PE {} {}; do all PEs run the same version of Weft?",
                                 message.envelope().source_pe, what));
}

int source_of(const runtime::Message& message) { return static_cast<int>(message.envelope().source_pe); }

std::size_t bytes_of(const runtime::Message& message) {
  return message.has_attachments() ? message.attachments()[0].buffer().size_bytes
                                   : message.payload_bytes() - sizeof(MessageHeader);
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

void PointToPoint::close() {
  while (auto* const posted = static_cast<ReceiveRequest*>(posted_.any())) posted->cancel();
  for (SendRequest* const unanswered : awaited_.take_all()) unanswered->happened(SendRequest::kAnswered);
}

// At the end of a job messages may be left that no receive has taken.
PointToPoint::~PointToPoint() {
  close();
  while (ArrivedEntry* const entry = unexpected_.any()) {
    unexpected_.remove(*entry);
    forget(static_cast<ArrivedMessage*>(entry));
  }
}

// --- Arrivals

MessageHeader PointToPoint::checked_header(const runtime::Message& message) const {
  MessageHeader header;
  if (message.payload_bytes() < sizeof header) {
    refuse_message(message, base::format("has {} bytes, and its header alone has {}", message.payload_bytes(),
                                         sizeof header));
  }
  std::memcpy(&header, const_cast<runtime::Message&>(message).payload(), sizeof header);
  if (message.envelope().source_pe >= static_cast<std::uint32_t>(messenger_.num_pes()))
    refuse_message(message, base::format("names its sender wrongly: there are {} PEs", messenger_.num_pes()));
  if (header.source < 0 || header.tag < 0 || (header.flags & ~kKnownMessageFlags) != 0) {
    refuse_message(message, base::format("has rank {}, tag {} and flags {:#x}", header.source, header.tag,
                                         header.flags));
  }
  return header;
}

bool PointToPoint::is_in_turn(const MessageHeader& header, Peer& from, runtime::MessagePtr& message) {
  if (header.sequence == from.next_matched) [[likely]] {
    ++from.next_matched;
    return true;
  }
  if (header.sequence - from.next_matched > kMostEarly || from.early.contains(header.sequence)) {
    refuse_message(*message, base::format("has number {}, and number {} is the next to come", header.sequence,
                                          from.next_matched));
  }
  from.early.emplace(header.sequence, std::move(message));
  return false;
}

void PointToPoint::match_early(Peer& from) {
  while (!from.early.empty()) {
    const auto first = from.early.find(from.next_matched);
    if (first == from.early.end()) return;
    runtime::MessagePtr message = std::move(first->second);
    from.early.erase(first);
    ++from.next_matched;
    const MessageHeader header = checked_header(*message);
    match_one(header, std::move(message));
  }
}

void PointToPoint::match_one(const MessageHeader& header, runtime::MessagePtr message) {
  PostedEntry* const posted = posted_.take({header.context, header.source, header.tag});
  if (posted == nullptr) {
    keep(header, std::move(message));
  } else {
    deliver(*static_cast<ReceiveRequest*>(posted), header, std::move(message));
  }
}

void PointToPoint::on_block(runtime::MessagePtr message) {
  const MessageHeader header = checked_header(*message);
  if (message->has_attachments()) refuse_message(*message, "has a buffer beside it that it should not have");
  Peer& from = peer(source_of(*message));
  if (!is_in_turn(header, from, message)) return;
  match_one(header, std::move(message));
  if (!from.early.empty()) [[unlikely]]
    match_early(from);
}

runtime::Posting PointToPoint::on_announced(runtime::MessagePtr& message,
                                            std::span<runtime::Landing> landings) {
  const MessageHeader header = checked_header(*message);
  if (landings.size() != 1) refuse_message(*message, base::format("has {} buffers", landings.size()));
  Peer& from = peer(source_of(*message));
  if (!is_in_turn(header, from, message)) return runtime::Posting::kDefer;
  PostedEntry* const posted = posted_.take({header.context, header.source, header.tag});
  if (posted == nullptr) {
    keep(header, std::move(message));
  } else {
    matched(header, *message);
    choose_landing(*static_cast<ReceiveRequest*>(posted), *message, landings[0]);
  }
  match_early(from);
  return posted == nullptr ? runtime::Posting::kDefer : runtime::Posting::kHandle;
}

// The bytes of an announced message have landed. A message to this handler without a buffer has had no poster.
void PointToPoint::on_landed(runtime::MessagePtr message) {
  if (!message->was_posted()) refuse_message(*message, "has no buffer beside it");
  ReceiveRequest& request = remembered_receive(*message);
  if (!request.view_.place.is_host() && !request.view_.is_dense()) [[unlikely]]
    return unpack_on_device(request, std::move(message->attachments()[0]));
  const memory::Buffer& buffer = message->attachments()[0].buffer();
  request.landed(static_cast<const std::byte*>(buffer.data), buffer.size_bytes);
}

void PointToPoint::on_dropped(runtime::Message& message) {
  ReceiveRequest& request = remembered_receive(message);
  request.fail(MPI_ERR_OTHER);
}

void PointToPoint::matched(const MessageHeader& header, const runtime::Message& message) {
  Answer reply;
  if ((header.flags & kWantsAnswer) != 0) reply.reply = header.reply;
  const int pe = source_of(message);
  if ((header.flags & kCharged) != 0) {
    Peer& from = peer(pe);
    from.owed_bytes += charge_of(bytes_of(message));
    if (from.owed_bytes >= 0) [[unlikely]] {
      reply.room_bytes = static_cast<std::uint64_t>(from.owed_bytes + window_bytes_ / 4);
      from.owed_bytes = -window_bytes_ / 4;
    }
  }
  if (reply.reply != 0 || reply.room_bytes != 0) answer(pe, reply);
}

void PointToPoint::answer(int pe, const Answer& reply) {
  runtime::MessagePtr message = runtime::Message::create(messenger_, first_handler_ + kAnswer, sizeof reply);
  std::memcpy(message->payload(), &reply, sizeof reply);
  message->envelope().flags |= runtime::kControlFlag | runtime::kUrgentFlag;
  messenger_.send(pe, std::move(message));
}

// Inside progress(), or for this PE itself in its turn.
void PointToPoint::on_answer(runtime::MessagePtr message) {
  Answer reply;
  if (message->payload_bytes() != sizeof reply ||
      message->envelope().source_pe >= static_cast<std::uint32_t>(messenger_.num_pes()))
    refuse_message(*message, "answers with a wrong size or sender");
  std::memcpy(&reply, message->payload(), sizeof reply);
  const int pe = source_of(*message);
  Peer& to = peer(pe);
  if (reply.room_bytes > static_cast<std::uint64_t>(window_bytes_ - to.room_bytes))
    refuse_message(*message, base::format("gives back {} bytes of room, and {} are in use", reply.room_bytes,
                                          window_bytes_ - to.room_bytes));
  to.room_bytes += static_cast<std::int64_t>(reply.room_bytes);
  if (reply.reply == 0) return;
  SendRequest* const request = awaited_.take(reply.reply, pe);
  if (request == nullptr)
    refuse_message(*message, base::format("answers number {:#x}, which does not wait", reply.reply));
  request->happened(SendRequest::kAnswered);
}

// --- Messages that wait for a receive

ArrivedMessage* PointToPoint::keep(const MessageHeader& header, runtime::MessagePtr message) {
  auto* const arrived = new (messenger_.pool().allocate(sizeof(ArrivedMessage))) ArrivedMessage;
  arrived->key = {header.context, header.source, header.tag};
  arrived->source_pe = source_of(*message);
  arrived->size_bytes = bytes_of(*message);
  arrived->message = std::move(message);
  unexpected_.add(*arrived);
  return arrived;
}

runtime::MessagePtr PointToPoint::forget(ArrivedMessage* arrived) {
  runtime::MessagePtr message = std::move(arrived->message);
  std::destroy_at(arrived);
  messenger_.pool().deallocate(arrived, sizeof(ArrivedMessage));
  return message;
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
  runtime::MessagePtr message = forget(arrived);
  const MessageHeader header = checked_header(*message);
  deliver(request, header, std::move(message));
}

void PointToPoint::drop_probed(ArrivedMessage* arrived) { forget(arrived); }

// --- Receiving

Ref<ReceiveRequest> PointToPoint::make_receive(const MatchKey& key, const DataView& view) {
  return Request::make<ReceiveRequest>(messenger_, *this, key, view);
}

Ref<ReceiveRequest> PointToPoint::receive(const MatchKey& key, const DataView& view) {
  Ref<ReceiveRequest> request = make_receive(key, view);
  request->start();
  return request;
}

void PointToPoint::start_receive(ReceiveRequest& request) {
  request.acquire();  // until a message has landed, or the receive is cancelled
  ArrivedMessage* const arrived = take_probed(request.key);
  if (arrived == nullptr) {
    request.posted_ = true;
    posted_.post(request);
    return;
  }
  runtime::MessagePtr message = forget(arrived);
  const MessageHeader header = checked_header(*message);
  deliver(request, header, std::move(message));
}

void PointToPoint::deliver(ReceiveRequest& request, const MessageHeader& header,
                           runtime::MessagePtr message) {
  matched(header, *message);
  request.posted_ = false;
  if (message->has_attachments()) {
    std::vector<runtime::Landing> landings = messenger_.landings_of(*message);
    choose_landing(request, *message, landings[0]);
    return messenger_.place(std::move(message), landings);
  }
  const std::size_t size_bytes = bytes_of(*message);
  request.match(header.source, header.tag, size_bytes);
  const std::byte* const bytes = message->payload() + sizeof(MessageHeader);
  if (request.view_.place.is_host()) [[likely]]
    return request.landed(bytes, size_bytes);
  land_on_device(request, std::move(message));
}

// Bytes of a dense receive land in its memory, as many as it has room for. Others land in a block of the pool.
void PointToPoint::choose_landing(ReceiveRequest& request, runtime::Message& message,
                                  runtime::Landing& landing) {
  MessageHeader header;
  std::memcpy(&header, message.payload(), sizeof header);
  request.posted_ = false;
  request.match(header.source, header.tag, landing.size_bytes);
  remember_receive(message, &request);
  const DataView& view = request.view_;
  if (view.is_dense()) {
    landing.into = runtime::Attachment({view.data, view.size_bytes, view.place, view.stream});
    return;
  }
  if (!view.place.is_host()) return choose_landing_block(request, landing);
  runtime::BlockPool& pool = messenger_.pool();
  landing.into = runtime::Attachment(
      {pool.allocate(landing.size_bytes), landing.size_bytes, {}, nullptr},
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
  if (!std::exchange(posted_, false)) return MPI_SUCCESS;
  engine_.posted_.remove(*this);
  end({.cancelled = true});
  return MPI_SUCCESS;
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
