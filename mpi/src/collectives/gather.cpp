// Gather, scatter and all-gather.
#include <cstring>
#include <optional>

#include "weft/mpi/mpi.h"

#include "collectives/calls.h"
#include "collectives/on_stream.h"
#include "entry/entry.h"
#include "models/mpi/collective/data_movement.h"

namespace weft::mpi {

namespace {

// Makes the view of the elements that this process itself gives or gets.
Error make_own_view(const ElementsArgument& own, OwnView* view) {
  view->in_place = own.is_in_place();
  return view->in_place ? Error() : own.view(&view->view);
}

Error check_not_in_place(const ElementsArgument& own) {
  if (!own.is_in_place()) return {};
  return {MPI_ERR_BUFFER, "MPI_IN_PLACE is for the root, and for communicators of one group; give a buffer"};
}

// Between a root and the other group.
Error call_with_other(const ElementsArgument& own, const PartsArgument& parts, int root, bool to_root,
                      const Way& way, Communicator& communicator) {
  DataView mine;
  Views views;
  if (root == MPI_ROOT) {
    if (Error error = parts.views(communicator.remote_size(), &views); !error.ok()) return error;
  } else if (root != MPI_PROC_NULL) {
    if (Error error = check_not_in_place(own); !error.ok()) return error;
    if (Error error = own.view(&mine); !error.ok()) return error;
  }
  const ContextPair contexts = next_collective_contexts(communicator, way);
  return run_collective(way, communicator, [=] {
    return to_root ? gather_from_other(contexts, root, mine, views)
                   : scatter_to_other(contexts, root, views, mine);
  });
}

// `own`: what each process gives or gets; `parts`: what the root gets or gives.
Error call_with_root(const ElementsArgument& own, const PartsArgument& parts, int root, bool to_root,
                     const Way& way) {
  Communicator* communicator = nullptr;
  if (Error error = find_communicator(way.comm, &communicator); !error.ok()) return error;
  if (Error error = check_root(*communicator, root); !error.ok()) return error;
  if (communicator->is_inter()) return call_with_other(own, parts, root, to_root, way, *communicator);
  OwnView mine;
  Views views;
  if (communicator->rank() == root) {
    if (Error error = parts.views(communicator->size(), &views); !error.ok()) return error;
  } else if (Error error = check_not_in_place(own); !error.ok()) {
    return error;
  }
  if (Error error = make_own_view(own, &mine); !error.ok()) return error;
  if (!mine.in_place)
    if (Error error = check_apart(mine.view, views); !error.ok()) return error;
  const CollectiveContext context = next_collective_contexts(*communicator, way).local;
  const bool is_equal = parts.is_equal();
  return run_collective(way, *communicator, [=] {
    if (is_equal)
      return to_root ? gather_equal(context, root, mine, views) : scatter_equal(context, root, views, mine);
    return to_root ? gather(context, root, mine, views) : scatter(context, root, views, mine);
  });
}

Error call_gather(const ElementsArgument& sent, const PartsArgument& received, int root, const Way& way) {
  return call_with_root(sent, received, root, true, way);
}

Error call_scatter(const PartsArgument& sent, const ElementsArgument& received, int root, const Way& way) {
  return call_with_root(received, sent, root, false, way);
}

// Of small parts that lie one after another. False if it is another call, or an erroneous one.
bool allgather_at_once(const ElementsArgument& sent, const PartsArgument& received, const Way& way,
                       Communicator& communicator, Error* error) {
  DataView all;
  DataView mine;
  if (!can_run_at_once(way, communicator) || !received.one_block(communicator.size(), &all) ||
      all.size_bytes == 0)
    return false;
  const auto size = static_cast<std::size_t>(communicator.size());
  const std::size_t part_bytes = all.size_bytes / size;
  const auto before = static_cast<std::size_t>(communicator.rank()) * part_bytes;
  if (sent.is_in_place()) {
    mine = DataView::of_bytes(all.data + before, part_bytes);
  } else if (!sent.view(&mine).ok() || !is_one_block(mine) || mine.size_bytes != part_bytes ||
             !check_apart(mine, all).ok()) {
    return false;
  }
  using collective::Kind;
  const collective::Group& group = *communicator.collective_group();
  if (!group.serves(Kind::kAllgather, part_bytes)) return false;
  collective::Call call{.kind = Kind::kAllgather,
                        .form = group.form(Kind::kAllgather, part_bytes),
                        .data = all.data,
                        .block_bytes = part_bytes};
  if (call.form != collective::Form::kFewMessages) {
    if (!group.gathers_by_place(call.form)) return false;
    if (!sent.is_in_place()) std::memcpy(all.data + before, mine.data, part_bytes);
    *error = run_at_once(communicator, call);
    return true;
  }
  CallBlocks blocks(all.size_bytes);
  if (blocks.data() == nullptr) return false;
  std::memcpy(blocks.data(), mine.data, part_bytes);
  call.data = blocks.data();
  *error = run_at_once(communicator, call);
  const std::size_t behind = all.size_bytes - before;
  std::memcpy(all.data + before, blocks.data(), behind);
  std::memcpy(all.data, blocks.data() + behind, before);
  return true;
}

Error call_allgather(const ElementsArgument& sent, const PartsArgument& received, const Way& way) {
  Communicator* communicator = nullptr;
  OwnView mine;
  Views views;
  if (Error error = find_communicator(way.comm, &communicator); !error.ok()) return error;
  if (received.is_equal() && may_run_on_streams(way, *communicator)) {
    const auto prepare = [&](StreamCollective* on_stream) {
      return prepare_allgather(sent.buffer, sent.count, sent.type, received.buffer(), received.count(),
                               received.type(), way.comm, on_stream);
    };
    if (const std::optional<Error> done = run_on_streams(*communicator, prepare)) return *done;
  }
  if (Error error; allgather_at_once(sent, received, way, *communicator, &error)) return error;
  const bool inter = communicator->is_inter();
  if (inter)
    if (Error error = check_not_in_place(sent); !error.ok()) return error;
  if (Error error = received.views(communicator->num_peers(), &views); !error.ok()) return error;
  if (Error error = make_own_view(sent, &mine); !error.ok()) return error;
  if (!mine.in_place)
    if (Error error = check_apart(mine.view, views); !error.ok()) return error;
  const ContextPair contexts = next_collective_contexts(*communicator, way);
  return run_collective(way, *communicator, [=] {
    return inter ? alltoall(contexts.remote, Views(views.size(), mine.view), views)
                 : allgather(contexts.local, mine, views);
  });
}

}  // namespace

}  // namespace weft::mpi

