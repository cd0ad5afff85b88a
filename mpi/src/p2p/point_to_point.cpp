// Sends, receives, and both at once. buffered_sends.cpp has the buffered ones, probes.cpp the probes.
#include <new>
#include <utility>
#include <vector>

#include "weft/mpi/mpi-ext.h"
#include "weft/mpi/mpi.h"

#include "collectives/device_copies.h"
#include "communication/communication.h"
#include "entry/entry.h"
#include "models/mpi/objects/addresses.h"
#include "models/mpi/p2p/point_to_point_requests.h"

namespace weft::mpi {

namespace {

struct Message {
  const void* buffer;
  MPI_Count count;
  MPI_Datatype type;
  int dest;
  int tag;
};
struct Room {
  void* buffer;
  MPI_Count count;
  MPI_Datatype type;
  int source;
  int tag;
};

Error prepare(const Message& message, MPI_Comm comm, SendCall* call) {
  return prepare(message.buffer, message.count, message.type, message.dest, message.tag, comm, call);
}
Error prepare(const Room& room, MPI_Comm comm, ReceiveCall* call) {
  return prepare(room.buffer, room.count, room.type, room.source, room.tag, comm, call);
}

Error send_now(const SendCall& call, SendMode mode) {
  if (mode == SendMode::kStandard && !call.communicator->has_troubles() &&
      call.engine().send_at_once(call.address, call.view))
    return {};
  const auto request = call.engine().send(call.address, call.view, mode);
  this_process().wait(*request);
  return error_of(request->outcome());
}

// Of a receive that has an error. The program has no request to wait for again.
[[gnu::cold, gnu::noinline]] Error end_failed_receive(ReceiveRequest& request, MPI_Status* status) {
  if (request.outcome().error == MPIX_ERR_PROC_FAILED_PENDING) {
    request.cancel();
    return {MPIX_ERR_PROC_FAILED, {}};
  }
  write_status(request.outcome(), status);
  return error_of(request.outcome());
}

Error end_receive(ReceiveRequest& request, MPI_Status* status) {
  this_process().wait(request);
  if (request.outcome().error != MPI_SUCCESS) [[unlikely]]
    return end_failed_receive(request, status);
  write_status(request.outcome(), status);
  return {};
}

Error blocking_send(const Message& message, MPI_Comm comm, SendMode mode) {
  SendCall call;
  if (Error error = prepare(message, comm, &call); !error.ok()) return error;
  return call.no_process ? Error() : send_now(call, mode);
}

Ref<Request> make_send(const SendCall& call, SendMode mode) {
  if (!call.no_process) return as_request(call.engine().make_send(call.address, call.view, mode));
  return as_request(
      Request::make<FinishedRequest>(call.engine().messenger(), Request::Type::kSend, Outcome()));
}

Ref<Request> make_receive(const ReceiveCall& call) {
  if (!call.no_process) return as_request(call.engine().make_receive(call.key, call.view, call.from));
  return as_request(Request::make<FinishedRequest>(call.engine().messenger(), Request::Type::kReceive,
                                                   Outcome::of_no_process()));
}

Error start_send(const Message& message, MPI_Comm comm, SendMode mode, MPI_Request* request,
                 bool persistent) {
  SendCall call;
  if (Error error = prepare(message, comm, &call); !error.ok()) return error;
  if (mode == SendMode::kStandard && !persistent && !call.no_process && !call.communicator->has_troubles() &&
      is_address(static_cast<const void*>(request)) && call.engine().send_at_once(call.address, call.view)) {
    *request = sent_request(call.engine());
    return {};
  }
  return give_request(make_send(call, mode), call.communicator, request, persistent);
}

int request_send(const char* function, const Message& message, MPI_Comm comm, SendMode mode,
                 MPI_Request* request, bool persistent = false) {
  return guarded(function, comm, [&] { return start_send(message, comm, mode, request, persistent); });
}

// MPI_Send and MPI_Rsend.
[[gnu::always_inline]] inline int standard_send(const char* function, const void* buffer, MPI_Count count,
                                                MPI_Datatype type, int dest, int tag, MPI_Comm comm) {
  return guarded(function, comm, [&]() -> Error {
    if (send_plain(buffer, count, type, dest, tag, comm) != nullptr) [[likely]]
      return {};
    return blocking_send({buffer, count, type, dest, tag}, comm, SendMode::kStandard);
  });
}

// MPI_Isend and MPI_Irsend.
[[gnu::always_inline]] inline int start_standard_send(const char* function, const void* buffer,
                                                      MPI_Count count, MPI_Datatype type, int dest, int tag,
                                                      MPI_Comm comm, MPI_Request* request) {
  return guarded(function, comm, [&]() -> Error {
    if (is_address(static_cast<const void*>(request))) [[likely]] {
      if (PointToPoint* const engine = send_plain(buffer, count, type, dest, tag, comm)) [[likely]] {
        *request = sent_request(*engine);
        return {};
      }
    }
    return start_send({buffer, count, type, dest, tag}, comm, SendMode::kStandard, request, false);
  });
}

Error start_receive(const Room& room, MPI_Comm comm, MPI_Request* request, bool persistent) {
  ReceiveCall call;
  if (Error error = prepare(room, comm, &call); !error.ok()) return error;
  return give_request(make_receive(call), call.communicator, request, persistent);
}

Error blocking_receive(const Room& room, MPI_Comm comm, MPI_Status* status) {
  ReceiveCall call;
  if (Error error = prepare(room, comm, &call); !error.ok()) return error;
  if (call.no_process) [[unlikely]] {
    write_status(Outcome::of_no_process(), status);
    return {};
  }
  return end_receive(*call.engine().receive(call.key, call.view, call.from), status);
}

// --- Both

// Calls `body(&send, receive)` if both calls are possible.
template <class Body>
int with_both(const char* function, const Message& message, const Room& room, MPI_Comm comm,
              const Body& body) {
  return guarded(function, comm, [&]() -> Error {
    SendCall send;
    ReceiveCall receive;
    if (Error error = prepare(message, comm, &send); !error.ok()) return error;
    if (Error error = prepare(room, comm, &receive); !error.ok()) return error;
    return body(&send, receive);
  });
}

// Replaces the view of the send by a packed copy of it, in host memory.
Error copy_sent(SendCall* send, std::vector<std::byte>* copy) {
  copy->resize(send->view.size_bytes);
  const DataView packed = DataView::of_bytes(copy->data(), copy->size());
  if (!send->view.place.is_host()) {
    if (Error error = copy_now(send->view, packed); !error.ok()) return error;
  } else if (!copy->empty()) {
    send->view.pack(copy->data());
  }
  send->view = packed;
  return {};
}

Error exchange_now(const SendCall& send, const ReceiveCall& receive, MPI_Status* status) {
  const Ref<Request> received = make_receive(receive);
  received->start();
  const Error sent = send.no_process ? Error() : send_now(send, SendMode::kStandard);
  this_process().wait(*received);
  write_status(received->outcome(), status);
  return sent.ok() ? error_of(received->outcome()) : sent;
}

// The request is complete when both are; its outcome is the receive's.
Error exchange_later(const SendCall& send, const ReceiveCall& receive,
                     std::shared_ptr<std::vector<std::byte>> copy, MPI_Comm comm, MPI_Request* request) {
  const Ref<Request> received = make_receive(receive);
  const Ref<Request> sent = make_send(send, SendMode::kStandard);
  runtime::Scheduler& scheduler = send.engine().messenger();
  const auto both = [received, sent, &scheduler,
                     kept = std::move(copy)](Outcome* outcome) -> runtime::Task<> {
    // The frame has the requests: the lambda lives as long as the request of both.
    received->start();
    sent->start();
    const Outcome end_of_send = co_await Completed(*sent, scheduler);
    *outcome = co_await Completed(*received, scheduler);
    if (outcome->error == MPI_SUCCESS) outcome->error = end_of_send.error;
  };
  return give_request(as_request(Request::make<CollectiveRequest>(scheduler, both)), communicator_of(comm),
                      request, false);
}

}  // namespace

}  // namespace weft::mpi

