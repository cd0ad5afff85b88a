// Reductions and scans.
#include "models/mpi/collective/reductions.h"

#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "weft/mpi/mpi.h"

#include "collectives/calls.h"
#include "collectives/on_stream.h"
#include "entry/entry.h"
#include "entry/type_handles.h"
#include "models/mpi/collective/reduction_check.h"
#include "models/mpi/collective/team_collectives.h"
#include "models/mpi/objects/addresses.h"
#include "models/mpi/process.h"

namespace weft::mpi {

namespace {

struct ReductionArguments {
  const void* sendbuf;
  void* recvbuf;
  MPI_Datatype type;
  MPI_Op operation;

  // The elements to combine. With MPI_IN_PLACE they lie where the result goes.
  const void* input() const { return sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf; }
};

Error make_reduction(const ReductionArguments& arguments, MPI_Count count, Reduction* made) {
  Datatype* type = nullptr;
  ReductionOperator* operation = nullptr;
  if (Error error = check_count(count); !error.ok()) return error;
  if (Error error = find_committed_type(arguments.type, &type); !error.ok()) return error;
  if (Error error = find_operation(arguments.operation, &operation); !error.ok()) return error;
  if (Error error = operation->check(*type); !error.ok()) return error;
  *made = {Ref<Datatype>(*type), Ref<ReductionOperator>(*operation), count};
  return {};
}

// A call with everything that the coroutines need.
struct PreparedReduction {
  Communicator* communicator = nullptr;
  Reduction what;
  DataView in;
  DataView out;
};

Error prepare_reduction(const ReductionArguments& arguments, MPI_Count count, MPI_Comm comm,
                        PreparedReduction* made) {
  if (Error error = find_communicator(comm, &made->communicator); !error.ok()) return error;
  if (arguments.sendbuf == MPI_IN_PLACE && made->communicator->is_inter())
    return {MPI_ERR_BUFFER, "MPI_IN_PLACE is for communicators of one group; give a buffer"};
  return make_reduction(arguments, count, &made->what);
}

// The view of `count` elements that are combined, and of `out_count` elements of the result.
Error view_both(const ReductionArguments& arguments, MPI_Count count, MPI_Count out_count,
                PreparedReduction* made) {
  if (Error error = make_view(arguments.input(), count, arguments.type, &made->in); !error.ok()) return error;
  if (Error error = make_view(arguments.recvbuf, out_count, arguments.type, &made->out); !error.ok())
    return error;
  return arguments.sendbuf == MPI_IN_PLACE ? Error() : check_apart(made->in, made->out);
}

// In check mode the processes compare what they pass before they begin. REQUIRES: called by all processes in the order of their calls.
MakeTask compared_first(const Way& way, const PreparedReduction& made, ReductionKind kind, int root,
                        MakeTask make) {
  if (!this_process().checks_calls() || made.communicator->is_inter()) [[likely]]
    return make;
  const CollectiveContext context = next_collective_contexts(*made.communicator, way).local;
  const ReductionCall mine(kind, *made.what.operation, root);
  return [context, mine, kept = std::move(make)] { return reduce_checked(context, mine, kept()); };
}

bool can_reduce_at_once(const Way& way, const PreparedReduction& made, collective::Kind kind,
                        const DataView& out) {
  return can_run_at_once(way, *made.communicator) && !this_process().checks_calls() &&
         is_one_block(made.in) && is_one_block(out) && is_aligned_for(made.what, out.data) &&
         made.communicator->collective_group()->serves(kind, made.in.size_bytes);
}

// In `data`, which has room for all elements. REQUIRES: can_reduce_at_once().
Error run_reduction_at_once(const PreparedReduction& made, EngineReduction& reduction, std::byte* data) {
  PackedCombiner combiner(made.what);
  reduction.call.combiner = combiner.get();
  reduction.call.data = data;
  reduction.call.input = made.in.data;
  if (!reduction.is_direct() && data != made.in.data && made.in.size_bytes > 0)
    std::memcpy(data, made.in.data, made.in.size_bytes);
  return run_at_once(*made.communicator, reduction.call, &combiner);
}

Error reduce_at_once(const PreparedReduction& made, collective::Kind kind, int root, std::byte* data) {
  EngineReduction reduction(*made.communicator->collective_group(), kind, root, made.what, nullptr);
  return run_reduction_at_once(made, reduction, data);
}

Error call_reduce(const ReductionArguments& passed, MPI_Count passed_count, int root, const Way& way) {
  PreparedReduction made;
  // Only the root is significant at a process that neither gives nor gets elements.
  const bool is_idle = root == MPI_PROC_NULL;
  const ReductionArguments arguments =
      is_idle ? ReductionArguments{nullptr, nullptr, MPI_INT, MPI_SUM} : passed;
  const MPI_Count count = is_idle ? 0 : passed_count;
  if (Error error = prepare_reduction(arguments, count, way.comm, &made); !error.ok()) return error;
  if (Error error = check_root(*made.communicator, root); !error.ok()) return error;
  if (may_run_on_streams(way, *made.communicator)) {
    const auto prepare = [&](StreamCollective* on_stream) {
      return prepare_reduce(passed.sendbuf, passed.recvbuf, count, passed.type, passed.operation, root,
                            way.comm, on_stream);
    };
    if (const std::optional<Error> done = run_on_streams(*made.communicator, prepare)) return *done;
  }
  const bool inter = made.communicator->is_inter();
  const bool gets = inter ? root == MPI_ROOT : root == made.communicator->rank();
  const bool gives = !inter || (root != MPI_ROOT && root != MPI_PROC_NULL);
  if (gives && !gets && arguments.sendbuf == MPI_IN_PLACE)
    return {MPI_ERR_BUFFER, "MPI_IN_PLACE is for the root; give a send buffer"};
  if (gives)
    if (Error error = make_view(arguments.input(), count, arguments.type, &made.in); !error.ok())
      return error;
  if (gets)
    if (Error error = make_view(arguments.recvbuf, count, arguments.type, &made.out); !error.ok())
      return error;
  if (gives && gets && arguments.sendbuf != MPI_IN_PLACE)
    if (Error error = check_apart(made.in, made.out); !error.ok()) return error;
  const collective::Kind kind =
      made.what.operation->is_commutative() ? collective::Kind::kReduce : collective::Kind::kReduceInOrder;
  if (can_reduce_at_once(way, made, kind, made.out)) {
    if (gets) return reduce_at_once(made, kind, root, made.out.data);
    CallBlocks own(made.in.size_bytes);
    if (own.data() != nullptr) return reduce_at_once(made, kind, root, own.data());
  }
  const ContextPair contexts = next_collective_contexts(*made.communicator, way);
  return run_collective(way, *made.communicator, compared_first(way, made, ReductionKind::kReduce, root, [=] {
                          return inter ? reduce_to_other(contexts, root, made.what, made.in, made.out)
                                       : reduce_in_teams(contexts.local, root, made.what, made.in, made.out);
                        }));
}

Error call_allreduce(const ReductionArguments& arguments, MPI_Count count, const Way& way) {
  PreparedReduction made;
  if (Error error = prepare_reduction(arguments, count, way.comm, &made); !error.ok()) return error;
  if (may_run_on_streams(way, *made.communicator)) {
    const auto prepare = [&](StreamCollective* on_stream) {
      return prepare_allreduce(arguments.sendbuf, arguments.recvbuf, count, arguments.type,
                               arguments.operation, way.comm, on_stream);
    };
    if (const std::optional<Error> done = run_on_streams(*made.communicator, prepare)) return *done;
  }
  if (Error error = view_both(arguments, count, count, &made); !error.ok()) return error;
  if (can_reduce_at_once(way, made, collective::Kind::kAllreduce, made.out))
    return reduce_at_once(made, collective::Kind::kAllreduce, 0, made.out.data);
  const ContextPair contexts = next_collective_contexts(*made.communicator, way);
  const bool inter = made.communicator->is_inter();
  return run_collective(way, *made.communicator, compared_first(way, made, ReductionKind::kAllreduce, 0, [=] {
                          return inter ? allreduce_of_other(contexts, made.what, made.in, made.out)
                                       : allreduce_in_teams(contexts.local, made.what, made.in, made.out);
                        }));
}

// False without memory. REQUIRES: can_reduce_at_once(); there are elements.
bool reduce_scatter_at_once(const PreparedReduction& made, const std::vector<MPI_Count>& counts,
                            Error* error) {
  CallBlocks blocks(made.in.size_bytes);
  if (blocks.data() == nullptr) return false;
  EngineReduction reduction(*made.communicator->collective_group(), collective::Kind::kReduceScatter, 0,
                            made.what, &counts);
  *error = run_reduction_at_once(made, reduction, blocks.data());
  const std::size_t begin = reduction.begins[static_cast<std::size_t>(made.communicator->rank())];
  if (made.out.size_bytes > 0) std::memcpy(made.out.data, blocks.data() + begin, made.out.size_bytes);
  return true;
}

// `counts`: of each process of the own group.
Error reduce_scatter_counts(const ReductionArguments& arguments, std::vector<MPI_Count> counts,
                            const Way& way) {
  PreparedReduction made;
  Wide total = 0;
  for (const MPI_Count count : counts) {
    if (Error error = check_count(count); !error.ok()) return error;
    total += count;
  }
  if (!fits_count(total))
    return {MPI_ERR_COUNT, "the sum of the counts does not fit 64 bits; give smaller counts"};
  const auto all = static_cast<MPI_Count>(total);
  if (Error error = prepare_reduction(arguments, all, way.comm, &made); !error.ok()) return error;
  const MPI_Count own = counts[static_cast<std::size_t>(made.communicator->rank())];
  if (Error error = view_both(arguments, all, own, &made); !error.ok()) return error;
  if (made.in.size_bytes > 0 && can_reduce_at_once(way, made, collective::Kind::kReduceScatter, made.out))
    if (Error error; reduce_scatter_at_once(made, counts, &error)) return error;
  const ContextPair contexts = next_collective_contexts(*made.communicator, way);
  const bool inter = made.communicator->is_inter();
  return run_collective(
      way, *made.communicator, compared_first(way, made, ReductionKind::kReduceScatter, 0, [=] {
        return inter ? reduce_and_scatter_of_other(contexts, made.what, counts, made.in, made.out)
                     : reduce_and_scatter(contexts.local, made.what, counts, made.in, made.out);
      }));
}

Error call_reduce_scatter(const ReductionArguments& arguments, const MPI_Count* recvcounts, const Way& way) {
  Communicator* communicator = nullptr;
  if (Error error = find_communicator(way.comm, &communicator); !error.ok()) return error;
  if (!is_address(recvcounts))
    return {MPI_ERR_ARG, "the array of counts is no address; give an element for each process"};
  return reduce_scatter_counts(arguments, {recvcounts, recvcounts + communicator->size()}, way);
}

Error call_reduce_scatter_block(const ReductionArguments& arguments, MPI_Count recvcount, const Way& way) {
  Communicator* communicator = nullptr;
  if (Error error = find_communicator(way.comm, &communicator); !error.ok()) return error;
  if (may_run_on_streams(way, *communicator)) {
    const auto prepare = [&](StreamCollective* on_stream) {
      return prepare_reduce_scatter_block(arguments.sendbuf, arguments.recvbuf, recvcount, arguments.type,
                                          arguments.operation, way.comm, on_stream);
    };
    if (const std::optional<Error> done = run_on_streams(*communicator, prepare)) return *done;
  }
  return reduce_scatter_counts(
      arguments, std::vector<MPI_Count>(static_cast<std::size_t>(communicator->size()), recvcount), way);
}

Error call_scan(const ReductionArguments& arguments, MPI_Count count, bool exclusive, const Way& way) {
  Communicator* communicator = nullptr;
  PreparedReduction made;
  if (Error error = find_intracommunicator(way.comm, &communicator); !error.ok()) return error;
  if (Error error = prepare_reduction(arguments, count, way.comm, &made); !error.ok()) return error;
  // The first process gets no result of an exclusive scan, so it may have no buffer for it.
  const bool gets = !exclusive || communicator->rank() > 0 || arguments.sendbuf == MPI_IN_PLACE;
  if (Error error = make_view(arguments.input(), count, arguments.type, &made.in); !error.ok()) return error;
  if (gets)
    if (Error error = make_view(arguments.recvbuf, count, arguments.type, &made.out); !error.ok())
      return error;
  if (gets && arguments.sendbuf != MPI_IN_PLACE)
    if (Error error = check_apart(made.in, made.out); !error.ok()) return error;
  const collective::Kind engine_kind = exclusive ? collective::Kind::kExclusiveScan : collective::Kind::kScan;
  if (can_reduce_at_once(way, made, engine_kind, made.out)) {
    if (!exclusive || communicator->rank() > 0) return reduce_at_once(made, engine_kind, 0, made.out.data);
    CallBlocks own(made.in.size_bytes);
    if (own.data() != nullptr) return reduce_at_once(made, engine_kind, 0, own.data());
  }
  const CollectiveContext context = next_collective_contexts(*communicator, way).local;
  const ReductionKind kind = exclusive ? ReductionKind::kExscan : ReductionKind::kScan;
  return run_collective(way, *communicator, compared_first(way, made, kind, 0, [=] {
                          return scan(context, made.what, exclusive, made.in, made.out);
                        }));
}

}  // namespace

}  // namespace weft::mpi

