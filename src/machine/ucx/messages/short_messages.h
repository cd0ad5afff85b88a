// Active messages between host memory, of two words and a short payload, without what other messages need: an AmArrival, the
// search for registered memory, parameters made for each. Small puts are made of them.
//
// Threads: the PE's thread. All functions are inline: a small put pays for each call.
#pragma once

#include <ucp/api/ucp.h>

#include <cstddef>
#include <optional>
#include <span>

#include "weft/base/completion.h"
#include "weft/base/status.h"

#include "machine/transport_machine.h"
#include "machine/ucx/handles/endpoint.h"
#include "machine/ucx/handles/request.h"
#include "machine/ucx/messages/active_message.h"
#include "machine/ucx/messages/small_put_messages.h"
#include "machine/ucx/setup/job_secret.h"

namespace weft::machine::ucx {

// UcxMachine::create() refuses transports whose headers are smaller than the secret.
static_assert(sizeof(MessageWords) <= JobSecret::kBytes);

class ShortMessages {
 public:
  // All must outlive this object.
  ShortMessages(TransportMachine& machine, ActiveMessages& active_messages, EndpointTable& endpoints,
                RequestTracker& tracker, const std::optional<JobSecret>& secret)
      : machine_(machine),
        active_messages_(active_messages),
        endpoints_(endpoints),
        tracker_(tracker),
        secret_(secret) {
    parameters_.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                               UCP_OP_ATTR_FIELD_MEMORY_TYPE | UCP_OP_ATTR_FIELD_FLAGS;
    parameters_.cb.send = &RequestTracker::on_sent;
    parameters_.user_data = &tracker;
    parameters_.memory_type = UCS_MEMORY_TYPE_HOST;
    // Eager: the payload must be there when the handler is called.
    parameters_.flags = UCP_AM_SEND_FLAG_COPY_HEADER | UCP_AM_SEND_FLAG_EAGER;
  }
  ShortMessages(const ShortMessages&) = delete;
  ShortMessages& operator=(const ShortMessages&) = delete;

  TransportMachine& machine() const { return machine_; }

  // See ActiveMessages::set_short_handler().
  template <auto kHandler>
  base::Status set_handler(ucp_worker_h worker, AmId id, void* context) {
    return active_messages_.set_short_handler<kHandler>(worker, id, context);
  }

  // As Machine::am_send(). The words are copied.
  [[gnu::always_inline]] base::Status send(int pe, AmId id, const MessageWords& words, const void* data,
                                           std::size_t size_bytes, base::Completion* completion) {
    ucp_ep_h const endpoint = endpoints_.find(pe);
    if (endpoint == nullptr || secret_.has_value()) [[unlikely]]
      return send_otherwise(pe, id, words, {data, size_bytes}, completion);
    return tracker_.start({TransportOperation::kAmSend, pe, size_bytes}, completion, [&] {
      return ucp_am_send_nbx(endpoint, id, words.data(), sizeof words, data, size_bytes, &parameters_);
    });
  }

 private:
  // The first message to a PE, and those that carry the job's secret.
  [[gnu::noinline]] base::Status send_otherwise(int pe, AmId id, const MessageWords& words,
                                                const memory::ConstBuffer& payload,
                                                base::Completion* completion) {
    return machine_.transport_am_send(pe, id, std::as_bytes(std::span(words)), payload, completion);
  }

  TransportMachine& machine_;
  ActiveMessages& active_messages_;
  EndpointTable& endpoints_;
  RequestTracker& tracker_;
  const std::optional<JobSecret>& secret_;
  ucp_request_param_t parameters_{};
};

}  // namespace weft::machine::ucx
