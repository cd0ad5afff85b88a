// Partitioned messages: the calls that make their requests, and those for single partitions.
#include <limits>
#include <utility>

#include "weft/mpi/mpi.h"

#include "base/format.h"
#include "communication/communication.h"
#include "entry/entry.h"
#include "entry/objects.h"
#include "models/mpi/partitioned/partitioned_request.h"

namespace weft::mpi {

namespace {

struct PartitionedArguments {
  const void* buffer;
  int partitions;
  MPI_Count count;
  MPI_Datatype type;
  int peer;
  int tag;
  MPI_Comm comm;
  MPI_Info info;
};

Error count_elements(const PartitionedArguments& arguments, MPI_Count* count) {
  if (arguments.partitions < 0) return {MPI_ERR_ARG, "the number of partitions is negative"};
  if (Error error = check_count(arguments.count); !error.ok()) return error;
  if (arguments.count != 0 &&
      arguments.partitions > std::numeric_limits<MPI_Count>::max() / arguments.count) {
    return {MPI_ERR_COUNT, base::format("{} partitions of {} elements have too many elements",
                                        arguments.partitions, arguments.count)};
  }
  *count = arguments.partitions * arguments.count;
  return {};
}

// Wildcards are wrong at both ends, so a receive is checked as a send is.
Error prepare(const PartitionedArguments& arguments, SendCall* call, PartitionedCall* partitioned) {
  MPI_Count count = 0;
  Info* hints = nullptr;
  if (Error error = count_elements(arguments, &count); !error.ok()) return error;
  if (Error error = find_optional(arguments.info, &hints); !error.ok()) return error;
  if (Error error = prepare(arguments.buffer, count, arguments.type, arguments.peer, arguments.tag,
                            arguments.comm, call);
      !error.ok())
    return error;
  const Communicator& communicator = *call->communicator;
  *partitioned = {.engine = &call->engine(),
                  .context = context_of(communicator.context(), ContextUse::kPartitioned),
                  .rank = communicator.rank(),
                  .peer = arguments.peer,
                  .world_peer = call->address.rank,
                  .tag = arguments.tag,
                  .no_process = call->no_process,
                  .view = call->view,
                  .num_partitions = arguments.partitions};
  if (call->view.is_dense()) return {};
  Datatype* type = nullptr;
  if (Error error = find_committed_type(arguments.type, &type); !error.ok()) return error;
  partitioned->extent_bytes = type->extent();
  return {};
}

template <class PartitionedEnd>
int make_partitioned(const char* function, const PartitionedArguments& arguments, MPI_Request* request) {
  return guarded(function, arguments.comm, [&]() -> Error {
    SendCall call;
    PartitionedCall partitioned;
    if (Error error = prepare(arguments, &call, &partitioned); !error.ok()) return error;
    auto made = Request::make<PartitionedEnd>(call.engine().messenger(), std::move(partitioned));
    PartitionedEnd& end = *made;
    if (Error error = give_request(as_request(std::move(made)), call.communicator, request, true);
        !error.ok())
      return error;
    end.find_peer();
    return {};
  });
}

enum class PartitionedKind { kSend, kReceive };

Error find_partitioned(MPI_Request handle, PartitionedKind kind, PartitionedRequest** found) {
  const bool is_send = kind == PartitionedKind::kSend;
  auto* const request = object_of<Request>(handle, ObjectKind::kRequest);
  if (request != nullptr && request->type() == Request::Type::kPartitioned) {
    *found = static_cast<PartitionedRequest*>(request);
    if ((*found)->is_send() == is_send) return check_running();
  }
  if (is_send) return {MPI_ERR_REQUEST, "the handle is no partitioned send; MPI_Psend_init makes them"};
  return {MPI_ERR_REQUEST, "the handle is no partitioned receive; MPI_Precv_init makes them"};
}

Error check_partition(const PartitionedRequest& request, int partition) {
  if (partition >= 0 && partition < request.num_partitions()) return {};
  return {MPI_ERR_ARG, base::format("partition {} does not exist; the request has {}", partition,
                                    request.num_partitions())};
}

// Runs `body(request)`. Its error belongs to the communicator of the request.
template <class Body>
int with_partitioned(const char* function, MPI_Request handle, PartitionedKind kind, const Body& body) {
  const LibraryRuns library;  // until the reference has gone
  Ref<ErrorScope> scope;
  const Error error = outcome_of(function, [&]() -> Error {
    PartitionedRequest* request = nullptr;
    if (Error error = find_partitioned(handle, kind, &request); !error.ok()) return error;
    scope = request->scope();
    return body(*request);
  });
  return error.ok() ? MPI_SUCCESS : raise(function, handle_of_scope(scope.get()), error);
}

// Partition number i is partition_at(i). Nothing happens if one of them does not exist.
template <class PartitionAt>
Error make_ready(PartitionedRequest& request, int count, const PartitionAt& partition_at) {
  if (!request.is_active())
    return {MPI_ERR_REQUEST, "the partitioned send is not active; start it with MPI_Start"};
  for (int i = 0; i < count; ++i)
    if (Error error = check_partition(request, partition_at(i)); !error.ok()) return error;
  if (request.is_for_no_process()) return {};
  for (int i = 0; i < count; ++i) {
    const int partition = partition_at(i);
    if (request.is_ready(partition))
      return {MPI_ERR_ARG,
              base::format("partition {} is ready already; make it ready once after each start", partition)};
    request.make_ready(partition);
  }
  return {};
}

}  // namespace

}  // namespace weft::mpi

