#include "generalized_request.h"

#include "status.h"

namespace weft::mpi {

GeneralizedRequest::~GeneralizedRequest() { functions_.free(functions_.extra_state); }

void GeneralizedRequest::finish() {
  complete({});
  release();
}

void GeneralizedRequest::cancel() { functions_.cancel(functions_.extra_state, is_complete() ? 1 : 0); }

void GeneralizedRequest::query() {
  MPI_Status status;
  set_status_empty(status);
  const int error = functions_.query(functions_.extra_state, &status);
  set_outcome({.source = status.MPI_SOURCE,
               .tag = status.MPI_TAG,
               .error = error,
               .cancelled = status_is_cancelled(status),
               .size_bytes = status_bytes(status)});
}

}  // namespace weft::mpi
