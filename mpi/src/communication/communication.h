// The common part of entry points that communicate: it converts the program's arguments to the model's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <new>
#include <span>
#include <utility>

#include "weft/mpi/mpi.h"

#include "entry/entry.h"
#include "entry/handles.h"
#include "entry/type_handles.h"
#include "memory/memory.h"
#include "models/mpi/communicators/communicator.h"
#include "models/mpi/objects/addresses.h"
#include "models/mpi/objects/error.h"
#include "models/mpi/p2p/data_view.h"
#include "models/mpi/p2p/point_to_point_requests.h"
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
// Errors: MPI_ERR_COMM for a communicator with processes of other jobs, which `what` cannot have.
Error check_is_of_one_job(const Communicator& communicator, const char* what);
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

// --- The arguments of most calls: elements without gaps in host memory, and a peer that is a process, or MPI_ANY_SOURCE. Each answers
// with one test for all others, wrong ones too; prepare() then finds out which they are.

// The bytes of `count` elements; 0 for all but elements without gaps at an address.
inline std::size_t plain_bytes(const void* buffer, MPI_Count count, MPI_Datatype handle) {
  const Datatype* const type = datatype_of(handle);
  // So many elements of Datatype::plain_bytes() are multiplied without a check for overflow.
  constexpr auto kMostElements = std::uint64_t{1} << 31;
  if (type == nullptr || static_cast<std::uint64_t>(count) >= kMostElements || !is_address(buffer)) return 0;
  return static_cast<std::size_t>(count * type->plain_bytes());
}
inline bool is_in_host_memory(PointToPoint& engine, const void* buffer) {
  return engine.messenger().memory().place_of(buffer).is_host();
}

// Sends a small message at once. Returns the engine that has sent it; null if nothing has been done.
inline PointToPoint* send_plain(const void* buffer, MPI_Count count, MPI_Datatype type, int dest, int tag,
                                MPI_Comm comm) {
  Communicator* const communicator = communicator_of(comm);
  const std::size_t size_bytes = plain_bytes(buffer, count, type);
  if (communicator == nullptr || tag < 0 || !communicator->can_reach(dest) || size_bytes == 0 ||
      size_bytes > PointToPoint::kEagerBytes)
    return nullptr;
  PointToPoint& engine = communicator->engine();
  if (!is_in_host_memory(engine, buffer)) [[unlikely]]
    return nullptr;
  const std::span bytes(static_cast<const std::byte*>(buffer), size_bytes);
  return engine.send_bytes_at_once(communicator->address(dest, tag), bytes) ? &engine : nullptr;
}

// Starts a receive. Null if nothing has been done.
inline Ref<ReceiveRequest> receive_plain(void* buffer, MPI_Count count, MPI_Datatype type, int source,
                                         int tag, MPI_Comm comm) {
  Communicator* const communicator = communicator_of(comm);
  const std::size_t size_bytes = plain_bytes(buffer, count, type);
  if (communicator == nullptr || (tag < 0 && tag != MPI_ANY_TAG) ||
      (!communicator->can_reach(source) && (source != MPI_ANY_SOURCE || communicator->has_troubles())) ||
      size_bytes == 0)
    return nullptr;
  PointToPoint& engine = communicator->engine();
  if (!is_in_host_memory(engine, buffer)) [[unlikely]]
    return nullptr;
  static_assert(MPI_ANY_SOURCE == kAny && MPI_ANY_TAG < kAny);
  const MatchKey key = communicator->key(source, tag < 0 ? kAny : tag);
  Ref<ReceiveRequest> request =
      engine.receive_bytes(key, std::span(static_cast<std::byte*>(buffer), size_bytes));
  request->set_scope(*communicator);
  return request;
}

// The source and the tag of a receive or a probe.
Error check_source(const Communicator& communicator, int source, int tag);

// MPI_ERR_ARG, for a pointer that is no address of a request.
Error no_place_for_request(const void* pointer);
// Gives the program the request, started unless it is persistent. `communicator` may be null.
inline Error give_request(Ref<Request> request, Communicator* communicator, MPI_Request* handle,
                          bool persistent) {
  if (!is_address(static_cast<const void*>(handle))) [[unlikely]]
    return no_place_for_request(static_cast<const void*>(handle));
  if (communicator != nullptr) request->set_scope(*communicator);
  if (persistent) {
    request->make_persistent();
  } else if (!request->is_active()) {
    request->start();
  }
  *handle = make_handle<MPI_Request>(std::move(request));
  return {};
}

// The request of a send, or another operation without an outcome, that is over. Without memory for one it is as good to have none: there is nothing to wait for.
inline MPI_Request sent_request(PointToPoint& engine) {
  try {
    return handle_of<MPI_Request>(engine.sent_request());
  } catch (const std::bad_alloc&) {
    return MPI_REQUEST_NULL;
  }
}

// The error that an outcome tells.
Error error_of(const Outcome& outcome);
void fill_status(const Outcome& outcome, MPI_Status& status);
// `status` may be MPI_STATUS_IGNORE.
inline void write_status(const Outcome& outcome, MPI_Status* status) {
  if (is_address(status)) fill_status(outcome, *status);
}

}  // namespace weft::mpi
