// Waits, tests, starts, and the end of requests.
//
// Each family (one request, any, all, some) has one body for the call that waits and the call that tests.
#include <algorithm>
#include <utility>
#include <vector>

#include "weft/mpi/mpi-ext.h"
#include "weft/mpi/mpi.h"

#include "communication/communication.h"
#include "communication/status.h"
#include "entry/entry.h"
#include "models/mpi/objects/addresses.h"

namespace weft::mpi {

namespace {

// Null for MPI_REQUEST_NULL.
inline Request* request_of(MPI_Request handle) { return object_of<Request>(handle, ObjectKind::kRequest); }

inline bool is_request(MPI_Request handle) {
  return handle == MPI_REQUEST_NULL || request_of(handle) != nullptr;
}

Error no_request(MPI_Request handle) {
  if (object_of<Object>(handle, ObjectKind::kStreamRequest) != nullptr) {
    return {MPI_ERR_REQUEST,
            "the request is of MPIX_Isend_enqueue or MPIX_Irecv_enqueue; pass it to MPIX_Wait_enqueue or "
            "MPIX_Waitall_enqueue"};
  }
  return {MPI_ERR_REQUEST, "the handle is no request; has it been freed?"};
}
Error check_request(MPI_Request handle) { return is_request(handle) ? Error() : no_request(handle); }

bool is_active(MPI_Request handle) {
  const Request* const request = request_of(handle);
  return request != nullptr && request->is_active();
}
// True for what has nothing to wait for.
inline bool is_done(MPI_Request handle) {
  const Request* const request = request_of(handle);
  return request == nullptr || request->is_complete();
}
bool is_active_and_done(MPI_Request handle) { return is_active(handle) && is_done(handle); }

// `num_done`, if it is not null: how many of the first ones are done.
Error check_requests(int count, const MPI_Request* requests, int* num_done = nullptr) {
  if (count < 0) return {MPI_ERR_COUNT, "the number of requests is negative"};
  if (count > 0 && !is_address(static_cast<const void*>(requests)))
    return require({{requests, "array_of_requests"}});
  int done = 0;
  for (int i = 0; i < count; ++i) {
    if (!is_request(requests[i])) return no_request(requests[i]);
    if (done == i && is_done(requests[i])) ++done;
  }
  if (num_done != nullptr) *num_done = done;
  return {};
}

void write_empty(MPI_Status* status) {
  if (is_address(status)) set_status_empty(*status);
}

// The outcome of a request that is active and done. Returns its error.
inline int tell_outcome(Request& request, MPI_Status* status) {
  if (request.type() == Request::Type::kGeneralized) [[unlikely]]
    request.query();
  write_status(request.outcome(), status);
  return request.outcome().error;
}

// The outcome of a request that is done, for a call that leaves it as it is.
void read_outcome(MPI_Request handle, MPI_Status* status) {
  Request* const request = request_of(handle);
  if (request == nullptr || !request->is_active()) return write_empty(status);
  tell_outcome(*request, status);
}

// What a call says of a request that has failed.
struct RequestFailure {
  Ref<ErrorScope> scope;
  Outcome outcome;