using namespace weft::mpi;  // NOLINT(google-build-using-namespace): the entry points are C functions

extern "C" {

int MPI_Gather_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                 MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm) {
  return guarded(__func__, comm, [&] {
    return call_gather({sendbuf, sendcount, sendtype}, PartsArgument::equal(recvbuf, recvcount, recvtype),
                       root, Way::waiting(comm));
  });
}

int MPI_Igather_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                  MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request* request) {
  return guarded(__func__, comm, [&] {
    return call_gather({sendbuf, sendcount, sendtype}, PartsArgument::equal(recvbuf, recvcount, recvtype),
                       root, Way::started(comm, request));
  });
}

int MPI_Gather_init_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                      MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info,
                      MPI_Request* request) {
  return guarded(__func__, comm, [&] {
    return call_gather({sendbuf, sendcount, sendtype}, PartsArgument::equal(recvbuf, recvcount, recvtype),
                       root, Way::persistent(comm, request));
  });
}

int MPI_Gatherv_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                  const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, int root,
                  MPI_Comm comm) {
  return guarded(__func__, comm, [&] {
    return call_gather({sendbuf, sendcount, sendtype},
                       PartsArgument::varying(recvbuf, recvcounts, displs, recvtype), root,
                       Way::waiting(comm));
  });
}

int MPI_Igatherv_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                   const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, int root,
                   MPI_Comm comm, MPI_Request* request) {
  return guarded(__func__, comm, [&] {
    return call_gather({sendbuf, sendcount, sendtype},
                       PartsArgument::varying(recvbuf, recvcounts, displs, recvtype), root,
                       Way::started(comm, request));
  });
}

int MPI_Gatherv_init_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                       const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype, int root,
                       MPI_Comm comm, MPI_Info, MPI_Request* request) {
  return guarded(__func__, comm, [&] {
    return call_gather({sendbuf, sendcount, sendtype},
                       PartsArgument::varying(recvbuf, recvcounts, displs, recvtype), root,
                       Way::persistent(comm, request));
  });
}

