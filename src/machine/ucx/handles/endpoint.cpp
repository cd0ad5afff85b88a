#include "machine/ucx/handles/endpoint.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/format.h"
#include "machine/ucx/setup/library.h"

namespace weft::machine::ucx {

namespace {

// Calls visit(transport name, device name) for each transport of the endpoint.
template <class Visit>
void for_each_transport(ucp_ep_h endpoint, Visit visit) {
  std::array<ucp_transport_entry_t, 16> entries{};
  ucp_ep_attr_t attributes{};
  attributes.field_mask = UCP_EP_ATTR_FIELD_TRANSPORTS;
  attributes.transports.entries = entries.data();
  attributes.transports.num_entries = static_cast<unsigned>(entries.size());
  attributes.transports.entry_size = sizeof(ucp_transport_entry_t);
  if (ucp_ep_query(endpoint, &attributes) != UCS_OK) return;
  for (unsigned i = 0; i < attributes.transports.num_entries; ++i) {
    visit(std::string_view(entries[i].transport_name), std::string_view(entries[i].device_name));
  }
}

// Whether a transport leaves small puts from ordinary memory to the peer's CPU. The others, as far as they are known: networks
// with remote memory access, and xpmem, which maps the peer's memory.
bool leaves_puts_to_peer(std::string_view transport) {
  constexpr std::array<std::string_view, 5> kNames = {"self", "posix", "cma", "knem", "tcp"};
  return std::ranges::find(kNames, transport) != kNames.end() || transport.starts_with("cuda") ||
         transport == "gdr_copy" || transport.starts_with("rocm") || transport.starts_with("ze_");
}

}  // namespace

void EndpointTable::set_addresses(std::vector<std::vector<std::byte>> addresses) {
  peers_.resize(addresses.size());
  for (std::size_t pe = 0; pe < addresses.size(); ++pe) {
    peers_[pe].table = this;
    peers_[pe].address = std::move(addresses[pe]);
  }
}

base::Result<ucp_ep_h> EndpointTable::connect(ucp_worker_h worker, int pe) {
  Peer& peer = peers_[static_cast<std::size_t>(pe)];
  if (peer.failed) {
    return base::Status(base::StatusCode::kPeerFailed,
                        base::format("PE {} {}: nothing can be sent to it any more", pe,
                                     has_lost_ ? "is lost" : "has failed"));
  }
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(peer.address.data());
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler.cb = &EndpointTable::on_error;
  params.err_handler.arg = &peer;
  ucs_status_t status = ucp_ep_create(worker, &params, &peer.endpoint);
  if (status == UCS_ERR_UNREACHABLE) {
    // The transports in the user's UCX_TLS may not be able to report failures. Connect without error handling.
    params.err_mode = UCP_ERR_HANDLING_MODE_NONE;
    status = ucp_ep_create(worker, &params, &peer.endpoint);
  }
  if (status != UCS_OK) {
    peer.endpoint = nullptr;
    return base::Status(
        base::StatusCode::kUnreachable,
        base::format("PE {} cannot be reached: {}. Check that UCX_TLS and UCX_NET_DEVICES leave a "
                     "transport to it (`ucx_info -d` lists them) and that both run the same UCX; this "
                     "one is {}.",
                     pe, status_text(status), library_version()));
  }
  bool is_known = false;
  bool emulates_puts = true;
  for_each_transport(peer.endpoint, [&](std::string_view transport, std::string_view) {
    is_known = true;
    emulates_puts &= leaves_puts_to_peer(transport);
  });
  peer.emulates_puts = is_known && emulates_puts;
  return peer.endpoint;
}

void EndpointTable::on_error(void* argument, ucp_ep_h endpoint, ucs_status_t) {
  auto& peer = *static_cast<Peer*>(argument);
  if (peer.failed) return;
  peer.failed = true;
  peer.endpoint = nullptr;
  peer.failed_endpoint = endpoint;
  ++peer.table->unclosed_failures_;
  peer.table->attention_.wanted = true;
}

bool EndpointTable::lose(int pe) {
  Peer& peer = peers_[static_cast<std::size_t>(pe)];
  has_lost_ = true;
  if (peer.failed) return false;
  if (peer.endpoint != nullptr) {
    on_error(&peer, peer.endpoint, UCS_ERR_CONNECTION_RESET);
  } else {
    peer.failed = true;
  }
  return true;
}

void EndpointTable::close_failed() {
  for (Peer& peer : peers_) {
    if (peer.failed_endpoint == nullptr) continue;
    ucp_request_param_t params{};
    params.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    params.flags = UCP_EP_CLOSE_FLAG_FORCE;
    const ucs_status_ptr_t request = ucp_ep_close_nbx(std::exchange(peer.failed_endpoint, nullptr), &params);
    if (UCS_PTR_IS_PTR(request)) ucp_request_free(request);  // UCX finishes the close by itself
    --unclosed_failures_;
  }
}

std::string EndpointTable::transports(int pe) const {
  const Peer& peer = peers_[static_cast<std::size_t>(pe)];
  if (peer.endpoint == nullptr) return {};
  std::string text;
  for_each_transport(peer.endpoint, [&](std::string_view transport, std::string_view device) {
    text += base::format("{}{}/{}", text.empty() ? "" : " ", transport, device);
  });
  return text;
}

}  // namespace weft::machine::ucx