  // The first error counts.
  [[gnu::cold]] void note(const Request& request, int error) {
    if (error == MPI_SUCCESS || outcome.error != MPI_SUCCESS) return;
    scope = request.scope();
    outcome = request.outcome();
    outcome.error = error;
  }
};

// The outcome of a request that is done, for a call that completes it: a request that is not persistent is freed. Returns its error,
// and keeps the first one in `failure`.
inline int finish(MPI_Request* handle, MPI_Status* status, RequestFailure* failure) {
  Request* const request = request_of(*handle);
  if (request == nullptr || !request->is_active()) {
    write_empty(status);
    return MPI_SUCCESS;
  }
  int error = tell_outcome(*request, status);
  if (error != MPI_SUCCESS) [[unlikely]] {
    failure->note(*request, error);
    if (error == MPIX_ERR_PROC_FAILED_PENDING) return error;  // the request stays
  }
  request->deactivate();
  const bool is_freed = !request->is_persistent();
  if (is_freed && request->type() == Request::Type::kGeneralized) [[unlikely]] {
    const int freeing = request->handle_freed();
    failure->note(*request, freeing);
    if (error == MPI_SUCCESS) error = freeing;
  }
  if (is_freed) {
    request->release_handle();
    *handle = MPI_REQUEST_NULL;
  }
  return error;
}

// --- Errors

int raise_in(const char* function, ErrorScope* scope, const Error& error) {
  if (scope != nullptr && scope->kind() == ObjectKind::kWindow)
    return raise(function, handle_of<MPI_Win>(scope), error);
  if (scope != nullptr && scope->kind() == ObjectKind::kFile)
    return raise(function, handle_of<MPI_File>(scope), error);
  return raise(function, handle_of_scope(scope), error);
}

// Runs `body(&scope)`. Its error belongs to the communicator, window or file that the body writes there: that of the request that failed.
// A body that succeeds writes none: references come and go while the lock of calls is held.
template <class Body>
[[gnu::always_inline]] inline int with_scope(const char* function, const Body& body) {
  Ref<ErrorScope> scope;
  const Error error = outcome_of(function, [&]() -> Error { return body(&scope); });
  if (error.ok()) [[likely]]
    return MPI_SUCCESS;
  const LibraryRuns library;
  const Ref<ErrorScope> kept = std::move(scope);
  return raise_in(function, kept.get(), error);
}

// As with_scope(), for a body that completes several requests, of which the first that failed is written to `body(&failure)`. If that is by a
// lost rank, the error handler is told so, as with other libraries, and not MPI_ERR_IN_STATUS, which the call returns.
template <class Body>
[[gnu::always_inline]] inline int with_failures(const char* function, const Body& body) {
  RequestFailure failure;
  const Error error = outcome_of(function, [&]() -> Error { return body(&failure); });
  if (error.ok()) [[likely]]
    return MPI_SUCCESS;
  const LibraryRuns library;
  const Ref<ErrorScope> kept = std::move(failure.scope);
  const int first = failure.outcome.error;
  const bool is_loss =
      first == MPIX_ERR_PROC_FAILED || first == MPIX_ERR_PROC_FAILED_PENDING || first == MPIX_ERR_REVOKED;
  if (!is_loss) return raise_in(function, kept.get(), error);
  static_cast<void>(raise_in(function, kept.get(), {first, {}}));
  return error.error_class;
}

Ref<ErrorScope> scope_of(MPI_Request handle) {
  const Request* const request = request_of(handle);
  return request == nullptr ? Ref<ErrorScope>() : request->scope();
}

// Finishes a request and returns its error.
Error finish_one(MPI_Request* handle, MPI_Status* status, Ref<ErrorScope>* scope) {
  RequestFailure failure;
  if (finish(handle, status, &failure) == MPI_SUCCESS) [[likely]]
    return {};
  *scope = std::move(failure.scope);
  return error_of(failure.outcome);
}

MPI_Status* status_at(MPI_Status* statuses, int i) {
  return is_address(statuses) ? statuses + i : MPI_STATUS_IGNORE;
}

// Finishes `count` requests. Number i is requests[place_of(i)], and its status is number i. If one fails, all statuses have errors,
// and the error belongs to the communicator of the first that failed.
template <class PlaceOf>
Error finish_several(int count, const PlaceOf& place_of, MPI_Request* requests, MPI_Status* statuses,
                     RequestFailure* failure) {
  std::vector<int> errors;  // empty until one has failed
  for (int i = 0; i < count; ++i) {
    const int error = finish(&requests[place_of(i)], status_at(statuses, i), failure);
    if (error == MPI_SUCCESS) [[likely]]
      continue;
    errors.resize(static_cast<std::size_t>(count), MPI_SUCCESS);
    errors[static_cast<std::size_t>(i)] = error;
  }
  if (errors.empty()) [[likely]]
    return {};
  for (int i = 0; i < count && is_address(statuses); ++i)
    statuses[i].MPI_ERROR = errors[static_cast<std::size_t>(i)];
  return {MPI_ERR_IN_STATUS, "one or more requests have failed; the statuses hold their errors"};
}

// --- Waiting and testing

enum class CompletionMode { kWait, kTest };

// Whether the condition is true: after a wait in any case, and after a test if it is true by now, or after some progress.
template <class Condition>
Error reach(CompletionMode mode, const Condition& condition, bool* reached) {
  *reached = condition();
  if (*reached) return {};
  if (Error error = check_running(); !error.ok()) return mode == CompletionMode::kWait ? error : Error();
  if (mode == CompletionMode::kWait) {
    this_process().wait_until(condition);
    *reached = true;
  } else {
    this_process().progress();
    *reached = condition();
  }
  return {};
}

Error reach_one(CompletionMode mode, MPI_Request handle, bool* done) {
  return reach(mode, [handle] { return is_done(handle); }, done);
}

// The following check the requests first, and reach_some() where it writes.

Error reach_all(CompletionMode mode, int count, const MPI_Request* requests, bool* done) {
  int first = 0;
  if (Error error = check_requests(count, requests, &first); !error.ok()) return error;
  return reach(
      mode,
      [&] {
        while (first < count && is_done(requests[first])) ++first;
        return first == count;
      },
      done);
}

// `place`: of one that is done, or MPI_UNDEFINED. `done`: also if none is active.
Error reach_any(CompletionMode mode, int count, const MPI_Request* requests, int* place, bool* done) {
  if (Error error = check_requests(count, requests); !error.ok()) return error;
  *place = MPI_UNDEFINED;
  *done = !std::any_of(requests, requests + count, is_active);
  if (*done) return {};
  return reach(
      mode,
      [&] {
        const MPI_Request* const found = std::find_if(requests, requests + count, is_active_and_done);
        if (found != requests + count) *place = static_cast<int>(found - requests);
        return found != requests + count;
      },
      done);
}

// Writes the places of all that are done. `num_done`: MPI_UNDEFINED if none is active.
Error reach_some(CompletionMode mode, int count, const MPI_Request* requests, int* num_done, int* places) {
  if (Error error = require({{num_done, "outcount"}}); !error.ok()) return error;
  if (Error error = check_requests(count, requests); !error.ok()) return error;
  if (count > 0)
    if (Error error = require({{places, "array_of_indices"}}); !error.ok()) return error;
  *num_done = MPI_UNDEFINED;
  if (!std::any_of(requests, requests + count, is_active)) return {};
  bool done = false;
  return reach(
      mode,
      [&] {
        *num_done = 0;
        for (int i = 0; i < count; ++i) {
          if (is_active_and_done(requests[i])) places[(*num_done)++] = i;
        }
        return *num_done > 0;
      },
      &done);
}

// --- The families. `flag` is null in a call that waits.

int complete_one(const char* function, CompletionMode mode, MPI_Request* request, int* flag,
                 MPI_Status* status) {
  return with_scope(function, [&](Ref<ErrorScope>* scope) -> Error {
    bool done = false;
    if (Error error = check_request(*request); !error.ok()) return error;
    if (Error error = reach_one(mode, *request, &done); !error.ok()) return error;
    if (flag != nullptr) *flag = done ? 1 : 0;
    if (!done) return {};
    const Error error = finish_one(request, status, scope);
    if (error.error_class == MPIX_ERR_PROC_FAILED_PENDING && flag != nullptr) [[unlikely]]
      *flag = 0;
    return error;
  });
}

int complete_any(const char* function, CompletionMode mode, int count, MPI_Request* requests, int* place,
                 int* flag, MPI_Status* status) {
  return with_scope(function, [&](Ref<ErrorScope>* scope) -> Error {
    bool done = false;
    if (Error error = require({{place, "indx"}}); !error.ok()) return error;
    if (Error error = reach_any(mode, count, requests, place, &done); !error.ok()) return error;
    if (flag != nullptr) *flag = done ? 1 : 0;
    if (*place != MPI_UNDEFINED) return finish_one(&requests[*place], status, scope);
    if (done) write_empty(status);
    return {};
  });
}

int complete_all(const char* function, CompletionMode mode, int count, MPI_Request* requests, int* flag,
                 MPI_Status* statuses) {
  return with_failures(function, [&](RequestFailure* failure) -> Error {
    bool done = false;
    if (Error error = reach_all(mode, count, requests, &done); !error.ok()) return error;
    if (flag != nullptr) *flag = done ? 1 : 0;
    if (!done) return {};
    return finish_several(count, [](int i) { return i; }, requests, statuses, failure);
  });
}

int complete_some(const char* function, CompletionMode mode, int count, MPI_Request* requests, int* num_done,
                  int* places, MPI_Status* statuses) {
  return with_failures(function, [&](RequestFailure* failure) -> Error {
    if (Error error = reach_some(mode, count, requests, num_done, places); !error.ok()) return error;
    return finish_several(
        std::max(*num_done, 0), [places](int i) { return places[i]; }, requests, statuses, failure);
  });
}

// --- Starting

Error start(MPI_Request handle) {
  Request* const request = request_of(handle);
  if (request == nullptr || !request->is_persistent())
    return {MPI_ERR_REQUEST, "the request is not persistent; make it with one of the MPI_*_init functions"};
  if (request->is_active())
    return {MPI_ERR_REQUEST, "the request is active; wait for it before you start it again"};
  if (Error error = check_running(); !error.ok()) return error;
  request->start();
  return {};
}

// Calls `body(request)` with the request of a handle that is not null.
template <class Body>
int with_request(const char* function, const MPI_Request* handle, const Body& body) {
  return with_scope(function, [&](Ref<ErrorScope>* scope) -> Error {
    if (Error error = require({{handle, "request"}}); !error.ok()) return error;
    Request* const request = request_of(*handle);
    if (*handle == MPI_REQUEST_NULL) return {MPI_ERR_REQUEST, "the request is MPI_REQUEST_NULL"};
    if (request == nullptr) return no_request(*handle);
    Ref<ErrorScope> kept = request->scope();
    Error error = body(*request);
    if (!error.ok()) *scope = std::move(kept);
    return error;
  });
}

}  // namespace

}  // namespace weft::mpi

