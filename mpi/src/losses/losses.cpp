// Ranks that are lost: the functions of <mpi-ext.h>.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "weft/mpi/mpi-ext.h"
#include "weft/mpi/mpi.h"

#include "base/format.h"
#include "communication/communication.h"
#include "entry/entry.h"
#include "entry/objects.h"
#include "models/mpi/model.h"
#include "models/mpi/process.h"

namespace weft::mpi {

namespace {

Survival& survival() { return this_process().runtime().model<Mpi>().survival(); }

// The first lost members that this process knows of, `count` at most.
MPI_Group group_of_lost(const Communicator& communicator, std::size_t count) {
  Members members;
  if (const Troubles::Record* const record = communicator.trouble()) {
    const std::size_t size = std::min(count, record->lost.size());
    members.assign(record->lost.begin(), record->lost.begin() + static_cast<std::ptrdiff_t>(size));
  }
  return give_group(std::make_shared<const Members>(std::move(members)), communicator.session_space);
}

std::size_t num_acknowledged(const Communicator& communicator) {
  const Troubles::Record* const record = communicator.trouble();
  return record == nullptr ? 0 : record->num_acknowledged;
}

// Errors: MPI_ERR_COMM for processes of other jobs, MPI_ERR_UNSUPPORTED_OPERATION for ranks that share a process.
Error check_can_agree(const Communicator& communicator) {
  if (communicator.engine().shared().map().shares_pes()) {
    return {MPI_ERR_UNSUPPORTED_OPERATION,
            "the ranks of this job share processes, which are lost together; start it without --ranks"};
  }
  return check_is_of_one_job(communicator, "revocations and agreements");
}

// Calls `body(communicator)` after the checks of calls that all living members make, or hear of.
template <class Body>
int with_living(const char* function, MPI_Comm comm, std::initializer_list<PointerArgument> arguments,
                const Body& body) {
  return with_communicator(function, comm, arguments, [&](Communicator& communicator) -> Error {
    if (Error error = check_can_agree(communicator); !error.ok()) return error;
    return body(communicator);
  });
}

// A request that is complete when the members have agreed. `ends(result)` gives its error class.
template <class Ends>
Ref<AgreementRequest> start_agreement(Communicator& communicator, int flag, Ends ends) {
  auto request = Request::make<AgreementRequest>(communicator.engine().messenger());
  request->set_scope(communicator);
  survival().agree(communicator, flag, [request, ends = std::move(ends)](const AgreementResult& result) {
    request->finish(ends(result));
  });
  return request;
}

Ref<AgreementRequest> start_agree(Communicator& communicator, int* flag) {
  return start_agreement(communicator, *flag, [flag](const AgreementResult& result) {
    *flag = result.flag;
    return result.has_unacknowledged ? MPIX_ERR_PROC_FAILED : MPI_SUCCESS;
  });
}

Ref<AgreementRequest> start_shrink(Communicator& communicator, MPI_Comm* newcomm) {
  return start_agreement(communicator, -1,
                         [parent = Ref<Communicator>(communicator), newcomm](const AgreementResult& result) {
                           Ref<Communicator> made = Survival::shrunk(*parent, result);
                           *newcomm = made ? make_handle<MPI_Comm>(std::move(made)) : MPI_COMM_NULL;
                           return MPI_SUCCESS;
                         });
}

Error wait_for(const AgreementRequest& request) {
  this_process().wait(request);
  return error_of(request.outcome());
}

}  // namespace

}  // namespace weft::mpi

using namespace weft::mpi;  // NOLINT(google-build-using-namespace): the entry points are C functions

extern "C" {

int MPIX_Comm_failure_ack(MPI_Comm comm) {
  return with_communicator(__func__, comm, {}, [&](Communicator& communicator) -> Error {
    survival().acknowledge(communicator, SIZE_MAX);
    return {};
  });
}
int MPIX_Comm_failure_get_acked(MPI_Comm comm, MPI_Group* failedgrp) {
  return with_communicator(__func__, comm, {{failedgrp, "failedgrp"}},
                           [&](Communicator& communicator) -> Error {
                             *failedgrp = group_of_lost(communicator, num_acknowledged(communicator));
                             return {};
                           });
}
int MPIX_Comm_get_failed(MPI_Comm comm, MPI_Group* failedgrp) {
  return with_communicator(__func__, comm, {{failedgrp, "failedgrp"}},
                           [&](Communicator& communicator) -> Error {
                             this_process().progress();
                             *failedgrp = group_of_lost(communicator, SIZE_MAX);
                             return {};
                           });
}
int MPIX_Comm_ack_failed(MPI_Comm comm, int num_to_ack, int* num_acked) {
  return with_communicator(
      __func__, comm, {{num_acked, "num_acked"}}, [&](Communicator& communicator) -> Error {
        if (num_to_ack < 0)
          return {MPI_ERR_ARG, weft::base::format("the number of ranks to acknowledge is {}", num_to_ack)};
        survival().acknowledge(communicator, static_cast<std::size_t>(num_to_ack));
        *num_acked = static_cast<int>(num_acknowledged(communicator));
        return {};
      });
}

int MPIX_Comm_revoke(MPI_Comm comm) {
  return with_living(__func__, comm, {}, [&](Communicator& communicator) -> Error {
    survival().revoke(communicator);
    return {};
  });
}
int MPIX_Comm_is_revoked(MPI_Comm comm, int* flag) {
  return with_communicator(__func__, comm, {{flag, "flag"}}, [&](Communicator& communicator) -> Error {
    this_process().progress();
    *flag = communicator.is_revoked() ? 1 : 0;
    return {};
  });
}

int MPIX_Comm_agree(MPI_Comm comm, int* flag) {
  return with_living(__func__, comm, {{flag, "flag"}}, [&](Communicator& communicator) -> Error {
    return wait_for(*start_agree(communicator, flag));
  });
}
int MPIX_Comm_iagree(MPI_Comm comm, int* flag, MPI_Request* request) {
  return with_living(
      __func__, comm, {{flag, "flag"}, {request, "request"}}, [&](Communicator& communicator) -> Error {
        return give_request(as_request(start_agree(communicator, flag)), &communicator, request, false);
      });
}
int MPIX_Comm_shrink(MPI_Comm comm, MPI_Comm* newcomm) {
  return with_living(__func__, comm, {{newcomm, "newcomm"}}, [&](Communicator& communicator) -> Error {
    *newcomm = MPI_COMM_NULL;
    return wait_for(*start_shrink(communicator, newcomm));
  });
}
int MPIX_Comm_ishrink(MPI_Comm comm, MPI_Comm* newcomm, MPI_Request* request) {
  return with_living(
      __func__, comm, {{newcomm, "newcomm"}, {request, "request"}}, [&](Communicator& communicator) -> Error {
        return give_request(as_request(start_shrink(communicator, newcomm)), &communicator, request, false);
      });
}

}  // extern "C"
