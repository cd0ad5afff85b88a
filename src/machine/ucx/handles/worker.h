// One UCP worker: its address, by which peers reach it, and sleeping until it has work.
//
// Threads: the PE's thread, or one at a time (CallingThreads), except wake().
#pragma once

#include <ucp/api/ucp.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "weft/base/status.h"

#include "machine/calling_threads.h"

namespace weft::machine::ucx {

class Worker {
 public:
  static base::Result<Worker> create(ucp_context_h context, CallingThreads threads);

  Worker(Worker&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)),
        ucx_fd_(other.ucx_fd_),
        wake_fd_(std::exchange(other.wake_fd_, -1)),
        wake_sockets_(std::move(other.wake_sockets_)),
        max_am_header_bytes_(other.max_am_header_bytes_) {}
  Worker& operator=(Worker&&) = delete;
  ~Worker();

  ucp_worker_h get() const { return handle_; }
  // Ends all communication; get() is null afterwards.
  void destroy();
  // Gives up UCX's worker without destroying it; the exit of the process frees it. get() is null afterwards.
  void abandon() { handle_ = nullptr; }
  base::Result<std::vector<std::byte>> address() const;
  // The largest header that all transports of this worker accept. UCX does not check the size: it writes a
  // larger header past the end of a segment.
  std::size_t max_am_header_bytes() const { return max_am_header_bytes_; }

  // Sleeps until UCX has an event, wake() is called, the descriptor is readable (-1: none) or the time is over (timeout_us < 0: no limit). Returns at
  // once if UCX has work or cannot sleep. While other users send to UCX's sockets, it may notice events of UCX a few ms later.
  void wait(std::int64_t timeout_us, int descriptor);
  // Ends a wait() under way, or the next one. Any thread.
  void wake() const;

 private:
  Worker(ucp_worker_h handle, int ucx_fd, int wake_fd, std::vector<int> wake_sockets,
         std::size_t max_am_header_bytes)
      : handle_(handle),
        ucx_fd_(ucx_fd),
        wake_fd_(wake_fd),
        wake_sockets_(std::move(wake_sockets)),
        max_am_header_bytes_(max_am_header_bytes) {}

  ucp_worker_h handle_;
  int ucx_fd_;
  int wake_fd_;
  std::vector<int> wake_sockets_;  // of UCX, which closes them; see wake_sockets.h
  std::size_t max_am_header_bytes_;
};

}  // namespace weft::machine::ucx
