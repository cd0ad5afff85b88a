// One UCP context with the features that Weft needs and its settings, which the environment overrides.
#pragma once

#include <ucp/api/ucp.h>

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "weft/base/status.h"

#include "memory/native_api.h"

namespace weft::machine::ucx {

struct ContextOptions {
  int num_pes = 1;
  int pes_on_host = 1;
  // Space at the end of every UCX request, and what prepares it.
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
  // REQUIRES: its workers are gone. get() is null afterwards.
  void destroy() {
    if (handle_ != nullptr) ucp_cleanup(std::exchange(handle_, nullptr));
  }
  // Gives up the handle without destroying the context. For a context whose worker could not be destroyed.
  void leave_to_the_system() { handle_ = nullptr; }
  // What UCX has opened, each "transport/device": "self/memory", "tcp/eth0". Empty if UCX does not say it in a
  // form that is known here.
  std::set<std::string> transports() const;
  // Whether UCX moves such memory by itself in this process.
  bool can_address(memory::NativeApi api) const;

 private:
  explicit Context(ucp_context_h handle) : handle_(handle) {}
  ucp_context_h handle_;
};

// The UCX memory type; host for memory that UCX does not know.
ucs_memory_type_t memory_type_of(memory::NativeApi api);

}  // namespace weft::machine::ucx
