// All-to-all.
#include <cstddef>
#include <cstring>
#include <optional>

#include "weft/mpi/mpi.h"

#include "collectives/calls.h"
#include "collectives/on_stream.h"
#include "entry/entry.h"
#include "models/mpi/collective/data_movement.h"

namespace weft::mpi {

namespace {

// Of small parts that lie one after another. False if it is another call, or an erroneous one.
bool alltoall_at_once(const PartsArgument& sent, const PartsArgument& received, const Way& way,
                      Communicator& communicator, Error* error) {
  DataView in;
  DataView out;
  if (!can_run_at_once(way, communicator) || !received.one_block(communicator.size(), &in) ||
      in.size_bytes == 0)
    return false;
  if (sent.is_in_place()) {
    out = in;
  } else if (!sent.one_block(communicator.size(), &out) || out.size_bytes != in.size_bytes ||
             !check_apart(out, in).ok()) {
    return false;
  }
  const auto size = static_cast<std::size_t>(communicator.size());
  const auto rank = static_cast<std::size_t>(communicator.rank());
  const std::size_t part_bytes = in.size_bytes / size;
  using collective::Kind;
  const collective::Group& group = *communicator.collective_group();
  if (!group.serves(Kind::kAlltoall, part_bytes)) return false;
  collective::Call call{.kind = Kind::kAlltoall,
                        .form = group.form(Kind::kAlltoall, part_bytes),
                        .data = in.data,
                        .block_bytes = part_bytes,
                        .input = out.data};
  if (call.form == collective::Form::kDirect) {
    *error = run_at_once(communicator, call);
    return true;
  }
  CallBlocks blocks(in.size_bytes);
  if (blocks.data() == nullptr) return false;
  const std::size_t behind = in.size_bytes - rank * part_bytes;
  std::memcpy(blocks.data(), out.data + rank * part_bytes, behind);
  std::memcpy(blocks.data() + behind, out.data, rank * part_bytes);
  call.data = blocks.data();
  *error = run_at_once(communicator, call);
  for (std::size_t i = 0; i < size; ++i)
    std::memcpy(in.data + (rank + size - i) % size * part_bytes, blocks.data() + i * part_bytes, part_bytes);
  return true;
}

Error call_alltoall(const PartsArgument& sent, const PartsArgument& received, const Way& way) {
  Communicator* communicator = nullptr;
  Views out;
  Views in;
  if (Error error = find_communicator(way.comm, &communicator); !error.ok()) return error;
  if (received.is_equal() && may_run_on_streams(way, *communicator)) {
    const auto prepare = [&](StreamCollective* on_stream) {
      return prepare_alltoall(sent.buffer(), sent.count(), sent.type(), received.buffer(), received.count(),
                              received.type(), way.comm, on_stream);
    };
    if (const std::optional<Error> done = run_on_streams(*communicator, prepare)) return *done;
  }
  if (Error error; alltoall_at_once(sent, received, way, *communicator, &error)) return error;
  const bool in_place = sent.is_in_place();
  if (in_place && communicator->is_inter())
    return {MPI_ERR_BUFFER, "MPI_IN_PLACE is for communicators of one group; give a buffer"};
  if (Error error = received.views(communicator->num_peers(), &in); !error.ok()) return error;
  if (!in_place) {
    if (Error error = sent.views(communicator->num_peers(), &out); !error.ok()) return error;
    if (Error error = check_apart(out, in); !error.ok()) return error;
  }
  const CollectiveContext context =
      next_collective_contexts(*communicator, way).remote;  // an intracommunicator has one context
  const bool is_equal = received.is_equal() && !communicator->is_inter();
  return run_collective(way, *communicator, [=] {
    if (is_equal) return in_place ? alltoall_equal_in_place(context, in) : alltoall_equal(context, out, in);
    return in_place ? alltoall_in_place(context, in) : alltoall(context, out, in);
  });
}

}  // namespace

}  // namespace weft::mpi

using namespace weft::mpi;  // NOLINT(google-build-using-namespace): the entry points are C functions

