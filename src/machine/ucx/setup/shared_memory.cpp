#include "machine/ucx/setup/shared_memory.h"

#include <strings.h>
#include <sys/statvfs.h>
#include <ucs/config/global_opts.h>
#include <ucs/debug/log_def.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/format.h"
#include "base/shared_file.h"
#include "machine/bootstrap/last_words.h"

namespace weft::machine::ucx {
namespace {

using base::Status;
using base::StatusCode;

constexpr std::uint64_t kDefaultQueueElements = 256;
// The number of buffers that Weft sets as UCX_MM_RX_BUFS_GROW (handles/context.cpp).
constexpr std::uint64_t kDefaultBuffers = 264;
constexpr std::uint64_t kElementBytes = 128;
// A message of up to 8256 bytes, and what UCX keeps in front of it.
constexpr std::uint64_t kBufferBytes = 8448;

std::uint64_t setting(const char* variable, std::uint64_t by_default) {
  const char* const text = std::getenv(variable);
  const std::uint64_t value = text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
  return value == 0 ? by_default : value;
}

std::string folder_of_segments() {
  const char* const folder = std::getenv("UCX_POSIX_DIR");
  return folder == nullptr ? "/dev/shm" : folder;
}

std::string mebibytes(std::uint64_t bytes) {
  return base::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

// A text for the user: the free memory in the folder of segments, and what to do if there is too little.
std::string state_of(const std::string& folder, const struct statvfs& state, int pes_on_host) {
  return base::format(
      "{} of {} are free in {}, and UCX needs {} there for each of the {} PEs of this host, and as much "
      "again when many "
      "messages wait for their receivers. Free some of it, make it larger (docker run --shm-size=1g, mount "
      "-o "
      "remount,size=1g /dev/shm), or set UCX_POSIX_DIR to a folder in memory that has room",
      mebibytes(std::uint64_t{state.f_bavail} * state.f_frsize),
      mebibytes(std::uint64_t{state.f_blocks} * state.f_frsize), folder, mebibytes(segment_bytes()),
      pes_on_host);
}

Status cannot_use(const std::string& folder) {
  return {StatusCode::kUnreachable, base::format("there is no shared memory for the PEs of this host: {} "
                                                 "cannot be written ({}). Make it writable, or set "
                                                 "UCX_POSIX_DIR to a folder in memory that is",
                                                 folder, std::strerror(errno))};
}

std::atomic<int> guarded_pe = -1;
std::atomic<int> guarded_pes_on_host = 1;
// The user wants no errors of UCX (UCX_LOG_LEVEL=fatal).
std::atomic<bool> are_errors_unwanted = false;

// The pool of buffers has this name in UCX. When it is empty, UCX passes over the next messages as if they had been read.
ucs_log_func_rc_t end_if_full(const char* /*file*/, unsigned /*line*/, const char* /*function*/,
                              ucs_log_level_t level, const ucs_log_component_config_t* /*component*/,
                              const char* format, va_list arguments) {
  if (level != UCS_LOG_LEVEL_ERROR) return UCS_LOG_FUNC_RC_CONTINUE;
  const ucs_log_func_rc_t otherwise = are_errors_unwanted ? UCS_LOG_FUNC_RC_STOP : UCS_LOG_FUNC_RC_CONTINUE;
  char text[256];
  va_list copy;
  va_copy(copy, arguments);
  static_cast<void>(std::vsnprintf(text, sizeof text, format, copy));
  va_end(copy);
  if (std::string_view(text).find("mm_recv_desc") == std::string_view::npos) return otherwise;
  const std::string folder = folder_of_segments();
  struct statvfs state{};
  const bool is_known = statvfs(folder.c_str(), &state) == 0;
  std::fflush(nullptr);
  bootstrap::print_last_words(base::format(
      "weft: PE {} ends: UCX cannot add shared memory for messages that wait for their receivers: {}",
      guarded_pe.load(),
      is_known ? state_of(folder, state, guarded_pes_on_host) : base::format("{} is gone", folder)));
  std::_Exit(EXIT_FAILURE);
}

}  // namespace

std::uint64_t segment_bytes() {
  const std::uint64_t elements = setting("UCX_MM_FIFO_SIZE", kDefaultQueueElements);
  const std::uint64_t buffers = setting("UCX_MM_RX_BUFS_GROW", kDefaultBuffers);
  return elements * kElementBytes + std::max(buffers, elements + 1) * kBufferBytes;
}

Status check_room_for_segments(int pes_on_host) {
  const std::string folder = folder_of_segments();
  struct statvfs state{};
  if (statvfs(folder.c_str(), &state) != 0 || access(folder.c_str(), W_OK | X_OK) != 0)
    return cannot_use(folder);
  if (Status status = base::check_file_size(segment_bytes()); status.failed()) return status;
  if (std::uint64_t{state.f_bavail} * state.f_frsize >= segment_bytes()) return {};
  return {StatusCode::kOutOfMemory,
          "there is no room for shared memory: " + state_of(folder, state, pes_on_host)};
}

Status check_shared_memory(const std::set<std::string>& transports, int pes_on_host) {
  const bool has_posix = transports.contains("posix/memory");
  // UCX leaves `posix` out where it cannot use the folder. The user may have done so too.
  const bool lacks_it = !has_posix && pes_on_host > 1 && std::getenv("UCX_TLS") == nullptr;
  return has_posix || lacks_it ? check_room_for_segments(pes_on_host) : Status();
}

void end_process_when_full(int pe, int pes_on_host) {
  guarded_pe = pe;
  guarded_pes_on_host = pes_on_host;
  static const bool is_set = [] {
    ucs_log_push_handler(&end_if_full);
    // UCX gives a handler the lines alone that it would print.
    char level[16] = "";
    if (ucs_global_opts_get_value("LOG_LEVEL", level, sizeof level) == UCS_OK &&
        ::strcasecmp(level, "fatal") == 0) {
      are_errors_unwanted = true;
      static_cast<void>(ucs_global_opts_set_value("LOG_LEVEL", "error"));
    }
    return true;
  }();
  static_cast<void>(is_set);
}

}  // namespace weft::machine::ucx
