// Control variables: the settings of a job, which are environment variables. Their values are texts.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "tools/tools.h"

namespace weft::mpi {

namespace {

// The room for a value, with the zero at its end.
constexpr int kValueChars = 1024;

struct ControlVariable {
  const char* name;
  std::string_view description;
  // LOCAL and ALL_EQ: MPI_Init reads it. READONLY: the launcher has read it.
  int scope;
};

// The options of `weft run` (python/weft/_cli/settings.py), and what has no option.
constexpr std::array<ControlVariable, 22> kControlVariables{{
    {"WEFT_STATS", "1: transfers, transports and times on stderr at the end", MPI_T_SCOPE_LOCAL},
    {"WEFT_TRACE", "the file of the trace that is written at the end", MPI_T_SCOPE_ALL_EQ},
    {"WEFT_TRACE_MIB", "MiB that the events of a trace may take in a process", MPI_T_SCOPE_LOCAL},
    {"WEFT_ON_LOSS", "what the loss of a process does: end, restart, shrink or raise", MPI_T_SCOPE_READONLY},
    {"WEFT_DRAIN_ON", "the signal after which a job goes on without the process that got it",
     MPI_T_SCOPE_READONLY},
    {"WEFT_HANG_REPORT", "seconds of idleness after which a hang is reported, or off", MPI_T_SCOPE_ALL_EQ},
    {"WEFT_MACHINE", "the machine that carries messages: ucx or loopback", MPI_T_SCOPE_ALL_EQ},
    {"WEFT_STAGING",
     "the GPU memory that is staged through host memory: device (what UCX does not take) or host (all)",
     MPI_T_SCOPE_ALL_EQ},
    {"WEFT_TRUSTED_NETWORK", "1: no warning if the job uses TCP", MPI_T_SCOPE_LOCAL},
    {"WEFT_CHECK", "1: reductions check that all ranks pass the same operator", MPI_T_SCOPE_ALL_EQ},
    {"WEFT_ORDERED_REDUCTIONS", "1: reductions of chares merge in the order of the elements",
     MPI_T_SCOPE_ALL_EQ},
    {"WEFT_PEER_MEMORY", "copies of GPU memory past UCX: on or off", MPI_T_SCOPE_ALL_EQ},
    {"WEFT_PGAS_MAPPING", "memory of windows that other processes of the host map: on or off",
     MPI_T_SCOPE_ALL_EQ},
    {"WEFT_CALL_LIMIT", "MiB of calls of chares that may wait for one process", MPI_T_SCOPE_LOCAL},
    {"WEFT_LB", "the strategy of load balancing", MPI_T_SCOPE_ALL_EQ},
    {"WEFT_LB_PERIOD", "seconds between two rounds of load balancing", MPI_T_SCOPE_ALL_EQ},
    {"WEFT_LB_VERBOSE", "1: each step of load balancing is printed", MPI_T_SCOPE_LOCAL},
    {"WEFT_LB_CLOCK", "the clock of measured loads: running or wall", MPI_T_SCOPE_LOCAL},
    {"WEFT_LB_RECORD", "the file to which load balancing writes its loads", MPI_T_SCOPE_ALL_EQ},
    {"WEFT_GPUS", "the GPUs of the processes of a host: auto, none or a list", MPI_T_SCOPE_LOCAL},
    {"WEFT_MPI_RANKS", "the number of ranks, if processes run several", MPI_T_SCOPE_READONLY},
    {"WEFT_MPI_RANK_MAP", "the process of each rank", MPI_T_SCOPE_READONLY},
}};

int with_control_variable(int index, const auto& body) {
  return tool_call([&]() -> int {
    if (index < 0 || index >= num_control_variables()) return MPI_T_ERR_INVALID_INDEX;
    return body(kControlVariables[static_cast<std::size_t>(index)]);
  });
}
int with_control_handle(MPI_T_cvar_handle handle, const auto& body) {
  return tool_call([&]() -> int {
    const ToolState::Handles& handles = this_rank().tools.control_handles;
    const auto found = handles.find(number_of(handle));
    if (found == handles.end()) return MPI_T_ERR_INVALID_HANDLE;
    return body(kControlVariables[static_cast<std::size_t>(found->second)]);
  });
}

// An empty text takes the variable back.
int write_value(const ControlVariable& variable, const char* value) {
  const Rank& rank = this_rank();
  if (variable.scope == MPI_T_SCOPE_READONLY) return MPI_T_ERR_CVAR_SET_NEVER;
  if (rank.phase != Rank::Phase::kBefore || rank.process != nullptr || rank.has_left_job)
    return MPI_T_ERR_CVAR_SET_NOT_NOW;
  if (strnlen(value, kValueChars) == kValueChars) return MPI_T_ERR_INVALID;
  const int code = *value == '\0' ? unsetenv(variable.name) : setenv(variable.name, value, 1);
  return code == 0 ? MPI_SUCCESS : MPI_T_ERR_MEMORY;
}

}  // namespace

int num_control_variables() { return static_cast<int>(kControlVariables.size()); }

}  // namespace weft::mpi

