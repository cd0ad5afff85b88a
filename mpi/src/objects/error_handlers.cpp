// Error handlers: made by the program, and attached to communicators, windows, files and sessions.
#include "weft/mpi/mpi.h"

#include "base/format.h"
#include "entry/entry.h"
#include "entry/handles.h"
#include "entry/objects.h"
#include "models/mpi/rank.h"

using namespace weft::mpi;

namespace {

// For each type of handle: its kind, its name in messages, and the class of an error about it.
struct ScopeNames {
  ObjectKind kind;
  int error_class;
  const char* what;
};
constexpr ScopeNames names_of(MPI_Comm /*comm*/) {
  return {ObjectKind::kCommunicator, MPI_ERR_COMM, "communicator"};
}
constexpr ScopeNames names_of(MPI_Win /*win*/) { return {ObjectKind::kWindow, MPI_ERR_WIN, "window"}; }
constexpr ScopeNames names_of(MPI_File /*file*/) { return {ObjectKind::kFile, MPI_ERR_FILE, "file"}; }
constexpr ScopeNames names_of(MPI_Session /*session*/) {
  return {ObjectKind::kSession, MPI_ERR_SESSION, "session"};
}

template <class Handle>
Error find_scope(Handle handle, ErrorScope** scope) {
  *scope = error_scope(handle);
  if (*scope != nullptr) return {};
  const ScopeNames names = names_of(handle);
  return {names.error_class,
          weft::base::format("the handle is no {}; is it null, freed, or used before MPI_Init?", names.what)};
}

template <class Handle, class Function>
int create_handler(const char* name, Function* function, MPI_Errhandler* errhandler) {
  return guarded(name, kNoObject, [&]() -> Error {
    if (Error error =
            require({{reinterpret_cast<const void*>(function), "function"}, {errhandler, "errhandler"}});
        !error.ok()) {
      return error;
    }
    auto* const handler =
        new ErrorHandler(names_of(Handle()).kind, reinterpret_cast<ErrorHandler::Function>(function));
    *errhandler = make_handle<MPI_Errhandler>(Ref<ErrorHandler>::adopt(handler));
    return {};
  });
}

template <class Handle>
int set_handler(const char* name, Handle object, MPI_Errhandler errhandler) {
  return guarded(name, object, [&]() -> Error {
    ErrorScope* scope = nullptr;
    if (Error error = find_scope(object, &scope); !error.ok()) return error;
    ErrorHandler* handler = nullptr;
    const ScopeNames names = names_of(object);
    if (Error error = find_handler_for(names.kind, names.what, errhandler, &handler); !error.ok())
      return error;
    scope->set_error_handler(Ref<ErrorHandler>(*handler));
    return {};
  });
}

template <class Handle>
int get_handler(const char* name, Handle object, MPI_Errhandler* errhandler) {
  return guarded(name, object, [&]() -> Error {
    if (Error error = require({{errhandler, "errhandler"}}); !error.ok()) return error;
    ErrorScope* scope = nullptr;
    if (Error error = find_scope(object, &scope); !error.ok()) return error;
    *errhandler = give_handle(scope->error_handler());
    return {};
  });
}

template <class Handle>
int call_handler(const char* name, Handle object, int code) {
  ErrorScope* scope = nullptr;
  if (const Error error = find_scope(object, &scope); !error.ok()) return raise(name, object, error);
  raise(name, object, {code, {}});
  return MPI_SUCCESS;
}

}  // namespace

int MPI_Errhandler_free(MPI_Errhandler* errhandler) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    if (Error error = require({{errhandler, "errhandler"}}); !error.ok()) return error;
    ErrorHandler* handler = nullptr;
    if (Error error = find_object(*errhandler, &handler); !error.ok()) return error;
    if (!is_predefined(*errhandler)) handler->release();
    *errhandler = MPI_ERRHANDLER_NULL;
    return {};
  });
}

int MPI_Comm_create_errhandler(MPI_Comm_errhandler_function* comm_errhandler_fn, MPI_Errhandler* errhandler) {
  return create_handler<MPI_Comm>(__func__, comm_errhandler_fn, errhandler);
}
int MPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler errhandler) {
  return set_handler(__func__, comm, errhandler);
}
int MPI_Comm_get_errhandler(MPI_Comm comm, MPI_Errhandler* errhandler) {
  return get_handler(__func__, comm, errhandler);
}
int MPI_Comm_call_errhandler(MPI_Comm comm, int errorcode) { return call_handler(__func__, comm, errorcode); }

int MPI_Win_create_errhandler(MPI_Win_errhandler_function* win_errhandler_fn, MPI_Errhandler* errhandler) {
  return create_handler<MPI_Win>(__func__, win_errhandler_fn, errhandler);
}
int MPI_Win_set_errhandler(MPI_Win win, MPI_Errhandler errhandler) {
  return set_handler(__func__, win, errhandler);
}
int MPI_Win_get_errhandler(MPI_Win win, MPI_Errhandler* errhandler) {
  return get_handler(__func__, win, errhandler);
}
int MPI_Win_call_errhandler(MPI_Win win, int errorcode) { return call_handler(__func__, win, errorcode); }

int MPI_File_create_errhandler(MPI_File_errhandler_function* file_errhandler_fn, MPI_Errhandler* errhandler) {
  return create_handler<MPI_File>(__func__, file_errhandler_fn, errhandler);
}
int MPI_File_set_errhandler(MPI_File file, MPI_Errhandler errhandler) {
  return set_handler(__func__, file, errhandler);
}
int MPI_File_get_errhandler(MPI_File file, MPI_Errhandler* errhandler) {
  return get_handler(__func__, file, errhandler);
}
int MPI_File_call_errhandler(MPI_File fh, int errorcode) { return call_handler(__func__, fh, errorcode); }

int MPI_Session_create_errhandler(MPI_Session_errhandler_function* session_errhandler_fn,
                                  MPI_Errhandler* errhandler) {
  return create_handler<MPI_Session>(__func__, session_errhandler_fn, errhandler);
}
int MPI_Session_set_errhandler(MPI_Session session, MPI_Errhandler errhandler) {
  return set_handler(__func__, session, errhandler);
}
int MPI_Session_get_errhandler(MPI_Session session, MPI_Errhandler* errhandler) {
  return get_handler(__func__, session, errhandler);
}
int MPI_Session_call_errhandler(MPI_Session session, int errorcode) {
  return call_handler(__func__, session, errorcode);
}
