#include "machine/ucx/messages/active_message.h"

#include <algorithm>
#include <cassert>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/format.h"
#include "machine/ucx/setup/library.h"

namespace weft::machine::ucx {
namespace {

constexpr std::size_t large_header_payload_at(std::uint64_t header_bytes) {
  return (sizeof header_bytes + header_bytes + 7) / 8 * 8;
}

}  // namespace

// A message during the call of its handler.
class Arrival final : public AmArrival {
 public:
  Arrival(ActiveMessages& owner, std::span<const std::byte> header_in, void* payload, std::size_t size_bytes,
          std::uint64_t attributes)
      : owner_(owner), payload_(payload), attributes_(attributes) {
    header = header_in;
    payload_size_bytes = size_bytes;
    data = is_rendezvous() ? nullptr : static_cast<const std::byte*>(payload);
  }
  // For a message that arrived inside a start call: its payload is kept already.
  Arrival(ActiveMessages& owner, std::span<const std::byte> header_in, KeptPayload* kept,
          std::size_t size_bytes)
      : owner_(owner), kept_(kept) {
    header = header_in;
    payload_size_bytes = size_bytes;
    data = kept->source == KeptPayload::Source::kRendezvous ? nullptr : bytes_of(*kept);
  }

  AmPayload take() override {
    if (kept_ == nullptr) {
      kept_ = owner_.keep(payload_, payload_size_bytes, attributes_);
      kept_->arrival = this;
    }
    taken_ = true;
    const void* bytes = kept_->source == KeptPayload::Source::kRendezvous ? nullptr : bytes_of(*kept_);
    return {&owner_.machine_, kept_, bytes, payload_size_bytes};
  }

  bool is_taken() const { return taken_; }
  // Called by ActiveMessages when the handler receives or drops the payload during its call.
  void consumed(bool received) {
    kept_ = nullptr;
    received_ = received;
  }
  // The result of the UCX callback: UCS_INPROGRESS if the handler keeps or receives UCX's data, which UCX then
  // does not free.
  ucs_status_t outcome() {
    if (kept_ != nullptr) kept_->arrival = nullptr;
    const bool held_by_handler = kept_ != nullptr && kept_->source != KeptPayload::Source::kCopy;
    return held_by_handler || received_ ? UCS_INPROGRESS : UCS_OK;
  }

 private:
  bool is_rendezvous() const { return (attributes_ & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0; }
  static const std::byte* bytes_of(const KeptPayload& kept) {
    return kept.source == KeptPayload::Source::kCopy ? kept.copy.get()
                                                     : static_cast<const std::byte*>(kept.ucx_data);
  }

  ActiveMessages& owner_;
  void* payload_ = nullptr;
  std::uint64_t attributes_ = 0;
  KeptPayload* kept_ = nullptr;
  bool taken_ = false;
  bool received_ = false;
};

// A message that came through a queue of the host. A payload that is kept is a copy, so that nothing is held for UCX.
class LocalArrival final : public AmArrival {
 public:
  LocalArrival(ActiveMessages& owner, std::span<const std::byte> header_in,
               std::span<const std::byte> payload)
      : owner_(owner) {
    header = header_in;
    data = payload.data();
    payload_size_bytes = payload.size();
  }
  AmPayload take() override {
    KeptPayload* const kept = owner_.keep(const_cast<std::byte*>(data), payload_size_bytes, 0);
    return {&owner_.machine_, kept, kept->copy.get(), payload_size_bytes};
  }