using namespace weft::mpi;  // NOLINT(google-build-using-namespace): the entry points are C functions

extern "C" {

int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  if (!is_address(static_cast<const void*>(request)))
    return raise(__func__, kNoObject, require({{request, "request"}}));
  return complete_one(__func__, CompletionMode::kWait, request, nullptr, status);
}
int MPI_Waitany(int count, MPI_Request array_of_requests[], int* indx, MPI_Status* status) {
  return complete_any(__func__, CompletionMode::kWait, count, array_of_requests, indx, nullptr, status);
}
int MPI_Waitall(int count, MPI_Request array_of_requests[], MPI_Status* array_of_statuses) {
  return complete_all(__func__, CompletionMode::kWait, count, array_of_requests, nullptr, array_of_statuses);
}
int MPI_Waitsome(int incount, MPI_Request array_of_requests[], int* outcount, int array_of_indices[],
                 MPI_Status* array_of_statuses) {
  return complete_some(__func__, CompletionMode::kWait, incount, array_of_requests, outcount,
                       array_of_indices, array_of_statuses);
}

int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  if (Error error = require({{request, "request"}, {flag, "flag"}}); !error.ok())
    return raise(__func__, kNoObject, error);
  return complete_one(__func__, CompletionMode::kTest, request, flag, status);
}
int MPI_Testany(int count, MPI_Request array_of_requests[], int* indx, int* flag, MPI_Status* status) {
  if (!is_address(flag)) return raise(__func__, kNoObject, require({{flag, "flag"}}));
  return complete_any(__func__, CompletionMode::kTest, count, array_of_requests, indx, flag, status);
}
int MPI_Testall(int count, MPI_Request array_of_requests[], int* flag, MPI_Status* array_of_statuses) {
  if (!is_address(flag)) return raise(__func__, kNoObject, require({{flag, "flag"}}));
  return complete_all(__func__, CompletionMode::kTest, count, array_of_requests, flag, array_of_statuses);
}
int MPI_Testsome(int incount, MPI_Request array_of_requests[], int* outcount, int array_of_indices[],
                 MPI_Status* array_of_statuses) {
  return complete_some(__func__, CompletionMode::kTest, incount, array_of_requests, outcount,
                       array_of_indices, array_of_statuses);
}