using namespace weft::mpi;  // NOLINT(google-build-using-namespace): the entry points are C functions

extern "C" {

int MPI_T_cvar_get_num(int* num_cvar) {
  return tool_call([&]() -> int {
    if (!is_place(num_cvar)) return MPI_T_ERR_INVALID;
    *num_cvar = num_control_variables();
    return MPI_SUCCESS;
  });
}
int MPI_T_cvar_get_info(int cvar_index, char* name, int* name_len, int* verbosity, MPI_Datatype* datatype,
                        MPI_T_enum* enumtype, char* desc, int* desc_len, int* bind, int* scope) {
  return with_control_variable(cvar_index, [&](const ControlVariable& variable) -> int {
    if (!are_optional(name, name_len, verbosity, datatype, enumtype, desc, desc_len, bind, scope))
      return MPI_T_ERR_INVALID;
    give_text(variable.name, name, name_len);
    give_text(variable.description, desc, desc_len);
    give(verbosity, MPI_T_VERBOSITY_USER_BASIC);
    give(datatype, MPI_CHAR);
    give(enumtype, MPI_T_ENUM_NULL);
    give(bind, MPI_T_BIND_NO_OBJECT);
    give(scope, variable.scope);
    return MPI_SUCCESS;
  });
}
int MPI_T_cvar_get_index(const char* name, int* cvar_index) {
  return tool_call([&]() -> int {
    if (!is_place(name) || !is_place(cvar_index)) return MPI_T_ERR_INVALID;
    const auto* const found = std::ranges::find_if(
        kControlVariables, [&](const ControlVariable& one) { return std::strcmp(one.name, name) == 0; });
    if (found == kControlVariables.end()) return MPI_T_ERR_INVALID_NAME;
    *cvar_index = static_cast<int>(found - kControlVariables.begin());
    return MPI_SUCCESS;
  });
}

// No variable belongs to an object.
int MPI_T_cvar_handle_alloc(int cvar_index, void* /*obj_handle*/, MPI_T_cvar_handle* handle, int* count) {
  return with_control_variable(cvar_index, [&](const ControlVariable&) -> int {
    if (!is_place(handle) || !is_place(count)) return MPI_T_ERR_INVALID;
    ToolState& tools = this_rank().tools;
    const ToolState::Number number = tools.new_handle();
    tools.control_handles.emplace(number, cvar_index);
    *handle = handle_of_number<MPI_T_cvar_handle>(number);
    *count = kValueChars;
    return MPI_SUCCESS;
  });
}
int MPI_T_cvar_handle_free(MPI_T_cvar_handle* handle) {
  return tool_call([&]() -> int {
    if (!is_place(handle)) return MPI_T_ERR_INVALID;
    if (this_rank().tools.control_handles.erase(number_of(*handle)) == 0) return MPI_T_ERR_INVALID_HANDLE;
    *handle = MPI_T_CVAR_HANDLE_NULL;
    return MPI_SUCCESS;
  });
}
int MPI_T_cvar_read(MPI_T_cvar_handle handle, void* buf) {
  return with_control_handle(handle, [&](const ControlVariable& variable) -> int {
    if (!is_place(buf)) return MPI_T_ERR_INVALID;
    const char* const value = std::getenv(variable.name);
    copy_string(value == nullptr ? "" : value, kValueChars, static_cast<char*>(buf));
    return MPI_SUCCESS;
  });
}
int MPI_T_cvar_write(MPI_T_cvar_handle handle, const void* buf) {
  return with_control_handle(handle, [&](const ControlVariable& variable) -> int {
    return is_place(buf) ? write_value(variable, static_cast<const char*>(buf)) : MPI_T_ERR_INVALID;
  });
}

}  // extern "C"
