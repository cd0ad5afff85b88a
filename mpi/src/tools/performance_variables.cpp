// Performance variables: the counts of `weft run --stats`, and the queues of messages.
//
// All of them count by themselves (continuous) and cannot be set (readonly). Counts belong to the process, also if it has several
// ranks. They are 0 while MPI does not run.
#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <vector>

#include "base/format.h"
#include "machine/machine.h"
#include "models/mpi/process.h"
#include "tools/tools.h"

namespace weft::mpi {

namespace {

using machine::TransferPath;
using machine::TransportUse;
using Value = unsigned long long;  // MPI_UNSIGNED_LONG_LONG

struct PerformanceVariable {
  std::string name;
  std::string description;
  int var_class;
  Value (*read)(int index);
};

Value sum_of_path(int path, std::uint64_t TransportUse::* number) {
  Value sum = 0;
  for (const TransportUse& use : this_process().runtime().machine().transport_use())
    if (static_cast<int>(use.path) == path) sum += use.*number;
  return sum;
}

// Two variables for each path.
std::string name_of_path(int path) {
  std::string name(machine::transfer_path_name(static_cast<TransferPath>(path)));
  for (char& letter : name) {
    const auto code = static_cast<unsigned char>(letter);
    letter = std::isalnum(code) != 0 ? static_cast<char>(std::tolower(code)) : '_';
  }
  return name;
}

std::vector<PerformanceVariable> make_variables() {
  std::vector<PerformanceVariable> all;
  for (int path = 0; path < machine::kNumTransferPaths; ++path) {
    const std::string_view text = machine::transfer_path_name(static_cast<TransferPath>(path));
    all.push_back({"weft_" + name_of_path(path) + "_messages",
                   base::format("transfers that this process has started by the path \"{}\"", text),
                   MPI_T_PVAR_CLASS_COUNTER,
                   [](int index) { return sum_of_path(index / 2, &TransportUse::messages); }});
    all.push_back({"weft_" + name_of_path(path) + "_bytes",
                   base::format("the bytes of transfers by the path \"{}\"", text),
                   MPI_T_PVAR_CLASS_AGGREGATE,
                   [](int index) { return sum_of_path(index / 2, &TransportUse::bytes); }});
  }
  all.push_back({"weft_posted_receives",
                 "receives of this rank that wait for a message, also the library's own",
                 MPI_T_PVAR_CLASS_LEVEL, [](int) { return Value{this_process().engine().num_posted()}; }});
  all.push_back({"weft_unexpected_messages", "messages that have arrived and wait for a receive",
                 MPI_T_PVAR_CLASS_LEVEL,
                 [](int) { return Value{this_process().engine().num_unexpected()}; }});
  all.push_back(
      {"weft_hang_looks", "how often PE 0 has asked all PEs whether the program hangs; 0 in other processes",
       MPI_T_PVAR_CLASS_COUNTER, [](int) { return Value{this_process().runtime().num_hang_looks()}; }});
  return all;
}

const std::vector<PerformanceVariable>& variables() {
  static const std::vector<PerformanceVariable> all = make_variables();
  return all;
}

int with_performance_variable(int index, const auto& body) {
  return tool_call([&]() -> int {
    if (index < 0 || index >= num_performance_variables()) return MPI_T_ERR_INVALID_INDEX;
    return body(variables()[static_cast<std::size_t>(index)]);
  });
}

int with_session(MPI_T_pvar_session session, const auto& body) {
  return tool_call([&]() -> int {
    auto& sessions = this_rank().tools.sessions;
    const auto found = sessions.find(number_of(session));
    return found == sessions.end() ? MPI_T_ERR_INVALID_SESSION : body(found->second);
  });
}

// Runs `body(index)` with the index of the variable.
int with_performance_handle(MPI_T_pvar_session session, MPI_T_pvar_handle handle, const auto& body) {
  return with_session(session, [&](const ToolState::Handles& handles) -> int {
    const auto found = handles.find(number_of(handle));
    return found == handles.end() ? MPI_T_ERR_INVALID_HANDLE : body(found->second);
  });
}

// A call that no variable takes. For all handles it has nothing to do.
int refuse_change(MPI_T_pvar_session session, MPI_T_pvar_handle handle, int code) {
  if (handle == MPI_T_PVAR_ALL_HANDLES)
    return with_session(session, [](const ToolState::Handles&) -> int { return MPI_SUCCESS; });
  return with_performance_handle(session, handle, [code](int) { return code; });
}

}  // namespace

int num_transfer_variables() { return 2 * machine::kNumTransferPaths; }
int num_performance_variables() { return static_cast<int>(variables().size()); }

}  // namespace weft::mpi

using namespace weft::mpi;  // NOLINT(google-build-using-namespace): the entry points are C functions

