#include "machine/ucx/handles/worker.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <ctime>

#include "base/format.h"
#include "machine/ucx/setup/library.h"
#include "machine/ucx/setup/wake_sockets.h"

namespace weft::machine::ucx {
namespace {

// How long a PE sleeps without polling UCX when other users send it datagrams. It then takes about 2 % of a core.
constexpr std::int64_t kPauseUs = 4000;

timespec time_of(std::int64_t us) {
  return {static_cast<std::time_t>(us / 1'000'000), static_cast<long>(us % 1'000'000) * 1000};
}

base::Status failure(std::string_view what, std::string_view why) {
  return {base::StatusCode::kInternal,
          base::format(
              "UCX cannot make {}: {}. Check UCX_TLS, UCX_TCP_PORT_RANGE (two ports per PE) and `ulimit -n`.",
              what, why)};
}

}  // namespace

base::Result<Worker> Worker::create(ucp_context_h context, CallingThreads threads) {
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE | UCP_WORKER_PARAM_FIELD_FLAGS;
  // In the mode for one thread, UCX writes to the registers of mlx5 adapters without a fence (uct_ib_mlx5_get_mmio_mode).
  params.thread_mode = threads == CallingThreads::kOne ? UCS_THREAD_MODE_SINGLE : UCS_THREAD_MODE_SERIALIZED;
  // close() may abandon operations whose peer has failed. UCX would print a warning for each, which users cannot
  // act on.
  params.flags = UCP_WORKER_FLAG_IGNORE_REQUEST_LEAK;
  ucp_worker_h handle = nullptr;
  const std::vector<int> sockets_before = local_datagram_sockets();
  if (const ucs_status_t status = ucp_worker_create(context, &params, &handle); status != UCS_OK) {
    return failure("a worker", status_text(status));
  }
  std::vector<int> wake_sockets = local_datagram_sockets();
  std::erase_if(wake_sockets,
                [&](int one) { return std::ranges::find(sockets_before, one) != sockets_before.end(); });
  ask_for_senders(wake_sockets);
  int ucx_fd = -1;
  if (const ucs_status_t status = ucp_worker_get_efd(handle, &ucx_fd); status != UCS_OK) {
    ucp_worker_destroy(handle);
    return failure("an event descriptor", status_text(status));
  }
  ucp_worker_attr_t attributes{};
  attributes.field_mask = UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER;
  if (const ucs_status_t status = ucp_worker_query(handle, &attributes); status != UCS_OK) {
    ucp_worker_destroy(handle);
    return failure("active messages", status_text(status));
  }
  const int wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_fd < 0) {
    ucp_worker_destroy(handle);
    return failure("an event descriptor", std::strerror(errno));
  }
  return Worker(handle, ucx_fd, wake_fd, std::move(wake_sockets), attributes.max_am_header);
}

Worker::~Worker() {
  destroy();
  if (wake_fd_ >= 0) ::close(wake_fd_);
}

void Worker::destroy() {
  if (handle_ != nullptr) ucp_worker_destroy(std::exchange(handle_, nullptr));
}

base::Result<std::vector<std::byte>> Worker::address() const {
  ucp_address_t* address = nullptr;
  std::size_t size = 0;
  if (const ucs_status_t status = ucp_worker_get_address(handle_, &address, &size); status != UCS_OK) {
    return failure("an address", status_text(status));
  }
  const auto* bytes = reinterpret_cast<const std::byte*>(address);
  std::vector<std::byte> copy(bytes, bytes + size);
  ucp_worker_release_address(handle_, address);
  return copy;
}

void Worker::wait(std::int64_t timeout_us, int descriptor) {
  pollfd events[3] = {{wake_fd_, POLLIN, 0}, {descriptor, POLLIN, 0}, {ucx_fd_, POLLIN, 0}};
  nfds_t num_events = 3;
  if (drop_datagrams_of_others(wake_sockets_, ::getuid())) [[unlikely]] {
    num_events = 2;
    timeout_us = timeout_us < 0 ? kPauseUs : std::min(timeout_us, kPauseUs);
  } else if (ucp_worker_arm(handle_) != UCS_OK) {
    return;  // UCX has work or cannot sleep; in both cases the caller polls
  }
  const timespec timeout = time_of(timeout_us);
  if (ppoll(events, num_events, timeout_us < 0 ? nullptr : &timeout, nullptr) <= 0) return;
  if ((events[0].revents & POLLIN) != 0) {
    std::uint64_t count = 0;
    (void)!::read(wake_fd_, &count, sizeof count);
  }
}

void Worker::wake() const {
  const std::uint64_t one = 1;
  // write() fails only if the counter is full, and then the sleeper wakes too.
  (void)!::write(wake_fd_, &one, sizeof one);
}

}  // namespace weft::machine::ucx
