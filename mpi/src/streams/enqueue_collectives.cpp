// Collectives that are queued on the stream of a communicator.
#include "weft/mpi/mpi.h"
#include "weft/mpi/weft_mpi_stream.h"

#include "collectives/on_stream.h"
#include "entry/entry.h"

namespace weft::mpi {

namespace {

template <class Prepare, class... Arguments>
Error enqueue(Prepare prepare, Arguments... arguments) {
  StreamCollective collective;
  if (Error error = prepare(arguments..., &collective); !error.ok()) return error;
  return queue_collective(collective);
}

}  // namespace

}  // namespace weft::mpi

using namespace weft::mpi;  // NOLINT(google-build-using-namespace): the entry points are C functions

extern "C" {

int MPIX_Barrier_enqueue(MPI_Comm comm) {
  return guarded(__func__, comm, [&]() -> Error {
    StreamScope scope;
    if (Error error = find_scope(comm, &scope); !error.ok()) return error;
    return queue_collective({scope, [](const auto& group, auto stream) { group.barrier(stream); }});
  });
}

int MPIX_Allreduce_enqueue_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype,
                             MPI_Op op, MPI_Comm comm) {
  return guarded(__func__, comm,
                 [&] { return enqueue(&prepare_allreduce, sendbuf, recvbuf, count, datatype, op, comm); });
}
int MPIX_Allreduce_enqueue(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                           MPI_Comm comm) {
  return MPIX_Allreduce_enqueue_c(sendbuf, recvbuf, count, datatype, op, comm);
}

int MPIX_Reduce_enqueue_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype,
                          MPI_Op op, int root, MPI_Comm comm) {
  return guarded(__func__, comm,
                 [&] { return enqueue(&prepare_reduce, sendbuf, recvbuf, count, datatype, op, root, comm); });
}
int MPIX_Reduce_enqueue(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                        int root, MPI_Comm comm) {
  return MPIX_Reduce_enqueue_c(sendbuf, recvbuf, count, datatype, op, root, comm);
}

int MPIX_Reduce_scatter_block_enqueue_c(const void* sendbuf, void* recvbuf, MPI_Count recvcount,
                                        MPI_Datatype datatype, MPI_Op op, MPI_Comm comm) {
  return guarded(__func__, comm, [&] {
    return enqueue(&prepare_reduce_scatter_block, sendbuf, recvbuf, recvcount, datatype, op, comm);
  });
}
int MPIX_Reduce_scatter_block_enqueue(const void* sendbuf, void* recvbuf, int recvcount,
                                      MPI_Datatype datatype, MPI_Op op, MPI_Comm comm) {
  return MPIX_Reduce_scatter_block_enqueue_c(sendbuf, recvbuf, recvcount, datatype, op, comm);
}

int MPIX_Bcast_enqueue_c(void* buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm) {
  return guarded(__func__, comm,
                 [&] { return enqueue(&prepare_bcast, buffer, count, datatype, root, comm); });
}
int MPIX_Bcast_enqueue(void* buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm) {
  return MPIX_Bcast_enqueue_c(buffer, count, datatype, root, comm);
}

int MPIX_Allgather_enqueue_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                             MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm) {
  return guarded(__func__, comm, [&] {
    return enqueue(&prepare_allgather, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
  });
}
int MPIX_Allgather_enqueue(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                           int recvcount, MPI_Datatype recvtype, MPI_Comm comm) {
  return MPIX_Allgather_enqueue_c(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}

int MPIX_Alltoall_enqueue_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                            MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm) {
  return guarded(__func__, comm, [&] {
    return enqueue(&prepare_alltoall, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
  });
}
int MPIX_Alltoall_enqueue(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf,
                          int recvcount, MPI_Datatype recvtype, MPI_Comm comm) {
  return MPIX_Alltoall_enqueue_c(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}

}  // extern "C"