extern "C" {

int MPI_T_pvar_get_num(int* num_pvar) {
  return tool_call([&]() -> int {
    if (!is_place(num_pvar)) return MPI_T_ERR_INVALID;
    *num_pvar = num_performance_variables();
    return MPI_SUCCESS;
  });
}
int MPI_T_pvar_get_info(int pvar_index, char* name, int* name_len, int* verbosity, int* var_class,
                        MPI_Datatype* datatype, MPI_T_enum* enumtype, char* desc, int* desc_len, int* bind,
                        int* readonly, int* continuous, int* atomic) {
  return with_performance_variable(pvar_index, [&](const PerformanceVariable& variable) -> int {
    if (!are_optional(name, name_len, verbosity, var_class, datatype, enumtype, desc, desc_len, bind,
                      readonly, continuous, atomic))
      return MPI_T_ERR_INVALID;
    give_text(variable.name, name, name_len);
    give_text(variable.description, desc, desc_len);
    give(verbosity, MPI_T_VERBOSITY_USER_BASIC);
    give(var_class, variable.var_class);
    give(datatype, MPI_UNSIGNED_LONG_LONG);
    give(enumtype, MPI_T_ENUM_NULL);
    give(bind, MPI_T_BIND_NO_OBJECT);
    give(readonly, 1);
    give(continuous, 1);
    give(atomic, 0);
    return MPI_SUCCESS;
  });
}
int MPI_T_pvar_get_index(const char* name, int var_class, int* pvar_index) {
  return tool_call([&]() -> int {
    if (!is_place(name) || !is_place(pvar_index)) return MPI_T_ERR_INVALID;
    const auto found = std::ranges::find_if(variables(), [&](const PerformanceVariable& one) {
      return one.var_class == var_class && one.name == name;
    });
    if (found == variables().end()) return MPI_T_ERR_INVALID_NAME;
    *pvar_index = static_cast<int>(found - variables().begin());
    return MPI_SUCCESS;
  });
}

int MPI_T_pvar_session_create(MPI_T_pvar_session* session) {
  return tool_call([&]() -> int {
    if (!is_place(session)) return MPI_T_ERR_INVALID;
    ToolState& tools = this_rank().tools;
    const ToolState::Number number = tools.new_handle();
    tools.sessions.emplace(number, ToolState::Handles());
    *session = handle_of_number<MPI_T_pvar_session>(number);
    return MPI_SUCCESS;
  });
}
int MPI_T_pvar_session_free(MPI_T_pvar_session* session) {
  return tool_call([&]() -> int {
    if (!is_place(session)) return MPI_T_ERR_INVALID;
    if (this_rank().tools.sessions.erase(number_of(*session)) == 0) return MPI_T_ERR_INVALID_SESSION;
    *session = MPI_T_PVAR_SESSION_NULL;
    return MPI_SUCCESS;
  });
}

// No variable belongs to an object.
int MPI_T_pvar_handle_alloc(MPI_T_pvar_session session, int pvar_index, void* /*obj_handle*/,
                            MPI_T_pvar_handle* handle, int* count) {
  return with_session(session, [&](ToolState::Handles& handles) -> int {
    if (pvar_index < 0 || pvar_index >= num_performance_variables()) return MPI_T_ERR_INVALID_INDEX;
    if (!is_place(handle) || !is_place(count)) return MPI_T_ERR_INVALID;
    const ToolState::Number number = this_rank().tools.new_handle();
    handles.emplace(number, pvar_index);
    *handle = handle_of_number<MPI_T_pvar_handle>(number);
    *count = 1;
    return MPI_SUCCESS;
  });
}
int MPI_T_pvar_handle_free(MPI_T_pvar_session session, MPI_T_pvar_handle* handle) {
  return with_session(session, [&](ToolState::Handles& handles) -> int {
    if (!is_place(handle)) return MPI_T_ERR_INVALID;
    if (handles.erase(number_of(*handle)) == 0) return MPI_T_ERR_INVALID_HANDLE;
    *handle = MPI_T_PVAR_HANDLE_NULL;
    return MPI_SUCCESS;
  });
}

int MPI_T_pvar_start(MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
  return refuse_change(session, handle, MPI_T_ERR_PVAR_NO_STARTSTOP);
}
int MPI_T_pvar_stop(MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
  return refuse_change(session, handle, MPI_T_ERR_PVAR_NO_STARTSTOP);
}
int MPI_T_pvar_read(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void* buf) {
  return with_performance_handle(session, handle, [&](int index) -> int {
    if (!is_place(buf)) return MPI_T_ERR_INVALID;
    const bool runs = this_rank().process != nullptr;
    *static_cast<Value*>(buf) = runs ? variables()[static_cast<std::size_t>(index)].read(index) : 0;
    return MPI_SUCCESS;
  });
}
int MPI_T_pvar_write(MPI_T_pvar_session session, MPI_T_pvar_handle handle, const void* /*buf*/) {
  return with_performance_handle(session, handle, [](int) -> int { return MPI_T_ERR_PVAR_NO_WRITE; });
}
int MPI_T_pvar_reset(MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
  return refuse_change(session, handle, MPI_T_ERR_PVAR_NO_WRITE);
}
int MPI_T_pvar_readreset(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void* /*buf*/) {
  return with_performance_handle(session, handle, [](int) -> int { return MPI_T_ERR_PVAR_NO_WRITE; });
}

}  // extern "C"
