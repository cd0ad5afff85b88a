// The fields of a status.
#include "communication/status.h"

#include "weft/mpi/mpi.h"

#include "entry/entry.h"

using namespace weft::mpi;

namespace {

// MPI_STATUS_IGNORE is null.
template <class Change>
int with_status(const char* name, const void* status, const void* result, const Change& change) {
  return guarded(name, kNoObject, [&]() -> Error {
    if (Error error = require({{status, "status"}, {result, "result"}}); !error.ok()) return error;
    change();
    return {};
  });
}

}  // namespace

int MPI_Status_get_source(const MPI_Status* status, int* source) {
  return with_status(__func__, status, source, [&] { *source = status->MPI_SOURCE; });
}
int MPI_Status_get_tag(const MPI_Status* status, int* tag) {
  return with_status(__func__, status, tag, [&] { *tag = status->MPI_TAG; });
}
int MPI_Status_get_error(const MPI_Status* status, int* error) {
  return with_status(__func__, status, error, [&] { *error = status->MPI_ERROR; });
}
int MPI_Test_cancelled(const MPI_Status* status, int* flag) {
  return with_status(__func__, status, flag, [&] { *flag = status_is_cancelled(*status) ? 1 : 0; });
}

int MPI_Status_set_source(MPI_Status* status, int source) {
  return with_status(__func__, status, status, [&] { status->MPI_SOURCE = source; });
}
int MPI_Status_set_tag(MPI_Status* status, int tag) {
  return with_status(__func__, status, status, [&] { status->MPI_TAG = tag; });
}
int MPI_Status_set_error(MPI_Status* status, int error) {
  return with_status(__func__, status, status, [&] { status->MPI_ERROR = error; });
}
int MPI_Status_set_cancelled(MPI_Status* status, int flag) {
  return with_status(__func__, status, status, [&] { set_status_cancelled(*status, flag != 0); });
}