int MPI_Request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
  return with_scope(__func__, [&](Ref<ErrorScope>* scope) -> Error {
    bool done = false;
    if (Error error = require({{flag, "flag"}}); !error.ok()) return error;
    if (Error error = check_request(request); !error.ok()) return error;
    if (Error error = reach_one(CompletionMode::kTest, request, &done); !error.ok()) {
      *scope = scope_of(request);
      return error;
    }
    *flag = done ? 1 : 0;
    if (done) read_outcome(request, status);
    return {};
  });
}
int MPI_Request_get_status_any(int count, const MPI_Request array_of_requests[], int* indx, int* flag,
                               MPI_Status* status) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    bool done = false;
    if (Error error = require({{indx, "indx"}, {flag, "flag"}}); !error.ok()) return error;
    if (Error error = reach_any(CompletionMode::kTest, count, array_of_requests, indx, &done); !error.ok())
      return error;
    *flag = done ? 1 : 0;
    if (*indx != MPI_UNDEFINED) {
      read_outcome(array_of_requests[*indx], status);
    } else if (done) {
      write_empty(status);
    }
    return {};
  });
}
int MPI_Request_get_status_all(int count, const MPI_Request array_of_requests[], int* flag,
                               MPI_Status* array_of_statuses) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    bool done = false;
    if (Error error = require({{flag, "flag"}}); !error.ok()) return error;
    if (Error error = reach_all(CompletionMode::kTest, count, array_of_requests, &done); !error.ok())
      return error;
    *flag = done ? 1 : 0;
    for (int i = 0; i < count && done; ++i)
      read_outcome(array_of_requests[i], status_at(array_of_statuses, i));
    return {};
  });
}
int MPI_Request_get_status_some(int incount, const MPI_Request array_of_requests[], int* outcount,
                                int array_of_indices[], MPI_Status* array_of_statuses) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    if (Error error =
            reach_some(CompletionMode::kTest, incount, array_of_requests, outcount, array_of_indices);
        !error.ok())
      return error;
    for (int i = 0; i < *outcount; ++i)
      read_outcome(array_of_requests[array_of_indices[i]], status_at(array_of_statuses, i));
    return {};
  });
}

int MPI_Start(MPI_Request* request) {
  return with_request(__func__, request, [&](Request&) { return start(*request); });
}
int MPI_Startall(int count, MPI_Request array_of_requests[]) {
  return with_scope(__func__, [&](Ref<ErrorScope>* scope) -> Error {
    if (Error error = check_requests(count, array_of_requests); !error.ok()) return error;
    for (int i = 0; i < count; ++i) {
      if (Error error = start(array_of_requests[i]); !error.ok()) {
        *scope = scope_of(array_of_requests[i]);
        return error;
      }
    }
    return {};
  });
}

int MPI_Cancel(MPI_Request* request) {
  return with_request(__func__, request, [&](Request& found) -> Error {
    if (!found.is_active()) return {};
    return {found.cancel(), {}};
  });
}

int MPI_Request_free(MPI_Request* request) {
  return with_request(__func__, request, [&](Request& found) -> Error {
    // An operation in flight holds a reference of its own, and ends by itself.
    const int error = found.handle_freed();
    found.release_handle();
    *request = MPI_REQUEST_NULL;
    return {error, {}};
  });
}

}  // extern "C"
