// Messages that are queued on the stream of a communicator.
#include <cstdint>
#include <span>

#include "weft/mpi/mpi.h"
#include "weft/mpi/weft_mpi_stream.h"

#include "base/format.h"
#include "collectives/on_stream.h"
#include "communication/communication.h"
#include "communication/status.h"
#include "entry/entry.h"
#include "models/mpi/objects/addresses.h"
#include "models/mpi/stream/stream_request.h"
#include "models/mpi/stream/stream_transfers.h"
#include "streams/stream_communicators.h"

namespace weft::mpi {

namespace {

using StreamMessage = StreamTransfers::Message;

// What a message on a stream has beyond the arguments of a send or receive that are checked.
Error check_for_stream(const Communicator& communicator, const DataView& view, int tag,
                       StreamMessage* message) {
  StreamTransfers* transfers = nullptr;
  if (Error error = find_transfers(communicator, &transfers); !error.ok()) return error;
  if (Error error = check_view_for_stream(*transfers, view); !error.ok()) return error;
  message->buffer = {view.data, view.size_bytes, transfers->stream().device(), nullptr};
  message->label = static_cast<std::uint32_t>(tag) + 1;
  return {};
}

struct StreamSend {
  Communicator* communicator = nullptr;
  StreamMessage message;
};
struct StreamReceive {
  Communicator* communicator = nullptr;
  StreamMessage message;
  Outcome outcome = Outcome::of_no_process();  // of the receive when it is over
};

Error prepare_on_stream(const void* buffer, MPI_Count count, MPI_Datatype type, int dest, int tag,
                        MPI_Comm comm, StreamSend* made) {
  SendCall call;
  if (Error error = prepare(buffer, count, type, dest, tag, comm, &call); !error.ok()) return error;
  made->communicator = call.communicator;
  return check_for_stream(*call.communicator, call.no_process ? DataView() : call.view, tag, &made->message);
}

Error prepare_on_stream(void* buffer, MPI_Count count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
                        StreamReceive* made) {
  ReceiveCall call;
  if (Error error = prepare(buffer, count, type, source, tag, comm, &call); !error.ok()) return error;
  made->communicator = call.communicator;
  if (Error error =
          check_for_stream(*call.communicator, call.no_process ? DataView() : call.view, tag, &made->message);
      !error.ok() || call.no_process)
    return error;
  constexpr const char* kWhy = "streams match messages in the order of the calls";
  if (source == MPI_ANY_SOURCE)
    return {MPI_ERR_RANK, base::format("the source is MPI_ANY_SOURCE, and {}; name the source", kWhy)};
  if (tag == MPI_ANY_TAG)
    return {MPI_ERR_TAG, base::format("the tag is MPI_ANY_TAG, and {}; name the tag", kWhy)};
  made->outcome = {
      .source = source, .tag = tag, .size_bytes = static_cast<std::int64_t>(made->message.buffer.size_bytes)};
  return {};
}

MPI_Request make_stream_request(Communicator& communicator, const Outcome& outcome, StartedReceive receive) {
  return make_handle<MPI_Request>(
      Ref<StreamRequest>::adopt(new StreamRequest(Ref<Communicator>(communicator), outcome, receive)));
}

// --- Waiting

StreamRequest* stream_request_of(MPI_Request handle) {
  return object_of<StreamRequest>(handle, ObjectKind::kStreamRequest);
}

Error check_stream_requests(std::span<const MPI_Request> requests) {
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (requests[i] == MPI_REQUEST_NULL || stream_request_of(requests[i]) != nullptr) continue;
    return {MPI_ERR_REQUEST,
            base::format("request {} is none of MPIX_Isend_enqueue or MPIX_Irecv_enqueue", i)};
  }
  return {};
}

// Null: of a request that is null, or of a communicator that has been freed, which has queued all.
StreamTransfers* transfers_of(MPI_Request handle) {
  const StreamRequest* const request = stream_request_of(handle);
  return request == nullptr ? nullptr : request->communicator().stream_transfers.get();
}

// Of several communicators, those come first that the requests name first.
void queue_all(std::span<const MPI_Request> requests) {
  for (const MPI_Request one : requests) {
    if (StreamTransfers* const transfers = transfers_of(one))
      transfers->want(stream_request_of(one)->receive());
  }
  for (const MPI_Request one : requests) {
    if (StreamTransfers* const transfers = transfers_of(one)) transfers->queue_wanted();
  }
}

void finish_on_stream(MPI_Request* handle, MPI_Status* status) {
  StreamRequest* const request = stream_request_of(*handle);
  if (request == nullptr) {
    if (is_address(status)) set_status_empty(*status);
    return;
  }
  write_status(request->outcome(), status);
  request->release();
  *handle = MPI_REQUEST_NULL;
}

Error wait_for_all(std::span<MPI_Request> requests, MPI_Status* statuses) {
  if (Error error = outcome_on_stream([&] { queue_all(requests); }); !error.ok()) return error;
  for (std::size_t i = 0; i < requests.size(); ++i)
    finish_on_stream(&requests[i], is_address(statuses) ? statuses + i : MPI_STATUS_IGNORE);
  return {};
}

// Errors belong to the communicator of the first request.
int wait_on_stream(const char* function, int count, MPI_Request* requests, MPI_Status* statuses) {
  MPI_Comm comm = MPI_COMM_SELF;
  const Error error = outcome_of(function, [&]() -> Error {
    if (count < 0) return {MPI_ERR_COUNT, "the number of requests is negative"};
    if (count == 0) return {};
    if (Error pointer = require({{requests, "array_of_requests"}}); !pointer.ok()) return pointer;
    const std::span all(requests, static_cast<std::size_t>(count));
    for (const MPI_Request one : all) {
      if (const StreamRequest* const request = stream_request_of(one); request != nullptr) {
        comm = handle_of_scope(&request->communicator());
        break;
      }
    }
    if (Error wrong = check_stream_requests(all); !wrong.ok()) return wrong;
    if (Error ended = check_running(); !ended.ok()) return ended;
    return wait_for_all(all, statuses);
  });
  return error.ok() ? MPI_SUCCESS : raise(function, comm, error);
}

}  // namespace

}  // namespace weft::mpi

