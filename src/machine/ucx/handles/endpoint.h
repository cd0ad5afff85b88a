// The peers of a PE: the address of each, its endpoint, which is made on first use, and whether it has failed.
//
// Threads: the PE's thread. A failed peer stays failed, because its failure ends the job, or the job goes on without it.
#pragma once

#include <ucp/api/ucp.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/status.h"

#include "machine/transport_machine.h"

namespace weft::machine::ucx {

class EndpointTable {
 public:
  explicit EndpointTable(Attention& attention) : attention_(attention) {}
  EndpointTable(const EndpointTable&) = delete;
  EndpointTable& operator=(const EndpointTable&) = delete;

  void set_addresses(std::vector<std::vector<std::byte>> addresses);

  // The endpoint of `pe`; null if connect() has not made it yet or the peer has failed. REQUIRES: pe in range.
  ucp_ep_h find(int pe) const { return peers_[static_cast<std::size_t>(pe)].endpoint; }
  base::Result<ucp_ep_h> connect(ucp_worker_h worker, int pe);

  // Whether UCX sends small puts to that PE as messages to its CPU. False before there is an endpoint.
  bool emulates_puts(int pe) const { return peers_[static_cast<std::size_t>(pe)].emulates_puts; }

  bool has_failed(int pe) const { return peers_[static_cast<std::size_t>(pe)].failed; }
  bool has_unclosed_failures() const { return unclosed_failures_ > 0; }
  // The peer has failed, whether UCX has noticed it or not. False if that was known.
  bool lose(int pe);
  bool has_lost() const { return has_lost_; }
  // Closes the endpoints of failed peers, which ends their operations. REQUIRES: no UCX callback is running.
  void close_failed();

  // The transports of the endpoint, such as "posix/memory tcp/eth0". Empty if there is no endpoint.
  std::string transports(int pe) const;

 private:
  struct Peer {
    EndpointTable* table = nullptr;
    ucp_ep_h endpoint = nullptr;
    ucp_ep_h failed_endpoint = nullptr;
    bool failed = false;
    bool emulates_puts = false;
    std::vector<std::byte> address;
  };

  static void on_error(void* argument, ucp_ep_h endpoint, ucs_status_t status);

  Attention& attention_;
  std::vector<Peer> peers_;
  int unclosed_failures_ = 0;
  bool has_lost_ = false;
};

}  // namespace weft::machine::ucx
