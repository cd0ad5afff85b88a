#include "machine/ucx/ucx_machine.h"

#include <cstring>
#include <map>
#include <utility>

#include "base/format.h"
#include "machine/ucx/handles/boundary.h"
#include "machine/ucx/setup/library.h"
#include "machine/ucx/setup/shared_memory.h"
#include "machine/ucx/setup/unmap_events.h"

namespace weft::machine::ucx {
namespace {

void on_received(void* request, ucs_status_t status, const ucp_tag_recv_info_t* info, void* tracker) {
  at_boundary([&] { static_cast<RequestTracker*>(tracker)->done(request, status, info->length); });
}

void on_am_received(void* request, ucs_status_t status, std::size_t size_bytes, void* tracker) {
  at_boundary([&] { static_cast<RequestTracker*>(tracker)->done(request, status, size_bytes); });
}

// How a queue is called among the transports of a peer.
constexpr std::string_view kQueueName = "weft-queue/memory";

}  // namespace

base::Result<std::unique_ptr<UcxMachine>> UcxMachine::create(const UcxMachineOptions& options,
                                                             memory::Memory& memory) {
  base::Result<Context> context = Context::create({.num_pes = options.num_pes,
                                                   .pes_on_host = options.pes_on_host,
                                                   .request_size = sizeof(Request),
                                                   .request_init = &Request::initialize});
  if (!context.ok()) return context.status();
  // UCX makes its segments with the worker. Other PEs of the host do so at the same time, so the room may have gone after
  // the first look.
  const auto check_room = [&] { return check_shared_memory(context->transports(), options.pes_on_host); };
  if (base::Status status = check_room(); status.failed()) return status;
  base::Result<MovableDatatype> movable = MovableDatatype::create();
  if (!movable.ok()) return movable.status();
  base::Result<Worker> worker = Worker::create(context->get(), options.threads);
  if (!worker.ok()) {
    base::Status status = check_room();
    return status.failed() ? status : worker.status();
  }
  if (worker->max_am_header_bytes() < JobSecret::kBytes) {
    return base::Status(
        base::StatusCode::kUnsupported,
        base::format("UCX's transports take active-message headers of {} bytes only, and Weft needs {}: make "
                     "their segments larger (UCX_POSIX_SEG_SIZE, UCX_TCP_TX_SEG_SIZE), or "
                     "unset these variables",
                     worker->max_am_header_bytes(), JobSecret::kBytes));
  }
  return std::unique_ptr<UcxMachine>(new UcxMachine(options, memory, std::move(context).value(),
                                                    std::move(movable).value(), std::move(worker).value()));
}

UcxMachine::UcxMachine(const UcxMachineOptions& options, memory::Memory& memory, Context context,
                       MovableDatatype movable, Worker worker)
    : StagedMachine(options.pe, options.num_pes, options.pes_on_host, memory, options.staging),
      context_(std::move(context)),
      movable_(std::move(movable)),
      worker_(std::move(worker)),
      tracker_(*this, attention()),
      active_messages_(*this, tracker_, secret_),
      endpoints_(attention()),
      regions_(options.num_pes),
      short_messages_(*this, active_messages_, endpoints_, tracker_, secret_),
      small_puts_(short_messages_, regions_),
      max_header_bytes_(std::min(kMaxAmHeaderBytes, worker_.max_am_header_bytes() - JobSecret::kBytes)),
      max_plain_header_bytes_(static_cast<std::ptrdiff_t>(max_header_bytes_)) {
  for (int kind = 0; kind < memory::kNumKinds; ++kind) {
    const memory::NativeApi api = memory::native_api_of(static_cast<memory::Kind>(kind));
    memory_types_[static_cast<std::size_t>(kind)] = memory_type_of(api);
    addressed_[static_cast<std::size_t>(kind)] = context_.can_address(api);
  }
  memory.use_unmap_generation(&unmap_generation);
  // Where the user has chosen transports without shared memory, active messages take these too.
  if (has_shared_memory(transports())) queues_.make(options.pes_on_host);
}

UcxMachine::~UcxMachine() { close(); }

base::Result<Introduction> UcxMachine::introduce(const JobSecret& proposed) const {
  auto address = worker_.address();
  if (!address.ok()) return address.status();
  return Introduction{.staging = staging_mode(),
                      .is_private = are_private(transports()),
                      .proposed = proposed,
                      .queues = queues_.name(),
                      .address = std::move(address).value()};
}

base::Status UcxMachine::connect(Agreement agreement) {
  endpoints_.set_addresses(std::move(agreement.addresses));
  secret_ = agreement.secret;
  if (secret_) max_plain_header_bytes_ = -1;
  queues_.open(agreement.queues, pe());
  if (has_shared_memory(transports())) end_process_when_full(pe(), pes_on_host());
  base::Status status = small_puts_.open(worker_.get());
  return status.failed() ? status : open_shared_parts();
}

bool UcxMachine::addresses(memory::Kind kind) const { return addressed_[static_cast<std::size_t>(kind)]; }

std::string UcxMachine::description() const {
  return base::format("ucx {} ({}), PE {} of {}, {} on this host", library_version(), library_path(), pe(),
                      num_pes(), pes_on_host());
}

template <class Callback>
ucp_request_param_t UcxMachine::parameters(memory::Place place, const void* data, std::size_t size_bytes,
                                           Callback set) const {
  ucp_request_param_t params;
  params.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  params.user_data = const_cast<RequestTracker*>(&tracker_);
  params.memory_type = memory_types_[static_cast<std::size_t>(place.kind)];
  set(params);
  // Without its handle, a rendezvous from registered memory would never end once the peer was killed.
  if (ucp_mem_h handle = regions_.find(data, size_bytes); handle != nullptr) [[unlikely]] {
    params.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMH;
    params.memh = handle;
  }
  return params;
}

base::Status UcxMachine::transport_set_am_handler(AmId id, AmHandler handler, void* context) {
  return active_messages_.set_handler(worker_.get(), id, handler, context);
}

template <class Call>
base::Status UcxMachine::with_endpoint(int pe, Call call) {
  ucp_ep_h endpoint = endpoints_.find(pe);
  if (endpoint == nullptr) [[unlikely]] {
    base::Result<ucp_ep_h> made = endpoints_.connect(worker_.get(), pe);
    if (!made.ok()) return made.status();
    endpoint = *made;
  }
  return call(endpoint);
}

base::Status UcxMachine::transport_am_send(int pe, AmId id, std::span<const std::byte> header,
                                           const memory::ConstBuffer& payload, base::Completion* completion) {
  return with_endpoint(pe, [&](ucp_ep_h endpoint) {
    if (static_cast<std::ptrdiff_t>(header.size()) > max_plain_header_bytes_) [[unlikely]] {
      return send_special(endpoint, pe, id, header, payload, completion);
    }
    return send_am(endpoint, pe, id, header, payload, completion);
  });
}

inline base::Status UcxMachine::send_am(ucp_ep_h endpoint, int pe, AmId id, std::span<const std::byte> header,
                                        const memory::ConstBuffer& payload, base::Completion* completion) {
  ucp_request_param_t params = parameters(payload.place, payload.data, payload.size_bytes,
                                          [](auto& p) { p.cb.send = &RequestTracker::on_sent; });
  params.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
  params.flags = header.empty() ? 0 : UCP_AM_SEND_FLAG_COPY_HEADER;
  // UCX would stage eager device data through the host, which takes twice as long.
  if (!payload.place.is_host() && payload.size_bytes > 0) params.flags |= UCP_AM_SEND_FLAG_RNDV;
  // on_large_header() reads the header from the payload during its callback, and the owner of a small put copies the payload
  // then, so the payload must be there.
  if (id >= kSmallPutAmId) [[unlikely]]
    params.flags |= UCP_AM_SEND_FLAG_EAGER;
  return tracker_.start({TransportOperation::kAmSend, pe, payload.size_bytes}, completion, [&] {
    return ucp_am_send_nbx(endpoint, id, header.data(), header.size(), payload.data, payload.size_bytes,
                           &params);
  });
}

// The send of a message whose header exceeds UCX's limit: header and payload travel as one eager payload, under
// an id of its own. See ActiveMessages::on_large_header. The object deletes itself when the send completes.
struct UcxMachine::LargeHeader final : base::Completion {
  LargeHeader(std::span<const std::byte> header, const memory::ConstBuffer& payload,
              base::Completion* user_in)
      : base::Completion(&LargeHeader::ended),
        bytes(ActiveMessages::pack_large_header(header, payload.data, payload.size_bytes)),
        payload_bytes(payload.size_bytes),
        user(user_in) {}
  static void ended(base::Completion* completion, base::Status status, std::size_t) {
    const std::unique_ptr<LargeHeader> self(static_cast<LargeHeader*>(completion));
    self->user->function(self->user, std::move(status), self->payload_bytes);
  }

