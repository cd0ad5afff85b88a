// Waits, tests, starts, and the end of requests.
#include <algorithm>
#include <vector>

#include "weft/mpi/mpi.h"

#include "communication.h"
#include "entry.h"
#include "status.h"

namespace weft::mpi {

namespace {

// Null for MPI_REQUEST_NULL.
Request* request_of(MPI_Request handle) { return object_of<Request>(handle, ObjectKind::kRequest); }

Error check_request(MPI_Request handle) {
  if (handle == MPI_REQUEST_NULL || request_of(handle) != nullptr) [[likely]]
    return {};
  return {MPI_ERR_REQUEST, "the handle is no request; has it been freed?"};
}

Error check_requests(int count, const MPI_Request* requests) {
  if (count < 0) return {MPI_ERR_COUNT, "the number of requests is negative"};
  for (int i = 0; i < count; ++i) {
    if (Error error = check_request(requests[i]); !error.ok()) return error;
  }
  return {};
}

bool is_active(MPI_Request handle) {
  const Request* const request = request_of(handle);
  return request != nullptr && request->is_active();
}
// True for what has nothing to wait for.
bool is_done(MPI_Request handle) {
  const Request* const request = request_of(handle);
  return request == nullptr || !request->is_active() || request->is_complete();
}
bool is_active_and_done(MPI_Request handle) { return is_active(handle) && is_done(handle); }

void write_empty(MPI_Status* status) {
  if (status != MPI_STATUS_IGNORE) set_status_empty(*status);
}

// The outcome of a request that is done, for a call that leaves it as it is. Returns its error.
int look_at(MPI_Request handle, MPI_Status* status) {
  Request* const request = request_of(handle);
  if (request == nullptr || !request->is_active()) {
    write_empty(status);
    return MPI_SUCCESS;
  }
  request->query();
  write_status(request->outcome(), status);
  return request->outcome().error;
}

// The same, and the program is done with it: a request that is not persistent is freed.
int finish(MPI_Request* handle, MPI_Status* status) {
  int error = look_at(*handle, status);
  Request* const request = request_of(*handle);
  if (request == nullptr || !request->is_active()) return error;
  request->deactivate();
  if (!request->is_persistent()) {
    const int freeing = request->handle_freed();
    if (error == MPI_SUCCESS) error = freeing;
    request->release();
    *handle = MPI_REQUEST_NULL;
  }
  return error;
}

// The communicator whose error handler gets the error of a request.
MPI_Comm comm_of(MPI_Request handle) {
  const Request* const request = request_of(handle);
  return handle_of_scope(request == nullptr ? nullptr : request->scope().get());
}

// Finishes a request and returns what the call returns. `function`: its name.
int finish_one(const char* function, MPI_Request* handle, MPI_Status* status) {
  const Request* const request = request_of(*handle);
  const Ref<ErrorScope> scope = request == nullptr ? Ref<ErrorScope>() : request->scope();
  Outcome outcome;
  if (request != nullptr) outcome = request->outcome();
  const int error = finish(handle, status);
  if (error == MPI_SUCCESS) [[likely]]
    return MPI_SUCCESS;
  outcome.error = error;
  return raise(function, handle_of_scope(scope.get()), error_of(outcome));
}

MPI_Status* status_at(MPI_Status* statuses, int i) {
  return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : statuses + i;
}

Error errors_in_statuses(
    const char* text = "one or more requests have failed; the statuses hold their errors") {
  return {MPI_ERR_IN_STATUS, text};
}

// Finishes those at the indices. Fails if one of them has.
Error finish_several(std::span<const int> indices, MPI_Request* requests, MPI_Status* statuses, bool packed) {
  bool failed = false;
  std::vector<int> errors(indices.size());
  for (std::size_t i = 0; i < indices.size(); ++i) {
    MPI_Status* const status = status_at(statuses, packed ? static_cast<int>(i) : indices[i]);
    errors[i] = finish(&requests[indices[i]], status);
    failed |= errors[i] != MPI_SUCCESS;
  }
  if (!failed) return {};
  for (std::size_t i = 0; i < indices.size() && statuses != MPI_STATUSES_IGNORE; ++i)
    status_at(statuses, packed ? static_cast<int>(i) : indices[i])->MPI_ERROR = errors[i];
  return errors_in_statuses();
}

std::vector<int> all_indices(int count) {
  std::vector<int> indices(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) indices[static_cast<std::size_t>(i)] = i;
  return indices;
}

std::vector<int> done_indices(int count, const MPI_Request* requests) {
  std::vector<int> indices;
  for (int i = 0; i < count; ++i) {
    if (is_active_and_done(requests[i])) indices.push_back(i);
  }
  return indices;
}

bool all_done(int count, const MPI_Request* requests) {
  return std::all_of(requests, requests + count, is_done);
}
bool any_active(int count, const MPI_Request* requests) {
  return std::any_of(requests, requests + count, is_active);
}

// The index of one that is done; -1 if none is.
int find_done(int count, const MPI_Request* requests) {
  const MPI_Request* const found = std::find_if(requests, requests + count, is_active_and_done);
  return found == requests + count ? -1 : static_cast<int>(found - requests);
}

// Calls progress() once if that can change the answer.
template <class Condition>
bool is_true_soon(const Condition& condition) {
  if (condition()) return true;
  if (this_rank().process == nullptr) return false;
  this_process().progress();
  return condition();
}

template <class Condition>
void wait_for(const Condition& condition) {
  if (!condition()) this_process().wait_until(condition);
}

Error start(MPI_Request handle) {
  Request* const request = request_of(handle);
  if (request == nullptr || !request->is_persistent())
    return {MPI_ERR_REQUEST, "the request is not persistent; make it with one of the MPI_*_init functions"};
  if (request->is_active())
    return {MPI_ERR_REQUEST, "the request is active; wait for it before you start it again"};
  request->start();
  return {};
}

}  // namespace

}  // namespace weft::mpi