using namespace weft::mpi;  // NOLINT(google-build-using-namespace): the entry points are C functions

extern "C" {

int MPIX_Send_enqueue_c(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
                        MPI_Comm comm) {
  return guarded(__func__, comm, [&]() -> Error {
    StreamSend send;
    Error error = prepare_on_stream(buf, count, datatype, dest, tag, comm, &send);
    if (!error.ok() || dest == MPI_PROC_NULL) return error;
    return outcome_on_stream([&] { send.communicator->stream_transfers->send(dest, send.message); });
  });
}
int MPIX_Send_enqueue(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) {
  return MPIX_Send_enqueue_c(buf, count, datatype, dest, tag, comm);
}

int MPIX_Recv_enqueue_c(void* buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
                        MPI_Status* status) {
  return guarded(__func__, comm, [&]() -> Error {
    StreamReceive receive;
    Error error = prepare_on_stream(buf, count, datatype, source, tag, comm, &receive);
    if (error.ok() && source != MPI_PROC_NULL)
      error = outcome_on_stream(
          [&] { receive.communicator->stream_transfers->receive(source, receive.message); });
    if (error.ok()) write_status(receive.outcome, status);
    return error;
  });
}
int MPIX_Recv_enqueue(void* buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
                      MPI_Status* status) {
  return MPIX_Recv_enqueue_c(buf, count, datatype, source, tag, comm, status);
}

int MPIX_Isend_enqueue_c(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
                         MPI_Comm comm, MPI_Request* request) {
  return guarded(__func__, comm, [&]() -> Error {
    StreamSend send;
    if (Error error = require({{request, "request"}}); !error.ok()) return error;
    if (Error error = prepare_on_stream(buf, count, datatype, dest, tag, comm, &send); !error.ok())
      return error;
    *request = make_stream_request(*send.communicator, Outcome(), {});
    if (dest != MPI_PROC_NULL) send.communicator->stream_transfers->start_send(dest, send.message);
    return {};
  });
}
int MPIX_Isend_enqueue(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                       MPI_Request* request) {
  return MPIX_Isend_enqueue_c(buf, count, datatype, dest, tag, comm, request);
}

int MPIX_Irecv_enqueue_c(void* buf, MPI_Count count, MPI_Datatype datatype, int source, int tag,
                         MPI_Comm comm, MPI_Request* request) {
  return guarded(__func__, comm, [&]() -> Error {
    StreamReceive receive;
    if (Error error = require({{request, "request"}}); !error.ok()) return error;
    if (Error error = prepare_on_stream(buf, count, datatype, source, tag, comm, &receive); !error.ok())
      return error;
    StartedReceive started;
    if (source != MPI_PROC_NULL)
      started = receive.communicator->stream_transfers->start_receive(source, receive.message);
    *request = make_stream_request(*receive.communicator, receive.outcome, started);
    return {};
  });
}
int MPIX_Irecv_enqueue(void* buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
                       MPI_Request* request) {
  return MPIX_Irecv_enqueue_c(buf, count, datatype, source, tag, comm, request);
}

int MPIX_Wait_enqueue(MPI_Request* request, MPI_Status* status) {
  return wait_on_stream(__func__, 1, request, status);
}
int MPIX_Waitall_enqueue(int count, MPI_Request array_of_requests[], MPI_Status array_of_statuses[]) {
  return wait_on_stream(__func__, count, array_of_requests, array_of_statuses);
}

}  // extern "C"