 private:
  ActiveMessages& owner_;
};

ActiveMessages::ActiveMessages(TransportMachine& machine, RequestTracker& tracker,
                               const std::optional<JobSecret>& secret)
    : machine_(machine), tracker_(tracker), secret_(secret) {
  live_.previous = live_.next = &live_;
  for (HandlerSlot& slot : slots_) slot.owner = this;
}

ActiveMessages::~ActiveMessages() = default;

base::Status ActiveMessages::set_handler(ucp_worker_h worker, AmId id, AmHandler handler, void* context) {
  HandlerSlot& slot = slots_[id];
  slot.handler = handler;
  slot.context = context;
  base::Status status =
      set_callback(worker, id, handler == nullptr ? nullptr : &ActiveMessages::on_message, slot);
  if (status.failed()) return status;
  return set_callback(worker, large_header_id(id),
                      handler == nullptr ? nullptr : &ActiveMessages::on_large_header, slot);
}

base::Status ActiveMessages::set_callback(ucp_worker_h worker, unsigned id, ucp_am_recv_callback_t callback,
                                          HandlerSlot& slot) {
  ucp_am_handler_param_t params{};
  params.field_mask =
      UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  params.arg = &slot;
  params.id = id;
  params.cb = callback;
  const ucs_status_t status = ucp_worker_set_am_recv_handler(worker, &params);
  if (status == UCS_OK) return {};
  return {base::StatusCode::kInternal,
          base::format("UCX refuses the handler of active message {}: {}", id, status_text(status))};
}

bool ActiveMessages::admit(std::span<const std::byte>& header, std::size_t size_bytes) {
  if (!secret_->opens(header)) {
    refuse(size_bytes);
    return false;
  }
  header = header.subspan(JobSecret::kBytes);
  return true;
}

ucs_status_t ActiveMessages::on_message(void* argument, const void* header, std::size_t header_size,
                                        void* data, std::size_t size_bytes,
                                        const ucp_am_recv_param_t* params) {
  auto& slot = *static_cast<HandlerSlot*>(argument);
  ActiveMessages& self = *slot.owner;
  if (self.closed_) return UCS_OK;
  std::span<const std::byte> bytes(static_cast<const std::byte*>(header), header_size);
  if (self.secret_ && !self.admit(bytes, size_bytes)) [[unlikely]]
    return UCS_OK;
  return at_boundary([&] { return deliver(slot, bytes, data, size_bytes, params->recv_attr); });
}

inline ucs_status_t ActiveMessages::deliver(HandlerSlot& slot, std::span<const std::byte> header, void* data,
                                            std::size_t size_bytes, std::uint64_t attributes) {
  ActiveMessages& self = *slot.owner;
  if (self.tracker_.starting()) [[unlikely]] {
    KeptPayload* kept = self.keep(data, size_bytes, attributes);
    self.deferred_.push_back({&slot, {header.begin(), header.end()}, size_bytes, kept});
    self.machine_.attention().wanted = true;
    return kept->source == KeptPayload::Source::kCopy ? UCS_OK : UCS_INPROGRESS;
  }
  Arrival arrival(self, header, data, size_bytes, attributes);
  slot.handler(slot.context, arrival);
  return arrival.outcome();
}

bool ActiveMessages::deliver_local(AmId id, std::span<const std::byte> header,
                                   std::span<const std::byte> payload) {
  if (id >= slots_.size()) [[unlikely]]
    return false;
  const HandlerSlot& slot = slots_[id];
  if (slot.handler == nullptr) [[unlikely]]
    return false;
  LocalArrival arrival(*this, header, payload);
  slot.handler(slot.context, arrival);
  return arrival.is_enough;
}

// Layout: u64 size of the header, the header, zeros up to a multiple of 8 bytes, the payload.
std::vector<std::byte> ActiveMessages::pack_large_header(std::span<const std::byte> header,
                                                         const void* payload, std::size_t payload_bytes) {
  const std::uint64_t header_bytes = header.size();
  const std::size_t payload_at = large_header_payload_at(header_bytes);
  std::vector<std::byte> bytes(payload_at + payload_bytes);
  std::memcpy(bytes.data(), &header_bytes, sizeof header_bytes);
  std::ranges::copy(header, bytes.begin() + sizeof header_bytes);
  if (payload_bytes > 0) std::memcpy(bytes.data() + payload_at, payload, payload_bytes);
  return bytes;
}

ucs_status_t ActiveMessages::on_large_header(void* argument, const void* header, std::size_t header_size,
                                             void* data, std::size_t size_bytes,
                                             const ucp_am_recv_param_t* params) {
  auto& slot = *static_cast<HandlerSlot*>(argument);
  ActiveMessages& self = *slot.owner;
  if (self.closed_) return UCS_OK;
  std::span<const std::byte> secret(static_cast<const std::byte*>(header), header_size);
  if (self.secret_ && !self.admit(secret, size_bytes)) return UCS_OK;
  std::uint64_t header_bytes = 0;
  const bool is_here =
      (params->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0 && size_bytes >= sizeof header_bytes;
  if (is_here) std::memcpy(&header_bytes, data, sizeof header_bytes);
  if (!is_here || header_bytes > kMaxAmHeaderBytes || large_header_payload_at(header_bytes) > size_bytes) {
    self.refuse(size_bytes);
    return UCS_OK;
  }
  auto* const bytes = static_cast<std::byte*>(data);
  const std::size_t payload_at = large_header_payload_at(header_bytes);
  // No attributes: the payload is in the middle of UCX's data, so it cannot be passed to
  // ucp_am_data_release(). A handler that keeps it gets a copy.
  return at_boundary([&] {
    return deliver(slot, {bytes + sizeof header_bytes, header_bytes}, bytes + payload_at,
                   size_bytes - payload_at, 0);
  });
}

void ActiveMessages::refuse(std::size_t size_bytes) {
  if (num_refused_++ > 0) return;  // only the first is reported: an attacker must not fill the log
  std::fputs(
      base::format("weft: PE {} refused a message of {} bytes from outside this job, and will refuse more "
                   "silently; keep the hosts' ports closed to others\n",
                   machine_.pe(), size_bytes)
          .c_str(),
      stderr);
}

bool ActiveMessages::deliver_deferred(ucp_worker_h worker) {
  // Deliver only the messages that are here now: a handler that sends to its own PE would keep the loop running.
  std::size_t count = deferred_.size();
  const bool any = count > 0;
  for (; count > 0; --count) {
    Deferred message = std::move(deferred_.front());
    deferred_.pop_front();
    Arrival arrival(*this, message.header, message.payload, message.size_bytes);
    if (message.slot->handler != nullptr) message.slot->handler(message.slot->context, arrival);
    if (!arrival.is_taken()) release(worker, message.payload);
  }
  return any;
}

KeptPayload* ActiveMessages::new_kept() {
  if (free_ == nullptr) {
    pool_.push_back(std::make_unique<KeptPayload>());
    free_ = pool_.back().get();
  }
  KeptPayload* kept = std::exchange(free_, free_->next);
  kept->previous = live_.previous;
  kept->next = &live_;
  live_.previous->next = kept;
  live_.previous = kept;
  return kept;
}

void ActiveMessages::recycle(KeptPayload* kept) {
  kept->previous->next = kept->next;
  kept->next->previous = kept->previous;
  kept->source = KeptPayload::Source::kGone;
  kept->copy.reset();
  kept->ucx_data = nullptr;
  kept->arrival = nullptr;
  kept->next = std::exchange(free_, kept);
}

KeptPayload* ActiveMessages::keep(void* data, std::size_t size_bytes, std::uint64_t attributes) {
  KeptPayload* kept = new_kept();
  if ((attributes & (UCP_AM_RECV_ATTR_FLAG_RNDV | UCP_AM_RECV_ATTR_FLAG_DATA)) != 0) {
    kept->source = (attributes & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0 ? KeptPayload::Source::kRendezvous
                                                                  : KeptPayload::Source::kUcxData;
    kept->ucx_data = data;
    return kept;
  }
  kept->source = KeptPayload::Source::kCopy;
  kept->copy = std::make_unique_for_overwrite<std::byte[]>(size_bytes);
  if (size_bytes > 0) std::memcpy(kept->copy.get(), data, size_bytes);
  return kept;
}

ucs_status_ptr_t ActiveMessages::receive(ucp_worker_h worker, KeptPayload* kept, void* into,
                                         std::size_t size_bytes, const ucp_request_param_t& params) {
  assert(kept->source == KeptPayload::Source::kRendezvous);
  void* descriptor = kept->ucx_data;
  if (kept->arrival != nullptr) kept->arrival->consumed(true);
  recycle(kept);
  return ucp_am_recv_data_nbx(worker, descriptor, into, size_bytes, &params);
}

void ActiveMessages::release(ucp_worker_h worker, KeptPayload* kept) {
  const bool held_by_ucx =
      kept->source == KeptPayload::Source::kRendezvous || kept->source == KeptPayload::Source::kUcxData;
  if (kept->arrival != nullptr) {
    kept->arrival->consumed(false);  // UCX drops it when the callback returns
  } else if (held_by_ucx) {
    ucp_am_data_release(worker, kept->ucx_data);
  }
  recycle(kept);
}

void ActiveMessages::close(ucp_worker_h worker) {
  closed_ = true;
  for (HandlerSlot& slot : slots_) slot.handler = nullptr;
  deferred_.clear();
  for (KeptPayload* kept = live_.next; kept != &live_; kept = kept->next) {
    if (kept->source == KeptPayload::Source::kRendezvous || kept->source == KeptPayload::Source::kUcxData) {
      ucp_am_data_release(worker, kept->ucx_data);
    }
    kept->source = KeptPayload::Source::kGone;
  }
}

}  // namespace weft::machine::ucx
