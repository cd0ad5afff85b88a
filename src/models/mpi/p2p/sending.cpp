// Sending, and the requests. arrivals.cpp has the other side.
#include <algorithm>
#include <cstring>
#include <utility>

#include "weft/mpi/mpi.h"

#include "models/mpi/p2p/point_to_point.h"
#include "models/mpi/p2p/point_to_point_requests.h"

namespace weft::mpi {

namespace {

// The windows of all peers together may fill this much of a PE's memory with messages that no receive has matched.
constexpr std::int64_t kAllWindowsBytes = std::int64_t{512} << 20;
constexpr std::int64_t kLargestWindowBytes = std::int64_t{16} << 20;
constexpr std::int64_t kSmallestWindowBytes = std::int64_t{256} << 10;
// What a kept message takes besides its bytes: its block, its entry, and four places in the queue.
constexpr std::int64_t kKeptBytes = 512;
// Past the window, a message of at most this size waits for its match; as an attachment it would come at once.
constexpr std::size_t kLeastAttachedBytes = 1024;

std::int64_t window_for(int num_pes) {
  return std::clamp(kAllWindowsBytes / num_pes, kSmallestWindowBytes, kLargestWindowBytes);
}

}  // namespace

std::int64_t PointToPoint::charge_of(std::size_t size_bytes) {
  return static_cast<std::int64_t>(size_bytes) + kKeptBytes;
}

PointToPoint::PointToPoint(runtime::Messenger& messenger, runtime::HandlerId first_handler)
    : messenger_(messenger),
      first_handler_(first_handler),
      window_bytes_(window_for(messenger.num_pes())),
      peers_(static_cast<std::size_t>(messenger.num_pes())),
      device_elements_(messenger) {
  for (Peer& one : peers_) {
    one.room_bytes = window_bytes_;
    one.owed_bytes = -window_bytes_ / 4;
  }
  messenger_.set_handler(
      first_handler_ + kBlock,
      [](void* self, runtime::MessagePtr message) {
        static_cast<PointToPoint*>(self)->on_block(std::move(message));
      },
      this);
  messenger_.set_handler(
      first_handler_ + kAnnounced,
      [](void* self, runtime::MessagePtr message) {
        static_cast<PointToPoint*>(self)->on_landed(std::move(message));
      },
      this);
  messenger_.set_poster(
      first_handler_ + kAnnounced,
      [](void* self, runtime::MessagePtr& message, std::span<runtime::Landing> landings) {
        return static_cast<PointToPoint*>(self)->on_announced(message, landings);
      },
      [](void* self, runtime::Message& message) { static_cast<PointToPoint*>(self)->on_dropped(message); });
  messenger_.set_urgent_handler(
      first_handler_ + kAnswer,
      [](void* self, runtime::MessagePtr message) {
        static_cast<PointToPoint*>(self)->on_answer(std::move(message));
      },
      this);
}

// --- Sending

bool PointToPoint::send_at_once(const SendAddress& address, const DataView& view) {
  if (view.size_bytes > kEagerBytes || !view.place.is_host()) return false;
  Peer& to = peer(address.pe);
  const std::int64_t charge = charge_of(view.size_bytes);
  if (to.room_bytes < charge) [[unlikely]]
    return false;
  to.room_bytes -= charge;
  send_block(address, view, kCharged, 0);
  return true;
}

void PointToPoint::send_block(const SendAddress& address, const DataView& view, std::uint32_t flags,
                              std::uint64_t reply) {
  runtime::MessagePtr message =
      runtime::Message::create(messenger_, first_handler_ + kBlock, sizeof(MessageHeader) + view.size_bytes);
  const MessageHeader header{.context = address.context,
                             .sequence = peer(address.pe).next_sent++,
                             .source = address.source,
                             .tag = address.tag,
                             .flags = flags,
                             .reply = reply};
  std::memcpy(message->payload(), &header, sizeof header);
  if (view.size_bytes > 0) view.pack(message->payload() + sizeof header);
  messenger_.send(address.pe, std::move(message));
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
  if (request.mode_ == SendMode::kStandard && send_at_once(request.address_, view))
    return request.complete({});
  request.acquire();  // until the last awaited thing has happened
  const bool is_synchronous = request.mode_ == SendMode::kSynchronous;
  if (!view.place.is_host() || view.size_bytes > kEagerBytes ||
      (!is_synchronous && view.size_bytes > kLeastAttachedBytes))
    return start_attached(request);
  request.waits_ = SendRequest::kAnswered;
  send_block(request.address_, view, kWantsAnswer, awaited_.add(&request, request.address_.pe));
}

// The packed form of a view with gaps, on its device or in a block that the request keeps.
base::Result<runtime::Attachment> PointToPoint::pack_for(SendRequest& request) {
  const DataView& view = request.view_;
  if (!view.place.is_host()) return device_elements_.pack(view);
  request.packed_ = static_cast<std::byte*>(messenger_.pool().allocate(view.size_bytes));
  view.pack(request.packed_);
  return runtime::Attachment({request.packed_, view.size_bytes, {}, nullptr});
}

void PointToPoint::start_attached(SendRequest& request) {
  const SendAddress& address = request.address_;
  const DataView& view = request.view_;
  runtime::Attachment attachment({view.data, view.size_bytes, view.place, view.stream});
  if (!view.is_dense()) {
    base::Result<runtime::Attachment> packed = pack_for(request);
    if (!packed.ok()) {
      request.error_ =
          packed.status().code() == base::StatusCode::kOutOfMemory ? MPI_ERR_NO_MEM : MPI_ERR_OTHER;
      return request.happened(SendRequest::kSent);
    }
    attachment = std::move(packed).value();
  }
  MessageHeader header{.context = address.context,
                       .sequence = peer(address.pe).next_sent++,
                       .source = address.source,
                       .tag = address.tag};
  request.waits_ = SendRequest::kSent;
  if (request.mode_ == SendMode::kSynchronous) {
    request.waits_ |= SendRequest::kAnswered;
    header.flags = kWantsAnswer;
    header.reply = awaited_.add(&request, address.pe);
  }
  runtime::MessagePtr message =
      runtime::Message::create(messenger_, first_handler_ + kAnnounced, sizeof header);
  std::memcpy(message->payload(), &header, sizeof header);
  message->attach(std::move(attachment));
  message->report_sending(&request);
  messenger_.send(address.pe, std::move(message));
}

// --- SendRequest

SendRequest::~SendRequest() { release_packed(); }

void SendRequest::start() {
  activate();
  base::Completion::function = &SendRequest::on_sent;
  error_ = MPI_SUCCESS;
  engine_.start_send(*this);
}

void SendRequest::on_sent(base::Completion* completion, base::Status status, std::size_t) {
  auto* const self = static_cast<SendRequest*>(completion);
  if (status.failed()) self->error_ = MPI_ERR_OTHER;
  self->happened(kSent);
}

void SendRequest::happened(Waits which) {
  waits_ &= static_cast<std::uint8_t>(~which);
  if (waits_ != 0) return;
  release_packed();
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