using namespace weft::mpi;  // NOLINT(google-build-using-namespace): the entry points are C functions

extern "C" {

int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  return without_exceptions(__func__, kNoObject, [&] {
    if (const Error error = check_request(*request); !error.ok()) return raise(__func__, kNoObject, error);
    wait_for([&] { return is_done(*request); });
    return finish_one("MPI_Wait", request, status);
  });
}
int MPI_Waitany(int count, MPI_Request array_of_requests[], int* indx, MPI_Status* status) {
  return without_exceptions(__func__, kNoObject, [&] {
    if (const Error error = check_requests(count, array_of_requests); !error.ok())
      return raise("MPI_Waitany", kNoObject, error);
    *indx = MPI_UNDEFINED;
    if (!any_active(count, array_of_requests)) {
      write_empty(status);
      return static_cast<int>(MPI_SUCCESS);
    }
    int found = -1;
    wait_for([&] { return (found = find_done(count, array_of_requests)) >= 0; });
    *indx = found;
    return finish_one("MPI_Waitany", &array_of_requests[found], status);
  });
}
int MPI_Waitall(int count, MPI_Request array_of_requests[], MPI_Status* array_of_statuses) {
  MPI_Comm comm = MPI_COMM_SELF;
  return guarded(__func__, comm, [&]() -> Error {
    if (Error error = check_requests(count, array_of_requests); !error.ok()) return error;
    if (count > 0) comm = comm_of(array_of_requests[0]);
    int first = 0;
    wait_for([&] {
      while (first < count && is_done(array_of_requests[first])) ++first;
      return first == count;
    });
    return finish_several(all_indices(count), array_of_requests, array_of_statuses, false);
  });
}
int MPI_Waitsome(int incount, MPI_Request array_of_requests[], int* outcount, int array_of_indices[],
                 MPI_Status* array_of_statuses) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    if (Error error = check_requests(incount, array_of_requests); !error.ok()) return error;
    *outcount = MPI_UNDEFINED;
    if (!any_active(incount, array_of_requests)) return {};
    wait_for([&] { return find_done(incount, array_of_requests) >= 0; });
    const std::vector<int> done = done_indices(incount, array_of_requests);
    *outcount = static_cast<int>(done.size());
    std::copy(done.begin(), done.end(), array_of_indices);
    return finish_several(done, array_of_requests, array_of_statuses, true);
  });
}