using namespace weft::mpi;  // NOLINT(google-build-using-namespace): the entry points are C functions

extern "C" {

int MPI_Reduce_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                 int root, MPI_Comm comm) {
  return guarded(__func__, comm, [&] {
    return call_reduce({sendbuf, recvbuf, datatype, op}, count, root, Way::waiting(comm));
  });
}

int MPI_Ireduce_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                  int root, MPI_Comm comm, MPI_Request* request) {
  return guarded(__func__, comm, [&] {
    return call_reduce({sendbuf, recvbuf, datatype, op}, count, root, Way::started(comm, request));
  });
}

int MPI_Reduce_init_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                      int root, MPI_Comm comm, MPI_Info, MPI_Request* request) {
  return guarded(__func__, comm, [&] {
    return call_reduce({sendbuf, recvbuf, datatype, op}, count, root, Way::persistent(comm, request));
  });
}

int MPI_Allreduce_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                    MPI_Comm comm) {
  return guarded(__func__, comm,
                 [&] { return call_allreduce({sendbuf, recvbuf, datatype, op}, count, Way::waiting(comm)); });
}

int MPI_Iallreduce_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                     MPI_Comm comm, MPI_Request* request) {
  return guarded(__func__, comm, [&] {
    return call_allreduce({sendbuf, recvbuf, datatype, op}, count, Way::started(comm, request));
  });
}

