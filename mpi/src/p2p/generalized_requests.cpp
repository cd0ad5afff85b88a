// Generalized requests: operations of the program's own.
#include "weft/mpi/mpi.h"

#include "communication/communication.h"
#include "communication/status.h"
#include "entry/entry.h"
#include "models/mpi/objects/addresses.h"

namespace weft::mpi {

namespace {

class GeneralizedRequest final : public Request {
 public:
  struct Functions {
    MPI_Grequest_query_function* query;
    MPI_Grequest_free_function* free;
    MPI_Grequest_cancel_function* cancel;
    void* extra_state;
  };

  explicit GeneralizedRequest(const Functions& functions)
      : Request(Type::kGeneralized), functions_(functions) {
    activate();
    acquire();  // until finish()
  }

  // MPI_Grequest_complete.
  void finish() {
    complete({});
    if (is_freed_) free();
    release();
  }
  int cancel() override {
    if (functions_.cancel == nullptr) return MPI_SUCCESS;
    const int completed = is_complete() ? 1 : 0;
    const ProgramRuns program;
    return functions_.cancel(functions_.extra_state, completed);
  }
  // The function of the program is called once both has happened: the handle is free, and the operation complete.
  int handle_freed() override {
    is_freed_ = true;
    return is_complete() ? free() : MPI_SUCCESS;
  }
  void query() override {
    const ProgramRuns program;
    MPI_Status status;
    set_status_empty(status);
    const int error =
        functions_.query == nullptr ? MPI_SUCCESS : functions_.query(functions_.extra_state, &status);
    set_outcome({.source = status.MPI_SOURCE,
                 .tag = status.MPI_TAG,
                 .error = error,
                 .cancelled = status_is_cancelled(status),
                 .size_bytes = status_bytes(status)});
  }

 private:
  int free() {
    const ProgramRuns program;
    return functions_.free == nullptr ? MPI_SUCCESS : functions_.free(functions_.extra_state);
  }

  Functions functions_;
  bool is_freed_ = false;
};

}  // namespace

}  // namespace weft::mpi

using namespace weft::mpi;  // NOLINT(google-build-using-namespace): the entry points are C functions

extern "C" {

int MPI_Grequest_start(MPI_Grequest_query_function* query_fn, MPI_Grequest_free_function* free_fn,
                       MPI_Grequest_cancel_function* cancel_fn, void* extra_state, MPI_Request* request) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    if (Error error = check_running(); !error.ok()) return error;
    for (const void* const function :
         {reinterpret_cast<const void*>(query_fn), reinterpret_cast<const void*>(free_fn),
          reinterpret_cast<const void*>(cancel_fn)}) {
      if (is_sentinel(function))
        return {MPI_ERR_ARG, "a function of the request is no address; give a function"};
    }
    const GeneralizedRequest::Functions functions{query_fn, free_fn, cancel_fn, extra_state};
    return give_request(as_request(Request::make<GeneralizedRequest>(this_process().runtime(), functions)),
                        nullptr, request, false);
  });
}

int MPI_Grequest_complete(MPI_Request request) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    auto* const found = object_of<Request>(request, ObjectKind::kRequest);
    if (found == nullptr || found->type() != Request::Type::kGeneralized)
      return {MPI_ERR_REQUEST, "the handle is no generalized request; MPI_Grequest_start makes them"};
    if (found->is_complete()) return {MPI_ERR_REQUEST, "the request is complete already"};
    static_cast<GeneralizedRequest*>(found)->finish();
    return {};
  });
}

}  // extern "C"
