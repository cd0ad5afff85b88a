// Suppress lines that UCX would print, while the objects exist, unless the user has set UCX_LOG_LEVEL.
//
// UCX's log handlers are global to the process. Objects must not outlive the library that their handler is in.
#pragma once

#include <ucs/debug/log_def.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace weft::machine::ucx {

class LogFilter {
 public:
  explicit LogFilter(ucs_log_func_t handler) : active_(std::getenv("UCX_LOG_LEVEL") == nullptr) {
    if (active_) ucs_log_push_handler(handler);
  }
  ~LogFilter() {
    if (active_) ucs_log_pop_handler();
  }
  LogFilter(const LogFilter&) = delete;
  LogFilter& operator=(const LogFilter&) = delete;

 private:
  bool active_;
};

// Without warnings. UCX would print one for each operation that close() abandons because its peer has failed. The scope must be
// short.
class QuietUcx {
 private:
  static ucs_log_func_rc_t handle(const char*, unsigned, const char*, ucs_log_level_t level,
                                  const ucs_log_component_config_t*, const char*, va_list) {
    return level == UCS_LOG_LEVEL_WARN ? UCS_LOG_FUNC_RC_STOP : UCS_LOG_FUNC_RC_CONTINUE;
  }

  LogFilter filter_{&QuietUcx::handle};
};

// Without the error of a mapping that UCX mends. UCX keeps mappings of device memory that another library has freed since. When CUDA
// refuses to map new memory that overlaps such memory, UCX prints an error, ends its old mappings there and tries again
// (uct_cuda_ipc_cache_put_region() of UCX 1.22). What it cannot mend it reports with another line.
class QuietRemapping {
 private:
  static ucs_log_func_rc_t handle(const char*, unsigned, const char*, ucs_log_level_t,
                                  const ucs_log_component_config_t*, const char* format, va_list arguments) {
    if (!std::string_view(format).starts_with("cuIpcOpenMemHandle() failed")) return UCS_LOG_FUNC_RC_CONTINUE;
    char line[256];
    va_list copy;
    va_copy(copy, arguments);
    static_cast<void>(std::vsnprintf(line, sizeof line, format, copy));
    va_end(copy);
    const bool is_mended = std::string_view(line).find("already mapped") != std::string_view::npos;
    return is_mended ? UCS_LOG_FUNC_RC_STOP : UCS_LOG_FUNC_RC_CONTINUE;
  }

  LogFilter filter_{&QuietRemapping::handle};
};

// Without the errors that no transport reaches a peer, that it refuses a connection, and that its shared memory cannot be opened, in jobs
// that outlive losses: there the peer is one that was lost while this PE connected to it, which the launcher tells. Other jobs end with
// Weft's own error, and UCX's line has the details.
class QuietLostPeers {
 private:
  static ucs_log_func_rc_t handle(const char*, unsigned, const char*, ucs_log_level_t,
                                  const ucs_log_component_config_t*, const char* format, va_list) {
    const char* const on_loss = std::getenv("WEFT_ON_LOSS");
    const bool outlives_losses = on_loss != nullptr && std::string_view(on_loss) != "end";
    const std::string_view text = format;
    const bool is_unreachable = text.starts_with("no %s transport to") ||
                                text.starts_with("connect(fd=%d, dest_addr=%s) failed") ||
                                text.starts_with("try to increase \"net.core.somaxconn\"") ||
                                text.starts_with("%s(file_name=%s flags=0x%x) failed") ||
                                text.starts_with("mm ep failed to connect to remote FIFO");
    return outlives_losses && is_unreachable ? UCS_LOG_FUNC_RC_STOP : UCS_LOG_FUNC_RC_CONTINUE;
  }

  LogFilter filter_{&QuietLostPeers::handle};
};

}  // namespace weft::machine::ucx