int MPI_Scatter_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                  MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm) {
  return guarded(__func__, comm, [&] {
    return call_scatter(PartsArgument::equal(sendbuf, sendcount, sendtype), {recvbuf, recvcount, recvtype},
                        root, Way::waiting(comm));
  });
}

int MPI_Iscatter_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                   MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
                   MPI_Request* request) {
  return guarded(__func__, comm, [&] {
    return call_scatter(PartsArgument::equal(sendbuf, sendcount, sendtype), {recvbuf, recvcount, recvtype},
                        root, Way::started(comm, request));
  });
}

int MPI_Scatter_init_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                       MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info,
                       MPI_Request* request) {
  return guarded(__func__, comm, [&] {
    return call_scatter(PartsArgument::equal(sendbuf, sendcount, sendtype), {recvbuf, recvcount, recvtype},
                        root, Way::persistent(comm, request));
  });
}

int MPI_Scatterv_c(const void* sendbuf, const MPI_Count sendcounts[], const MPI_Aint displs[],
                   MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root,
                   MPI_Comm comm) {
  return guarded(__func__, comm, [&] {
    return call_scatter(PartsArgument::varying(sendbuf, sendcounts, displs, sendtype),
                        {recvbuf, recvcount, recvtype}, root, Way::waiting(comm));
  });
}

int MPI_Iscatterv_c(const void* sendbuf, const MPI_Count sendcounts[], const MPI_Aint displs[],
                    MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
                    int root, MPI_Comm comm, MPI_Request* request) {
  return guarded(__func__, comm, [&] {
    return call_scatter(PartsArgument::varying(sendbuf, sendcounts, displs, sendtype),
                        {recvbuf, recvcount, recvtype}, root, Way::started(comm, request));
  });
}

int MPI_Scatterv_init_c(const void* sendbuf, const MPI_Count sendcounts[], const MPI_Aint displs[],
                        MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
                        int root, MPI_Comm comm, MPI_Info, MPI_Request* request) {
  return guarded(__func__, comm, [&] {
    return call_scatter(PartsArgument::varying(sendbuf, sendcounts, displs, sendtype),
                        {recvbuf, recvcount, recvtype}, root, Way::persistent(comm, request));
  });
}

int MPI_Allgather_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                    MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm) {
  return guarded(__func__, comm, [&] {
    return call_allgather({sendbuf, sendcount, sendtype}, PartsArgument::equal(recvbuf, recvcount, recvtype),
                          Way::waiting(comm));
  });
}

int MPI_Iallgather_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                     MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request) {
  return guarded(__func__, comm, [&] {
    return call_allgather({sendbuf, sendcount, sendtype}, PartsArgument::equal(recvbuf, recvcount, recvtype),
                          Way::started(comm, request));
  });
}

int MPI_Allgather_init_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                         MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info,
                         MPI_Request* request) {
  return guarded(__func__, comm, [&] {
    return call_allgather({sendbuf, sendcount, sendtype}, PartsArgument::equal(recvbuf, recvcount, recvtype),
                          Way::persistent(comm, request));
  });
}

int MPI_Allgatherv_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                     const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype,
                     MPI_Comm comm) {
  return guarded(__func__, comm, [&] {
    return call_allgather({sendbuf, sendcount, sendtype},
                          PartsArgument::varying(recvbuf, recvcounts, displs, recvtype), Way::waiting(comm));
  });
}

int MPI_Iallgatherv_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                      const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype,
                      MPI_Comm comm, MPI_Request* request) {
  return guarded(__func__, comm, [&] {
    return call_allgather({sendbuf, sendcount, sendtype},
                          PartsArgument::varying(recvbuf, recvcounts, displs, recvtype),
                          Way::started(comm, request));
  });
}

int MPI_Allgatherv_init_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf,
                          const MPI_Count recvcounts[], const MPI_Aint displs[], MPI_Datatype recvtype,
                          MPI_Comm comm, MPI_Info, MPI_Request* request) {
  return guarded(__func__, comm, [&] {
    return call_allgather({sendbuf, sendcount, sendtype},
                          PartsArgument::varying(recvbuf, recvcounts, displs, recvtype),
                          Way::persistent(comm, request));
  });
}

}  // extern "C"