using namespace weft::mpi;  // NOLINT(google-build-using-namespace): the entry points are C functions

extern "C" {

int MPI_Psend_init(const void* buf, int partitions, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
                   MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return make_partitioned<PartitionedSend>(
      __func__, {buf, partitions, count, datatype, dest, tag, comm, info}, request);
}
int MPI_Precv_init(void* buf, int partitions, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
                   MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return make_partitioned<PartitionedReceive>(
      __func__, {buf, partitions, count, datatype, dest, tag, comm, info}, request);
}

int MPI_Pready(int partition, MPI_Request request) {
  return with_partitioned(__func__, request, PartitionedKind::kSend, [&](PartitionedRequest& found) {
    return make_ready(found, 1, [partition](int) { return partition; });
  });
}
int MPI_Pready_range(int partition_low, int partition_high, MPI_Request request) {
  return with_partitioned(__func__, request, PartitionedKind::kSend, [&](PartitionedRequest& found) -> Error {
    if (partition_low > partition_high) return {MPI_ERR_ARG, "partition_low is larger than partition_high"};
    for (const int partition : {partition_low, partition_high})
      if (Error error = check_partition(found, partition); !error.ok()) return error;
    return make_ready(found, partition_high - partition_low + 1, [&](int i) { return partition_low + i; });
  });
}
int MPI_Pready_list(int length, const int array_of_partitions[], MPI_Request request) {
  return with_partitioned(__func__, request, PartitionedKind::kSend, [&](PartitionedRequest& found) -> Error {
    if (length < 0) return {MPI_ERR_ARG, "the number of partitions is negative"};
    if (length > 0)
      if (Error error = require({{array_of_partitions, "array_of_partitions"}}); !error.ok()) return error;
    return make_ready(found, length, [&](int i) { return array_of_partitions[i]; });
  });
}

int MPI_Parrived(MPI_Request request, int partition, int* flag) {
  return with_partitioned(__func__, request, PartitionedKind::kReceive,
                          [&](PartitionedRequest& found) -> Error {
                            if (Error error = require({{flag, "flag"}}); !error.ok()) return error;
                            if (Error error = check_partition(found, partition); !error.ok()) return error;
                            if (!found.has_arrived(partition)) this_process().progress();
                            *flag = found.has_arrived(partition) ? 1 : 0;
                            return {};
                          });
}

}  // extern "C"
