// Suppresses UCX's warnings while the object exists, unless the user has set UCX_LOG_LEVEL. UCX would print a
// warning for each operation that close() abandons because its peer has failed.
//
// UCX's log handlers are global to the process, so the scope must be short.
#pragma once

#include <ucs/debug/log_def.h>

#include <cstdlib>

namespace weft::machine::ucx {

class QuietUcx {
 public:
  QuietUcx() : active_(std::getenv("UCX_LOG_LEVEL") == nullptr) {
    if (active_) ucs_log_push_handler(&QuietUcx::handle);
  }
  ~QuietUcx() {
    if (active_) ucs_log_pop_handler();
  }
  QuietUcx(const QuietUcx&) = delete;
  QuietUcx& operator=(const QuietUcx&) = delete;

 private:
  static ucs_log_func_rc_t handle(const char*, unsigned, const char*, ucs_log_level_t level,
                                  const ucs_log_component_config_t*, const char*, va_list) {
    return level == UCS_LOG_LEVEL_WARN ? UCS_LOG_FUNC_RC_STOP : UCS_LOG_FUNC_RC_CONTINUE;
  }

  bool active_;
};

}  // namespace weft::machine::ucx
