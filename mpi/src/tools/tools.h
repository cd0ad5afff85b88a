// What the calls of the tool information interface share.
//
// They have no error handler, and work before MPI_Init and after MPI_Finalize.
#pragma once

#include <cstdint>
#include <string_view>

#include "weft/mpi/mpi.h"

#include "entry/entry.h"
#include "models/mpi/objects/addresses.h"
#include "models/mpi/rank.h"

namespace weft::mpi {

// Runs `body`, which returns a code, if a tool has started the interface.
template <class Body>
int tool_call(const Body& body) {
  const Error error = outcome_of(nullptr, [&]() -> Error {
    if (this_rank().tools.num_users == 0) return {MPI_T_ERR_NOT_INITIALIZED, {}};
    return {body(), {}};
  });
  if (error.error_class == MPI_ERR_NO_MEM) return MPI_T_ERR_MEMORY;
  return error.error_class == MPI_ERR_INTERN ? MPI_T_ERR_INVALID : error.error_class;
}

template <class T>
bool is_place(T* result) {
  return is_address(static_cast<const void*>(result));
}
// The results of calls that ask for a description may be null, and are left out then.
template <class... T>
bool are_optional(T*... results) {
  return ((results == nullptr || is_place(results)) && ...);
}
template <class T, class Value>
void give(T* result, Value value) {
  if (result != nullptr) *result = value;
}
// `length`: the room at `text`, and afterwards the characters there with the zero at the end; those of the whole text if there is no
// room at all. Both may be null.
void give_text(std::string_view value, char* text, int* length);

template <class Handle>
ToolState::Number number_of(Handle handle) {
  return reinterpret_cast<ToolState::Number>(handle);
}
template <class Handle>
Handle handle_of_number(ToolState::Number number) {
  return reinterpret_cast<Handle>(number);  // NOLINT(performance-no-int-to-ptr): handles are numbers
}

// The variables of each kind have indices from 0 on.
int num_control_variables();
int num_performance_variables();
// The first performance variables count transfers; the others tell of the engine of messages.
int num_transfer_variables();

}  // namespace weft::mpi
