// Collectives with the neighbours of a virtual topology.
#include <cstddef>
#include <utility>
#include <vector>

#include "weft/mpi/mpi.h"

#include "collectives/calls.h"
#include "entry/entry.h"
#include "models/mpi/collective/data_movement.h"

namespace weft::mpi {

namespace {

// The neighbours of this process in the topology of its communicator.
struct Neighbours {
  Communicator* communicator = nullptr;
  std::vector<int> sources;
  std::vector<int> destinations;
};

Error find_neighbours(MPI_Comm comm, Neighbours* found) {
  if (Error error = find_communicator(comm, &found->communicator); !error.ok()) return error;
  const auto& topology = found->communicator->topology;
  if (topology == nullptr)
    return {
        MPI_ERR_TOPOLOGY,
        "the communicator has no topology; make one with MPI_Cart_create or MPI_Dist_graph_create_adjacent"};
  found->sources = topology->sources(found->communicator->rank());
  found->destinations = topology->destinations(found->communicator->rank());
  return {};
}

// `out` has a view for each destination, `in` one for each source.
Error exchange(const Neighbours& neighbours, const Views& out, const Views& in, const Way& way) {
  NeighbourTransfers transfers;
  for (std::size_t i = 0; i < in.size(); ++i) transfers.in.emplace_back(neighbours.sources[i], in[i]);
  for (const int at : neighbours.communicator->topology->order_of_sends(static_cast<int>(out.size()))) {
    const auto i = static_cast<std::size_t>(at);
    transfers.out.emplace_back(neighbours.destinations[i], out[i]);
  }
  const CollectiveContext context = next_collective_contexts(*neighbours.communicator, way).local;
  return run_collective(way, *neighbours.communicator,
                        [=] { return exchange_with_neighbours(context, transfers); });
}

Error not_in_place() {
  return {MPI_ERR_BUFFER, "MPI_IN_PLACE is not for neighbourhood collectives; give a buffer"};
}

Error call_neighbour_allgather(const ElementsArgument& sent, const PartsArgument& received, const Way& way) {
  Neighbours neighbours;
  DataView mine;
  Views in;
  if (Error error = find_neighbours(way.comm, &neighbours); !error.ok()) return error;
  if (sent.is_in_place() || received.is_in_place()) return not_in_place();
  if (Error error = sent.view(&mine); !error.ok()) return error;
  if (Error error = received.views(static_cast<int>(neighbours.sources.size()), &in); !error.ok())
    return error;
  if (Error error = check_apart(mine, in); !error.ok()) return error;
  return exchange(neighbours, Views(neighbours.destinations.size(), mine), in, way);
}

Error call_neighbour_alltoall(const PartsArgument& sent, const PartsArgument& received, const Way& way) {
  Neighbours neighbours;
  Views out;
  Views in;
  if (Error error = find_neighbours(way.comm, &neighbours); !error.ok()) return error;
  if (sent.is_in_place() || received.is_in_place()) return not_in_place();
  if (Error error = sent.views(static_cast<int>(neighbours.destinations.size()), &out); !error.ok())
    return error;
  if (Error error = received.views(static_cast<int>(neighbours.sources.size()), &in); !error.ok())
    return error;
  if (Error error = check_apart(out, in); !error.ok()) return error;
  return exchange(neighbours, out, in, way);
}

}  // namespace

}  // namespace weft::mpi

using namespace weft::mpi;  // NOLINT(google-build-using-namespace): the entry points are C functions

extern "C" {

int MPI_Neighbor_allgather_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                             MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm) {
  return guarded(__func__, comm, [&] {
    return call_neighbour_allgather({sendbuf, sendcount, sendtype},
                                    PartsArgument::equal(recvbuf, recvcount, recvtype), Way::waiting(comm));
  });
}

int MPI_Ineighbor_allgather_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                              MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm,
                              MPI_Request* request) {
  return guarded(__func__, comm, [&] {
    return call_neighbour_allgather({sendbuf, sendcount, sendtype},
                                    PartsArgument::equal(recvbuf, recvcount, recvtype),
                                    Way::started(comm, request));
  });
}

int MPI_Neighbor_allgather_init_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                                  void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm,
                                  MPI_Info, MPI_Request* request) {
  return guarded(__func__, comm, [&] {
    return call_neighbour_allgather({sendbuf, sendcount, sendtype},
                                    PartsArgument::equal(recvbuf, recvcount, recvtype),
                                    Way::persistent(comm, request));
  });
}

int MPI_Neighbor_allgatherv_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                              const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype,
                              MPI_Comm comm) {
  return guarded(__func__, comm, [&] {
    return call_neighbour_allgather({sendbuf, sendcount, sendtype},
                                    PartsArgument::varying(recvbuf, recvcounts, displs, recvtype),
                                    Way::waiting(comm));
  });
}

int MPI_Ineighbor_allgatherv_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                               const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype,
                               MPI_Comm comm, MPI_Request* request) {
  return guarded(__func__, comm, [&] {
    return call_neighbour_allgather({sendbuf, sendcount, sendtype},
                                    PartsArgument::varying(recvbuf, recvcounts, displs, recvtype),
                                    Way::started(comm, request));
  });
}

