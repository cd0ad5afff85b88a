#include "collectives/on_stream.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "weft/base/error.h"
#include "weft/memory/element_type.h"

#include "base/format.h"
#include "collectives/calls.h"
#include "communication/communication.h"
#include "entry/type_handles.h"
#include "memory/memory.h"
#include "models/mpi/datatype/checked.h"
#include "models/mpi/process.h"

namespace weft::mpi {

Error find_transfers(const Communicator& communicator, StreamTransfers** found) {
  *found = communicator.stream_transfers.get();
  if (*found != nullptr) return {};
  return {MPI_ERR_COMM, "the communicator has no stream; make one with MPIX_Stream_comm_create"};
}

Error check_view_for_stream(const StreamTransfers& transfers, const DataView& view) {
  if (!view.is_dense())
    return {MPI_ERR_TYPE, "the elements have gaps between their bytes; pack them before (MPI_Pack)"};
  const memory::Place device = transfers.stream().device();
  if (view.size_bytes == 0 || view.place == device) return {};
  return {MPI_ERR_BUFFER,
          base::format("the buffer is in memory of {}, and the stream is of {}; give memory of "
                       "the stream's device",
                       memory::place_name(view.place), memory::place_name(device))};
}

Error find_scope(MPI_Comm comm, StreamScope* scope) {
  if (Error error = find_intracommunicator(comm, &scope->communicator); !error.ok()) return error;
  if (Error error = find_transfers(*scope->communicator, &scope->transfers); !error.ok()) return error;
  if (scope->transfers->group()) return {};
  return {MPI_ERR_UNSUPPORTED_OPERATION, base::format("the communicator has no collectives on streams: {}",
                                                      scope->transfers->why_no_group())};
}

namespace {

using memory::ElementType;
using queued::DeviceGroup;
using runtime::Reducer;

// Elements without gaps in memory of the stream's device, in `parts` parts of `count` elements.
Error view_on_stream(const StreamScope& scope, const void* buffer, MPI_Count count, MPI_Count parts,
                     MPI_Datatype type, DataView* view) {
  if (Error error = check_count(count); !error.ok()) return error;
  const Wide all = static_cast<Wide>(count) * parts;
  if (!fits_count(all))
    return {MPI_ERR_COUNT, "the elements of all ranks do not fit 64 bits; give a smaller count"};
  if (Error error = make_view(buffer, static_cast<MPI_Count>(all), type, view); !error.ok()) return error;
  return check_view_for_stream(*scope.transfers, *view);
}

// --- Reductions

std::optional<ElementType> combined_type(const Datatype& type) {
  const BasicType* const basic = type.is_contiguous() ? type.only_basic() : nullptr;
  if (basic == nullptr) return std::nullopt;
  if (basic->kind == BasicKind::kInteger) {
    if (basic->number == Number::kInt32) return ElementType::kInt32;
    if (basic->number == Number::kInt64) return ElementType::kInt64;
  }
  if (basic->kind == BasicKind::kReal) {
    if (basic->number == Number::kHalf) return ElementType::kFloat16;
    if (basic->number == Number::kFloat) return ElementType::kFloat32;
    if (basic->number == Number::kDouble) return ElementType::kFloat64;
  }
  return std::nullopt;
}

std::optional<Reducer> reducer_of(MPI_Op operation) {
  if (operation == MPI_SUM) return Reducer::kSum;
  if (operation == MPI_PROD) return Reducer::kProduct;
  if (operation == MPI_MIN) return Reducer::kMin;
  if (operation == MPI_MAX) return Reducer::kMax;
  return std::nullopt;
}

struct StreamReduction {
  StreamScope scope;
  ElementType type = ElementType::kByte;
  Reducer reducer = Reducer::kSum;
  DataView in;
  DataView out;

