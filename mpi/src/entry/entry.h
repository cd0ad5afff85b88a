// The frame of every entry point: it runs the body, catches exceptions, and hands an error to the handler that applies.
//
//     int MPI_Comm_size(MPI_Comm comm, int* size) {
//       return guarded(__func__, comm, [&]() -> Error { ...; return {}; });
//     }
//
// The second argument is the communicator, window, file or session to which errors belong, kNoObject, or the handler that the call
// is given.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string_view>

#include "weft/mpi/mpi.h"

#include "models/mpi/objects/error.h"
#include "models/mpi/objects/error_handler.h"
#include "models/mpi/virtual_ranks/running_code.h"

namespace weft::mpi {

// Errors that belong to no object go to the handler of MPI_COMM_SELF, as the standard says.
struct NoObject {};
inline constexpr NoObject kNoObject;

// An argument of a call that makes an object: the handler of that object, and of errors of the call itself.
template <class Handle>
struct GivenHandler {
  MPI_Errhandler handler;
  Handle none;  // the null handle, which a function of the program gets
};

// Calls the error handler of the object and returns the code, unless the handler ends the job.
int raise(const char* function, MPI_Comm comm, const Error& error);
int raise(const char* function, MPI_Win win, const Error& error);
int raise(const char* function, MPI_File file, const Error& error);
int raise(const char* function, MPI_Session session, const Error& error);
int raise(const char* function, NoObject none, const Error& error);
int raise(const char* function, GivenHandler<MPI_Comm> given, const Error& error);
int raise(const char* function, GivenHandler<MPI_Session> given, const Error& error);

// The object whose error handler applies; null if the handle refers to none.
ErrorScope* error_scope(MPI_Comm comm);
ErrorScope* error_scope(MPI_Win win);
ErrorScope* error_scope(MPI_File file);
ErrorScope* error_scope(MPI_Session session);

// The error of the exception that is being handled.
Error current_exception();

struct PointerArgument {
  template <class T>
  PointerArgument(T* pointer_in, const char* name_in)
      : pointer(static_cast<const void*>(pointer_in)), name(name_in) {}
  PointerArgument(std::nullptr_t, const char* name_in) : pointer(nullptr), name(name_in) {}

  const void* pointer;
  const char* name;
};
// MPI_ERR_ARG if one of the pointers is no address: null, MPI_IN_PLACE, ...
Error require(std::initializer_list<PointerArgument> arguments);

// Copies text into an array of the program with room for `size` bytes, the terminating zero included; cuts what is longer.
void copy_string(std::string_view text, std::size_t size, char* result);

// Runs `body`. Returns its Error, or the error of the exception that it throws. A trace shows the call by the name of the function, if
// that is not null. Inlined, as its callers are, because each has a body of
// its own: the arguments of a call stay in registers.
template <class Body>
[[gnu::always_inline]] inline Error outcome_of(const char* function, const Body& body) {
  const LibraryRuns library(function);
  try {
    return body();
  } catch (...) {
    return current_exception();
  }
}

// Runs `body`, which returns an Error. No exception of the body leaves it. One of an error handler, a function of the program,
// does: C++ programs may want that.
template <class Handle, class Body>
[[gnu::always_inline]] inline int guarded(const char* function, Handle object, const Body& body) {
  const Error error = outcome_of(function, body);
  if (error.ok()) [[likely]]
    return MPI_SUCCESS;
  return raise(function, object, error);
}

// As guarded(), for a body that calls other entry points and returns their code.
template <class Handle, class Body>
int without_exceptions(const char* function, Handle object, const Body& body) {
  try {
    return body();
  } catch (...) {
    return raise(function, object, current_exception());
  }
}

// Says once on stderr that the function is not implemented.
void report_missing(const char* function);

// The body of a function that Weft does not implement.
template <class Handle>
int not_implemented(const char* function, Handle object) {
  return guarded(function, object, [&]() -> Error {
    report_missing(function);
    return {MPI_ERR_UNSUPPORTED_OPERATION,
            "Weft does not implement this function; docs/mpi-functions.md lists those that it does"};
  });
}

}  // namespace weft::mpi