extern "C" {

int MPI_Alltoall_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                   MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm) {
  return guarded(__func__, comm, [&] {
    return call_alltoall(PartsArgument::equal(sendbuf, sendcount, sendtype),
                         PartsArgument::equal(recvbuf, recvcount, recvtype), Way::waiting(comm));
  });
}

int MPI_Ialltoall_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                    MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request) {
  return guarded(__func__, comm, [&] {
    return call_alltoall(PartsArgument::equal(sendbuf, sendcount, sendtype),
                         PartsArgument::equal(recvbuf, recvcount, recvtype), Way::started(comm, request));
  });
}

int MPI_Alltoall_init_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                        MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info,
                        MPI_Request* request) {
  return guarded(__func__, comm, [&] {
    return call_alltoall(PartsArgument::equal(sendbuf, sendcount, sendtype),
                         PartsArgument::equal(recvbuf, recvcount, recvtype), Way::persistent(comm, request));
  });
}

int MPI_Alltoallv_c(const void* sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
                    MPI_Datatype sendtype, void* recvbuf, const MPI_Count recvcounts[],
                    const MPI_Aint rdispls[], MPI_Datatype recvtype, MPI_Comm comm) {
  return guarded(__func__, comm, [&] {
    return call_alltoall(PartsArgument::varying(sendbuf, sendcounts, sdispls, sendtype),
                         PartsArgument::varying(recvbuf, recvcounts, rdispls, recvtype), Way::waiting(comm));
  });
}

int MPI_Ialltoallv_c(const void* sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
                     MPI_Datatype sendtype, void* recvbuf, const MPI_Count recvcounts[],
                     const MPI_Aint rdispls[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request) {
  return guarded(__func__, comm, [&] {
    return call_alltoall(PartsArgument::varying(sendbuf, sendcounts, sdispls, sendtype),
                         PartsArgument::varying(recvbuf, recvcounts, rdispls, recvtype),
                         Way::started(comm, request));
  });
}

int MPI_Alltoallv_init_c(const void* sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
                         MPI_Datatype sendtype, void* recvbuf, const MPI_Count recvcounts[],
                         const MPI_Aint rdispls[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Info,
                         MPI_Request* request) {
  return guarded(__func__, comm, [&] {
    return call_alltoall(PartsArgument::varying(sendbuf, sendcounts, sdispls, sendtype),
                         PartsArgument::varying(recvbuf, recvcounts, rdispls, recvtype),
                         Way::persistent(comm, request));
  });
}

int MPI_Alltoallw_c(const void* sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
                    const MPI_Datatype sendtypes[], void* recvbuf, const MPI_Count recvcounts[],
                    const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm) {
  return guarded(__func__, comm, [&] {
    return call_alltoall(PartsArgument::of_types(sendbuf, sendcounts, sdispls, sendtypes),
                         PartsArgument::of_types(recvbuf, recvcounts, rdispls, recvtypes),
                         Way::waiting(comm));
  });
}

int MPI_Ialltoallw_c(const void* sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
                     const MPI_Datatype sendtypes[], void* recvbuf, const MPI_Count recvcounts[],
                     const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm,
                     MPI_Request* request) {
  return guarded(__func__, comm, [&] {
    return call_alltoall(PartsArgument::of_types(sendbuf, sendcounts, sdispls, sendtypes),
                         PartsArgument::of_types(recvbuf, recvcounts, rdispls, recvtypes),
                         Way::started(comm, request));
  });
}

int MPI_Alltoallw_init_c(const void* sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[],
                         const MPI_Datatype sendtypes[], void* recvbuf, const MPI_Count recvcounts[],
                         const MPI_Aint rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Info,
                         MPI_Request* request) {
  return guarded(__func__, comm, [&] {
    return call_alltoall(PartsArgument::of_types(sendbuf, sendcounts, sdispls, sendtypes),
                         PartsArgument::of_types(recvbuf, recvcounts, rdispls, recvtypes),
                         Way::persistent(comm, request));
  });
}

}  // extern "C"
