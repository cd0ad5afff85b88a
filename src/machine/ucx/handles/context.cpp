#include "machine/ucx/handles/context.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "base/format.h"
#include "machine/ucx/setup/library.h"
#include "machine/ucx/setup/shared_memory.h"
#include "machine/ucx/setup/transport_list.h"

namespace weft::machine::ucx {
namespace {

// Sets UCX_<name> unless the environment does.
void set_default(ucp_config_t* config, const char* name, const char* value) {
  if (std::getenv(base::format("UCX_{}", name).c_str()) != nullptr) return;
  // The result is ignored: a UCX that does not know a setting works without it.
  (void)ucp_config_modify(config, name, value);
}

// Whether an interface other than the loopback device is up and has an address.
bool has_network() {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return true;
  bool found = false;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0 || (one->ifa_flags & IFF_LOOPBACK) != 0)
      continue;
    const int family = one->ifa_addr->sa_family;
    found |= family == AF_INET || family == AF_INET6;
  }
  freeifaddrs(all);
  return found;
}

// `by_default`: of names that are left out, such as "^tcp".
base::Status set_transports(ucp_config_t* config, std::string_view by_default) {
  const char* const wanted = std::getenv("UCX_TLS");
  const std::string list = without_sysv(wanted == nullptr ? by_default : wanted,
                                        access("/dev/xpmem", F_OK) == 0, access("/dev/knem", F_OK) == 0);
  if (ucp_config_modify(config, "TLS", list.c_str()) == UCS_OK) return {};
  return {base::StatusCode::kInvalidArgument,
          base::format("UCX does not take the list of transports '{}'; correct or unset UCX_TLS", list)};
}

base::Status configure(ucp_config_t* config, const ContextOptions& options) {
  // Weft's endpoints handle errors. By default UCX then does not use shared memory, but TCP, whose latency is
  // 5.3 us instead of 0.3 us.
  set_default(config, "MM_ERROR_HANDLING", "y");
  // A queue needs 257 receive buffers of 8 KiB. UCX allocates and touches 512 by default.
  set_default(config, "MM_RX_BUFS_GROW", "264");
  // By default UCX takes memory that no other process can map where a segment cannot be made, and then crashes. The user
  // cannot want that.
  static_cast<void>(ucp_config_modify(config, "POSIX_ALLOC", "md"));
  // By default UCX gives up the transport below 16 MiB, on some PEs of a host before others. Weft says what is missing.
  set_default(config, "POSIX_SHM_MIN_SIZE", "0");
  // A PE that is alone on its host can do without segments.
  const bool is_without_room = options.pes_on_host == 1 && check_room_for_segments(1).failed();
  if (options.pes_on_host < options.num_pes) {
    // No other host is reached through the loopback device, but every user of this host can connect to a
    // listener there. UCX before 1.21 cannot exclude a device.
    if (library_is_at_least(1, 21) && has_network()) set_default(config, "NET_DEVICES", "^lo");
    return set_transports(config, is_without_room ? "^posix" : "all");
  }
  // On one host the launcher reports deaths at once. UCX's own checks would cost each progress call 4 ns.
  set_default(config, "KEEPALIVE_INTERVAL", "inf");
  // A job on one host needs no listener. A TCP lane would cost each progress call 160-690 ns.
  return set_transports(config, is_without_room ? "^tcp,posix" : "^tcp");
}

// `weft run` and the Python package set this variable before they know the version of UCX, because UCX 1.21 and
// later read it when they are loaded. An older UCX does not know it and would print a warning.
void drop_setting_of_newer_ucx() {
  if (!library_is_at_least(1, 21)) unsetenv("UCX_MEM_BISTRO_GRACE_DURATION");
}

base::Result<ucp_config_t*> read_config() {
  ucp_config_t* config = nullptr;
  const ucs_status_t status = ucp_config_read(nullptr, nullptr, &config);
  if (status != UCS_OK) {
    return base::Status(
        base::StatusCode::kInternal,
        base::format("UCX cannot read its configuration: {}. Check the UCX_* environment variables.",
                     status_text(status)));
  }
  return config;
}

}  // namespace

base::Result<Context> Context::create(const ContextOptions& options) {
  if (base::Status status = check_library(); status.failed()) return status;
  drop_setting_of_newer_ucx();
  base::Result<ucp_config_t*> config = read_config();
  if (!config.ok()) return config.status();
  if (base::Status status = configure(*config, options); status.failed()) {
    ucp_config_release(*config);
    return status;
  }

  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_REQUEST_SIZE | UCP_PARAM_FIELD_REQUEST_INIT |
                      UCP_PARAM_FIELD_MT_WORKERS_SHARED | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS |
                      UCP_PARAM_FIELD_ESTIMATED_NUM_PPN;
  params.features = UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_RMA | UCP_FEATURE_WAKEUP;
  params.request_size = options.request_size;
  params.request_init = options.request_init;
  params.mt_workers_shared = 0;
  params.estimated_num_eps = static_cast<std::size_t>(options.num_pes);
  params.estimated_num_ppn = static_cast<std::size_t>(options.pes_on_host);

  ucp_context_h handle = nullptr;
  const ucs_status_t status = ucp_init_version(kApiMajor, kApiMinor, &params, *config, &handle);
  ucp_config_release(*config);
  if (status != UCS_OK) {
    return base::Status(base::StatusCode::kUnreachable,
                        base::format("UCX {} ({}) cannot start: {}. Check UCX_TLS and UCX_NET_DEVICES",
                                     library_version(), library_path(), status_text(status)));
  }
  Context context(handle);
  if (context.transports().contains("sysv/memory")) {
    return base::Status(
        base::StatusCode::kUnsupported,
        base::format(
            "UCX {} ({}) uses System V shared memory, which other users can change, although Weft has "
            "left it out; unset UCX_TLS",
            library_version(), library_path()));
  }
  return context;
}

// UCX reports its transports only as text for people, in lines like "#  resource 0 : md 0 dev 0 flags --
// self/memory".
std::set<std::string> Context::transports() const {
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* stream = open_memstream(&text, &size);
  if (stream == nullptr) return {};
  ucp_context_print_info(handle_, stream);
  std::fclose(stream);
  std::istringstream lines(std::string(text, size));
  std::free(text);
  std::set<std::string> names;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("resource") == std::string::npos) continue;
    const std::string name = line.substr(line.find_last_of(' ') + 1);
    if (name.find('/') == std::string::npos) return {};  // an unknown form
    names.insert(name);
  }
  return names;
}

bool Context::can_address(memory::NativeApi api) const {
  if (api == memory::NativeApi::kNone) return false;
  const ucs_memory_type_t type = memory_type_of(api);
  if (type == UCS_MEMORY_TYPE_HOST) return true;
  ucp_context_attr_t attributes{};
  attributes.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES;
  return ucp_context_query(handle_, &attributes) == UCS_OK &&
         (attributes.memory_types & (std::uint64_t{1} << type)) != 0;
}

ucs_memory_type_t memory_type_of(memory::NativeApi api) {
  return api == memory::NativeApi::kCuda ? UCS_MEMORY_TYPE_CUDA : UCS_MEMORY_TYPE_HOST;
}

}  // namespace weft::machine::ucx
