#include "machine/ucx/setup/library.h"

#include <dlfcn.h>
#include <signal.h>
#include <ucp/api/ucp.h>
#include <ucs/debug/debug.h>

#include <cstdlib>

#include "base/format.h"

namespace weft::machine::ucx {
namespace {

// UCX takes SIGHUP as a request to log more, from the time at which it is loaded: a program whose terminal is closed would go on for
// ever. Whether the signal was ignored before (nohup) is kept.
bool give_back_hangup() {
  if (std::getenv("UCX_DEBUG_SIGNO") != nullptr) return false;  // the user's choice
  struct sigaction now{};
  Dl_info owner{};
  Dl_info ucx{};
  if (sigaction(SIGHUP, nullptr, &now) != 0 || now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN)
    return false;
  if (dladdr(reinterpret_cast<const void*>(now.sa_handler), &owner) == 0 ||
      dladdr(reinterpret_cast<const void*>(&ucs_debug_disable_signal), &ucx) == 0 ||
      owner.dli_fbase != ucx.dli_fbase)
    return false;
  ucs_debug_disable_signal(SIGHUP);
  return true;
}

[[maybe_unused]] const bool has_hangup = give_back_hangup();

}  // namespace

std::string library_version() {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  ucp_get_version(&major, &minor, &release);
  return base::format("{}.{}.{}", major, minor, release);
}

std::string library_path() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&ucp_get_version), &info) == 0 || info.dli_fname == nullptr) {
    return "an unknown file";
  }
  return info.dli_fname;
}

base::Status check_library_version(unsigned major, unsigned minor, std::string_view version,
                                   std::string_view path) {
  if (major == kApiMajor && minor >= kApiMinor) return {};
  return {
      base::StatusCode::kUnsupported,
      base::format(
          "Weft needs UCX {}.{} or newer (of UCX {}), but this process runs with UCX {} from {}. Take that "
          "folder out of LD_LIBRARY_PATH, or put the lib folder of a newer UCX in front of it (the PyPI "
          "package libucx-cu13 has one).",
          kApiMajor, kApiMinor, kApiMajor, version, path)};
}

bool library_is_at_least(unsigned major, unsigned minor) {
  unsigned has_major = 0;
  unsigned has_minor = 0;
  unsigned release = 0;
  ucp_get_version(&has_major, &has_minor, &release);
  return has_major != major ? has_major > major : has_minor >= minor;
}

base::Status check_library() {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  ucp_get_version(&major, &minor, &release);
  return check_library_version(major, minor, library_version(), library_path());
}

std::string_view status_text(ucs_status_t status) { return ucs_status_string(status); }

}  // namespace weft::machine::ucx