int MPI_Neighbor_allgatherv_init_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                                   void* recvbuf, const MPI_Count recvcounts[], const MPI_Aint displs[],
                                   MPI_Datatype recvtype, MPI_Comm comm, MPI_Info, MPI_Request* request) {
  return guarded(__func__, comm, [&] {
    return call_neighbour_allgather({sendbuf, sendcount, sendtype},
                                    PartsArgument::varying(recvbuf, recvcounts, displs, recvtype),
                                    Way::persistent(comm, request));
  });
}

int MPI_Neighbor_alltoall_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                            MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm) {
  return guarded(__func__, comm, [&] {
    return call_neighbour_alltoall(PartsArgument::equal(sendbuf, sendcount, sendtype),
                                   PartsArgument::equal(recvbuf, recvcount, recvtype), Way::waiting(comm));
  });
}

int MPI_Ineighbor_alltoall_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                             MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm,
                             MPI_Request* request) {
  return guarded(__func__, comm, [&] {
    return call_neighbour_alltoall(PartsArgument::equal(sendbuf, sendcount, sendtype),
                                   PartsArgument::equal(recvbuf, recvcount, recvtype),
                                   Way::started(comm, request));
  });
}

int MPI_Neighbor_alltoall_init_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
                                 void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm,
                                 MPI_Info, MPI_Request* request) {
  return guarded(__func__, comm, [&] {
    return call_neighbour_alltoall(PartsArgument::equal(sendbuf, sendcount, sendtype),
                                   PartsArgument::equal(recvbuf, recvcount, recvtype),
                                   Way::persistent(comm, request));
  });
}

int MPI_Neighbor_alltoallv_c(const void* sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
                             MPI_Datatype sendtype, void* recvbuf, const MPI_Count recvcounts[],
                             const MPI_Aint rdispls[], MPI_Datatype recvtype, MPI_Comm comm) {
  return guarded(__func__, comm, [&] {
    return call_neighbour_alltoall(PartsArgument::varying(sendbuf, sendcounts, sdispls, sendtype),
                                   PartsArgument::varying(recvbuf, recvcounts, rdispls, recvtype),
                                   Way::waiting(comm));
  });
}

int MPI_Ineighbor_alltoallv_c(const void* sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
                              MPI_Datatype sendtype, void* recvbuf, const MPI_Count recvcounts[],
                              const MPI_Aint rdispls[], MPI_Datatype recvtype, MPI_Comm comm,
                              MPI_Request* request) {
  return guarded(__func__, comm, [&] {
    return call_neighbour_alltoall(PartsArgument::varying(sendbuf, sendcounts, sdispls, sendtype),
                                   PartsArgument::varying(recvbuf, recvcounts, rdispls, recvtype),
                                   Way::started(comm, request));
  });
}

int MPI_Neighbor_alltoallv_init_c(const void* sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
                                  MPI_Datatype sendtype, void* recvbuf, const MPI_Count recvcounts[],
                                  const MPI_Aint rdispls[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Info,
                                  MPI_Request* request) {
  return guarded(__func__, comm, [&] {
    return call_neighbour_alltoall(PartsArgument::varying(sendbuf, sendcounts, sdispls, sendtype),
                                   PartsArgument::varying(recvbuf, recvcounts, rdispls, recvtype),
                                   Way::persistent(comm, request));
  });
}

int MPI_Neighbor_alltoallw_c(const void* sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
                             const MPI_Datatype sendtypes[], void* recvbuf, const MPI_Count recvcounts[],
                             const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm) {
  return guarded(__func__, comm, [&] {
    return call_neighbour_alltoall(PartsArgument::of_types(sendbuf, sendcounts, sdispls, sendtypes),
                                   PartsArgument::of_types(recvbuf, recvcounts, rdispls, recvtypes),
                                   Way::waiting(comm));
  });
}

int MPI_Ineighbor_alltoallw_c(const void* sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
                              const MPI_Datatype sendtypes[], void* recvbuf, const MPI_Count recvcounts[],
                              const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm,
                              MPI_Request* request) {
  return guarded(__func__, comm, [&] {
    return call_neighbour_alltoall(PartsArgument::of_types(sendbuf, sendcounts, sdispls, sendtypes),
                                   PartsArgument::of_types(recvbuf, recvcounts, rdispls, recvtypes),
                                   Way::started(comm, request));
  });
}

int MPI_Neighbor_alltoallw_init_c(const void* sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
                                  const MPI_Datatype sendtypes[], void* recvbuf, const MPI_Count recvcounts[],
                                  const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm,
                                  MPI_Info, MPI_Request* request) {
  return guarded(__func__, comm, [&] {
    return call_neighbour_alltoall(PartsArgument::of_types(sendbuf, sendcounts, sdispls, sendtypes),
                                   PartsArgument::of_types(recvbuf, recvcounts, rdispls, recvtypes),
                                   Way::persistent(comm, request));
  });
}

}  // extern "C"
