// What the programs that measure UCX alone share: two processes of this host, a worker in each, an endpoint to the other.
#pragma once

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "benchmarks/measuring.h"

namespace weft::benchmarks {

inline constexpr ucp_tag_t kFullMask = ~ucp_tag_t{0};

inline void check(ucs_status_t status, std::string_view what) {
  if (status != UCS_OK) die(fmt::format("{}: {}", what, ucs_status_string(status)));
}

// The other process, outside UCX: a socket between the two.
class Partner {
 public:
  Partner(int process, int socket) : process_(process), socket_(socket) {}

  // 0 or 1.
  int process() const { return process_; }

  std::vector<char> exchange(const void* data, std::size_t size) const {
    if (write(socket_, &size, sizeof size) < 0 || write(socket_, data, size) < 0) die("the other is gone");
    std::size_t incoming = 0;
    receive(&incoming, sizeof incoming);
    std::vector<char> result(incoming);
    receive(result.data(), result.size());
    return result;
  }
  void barrier() const { exchange("", 1); }

 private:
  void receive(void* data, std::size_t size) const {
    if (recv(socket_, data, size, MSG_WAITALL) != static_cast<ssize_t>(size)) die("the other is gone");
  }

  int process_;
  int socket_;
};

// One process's worker with its endpoint to the other.
class Worker {
 public:
  Worker(const Partner& partner, bool error_handling, std::uint64_t features = UCP_FEATURE_TAG) {
    ucp_params_t parameters{};
    parameters.field_mask = UCP_PARAM_FIELD_FEATURES;
    parameters.features = features;
    check(ucp_init(&parameters, nullptr, &context_), "ucp_init");
    ucp_worker_params_t worker_parameters{};
    check(ucp_worker_create(context_, &worker_parameters, &worker_), "ucp_worker_create");
    ucp_address_t* address = nullptr;
    std::size_t size = 0;
    check(ucp_worker_get_address(worker_, &address, &size), "ucp_worker_get_address");
    std::vector<char> other = partner.exchange(address, size);
    ucp_worker_release_address(worker_, address);
    ucp_ep_params_t endpoint_parameters{};
    endpoint_parameters.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
    endpoint_parameters.address = reinterpret_cast<const ucp_address_t*>(other.data());
    endpoint_parameters.err_mode = error_handling ? UCP_ERR_HANDLING_MODE_PEER : UCP_ERR_HANDLING_MODE_NONE;
    check(ucp_ep_create(worker_, &endpoint_parameters, &endpoint_), "ucp_ep_create");
  }
  ~Worker() {
    ucp_worker_destroy(worker_);
    ucp_cleanup(context_);
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  [[nodiscard]] ucs_status_ptr_t send(const std::vector<char>& buffer, ucp_tag_t tag) {
    ucp_request_param_t parameters{};
    return ucp_tag_send_nbx(endpoint_, buffer.data(), buffer.size(), tag, &parameters);
  }
  [[nodiscard]] ucs_status_ptr_t receive(std::vector<char>& buffer, ucp_tag_t tag) {
    ucp_request_param_t parameters{};
    return ucp_tag_recv_nbx(worker_, buffer.data(), buffer.size(), tag, kFullMask, &parameters);
  }
  void wait(ucs_status_ptr_t request) {
    if (!UCS_PTR_IS_PTR(request)) return check(UCS_PTR_STATUS(request), "an operation");
    ucs_status_t status = UCS_INPROGRESS;
    while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) ucp_worker_progress(worker_);
    ucp_request_free(request);
    check(status, "an operation");
  }

  void progress() { ucp_worker_progress(worker_); }

  ucp_context_h context() const { return context_; }
  ucp_ep_h endpoint() const { return endpoint_; }

 private:
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  ucp_ep_h endpoint_ = nullptr;
};

// Calls `measure(const Partner&)` in two processes. Ends the process with a sentence on stderr if the second one fails.
void run_pair(const auto& measure) {
  std::array<int, 2> sockets{};
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets.data()) != 0) die("no socket pair");
  const pid_t child = fork();
  if (child < 0) die("no second process");
  const std::size_t process = child == 0 ? 1 : 0;
  close(sockets[1 - process]);
  measure(Partner(static_cast<int>(process), sockets[process]));
  int status = 0;
  if (child > 0 && (waitpid(child, &status, 0) != child || status != 0)) die("the second process failed");
}

}  // namespace weft::benchmarks
