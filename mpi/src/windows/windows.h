// What the entry points of windows have in common.
#pragma once

#include <initializer_list>

#include "weft/mpi/mpi.h"

#include "communication/communication.h"
#include "entry/entry.h"
#include "models/mpi/objects/error.h"
#include "models/mpi/window/window.h"

namespace weft::mpi {

// Null if the handle refers to no window.
inline Window* window_of(MPI_Win handle) { return object_of<Window>(handle, ObjectKind::kWindow); }

// Errors: MPI_ERR_WIN; MPI_ERR_OTHER if MPI has ended.
Error find_window(MPI_Win handle, Window** found);
// Calls `body(window)`, which returns an Error, after the checks.
template <class Body>
int with_window(const char* function, MPI_Win win, std::initializer_list<PointerArgument> arguments,
                const Body& body) {
  return guarded(function, win, [&]() -> Error {
    if (Error error = require(arguments); !error.ok()) return error;
    Window* window = nullptr;
    if (Error error = find_window(win, &window); !error.ok()) return error;
    return body(*window);
  });
}

// Errors: MPI_ERR_RANK. MPI_PROC_NULL is no rank of the window.
Error check_rank(const Window& window, int rank);

}  // namespace weft::mpi