  std::vector<std::byte> bytes;
  std::size_t payload_bytes;
  base::Completion* user;
};

base::Status UcxMachine::send_special(ucp_ep_h endpoint, int pe, AmId id, std::span<const std::byte> header,
                                      const memory::ConstBuffer& payload, base::Completion* completion) {
  std::array<std::byte, JobSecret::kBytes + kMaxAmHeaderBytes> with_secret;
  const auto end_of_secret =
      secret_ ? std::ranges::copy(secret_->bytes(), with_secret.begin()).out : with_secret.begin();
  if (header.size() <= max_header_bytes_) {
    const auto end = std::ranges::copy(header, end_of_secret).out;
    return send_am(endpoint, pe, id, {with_secret.begin(), end}, payload, completion);
  }
  if (!payload.place.is_host() && payload.size_bytes > 0) {
    return {
        base::StatusCode::kUnsupported,
        base::format("an active message with device memory has a header of {} bytes, and UCX's transports "
                     "take {} here; make their segments larger (UCX_POSIX_SEG_SIZE)",
                     header.size(), max_header_bytes_)};
  }
  auto large = std::make_unique<LargeHeader>(header, payload, completion);
  const memory::ConstBuffer bytes(large->bytes.data(), large->bytes.size());
  base::Status status =
      send_am(endpoint, pe, large_header_id(id), {with_secret.begin(), end_of_secret}, bytes, large.get());
  if (status.is_pending()) static_cast<void>(large.release());  // its completion deletes it
  return status;
}

base::Status UcxMachine::transport_am_receive(AmPayload payload, const memory::Buffer& into,
                                              base::Completion* completion) {
  const std::size_t size_bytes = payload.size_bytes();
  if (payload.data() != nullptr) {
    std::memcpy(into.data, payload.data(), size_bytes);
    return {};
  }
  const ucp_request_param_t params =
      parameters(into.place, into.data, size_bytes, [](auto& p) { p.cb.recv_am = &on_am_received; });
  auto* kept = static_cast<KeptPayload*>(payload.detach());
  return tracker_.start({TransportOperation::kAmReceive, -1, size_bytes}, completion, [&] {
    return active_messages_.receive(worker_.get(), kept, into.data, size_bytes, params);
  });
}

void UcxMachine::release_payload(void* descriptor) {
  active_messages_.release(worker_.get(), static_cast<KeptPayload*>(descriptor));
}

base::Status UcxMachine::transport_tag_send(int pe, Tag tag, const memory::ConstBuffer& buffer,
                                            base::Completion* completion) {
  return with_endpoint(pe, [&](ucp_ep_h endpoint) {
    const ucp_request_param_t params = parameters(buffer.place, buffer.data, buffer.size_bytes,
                                                  [](auto& p) { p.cb.send = &RequestTracker::on_sent; });
    return tracker_.start({TransportOperation::kTagSend, pe, buffer.size_bytes}, completion, [&] {
      return ucp_tag_send_nbx(endpoint, buffer.data, buffer.size_bytes, tag, &params);
    });
  });
}

// Between hosts UCX can send large messages without a copy of its own, which this would prevent.
bool UcxMachine::transport_can_move_source(int) const { return pes_on_host() == num_pes(); }

base::Status UcxMachine::transport_tag_send_movable(int pe, Tag tag, MovableSource& source,
                                                    base::Completion* completion) {
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_DATATYPE;
  params.cb.send = &RequestTracker::on_sent;
  params.user_data = &tracker_;
  params.datatype = movable_.get();
  return with_endpoint(pe, [&](ucp_ep_h endpoint) {
    return tracker_.start({TransportOperation::kTagSend, pe, source.size_bytes}, completion,
                          [&] { return ucp_tag_send_nbx(endpoint, &source, 1, tag, &params); });
  });
}

base::Status UcxMachine::transport_tag_receive(Tag tag, Tag mask, const memory::Buffer& buffer,
                                               base::Completion* completion) {
  ucp_request_param_t params =
      parameters(buffer.place, buffer.data, buffer.size_bytes, [](auto& p) { p.cb.recv = &on_received; });
  // Makes UCX call the callback even if the message is here already: only the callback reports the size, also of
  // a message that is too large.
  params.op_attr_mask |= UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
  return tracker_.start({TransportOperation::kTagReceive, -1, buffer.size_bytes}, completion, [&] {
    return ucp_tag_recv_nbx(worker_.get(), buffer.data, buffer.size_bytes, tag, mask, &params);
  });
}

void UcxMachine::transport_cancel(base::Completion* completion) {
  tracker_.cancel(worker_.get(), completion);
}

base::Result<RemoteMemory> UcxMachine::transport_register_memory(const memory::Buffer& memory) {
  return regions_.add(context_.get(), memory, memory_types_[static_cast<std::size_t>(memory.place.kind)]);
}

base::Status UcxMachine::transport_deregister_memory(const RemoteMemory& memory) {
  return regions_.remove(context_.get(), memory);
}

void UcxMachine::transport_forget_remote(int pe, const RemoteMemory& remote) {
  regions_.forget_remote(pe, remote);
}

base::Status UcxMachine::first_one_sided(int pe, const RemoteMemory& remote, ucp_ep_h& endpoint,
                                         ucp_rkey_h& key) {
  return with_endpoint(pe, [&](ucp_ep_h made) {
    endpoint = made;
    base::Result<ucp_rkey_h> found = regions_.remote_key(pe, made, remote);
    if (found.ok()) key = *found;
    return found.status();
  });
}

template <class Call>
base::Status UcxMachine::one_sided(const Started& what, const memory::ConstBuffer& local,
                                   const RemoteMemory& remote, base::Completion* completion, Call call) {
  ucp_ep_h endpoint = endpoints_.find(what.peer);
  ucp_rkey_h key = regions_.last_remote_key(what.peer, remote);
  if (endpoint == nullptr || key == nullptr) [[unlikely]] {
    base::Status status = first_one_sided(what.peer, remote, endpoint, key);
    if (status.failed()) return status;
  }
  const ucp_request_param_t params = parameters(local.place, local.data, local.size_bytes,
                                                [](auto& p) { p.cb.send = &RequestTracker::on_sent; });
  return tracker_.start(what, completion, [&] { return call(endpoint, key, params); });
}

base::Status UcxMachine::transport_put(int pe, const memory::ConstBuffer& local, const RemoteMemory& remote,
                                       std::size_t offset_bytes, base::Completion* completion) {
  return one_sided({TransportOperation::kPut, pe, local.size_bytes}, local, remote, completion,
                   [&](ucp_ep_h endpoint, ucp_rkey_h key, const ucp_request_param_t& params) {
                     return ucp_put_nbx(endpoint, local.data, local.size_bytes, remote.address + offset_bytes,
                                        key, &params);
                   });
}

base::Status UcxMachine::transport_put_and_flush(int pe, const memory::ConstBuffer& local,
                                                 const RemoteMemory& remote, std::size_t offset_bytes,
                                                 base::Completion* put, base::Completion* flush,
                                                 bool& is_put_pending) {
  ucp_ep_h used = nullptr;
  base::Status status = one_sided({TransportOperation::kPut, pe, local.size_bytes}, local, remote, put,
                                  [&](ucp_ep_h endpoint, ucp_rkey_h key, const ucp_request_param_t& params) {
                                    used = endpoint;
                                    return ucp_put_nbx(endpoint, local.data, local.size_bytes,
                                                       remote.address + offset_bytes, key, &params);
                                  });
  is_put_pending = status.is_pending();
  if (!status.ok()) return status;
  const ucp_request_param_t params = flush_parameters();
  return tracker_.start({TransportOperation::kFlush, pe}, flush,
                        [&] { return ucp_ep_flush_nbx(used, &params); });
}

base::Status UcxMachine::transport_get(int pe, const memory::Buffer& local, const RemoteMemory& remote,
                                       std::size_t offset_bytes, base::Completion* completion) {
  return one_sided({TransportOperation::kGet, pe, local.size_bytes}, local, remote, completion,
                   [&](ucp_ep_h endpoint, ucp_rkey_h key, const ucp_request_param_t& params) {
                     return ucp_get_nbx(endpoint, local.data, local.size_bytes, remote.address + offset_bytes,
                                        key, &params);
                   });
}

// Fields that the mask does not name stay unset: to zero them takes the compiler's `rep stos`, 10 ns for each call.
ucp_request_param_t UcxMachine::flush_parameters() const {
  ucp_request_param_t params;
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.cb.send = &RequestTracker::on_sent;
  params.user_data = const_cast<RequestTracker*>(&tracker_);
  return params;
}

base::Status UcxMachine::transport_flush(base::Completion* completion) {
  return small_puts_.flush(-1, completion, [&](base::Completion* over) {
    const ucp_request_param_t params = flush_parameters();
    return tracker_.start({TransportOperation::kFlush}, over,
                          [&] { return ucp_worker_flush_nbx(worker_.get(), &params); });
  });
}

base::Status UcxMachine::transport_flush_pe(int pe, base::Completion* completion) {
  return small_puts_.flush(pe, completion, [&](base::Completion* over) {
    return with_endpoint(pe, [&](ucp_ep_h endpoint) {
      const ucp_request_param_t params = flush_parameters();
      return tracker_.start({TransportOperation::kFlush, pe}, over,
                            [&] { return ucp_ep_flush_nbx(endpoint, &params); });
    });
  });
}

std::vector<PeerTransports> UcxMachine::peer_transports() const {
  std::map<std::string, std::vector<int>> pes;
  for (int pe = 0; pe < num_pes(); ++pe) {
    std::string transports = endpoints_.transports(pe);
    if (queues_.has_sent_to(pe))
      transports += transports.empty() ? kQueueName : base::format(" {}", kQueueName);
    if (!transports.empty()) pes[transports].push_back(pe);
  }
  std::vector<PeerTransports> result;
  for (auto& [transports, same] : pes) result.push_back({std::move(same), transports});
  return result;
}

std::vector<std::string> UcxMachine::obstacles() const {
  std::vector<std::string> found = StagedMachine::obstacles();
  if (const base::Status& why = queues_.failure(); why.failed()) {
    found.push_back(base::format("small messages to PEs of this host go through UCX: {}", why.message()));
  }
  return found;
}

}  // namespace weft::machine::ucx