int MPI_Allreduce_init_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype,
                         MPI_Op op, MPI_Comm comm, MPI_Info, MPI_Request* request) {
  return guarded(__func__, comm, [&] {
    return call_allreduce({sendbuf, recvbuf, datatype, op}, count, Way::persistent(comm, request));
  });
}

int MPI_Reduce_scatter_c(const void* sendbuf, void* recvbuf, const MPI_Count recvcounts[],
                         MPI_Datatype datatype, MPI_Op op, MPI_Comm comm) {
  return guarded(__func__, comm, [&] {
    return call_reduce_scatter({sendbuf, recvbuf, datatype, op}, recvcounts, Way::waiting(comm));
  });
}

int MPI_Ireduce_scatter_c(const void* sendbuf, void* recvbuf, const MPI_Count recvcounts[],
                          MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Request* request) {
  return guarded(__func__, comm, [&] {
    return call_reduce_scatter({sendbuf, recvbuf, datatype, op}, recvcounts, Way::started(comm, request));
  });
}

int MPI_Reduce_scatter_init_c(const void* sendbuf, void* recvbuf, const MPI_Count recvcounts[],
                              MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Info,
                              MPI_Request* request) {
  return guarded(__func__, comm, [&] {
    return call_reduce_scatter({sendbuf, recvbuf, datatype, op}, recvcounts, Way::persistent(comm, request));
  });
}