  std::size_t num_elements() const { return in.size_bytes / size_of(type); }
};

Error find_rule(MPI_Datatype datatype, MPI_Op op, StreamReduction* made) {
  Datatype* type = nullptr;
  ReductionOperator* operation = nullptr;
  if (Error error = find_committed_type(datatype, &type); !error.ok()) return error;
  if (Error error = find_operation(op, &operation); !error.ok()) return error;
  const std::optional<Reducer> reducer = reducer_of(op);
  if (!reducer)
    return {MPI_ERR_OP, "streams combine by MPI_SUM, MPI_PROD, MPI_MIN and MPI_MAX; give one of them"};
  const std::optional<ElementType> element = combined_type(*type);
  if (!element) {
    return {MPI_ERR_TYPE,
            "streams combine MPI_INT32_T, MPI_INT64_T, MPI_REAL2, MPI_FLOAT, MPI_DOUBLE, and types that are "
            "the same in memory (MPI_INT, MPI_LONG, MPI_LONG_LONG, ...); give one of them"};
  }
  made->type = *element;
  made->reducer = *reducer;
  return operation->check(*type);
}

// `in_parts`: how many times `count` elements the input has. The output has `count`, if the rank gets it.
Error prepare_on_stream(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Count in_parts, bool gets,
                        MPI_Datatype type, StreamReduction* made) {
  const bool is_in_place = sendbuf == MPI_IN_PLACE;
  const void* const input = is_in_place ? recvbuf : sendbuf;
  if (Error error = view_on_stream(made->scope, input, count, in_parts, type, &made->in); !error.ok())
    return error;
  if (!gets) return {};
  if (Error error = view_on_stream(made->scope, recvbuf, count, 1, type, &made->out); !error.ok())
    return error;
  return is_in_place ? Error() : check_apart(made->in, made->out);
}

}  // namespace

Error prepare_allreduce(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype type, MPI_Op op,
                        MPI_Comm comm, StreamCollective* collective) {
  StreamReduction made;
  if (Error error = find_scope(comm, &made.scope); !error.ok()) return error;
  if (Error error = find_rule(type, op, &made); !error.ok()) return error;
  if (Error error = prepare_on_stream(sendbuf, recvbuf, count, 1, true, type, &made); !error.ok())
    return error;
  *collective = {made.scope, [=](const DeviceGroup& group, memory::StreamHandle stream) {
                   group.all_reduce(made.in.data, made.out.data, made.num_elements(), made.type, made.reducer,
                                    stream);
                 }};
  return {};
}

Error prepare_reduce(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype type, MPI_Op op,
                     int root, MPI_Comm comm, StreamCollective* collective) {
  StreamReduction made;
  if (Error error = find_scope(comm, &made.scope); !error.ok()) return error;
  if (Error error = check_root(*made.scope.communicator, root); !error.ok()) return error;
  if (Error error = find_rule(type, op, &made); !error.ok()) return error;
  const bool is_root = made.scope.is_root(root);
  if (!is_root && sendbuf == MPI_IN_PLACE)
    return {MPI_ERR_BUFFER, "MPI_IN_PLACE is for the root; give a send buffer"};
  if (Error error = prepare_on_stream(sendbuf, recvbuf, count, 1, is_root, type, &made); !error.ok())
    return error;
  *collective = {made.scope, [=](const DeviceGroup& group, memory::StreamHandle stream) {
                   group.reduce(made.in.data, made.out.data, made.num_elements(), made.type, made.reducer,
                                root, stream);
                 }};
  return {};
}

// `count`: of each rank's result.
Error prepare_reduce_scatter_block(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype type,
                                   MPI_Op op, MPI_Comm comm, StreamCollective* collective) {
  StreamReduction made;
  if (Error error = find_scope(comm, &made.scope); !error.ok()) return error;
  if (Error error = find_rule(type, op, &made); !error.ok()) return error;
  const MPI_Count num_ranks = made.scope.num_ranks();
  if (Error error = prepare_on_stream(sendbuf, recvbuf, count, num_ranks, true, type, &made); !error.ok())
    return error;
  *collective = {made.scope, [=](const DeviceGroup& group, memory::StreamHandle stream) {
                   group.reduce_scatter(made.in.data, made.out.data, made.num_elements(), made.type,
                                        made.reducer, stream);
                 }};
  return {};
}

// --- Moving data

namespace {

// The size of the smallest basic element; the same on all ranks, because their signatures are. 0: there is none.
std::size_t smallest_basic(const Signature& signature) {
  std::size_t smallest = 0;
  for (const Signature::Piece& piece : signature.pieces) {
    const std::size_t size = piece.basic != nullptr ? piece.basic->size : smallest_basic(*piece.nested);
    if (smallest == 0 || size < smallest) smallest = size;
  }
  return smallest;
}

}  // namespace

// Words take a faster way than bytes.
Error prepare_bcast(const void* buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm,
                    StreamCollective* collective) {
  StreamScope scope;
  Datatype* type = nullptr;
  DataView view;
  if (Error error = find_scope(comm, &scope); !error.ok()) return error;
  if (Error error = check_root(*scope.communicator, root); !error.ok()) return error;
  if (Error error = find_committed_type(datatype, &type); !error.ok()) return error;
  if (Error error = view_on_stream(scope, buffer, count, 1, datatype, &view); !error.ok()) return error;
  const bool has_words = smallest_basic(type->signature()) >= size_of(ElementType::kInt32);
  const ElementType moved = has_words ? ElementType::kInt32 : ElementType::kByte;
  *collective = {scope, [=](const DeviceGroup& group, memory::StreamHandle stream) {
                   group.broadcast(view.data, view.size_bytes / size_of(moved), moved, root, stream);
                 }};
  return {};
}

namespace {

struct StreamMove {
  StreamScope scope;
  DataView in;
  DataView out;
};

// `in_parts`: how many parts the input has. The output has one of each rank.
Error prepare_on_stream(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, MPI_Count in_parts,
                        const void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, StreamMove* made) {
  const MPI_Count num_ranks = made->scope.num_ranks();
  if (Error error = view_on_stream(made->scope, recvbuf, recvcount, num_ranks, recvtype, &made->out);
      !error.ok())
    return error;
  if (sendbuf == MPI_IN_PLACE) return {};
  if (Error error = view_on_stream(made->scope, sendbuf, sendcount, in_parts, sendtype, &made->in);
      !error.ok())
    return error;
  const std::size_t sent = made->in.size_bytes / static_cast<std::size_t>(in_parts);
  const std::size_t received = made->out.size_bytes / static_cast<std::size_t>(num_ranks);
  if (sent != received) {
    return {MPI_ERR_TRUNCATE,
            base::format("a rank sends {} bytes and receives {} bytes of each; give equal sizes", sent,
                         received)};
  }
  return check_apart(made->in, made->out);
}

}  // namespace

Error prepare_allgather(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, const void* recvbuf,
                        MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm,
                        StreamCollective* collective) {
  StreamMove made;
  if (Error error = find_scope(comm, &made.scope); !error.ok()) return error;
  if (Error error = prepare_on_stream(sendbuf, sendcount, sendtype, 1, recvbuf, recvcount, recvtype, &made);
      !error.ok())
    return error;
  const std::size_t part = made.out.size_bytes / static_cast<std::size_t>(made.scope.num_ranks());
  const std::size_t own_begin = part * static_cast<std::size_t>(made.scope.communicator->rank());
  const std::byte* const in = sendbuf == MPI_IN_PLACE ? made.out.data + own_begin : made.in.data;
  *collective = {made.scope, [=](const DeviceGroup& group, memory::StreamHandle stream) {
                   group.all_gather(in, made.out.data, part, ElementType::kByte, stream);
                 }};
  return {};
}

Error prepare_alltoall(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, const void* recvbuf,
                       MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm,
                       StreamCollective* collective) {
  StreamMove made;
  if (Error error = find_scope(comm, &made.scope); !error.ok()) return error;
  if (Error error = prepare_on_stream(sendbuf, sendcount, sendtype, made.scope.num_ranks(), recvbuf,
                                      recvcount, recvtype, &made);
      !error.ok())
    return error;
  const std::byte* const in = sendbuf == MPI_IN_PLACE ? made.out.data : made.in.data;
  *collective = {made.scope, [=](const DeviceGroup& group, memory::StreamHandle stream) {
                   group.all_to_all(in, made.out.data, made.out.size_bytes, ElementType::kByte, stream);
                 }};
  return {};
}

// --- Queueing

// What a group refuses after the checks here is an address, or the end of an allocation.
Error queue_collective(const StreamCollective& collective) {
  StreamTransfers& transfers = *collective.scope.transfers;
  if (Error error = outcome_on_stream([&] { transfers.queue_all(); }); !error.ok()) return error;
  try {
    collective.queue(transfers.group(), transfers.stream().handle());
    return {};
  } catch (const base::Error& error) {
    const bool is_buffer =
        error.code() == base::StatusCode::kInvalidArgument || error.code() == base::StatusCode::kOutOfRange;
    return {is_buffer ? MPI_ERR_BUFFER : MPI_ERR_OTHER, error.what()};
  }
}

// Ranks may pass other memory than the others, and types with gaps, so they ask each other.
std::optional<Error> run_if_all_can(Communicator& communicator, bool can,
                                    const StreamCollective& collective) {
  const std::byte mine{can ? std::uint8_t{1} : std::uint8_t{0}};
  std::vector<std::byte> all;
  try {
    all = this_process().run(
        allgather_bytes(communicator.next_collective_contexts().local, std::span(&mine, 1)));
  } catch (const TransferFailed& failure) {
    return Error(failure.error_class(), failure.what());
  }
  if (std::ranges::find(all, std::byte{0}) != all.end()) return std::nullopt;
  if (Error error = queue_collective(collective); !error.ok()) return error;
  return outcome_on_stream([&] { this_process().run(collective.scope.transfers->stream().over()); });
}

}  // namespace weft::mpi
