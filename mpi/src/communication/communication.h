// The common part of entry points that communicate: it converts the program's arguments to the model's.
#pragma once

#include <initializer_list>
#include <memory>
#include <utility>

#include "weft/mpi/mpi.h"

#include "entry/entry.h"
#include "entry/handles.h"
#include "models/mpi/communicators/communicator.h"
#include "models/mpi/objects/error.h"
#include "models/mpi/p2p/data_view.h"
#include "models/mpi/p2p/request.h"
#include "models/mpi/process.h"

namespace weft::mpi {

// Null if the handle refers to no communicator, or MPI has not been started.
inline Communicator* communicator_of(MPI_Comm comm) {
  if (comm == MPI_COMM_WORLD || comm == MPI_COMM_SELF) {
    Rank& rank = this_rank();
    return static_cast<Communicator*>(comm == MPI_COMM_WORLD ? rank.world : rank.self);
  }
  return object_of<Communicator>(comm, ObjectKind::kCommunicator);
}
// The handle of a communicator, for error handlers. `scope` may be null: MPI_COMM_SELF then.
MPI_Comm handle_of_scope(ErrorScope* scope);

// Errors: MPI_ERR_COMM.
Error find_communicator(MPI_Comm comm, Communicator** found);
// Calls `body(communicator)`, which returns an Error, after the checks.
template <class Body>
int with_communicator(const char* function, MPI_Comm comm, std::initializer_list<PointerArgument> arguments,
                      const Body& body) {
  return guarded(function, comm, [&]() -> Error {
    if (Error error = require(arguments); !error.ok()) return error;
    Communicator* communicator = nullptr;
    if (Error error = find_communicator(comm, &communicator); !error.ok()) return error;
    return body(*communicator);
  });
}
// As find_communicator(), for a communicator with one group. Errors: MPI_ERR_COMM.
Error find_intracommunicator(MPI_Comm comm, Communicator** found);
// Errors: MPI_ERR_OTHER if MPI has not been started, or has ended.
Error check_running();

// `count` elements at `buffer`. Errors: MPI_ERR_COUNT, MPI_ERR_TYPE, and MPI_ERR_BUFFER for elements without memory: at a null pointer,
// MPI_IN_PLACE, ...
Error make_view(const void* buffer, MPI_Count count, MPI_Datatype type, DataView* view);
// As make_view(), for elements at `part`, an address that has been computed from `buffer`.
Error make_part_view(const void* buffer, const void* part, MPI_Count count, MPI_Datatype type,
                     DataView* view);

// A call may pass MPI_DATATYPE_NULL with a count of 0 if its peer is MPI_PROC_NULL or its message MPI_MESSAGE_NO_PROC.
inline bool is_nothing(MPI_Count count, MPI_Datatype type) { return count == 0 && type == MPI_DATATYPE_NULL; }

// The checked arguments of a send or a receive. `no_process`: the peer is MPI_PROC_NULL, and there is nothing to do.
struct SendCall {
  Communicator* communicator = nullptr;
  DataView view;
  SendAddress address;
  bool no_process = false;

  PointToPoint& engine() const { return communicator->engine(); }
};
struct ReceiveCall {
  Communicator* communicator = nullptr;
  DataView view;
  MatchKey key;
  int from = kAny;  // of a receive in device memory: the source in MPI_COMM_WORLD, if the program names it
  bool no_process = false;

  PointToPoint& engine() const { return communicator->engine(); }
};
Error prepare(const void* buffer, MPI_Count count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
              SendCall* call);
Error prepare(void* buffer, MPI_Count count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
              ReceiveCall* call);
// As prepare(), for the arguments of most calls: elements without gaps in memory of any kind, a rank and a tag that are no wildcards.
// False for all others, wrong ones too.
bool prepare_plain(const void* buffer, MPI_Count count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
                   SendCall* call);
bool prepare_plain(void* buffer, MPI_Count count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
                   ReceiveCall* call);
// The source and the tag of a receive or a probe.
Error check_source(const Communicator& communicator, int source, int tag);

// Gives the program the request, started unless it is persistent.
Error give_request(Ref<Request> request, Communicator* communicator, MPI_Request* handle, bool persistent);

// The error that an outcome tells.
Error error_of(const Outcome& outcome);
void write_status(const Outcome& outcome, MPI_Status* status);

}  // namespace weft::mpi