int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  return without_exceptions(__func__, kNoObject, [&] {
    if (const Error error = check_request(*request); !error.ok()) return raise("MPI_Test", kNoObject, error);
    *flag = is_true_soon([&] { return is_done(*request); }) ? 1 : 0;
    return *flag != 0 ? finish_one("MPI_Test", request, status) : static_cast<int>(MPI_SUCCESS);
  });
}
int MPI_Testany(int count, MPI_Request array_of_requests[], int* indx, int* flag, MPI_Status* status) {
  return without_exceptions(__func__, kNoObject, [&] {
    if (const Error error = check_requests(count, array_of_requests); !error.ok())
      return raise("MPI_Testany", kNoObject, error);
    *indx = MPI_UNDEFINED;
    *flag = 1;
    if (!any_active(count, array_of_requests)) {
      write_empty(status);
      return static_cast<int>(MPI_SUCCESS);
    }
    int found = -1;
    *flag = is_true_soon([&] { return (found = find_done(count, array_of_requests)) >= 0; }) ? 1 : 0;
    if (found < 0) return static_cast<int>(MPI_SUCCESS);
    *indx = found;
    return finish_one("MPI_Testany", &array_of_requests[found], status);
  });
}
int MPI_Testall(int count, MPI_Request array_of_requests[], int* flag, MPI_Status* array_of_statuses) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    if (Error error = check_requests(count, array_of_requests); !error.ok()) return error;
    *flag = is_true_soon([&] { return all_done(count, array_of_requests); }) ? 1 : 0;
    if (*flag == 0) return {};
    return finish_several(all_indices(count), array_of_requests, array_of_statuses, false);
  });
}
int MPI_Testsome(int incount, MPI_Request array_of_requests[], int* outcount, int array_of_indices[],
                 MPI_Status* array_of_statuses) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    if (Error error = check_requests(incount, array_of_requests); !error.ok()) return error;
    *outcount = MPI_UNDEFINED;
    if (!any_active(incount, array_of_requests)) return {};
    is_true_soon([&] { return find_done(incount, array_of_requests) >= 0; });
    const std::vector<int> done = done_indices(incount, array_of_requests);
    *outcount = static_cast<int>(done.size());
    std::copy(done.begin(), done.end(), array_of_indices);
    return finish_several(done, array_of_requests, array_of_statuses, true);
  });
}

int MPI_Request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
  return guarded(__func__, comm_of(request), [&]() -> Error {
    if (Error error = check_request(request); !error.ok()) return error;
    *flag = is_true_soon([&] { return is_done(request); }) ? 1 : 0;
    if (*flag != 0) look_at(request, status);
    return {};
  });
}
int MPI_Request_get_status_any(int count, const MPI_Request array_of_requests[], int* indx, int* flag,
                               MPI_Status* status) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    if (Error error = check_requests(count, array_of_requests); !error.ok()) return error;
    *indx = MPI_UNDEFINED;
    *flag = 1;
    if (!any_active(count, array_of_requests)) {
      write_empty(status);
      return {};
    }
    int found = -1;
    *flag = is_true_soon([&] { return (found = find_done(count, array_of_requests)) >= 0; }) ? 1 : 0;
    if (found < 0) return {};
    *indx = found;
    look_at(array_of_requests[found], status);
    return {};
  });
}
int MPI_Request_get_status_all(int count, const MPI_Request array_of_requests[], int* flag,
                               MPI_Status* array_of_statuses) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    if (Error error = check_requests(count, array_of_requests); !error.ok()) return error;
    *flag = is_true_soon([&] { return all_done(count, array_of_requests); }) ? 1 : 0;
    for (int i = 0; i < count && *flag != 0; ++i)
      look_at(array_of_requests[i], status_at(array_of_statuses, i));
    return {};
  });
}
int MPI_Request_get_status_some(int incount, const MPI_Request array_of_requests[], int* outcount,
                                int array_of_indices[], MPI_Status* array_of_statuses) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    if (Error error = check_requests(incount, array_of_requests); !error.ok()) return error;
    *outcount = MPI_UNDEFINED;
    if (!any_active(incount, array_of_requests)) return {};
    is_true_soon([&] { return find_done(incount, array_of_requests) >= 0; });
    const std::vector<int> done = done_indices(incount, array_of_requests);
    *outcount = static_cast<int>(done.size());
    std::copy(done.begin(), done.end(), array_of_indices);
    for (std::size_t i = 0; i < done.size(); ++i)
      look_at(array_of_requests[done[i]], status_at(array_of_statuses, static_cast<int>(i)));
    return {};
  });
}

int MPI_Start(MPI_Request* request) {
  return guarded(__func__, comm_of(*request), [&] { return start(*request); });
}
int MPI_Startall(int count, MPI_Request array_of_requests[]) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    if (count < 0) return {MPI_ERR_COUNT, "the number of requests is negative"};
    for (int i = 0; i < count; ++i) {
      if (Error error = start(array_of_requests[i]); !error.ok()) return error;
    }
    return {};
  });
}

int MPI_Cancel(MPI_Request* request) {
  return guarded(__func__, comm_of(*request), [&]() -> Error {
    Request* const found = request_of(*request);
    if (found == nullptr) return {MPI_ERR_REQUEST, "the handle is no request, or MPI_REQUEST_NULL"};
    if (!found->is_active()) return {};
    return {found->cancel(), {}};
  });
}

int MPI_Request_free(MPI_Request* request) {
  return guarded(__func__, comm_of(*request), [&]() -> Error {
    Request* const found = request_of(*request);
    if (found == nullptr) return {MPI_ERR_REQUEST, "the handle is no request, or MPI_REQUEST_NULL"};
    // An operation in flight holds a reference of its own, and ends by itself.
    const int error = found->handle_freed();
    found->release();
    *request = MPI_REQUEST_NULL;
    return {error, {}};
  });
}

}  // extern "C"
