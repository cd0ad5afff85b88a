#include "models/mpi/collective/collective_request.h"

#include <new>

#include "weft/base/error.h"
#include "weft/mpi/mpi.h"

#include "models/mpi/communicators/collective_context.h"

namespace weft::mpi {

void CollectiveRequest::start() {
  activate();
  scheduler().spawn(run(Ref<CollectiveRequest>(*this)), "a collective operation of MPI");
}

// A parameter, so that the frame holds the reference.
runtime::Task<> CollectiveRequest::run(Ref<CollectiveRequest> self) {
  Outcome outcome;
  try {
    co_await self->body_(&outcome);
  } catch (const std::bad_alloc&) {
    outcome.error = MPI_ERR_NO_MEM;
  } catch (const TransferFailed& failure) {
    outcome.error = failure.error_class();
  } catch (const base::Error&) {
    outcome.error = MPI_ERR_OTHER;
  } catch (...) {
    outcome.error = MPI_ERR_INTERN;  // of the program's operator
  }
  self->complete(outcome);
}

}  // namespace weft::mpi
