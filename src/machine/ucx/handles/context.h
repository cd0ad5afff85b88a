// One UCP context, with the features that Weft needs and with Weft's settings of UCX. Variables UCX_* of the
// environment override these settings, except that no System V shared memory is used (transport_list.h).
//
// Threads: the PE's thread.
#pragma once

#include <ucp/api/ucp.h>

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "weft/base/status.h"

#include "memory/kinds/native_api.h"

namespace weft::machine::ucx {

struct ContextOptions {
  int num_pes = 1;
  int pes_on_host = 1;
  // The size of the space that UCX reserves in each request for Weft, and the function that initializes it.
  std::size_t request_size = 0;
  ucp_request_init_callback_t request_init = nullptr;
};

class Context {
 public:
  static base::Result<Context> create(const ContextOptions& options);

  Context(Context&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Context& operator=(Context&&) = delete;
  ~Context() { destroy(); }

  ucp_context_h get() const { return handle_; }
  // REQUIRES: its workers are destroyed. get() is null afterwards.
  void destroy() {
    if (handle_ != nullptr) ucp_cleanup(std::exchange(handle_, nullptr));
  }
  // Gives up the handle without destroying the context, which the exit of the process then frees. For a context
  // whose worker cannot be destroyed.
  void abandon() { handle_ = nullptr; }
  // The transports that UCX has opened, each "transport/device": "self/memory", "tcp/eth0". Empty if UCX
  // reports them in an unknown form.
  std::set<std::string> transports() const;
  // Whether UCX can address memory of this API in this process. If not, it is staged.
  bool can_address(memory::NativeApi api) const;

 private:
  explicit Context(ucp_context_h handle) : handle_(handle) {}
  ucp_context_h handle_;
};

// The UCX memory type. Host for memory that UCX does not know.
ucs_memory_type_t memory_type_of(memory::NativeApi api);

}  // namespace weft::machine::ucx
