// Collectives by the group of device arrays of a communicator with streams: the calls of MPIX that queue them, and ordinary calls that
// wait for them.
//
// An ordinary call waits for what is queued on the streams, and uses no memory of the host. It does so if all ranks pass memory of
// their streams' devices without gaps, and devices combine the elements.
#pragma once

#include <functional>
#include <optional>

#include "weft/base/error.h"
#include "weft/memory/buffer.h"
#include "weft/mpi/mpi.h"
#include "weft/queued/device_group.h"

#include "collectives/calls.h"
#include "models/mpi/communicators/communicator.h"
#include "models/mpi/objects/error.h"
#include "models/mpi/p2p/data_view.h"
#include "models/mpi/stream/stream_transfers.h"

namespace weft::mpi {

// The error of streams in words of MPI. Calls `body`, which may throw a base::Error.
template <class Body>
Error outcome_on_stream(const Body& body) {
  try {
    body();
    return {};
  } catch (const base::Error& error) {
    return {MPI_ERR_OTHER, error.what()};
  }
}

// Errors: MPI_ERR_COMM for a communicator without a stream.
Error find_transfers(const Communicator& communicator, StreamTransfers** found);
// Errors: MPI_ERR_TYPE for elements with gaps, MPI_ERR_BUFFER for memory of another place than the stream's device.
Error check_view_for_stream(const StreamTransfers& transfers, const DataView& view);

// The communicator of a call.
struct StreamScope {
  Communicator* communicator = nullptr;
  StreamTransfers* transfers = nullptr;

  MPI_Count num_ranks() const { return communicator->size(); }
  bool is_root(int root) const { return communicator->rank() == root; }
};

// A call whose arguments have been checked.
struct StreamCollective {
  StreamScope scope;
  std::function<void(const queued::DeviceGroup& group, memory::StreamHandle stream)> queue;
};

// Errors: MPI_ERR_COMM for a communicator without a stream, MPI_ERR_UNSUPPORTED_OPERATION for one without a group.
Error find_scope(MPI_Comm comm, StreamScope* scope);

// Check the arguments of a call. Their errors are those of MPIX_Allreduce_enqueue and its kin.
Error prepare_allreduce(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype type, MPI_Op op,
                        MPI_Comm comm, StreamCollective* collective);
Error prepare_reduce(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype type, MPI_Op op,
                     int root, MPI_Comm comm, StreamCollective* collective);
Error prepare_reduce_scatter_block(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype type,
                                   MPI_Op op, MPI_Comm comm, StreamCollective* collective);
Error prepare_bcast(const void* buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm,
                    StreamCollective* collective);
Error prepare_allgather(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, const void* recvbuf,
                        MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm,
                        StreamCollective* collective);
Error prepare_alltoall(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, const void* recvbuf,
                       MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm,
                       StreamCollective* collective);

// Queues what has been started, and then the collective.
Error queue_collective(const StreamCollective& collective);

// Whether the call asks run_on_streams(): it waits, and the communicator has a group.
inline bool may_run_on_streams(const Way& way, const Communicator& communicator) {
  return communicator.stream_transfers != nullptr && way.kind == Way::Kind::kWaiting &&
         communicator.stream_transfers->group();
}
std::optional<Error> run_if_all_can(Communicator& communicator, bool can, const StreamCollective& collective);
// Runs the collective that `prepare` checks to its end. None: on some rank it cannot be queued, and all do it in another way.
// Collective. REQUIRES: may_run_on_streams().
template <class Prepare>
std::optional<Error> run_on_streams(Communicator& communicator, const Prepare& prepare) {
  StreamCollective collective;
  const bool can = prepare(&collective).ok();
  return run_if_all_can(communicator, can, collective);
}

}  // namespace weft::mpi
