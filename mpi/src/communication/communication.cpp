#include "communication/communication.h"

#include "base/format.h"
#include "communication/status.h"
#include "entry/type_handles.h"
#include "memory/memory.h"
#include "models/mpi/collective/typed_view.h"
#include "models/mpi/datatype/datatype.h"
#include "models/mpi/objects/addresses.h"

namespace weft::mpi {

MPI_Comm handle_of_scope(ErrorScope* scope) {
  const Rank& rank = this_rank();
  if (scope == rank.world && scope != nullptr) return MPI_COMM_WORLD;
  if (scope == rank.self || scope == nullptr) return MPI_COMM_SELF;
  return handle_of<MPI_Comm>(scope);
}

Error check_running() {
  if (this_rank().process != nullptr) return {};
  return {MPI_ERR_OTHER, "MPI has not been started, or has ended; call it between MPI_Init and MPI_Finalize"};
}

Error find_communicator(MPI_Comm comm, Communicator** found) {
  *found = communicator_of(comm);
  if (*found != nullptr) [[likely]]
    return {};
  if (Error error = check_running(); !error.ok()) return error;
  if (comm == MPI_COMM_NULL) return {MPI_ERR_COMM, "the communicator is MPI_COMM_NULL; give a communicator"};
  return {MPI_ERR_COMM, "the handle is no communicator; has it been freed?"};
}

Error find_intracommunicator(MPI_Comm comm, Communicator** found) {
  if (Error error = find_communicator(comm, found); !error.ok()) return error;
  if (!(*found)->is_inter()) return {};
  return {MPI_ERR_COMM, "the communicator is an intercommunicator; give one with a single group"};
}

Error check_is_of_one_job(const Communicator& communicator, const char* what) {
  if (!communicator.has_outsiders()) return {};
  return {MPI_ERR_COMM,
          base::format("{} need processes of one job, and the communicator has processes of several", what)};
}

namespace {

// Makes the views that most calls want. False for all others, wrong ones too.
bool make_plain_view(const void* buffer, MPI_Count count, MPI_Datatype handle, DataView* view) {
  const std::size_t size_bytes = plain_bytes(buffer, count, handle);
  if (size_bytes == 0) return false;
  view->place = this_process().runtime().memory().place_of(buffer);
  view->data = static_cast<std::byte*>(const_cast<void*>(buffer));
  view->size_bytes = size_bytes;
  return true;
}

// `part`: computed from `buffer`.
[[gnu::noinline]] Error make_other_view(const void* buffer, const void* part, MPI_Count count,
                                        MPI_Datatype handle, DataView* view) {
  Datatype* type = nullptr;
  if (Error error = find_committed_type(handle, &type); !error.ok()) return error;
  if (Error error = check_count(count); !error.ok()) return error;
  const std::optional<MPI_Count> size = type->packed_size(count);
  if (!size)
    return {MPI_ERR_COUNT,
            base::format("{} elements of {} bytes have too many bytes", count, type->size_bytes())};
  view->size_bytes = static_cast<std::size_t>(*size);
  if (*size == 0) return {};
  auto* const start = static_cast<std::byte*>(const_cast<void*>(part));
  if (const std::optional<MPI_Count> offset = type->dense_offset(count)) {
    view->data = start + *offset;
  } else {
    view->data = start;
    view->count = count;
    view->layout = element_layout(*type);
  }
  const std::byte* const first = start + type->true_lower_bound();
  if (is_sentinel(buffer) || !is_address(first)) {
    return {MPI_ERR_BUFFER, base::format("the buffer of {} elements is {}; give their address", count,
                                         describe_sentinel(is_address(buffer) ? first : buffer))};
  }
  view->place = this_process().runtime().memory().place_of(first);
  return {};
}

}  // namespace

Error make_view(const void* buffer, MPI_Count count, MPI_Datatype handle, DataView* view) {
  if (make_plain_view(buffer, count, handle, view)) [[likely]]
    return {};
  return make_other_view(buffer, buffer, count, handle, view);
}

Error make_part_view(const void* buffer, const void* part, MPI_Count count, MPI_Datatype handle,
                     DataView* view) {
  if (is_address(buffer) && make_plain_view(part, count, handle, view)) [[likely]]
    return {};
  return make_other_view(buffer, part, count, handle, view);
}

namespace {

Error check_tag(int tag) {
  if (tag >= 0) [[likely]]
    return {};
  return {MPI_ERR_TAG, base::format("the tag is {}; give 0 or more", tag)};
}

Error wrong_rank(const Communicator& communicator, int rank) {
  return {MPI_ERR_RANK, base::format("rank {} does not exist; the ranks are 0 to {}, or MPI_PROC_NULL", rank,
                                     communicator.num_peers() - 1)};
}

}  // namespace

Error check_source(const Communicator& communicator, int source, int tag) {
  if (source != MPI_ANY_SOURCE && source != MPI_PROC_NULL && !communicator.has_peer(source))
    return wrong_rank(communicator, source);
  return tag == MPI_ANY_TAG ? Error() : check_tag(tag);
}

Error prepare(const void* buffer, MPI_Count count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
              SendCall* call) {
  if (Error error = find_communicator(comm, &call->communicator); !error.ok()) return error;
  if (Error error = check_tag(tag); !error.ok()) return error;
  call->no_process = dest == MPI_PROC_NULL;
  if (!call->no_process && !call->communicator->has_peer(dest)) return wrong_rank(*call->communicator, dest);
  if (call->no_process && is_nothing(count, type)) return {};
  if (Error error = make_view(buffer, count, type, &call->view); !error.ok()) return error;
  if (!call->view.place.is_host()) [[unlikely]]
    call->view.stream = call->communicator->stream;
  if (!call->no_process) call->address = call->communicator->address(dest, tag);
  return {};
}

Error prepare(void* buffer, MPI_Count count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
              ReceiveCall* call) {
  if (Error error = find_communicator(comm, &call->communicator); !error.ok()) return error;
  if (Error error = check_source(*call->communicator, source, tag); !error.ok()) return error;
  call->no_process = source == MPI_PROC_NULL;
  if (call->no_process && is_nothing(count, type)) return {};
  if (Error error = make_view(buffer, count, type, &call->view); !error.ok()) return error;
  if (!call->view.place.is_host()) [[unlikely]]
    call->view.stream = call->communicator->stream;
  if (!call->no_process) {
    if (source != MPI_ANY_SOURCE && !call->view.place.is_host())
      call->from = call->communicator->world_rank_of_peer(source);
    call->key =
        call->communicator->key(source == MPI_ANY_SOURCE ? kAny : source, tag == MPI_ANY_TAG ? kAny : tag);
  }
  return {};
}

Error no_place_for_request(const void* pointer) {
  return {MPI_ERR_ARG, base::format("the argument request is {}", describe_sentinel(pointer))};
}

Error error_of(const Outcome& outcome) {
  if (outcome.error == MPI_SUCCESS) [[likely]]
    return {};
  if (outcome.error == MPI_ERR_TRUNCATE) {
    return {
        MPI_ERR_TRUNCATE,
        base::format("the message from rank {} with tag {} is larger than the receive buffer of {} bytes; "
                     "give a larger buffer",
                     outcome.source, outcome.tag, outcome.size_bytes)};
  }
  return {outcome.error, {}};
}

void fill_status(const Outcome& outcome, MPI_Status& status) {
  status.MPI_SOURCE = outcome.source;
  status.MPI_TAG = outcome.tag;
  set_status_bytes(status, outcome.size_bytes);
  set_status_cancelled(status, outcome.cancelled);
}

}  // namespace weft::mpi