using namespace weft::mpi;  // NOLINT(google-build-using-namespace): the entry points are C functions

extern "C" {

int MPI_Send_c(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) {
  return standard_send(__func__, buf, count, datatype, dest, tag, comm);
}
int MPI_Ssend_c(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) {
  return guarded(__func__, comm, [&] {
    return blocking_send({buf, count, datatype, dest, tag}, comm, SendMode::kSynchronous);
  });
}
int MPI_Rsend_c(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) {
  return standard_send(__func__, buf, count, datatype, dest, tag, comm);
}

int MPI_Isend_c(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                MPI_Request* request) {
  return start_standard_send(__func__, buf, count, datatype, dest, tag, comm, request);
}
int MPI_Issend_c(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                 MPI_Request* request) {
  return request_send(__func__, {buf, count, datatype, dest, tag}, comm, SendMode::kSynchronous, request);
}
int MPI_Irsend_c(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                 MPI_Request* request) {
  return start_standard_send(__func__, buf, count, datatype, dest, tag, comm, request);
}

int MPI_Send_init_c(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                    MPI_Request* request) {
  return request_send(__func__, {buf, count, datatype, dest, tag}, comm, SendMode::kStandard, request, true);
}
int MPI_Ssend_init_c(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
                     MPI_Comm comm, MPI_Request* request) {
  return request_send(__func__, {buf, count, datatype, dest, tag}, comm, SendMode::kSynchronous, request,
                      true);
}
int MPI_Rsend_init_c(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
                     MPI_Comm comm, MPI_Request* request) {
  return request_send(__func__, {buf, count, datatype, dest, tag}, comm, SendMode::kStandard, request, true);
}

int MPI_Recv_c(void* buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
               MPI_Status* status) {
  return guarded(__func__, comm, [&]() -> Error {
    if (const auto request = receive_plain(buf, count, datatype, source, tag, comm)) [[likely]]
      return end_receive(*request, status);
    return blocking_receive({buf, count, datatype, source, tag}, comm, status);
  });
}
int MPI_Irecv_c(void* buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
                MPI_Request* request) {
  return guarded(__func__, comm, [&]() -> Error {
    if (is_address(static_cast<const void*>(request))) [[likely]] {
      if (auto started = receive_plain(buf, count, datatype, source, tag, comm)) [[likely]] {
        *request = make_handle<MPI_Request>(std::move(started));
        return {};
      }
    }
    return start_receive({buf, count, datatype, source, tag}, comm, request, false);
  });
}
int MPI_Recv_init_c(void* buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
                    MPI_Request* request) {
  return guarded(__func__, comm,
                 [&] { return start_receive({buf, count, datatype, source, tag}, comm, request, true); });
}

int MPI_Sendrecv_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest, int sendtag,
                   void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int source, int recvtag,
                   MPI_Comm comm, MPI_Status* status) {
  return with_both(
      __func__, {sendbuf, sendcount, sendtype, dest, sendtag},
      {recvbuf, recvcount, recvtype, source, recvtag}, comm,
      [&](SendCall* send, const ReceiveCall& receive) { return exchange_now(*send, receive, status); });
}
int MPI_Sendrecv_replace_c(void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int sendtag,
                           int source, int recvtag, MPI_Comm comm, MPI_Status* status) {
  return with_both(__func__, {buf, count, datatype, dest, sendtag}, {buf, count, datatype, source, recvtag},
                   comm, [&](SendCall* send, const ReceiveCall& receive) -> Error {
                     std::vector<std::byte> copy;
                     if (Error error = copy_sent(send, &copy); !error.ok()) return error;
                     return exchange_now(*send, receive, status);
                   });
}
int MPI_Isendrecv_c(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest, int sendtag,
                    void* recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int source, int recvtag,
                    MPI_Comm comm, MPI_Request* request) {
  return with_both(__func__, {sendbuf, sendcount, sendtype, dest, sendtag},
                   {recvbuf, recvcount, recvtype, source, recvtag}, comm,
                   [&](SendCall* send, const ReceiveCall& receive) {
                     return exchange_later(*send, receive, {}, comm, request);
                   });
}
int MPI_Isendrecv_replace_c(void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int sendtag,
                            int source, int recvtag, MPI_Comm comm, MPI_Request* request) {
  return with_both(__func__, {buf, count, datatype, dest, sendtag}, {buf, count, datatype, source, recvtag},
                   comm, [&](SendCall* send, const ReceiveCall& receive) -> Error {
                     auto copy = std::make_shared<std::vector<std::byte>>();
                     if (Error error = copy_sent(send, copy.get()); !error.ok()) return error;
                     return exchange_later(*send, receive, std::move(copy), comm, request);
                   });
}

}  // extern "C"