int MPI_Reduce_scatter_block_c(const void* sendbuf, void* recvbuf, MPI_Count recvcount, MPI_Datatype datatype,
                               MPI_Op op, MPI_Comm comm) {
  return guarded(__func__, comm, [&] {
    return call_reduce_scatter_block({sendbuf, recvbuf, datatype, op}, recvcount, Way::waiting(comm));
  });
}

int MPI_Ireduce_scatter_block_c(const void* sendbuf, void* recvbuf, MPI_Count recvcount,
                                MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Request* request) {
  return guarded(__func__, comm, [&] {
    return call_reduce_scatter_block({sendbuf, recvbuf, datatype, op}, recvcount,
                                     Way::started(comm, request));
  });
}

int MPI_Reduce_scatter_block_init_c(const void* sendbuf, void* recvbuf, MPI_Count recvcount,
                                    MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, MPI_Info,
                                    MPI_Request* request) {
  return guarded(__func__, comm, [&] {
    return call_reduce_scatter_block({sendbuf, recvbuf, datatype, op}, recvcount,
                                     Way::persistent(comm, request));
  });
}

int MPI_Scan_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
               MPI_Comm comm) {
  return guarded(__func__, comm, [&] {
    return call_scan({sendbuf, recvbuf, datatype, op}, count, false, Way::waiting(comm));
  });
}

int MPI_Iscan_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                MPI_Comm comm, MPI_Request* request) {
  return guarded(__func__, comm, [&] {
    return call_scan({sendbuf, recvbuf, datatype, op}, count, false, Way::started(comm, request));
  });
}

int MPI_Scan_init_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                    MPI_Comm comm, MPI_Info, MPI_Request* request) {
  return guarded(__func__, comm, [&] {
    return call_scan({sendbuf, recvbuf, datatype, op}, count, false, Way::persistent(comm, request));
  });
}

int MPI_Exscan_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                 MPI_Comm comm) {
  return guarded(__func__, comm, [&] {
    return call_scan({sendbuf, recvbuf, datatype, op}, count, true, Way::waiting(comm));
  });
}

int MPI_Iexscan_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                  MPI_Comm comm, MPI_Request* request) {
  return guarded(__func__, comm, [&] {
    return call_scan({sendbuf, recvbuf, datatype, op}, count, true, Way::started(comm, request));
  });
}

int MPI_Exscan_init_c(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                      MPI_Comm comm, MPI_Info, MPI_Request* request) {
  return guarded(__func__, comm, [&] {
    return call_scan({sendbuf, recvbuf, datatype, op}, count, true, Way::persistent(comm, request));
  });
}

}  // extern "C"
