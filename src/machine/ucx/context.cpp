#include "machine/ucx/context.h"

#include <fmt/format.h>

#include <cstdlib>

#include "machine/ucx/library.h"

namespace weft::machine::ucx {
namespace {

// A setting of ours; the user's own UCX_<name> wins.
void set_default(ucp_config_t* config, const char* name, const char* value) {
  if (std::getenv(fmt::format("UCX_{}", name).c_str()) != nullptr) return;
  // A UCX that no longer knows the setting does without it: each of them is for speed.
  (void)ucp_config_modify(config, name, value);
}

void configure(ucp_config_t* config, const ContextOptions& options) {
  // With error handling on, shared memory would be left out and TCP take its place (5.3 us instead of 0.3).
  set_default(config, "MM_ERROR_HANDLING", "y");
  // No listener on a job of one host, and no TCP lane, which would cost each progress call 160-690 ns.
  if (options.pes_on_host < options.num_pes) return;
  set_default(config, "TLS", "^tcp");
  // Within a host the launcher tells of deaths, at once; looking for them every 20 s makes each progress call
  // 4 ns slower.
  set_default(config, "KEEPALIVE_INTERVAL", "inf");
}

// `weft run` and the Python package set this for UCX 1.21 and later, which read it when they are loaded. An
// older UCX does not know it and would warn of it.
void drop_setting_of_newer_ucx() {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  ucp_get_version(&major, &minor, &release);
  if (major == 1 && minor < 21) unsetenv("UCX_MEM_BISTRO_GRACE_DURATION");
}

base::Result<ucp_config_t*> read_config() {
  ucp_config_t* config = nullptr;
  const ucs_status_t status = ucp_config_read(nullptr, nullptr, &config);
  if (status != UCS_OK) {
    return base::Status(
        base::StatusCode::kInternal,
        fmt::format("UCX cannot read its configuration: {}. Check the UCX_* environment variables.",
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
  configure(*config, options);

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
    return base::Status(
        base::StatusCode::kUnreachable,
        fmt::format("UCX {} ({}) cannot start: {}. Check UCX_TLS and UCX_NET_DEVICES, and that /dev/shm "
                    "has room.",
                    library_version(), library_path(), status_text(status)));
  }
  return Context(handle);
}

bool Context::can_address(memory::Kind kind) const {
  if (kind == memory::Kind::kHost) return true;
  if (kind != memory::Kind::kCuda) return false;
  ucp_context_attr_t attributes{};
  attributes.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES;
  return ucp_context_query(handle_, &attributes) == UCS_OK &&
         (attributes.memory_types & (std::uint64_t{1} << UCS_MEMORY_TYPE_CUDA)) != 0;
}

ucs_memory_type_t memory_type_of(memory::Kind kind) {
  return kind == memory::Kind::kCuda ? UCS_MEMORY_TYPE_CUDA : UCS_MEMORY_TYPE_HOST;
}

}  // namespace weft::machine::ucx
