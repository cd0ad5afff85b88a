// Active messages on a UCP worker: the handler table, arrivals, and payloads that handlers keep.
//
// Threads: the PE's thread. No handler runs inside a start call: a message that arrives there is kept and
// delivered from the next progress(). The record of a kept payload comes from a pool. Keeping a payload
// allocates only if UCX frees the bytes when its callback returns: they are copied then.
#pragma once

#include <ucp/api/ucp.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "machine/transport_machine.h"
#include "machine/ucx/handles/boundary.h"
#include "machine/ucx/handles/request.h"
#include "machine/ucx/setup/job_secret.h"

namespace weft::machine::ucx {

class ActiveMessages;
class Arrival;
class LocalArrival;

// A payload that a handler has taken, or that waits for delivery. AmPayload::descriptor() points to it.
struct KeptPayload {
  enum class Source : std::uint8_t { kRendezvous, kUcxData, kCopy, kGone };

  Source source = Source::kGone;
  void* ucx_data = nullptr;  // rendezvous descriptor or persistent data
  std::unique_ptr<std::byte[]> copy;
  Arrival* arrival = nullptr;  // null after the handler that took the payload has returned
  KeptPayload* previous = nullptr;
  KeptPayload* next = nullptr;
};

// The id of a message whose header exceeds UCX's limit and therefore travels inside the payload.
constexpr AmId large_header_id(AmId id) { return static_cast<AmId>(kNumAmIds + id); }

class ActiveMessages {
 public:
  // `secret` must outlive this object. While it is set, messages without it are refused.
  ActiveMessages(TransportMachine& machine, RequestTracker& tracker, const std::optional<JobSecret>& secret);
  ~ActiveMessages();
  ActiveMessages(const ActiveMessages&) = delete;
  ActiveMessages& operator=(const ActiveMessages&) = delete;

  // Packs header and payload into the payload of a message under large_header_id().
  static std::vector<std::byte> pack_large_header(std::span<const std::byte> header, const void* payload,
                                                  std::size_t payload_bytes);

  base::Status set_handler(ucp_worker_h worker, AmId id, AmHandler handler, void* context);
  // A handler that costs less: kHandler(context, header, data, size_bytes). `data` is null if the payload is not here. Neither stays
  // after the call.
  template <auto kHandler>
  base::Status set_short_handler(ucp_worker_h worker, AmId id, void* context) {
    const auto on_arrival = [](void* handler_context, AmArrival& arrival) {
      kHandler(handler_context, arrival.header, arrival.data, arrival.payload_size_bytes);
    };
    base::Status status = set_handler(worker, id, on_arrival, context);
    return status.failed() ? status : set_callback(worker, id, &on_short_message<kHandler>, slots_[id]);
  }

  // Starts to fetch a rendezvous payload, and recycles its record. Returns what ucp_am_recv_data_nbx returns.
  ucs_status_ptr_t receive(ucp_worker_h worker, KeptPayload* kept, void* into, std::size_t size_bytes,
                           const ucp_request_param_t& params);
  // Drops a kept payload.
  void release(ucp_worker_h worker, KeptPayload* kept);

  // Calls the handler of a message that came through a queue of the host, if there is one for this id. The bytes are valid during the
  // call. Returns AmArrival::is_enough.
  bool deliver_local(AmId id, std::span<const std::byte> header, std::span<const std::byte> payload);

  // Calls the handlers of messages that arrived inside a start call. Returns whether there were any.
  bool deliver_deferred(ucp_worker_h worker);
  bool has_deferred() const { return !deferred_.empty(); }
  std::uint64_t num_refused() const { return num_refused_; }

  // Releases the payloads that handlers still keep. From then on no handler is called, and the records of kept
  // payloads are valid and empty.
  void close(ucp_worker_h worker);

 private:
  friend class Arrival;
  friend class LocalArrival;
  struct HandlerSlot {
    ActiveMessages* owner = nullptr;
    AmHandler handler = nullptr;
    void* context = nullptr;
  };
  struct Deferred {
    HandlerSlot* slot;
    std::vector<std::byte> header;
    std::size_t size_bytes;
    KeptPayload* payload;
  };

  // Messages that need more than the call of the handler: those during a start call, and all if there is a secret or this object is
  // closed.
  bool needs_care() const { return closed_ || tracker_.starting() || secret_.has_value(); }
  static base::Status set_callback(ucp_worker_h worker, unsigned id, ucp_am_recv_callback_t callback,
                                   HandlerSlot& slot);
  template <auto kHandler>
  static ucs_status_t on_short_message(void* argument, const void* header, std::size_t header_size,
                                       void* data, std::size_t size_bytes,
                                       const ucp_am_recv_param_t* params) {
    const auto& slot = *static_cast<const HandlerSlot*>(argument);
    if (slot.owner->needs_care()) [[unlikely]]
      return on_message(argument, header, header_size, data, size_bytes, params);
    const bool is_here = (params->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0;
    at_boundary([&] {
      kHandler(slot.context, std::span(static_cast<const std::byte*>(header), header_size),
               is_here ? static_cast<const std::byte*>(data) : nullptr, size_bytes);
    });
    return UCS_OK;
  }
  static ucs_status_t on_message(void* slot, const void* header, std::size_t header_size, void* data,
                                 std::size_t size_bytes, const ucp_am_recv_param_t* params);
  static ucs_status_t on_large_header(void* slot, const void* header, std::size_t header_size, void* data,
                                      std::size_t size_bytes, const ucp_am_recv_param_t* params);
  // Checks the secret and removes it from the header. False if it is missing: the message was refused.
  bool admit(std::span<const std::byte>& header, std::size_t size_bytes);
  static ucs_status_t deliver(HandlerSlot& slot, std::span<const std::byte> header, void* data,
                              std::size_t size_bytes, std::uint64_t attributes);
  void refuse(std::size_t size_bytes);
  KeptPayload* keep(void* data, std::size_t size_bytes, std::uint64_t attributes);
  KeptPayload* new_kept();
  void recycle(KeptPayload* kept);

  TransportMachine& machine_;
  RequestTracker& tracker_;
  const std::optional<JobSecret>& secret_;
  std::uint64_t num_refused_ = 0;
  std::array<HandlerSlot, kNumAmIds> slots_;
  std::deque<Deferred> deferred_;
  std::vector<std::unique_ptr<KeptPayload>> pool_;
  KeptPayload* free_ = nullptr;
  KeptPayload live_;
  bool closed_ = false;
};

}  // namespace weft::machine::ucx
