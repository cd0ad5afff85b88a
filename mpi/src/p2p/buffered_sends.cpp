// Buffered sends, and the buffers that programs attach for them.
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "weft/mpi/mpi.h"

#include "base/format.h"
#include "collectives/device_copies.h"
#include "communication/communication.h"
#include "communication/session.h"
#include "entry/entry.h"
#include "memory/memory.h"
#include "models/mpi/objects/addresses.h"
#include "models/mpi/p2p/point_to_point_requests.h"

namespace weft::mpi {

namespace {

// The buffer of the communicator, of the session that it comes from, or of the process.
BufferSpace& space_for(Communicator& communicator) {
  if (communicator.buffer_space.is_attached()) return communicator.buffer_space;
  if (communicator.session_space != nullptr && communicator.session_space->is_attached())
    return *communicator.session_space;
  return this_process().buffer_space;
}

// The bytes leave from a copy in the buffer, unless they can leave at once.
Error send_buffered(const SendCall& call) {
  BufferSpace& space = space_for(*call.communicator);
  if (!space.is_attached()) {
    return {MPI_ERR_BUFFER, "no buffer is attached for buffered sends; call MPI_Buffer_attach first"};
  }
  if (call.engine().send_at_once(call.address, call.view)) return {};
  std::byte* const piece = space.take(call.view.size_bytes);
  if (piece == nullptr) {
    return {MPI_ERR_BUFFER,
            weft::base::format(
                "the attached buffer of {} bytes has no room for a message of {} bytes; attach a larger one",
                space.size_bytes(), call.view.size_bytes)};
  }
  DataView packed = DataView::of_bytes(piece, call.view.size_bytes);
  if (packed.size_bytes > 0) packed.place = this_process().runtime().memory().place_of(piece);
  if (call.view.place.is_host() && packed.place.is_host()) {
    call.view.pack(piece);
  } else if (Error error = copy_now(call.view, packed); !error.ok()) {
    space.give_back(piece);
    return error;
  }
  space.keep(piece, as_request(call.engine().send(call.address, packed, SendMode::kStandard)));
  return {};
}

// Complete as soon as its bytes are in the buffer.
class BufferedRequest final : public Request {
 public:
  explicit BufferedRequest(SendCall call)
      : Request(Type::kSend), call_(std::move(call)), kept_(*call_.communicator) {}
  void start() override {
    activate();
    Outcome outcome;
    if (!call_.no_process) outcome.error = send_buffered(call_).error_class;
    complete(outcome);
  }

 private:
  SendCall call_;
  Ref<Communicator> kept_;
};

Error request_buffered(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
                       MPI_Comm comm, MPI_Request* request, bool persistent) {
  SendCall call;
  if (Error error = require({{request, "request"}}); !error.ok()) return error;
  if (Error error = prepare(buf, count, datatype, dest, tag, comm, &call); !error.ok()) return error;
  Ref<BufferedRequest> made = Request::make<BufferedRequest>(call.engine().messenger(), call);
  if (!persistent) {
    made->start();
    if (made->outcome().error != MPI_SUCCESS)
      return {made->outcome().error, "a buffered send needs an attached buffer with room for the message"};
  }
  return give_request(as_request(std::move(made)), call.communicator, request, persistent);
}

// --- Buffers

Error attach(BufferSpace& space, void* buffer, MPI_Count size) {
  if (space.is_attached()) return {MPI_ERR_BUFFER, "a buffer is attached already; detach it first"};
  if (size < 0) return {MPI_ERR_ARG, weft::base::format("the size is {}; give 0 or more bytes", size)};
  if (buffer == MPI_BUFFER_AUTOMATIC) {
    space.attach_automatic();
  } else if (size > 0 && !is_address(buffer)) {
    return {MPI_ERR_BUFFER, weft::base::format("the buffer is {}; give its address, or MPI_BUFFER_AUTOMATIC",
                                               describe_sentinel(buffer))};
  } else {
    space.attach(buffer, static_cast<std::size_t>(size));
  }
  return {};
}

void flush(BufferSpace& space) {
  this_process().wait_until([&] { return !space.is_in_use(); });
}

Error detach(BufferSpace& space, void* buffer_addr, MPI_Count* size) {
  if (Error error = require({{buffer_addr, "buffer_addr"}, {size, "size"}}); !error.ok()) return error;
  flush(space);
  *static_cast<void**>(buffer_addr) = space.is_automatic() ? MPI_BUFFER_AUTOMATIC : space.data();
  *size = static_cast<MPI_Count>(space.size_bytes());
  space.detach();
  return {};
}

// `owner` keeps the space.
template <class Owner>
Error flush_later(BufferSpace& space, Owner owner, Communicator* communicator, MPI_Request* request) {
  runtime::Scheduler& scheduler = this_process().runtime();
  const auto wait = [&space, &scheduler, owner](Outcome*) -> runtime::Task<> {
    static_cast<void>(owner);
    while (space.is_in_use()) co_await runtime::yield_now(scheduler);
  };
  return give_request(as_request(Request::make<CollectiveRequest>(scheduler, wait)), communicator, request,
                      false);
}

// Calls `body(space)` with the buffer of the process.
template <class Body>
int with_process_space(const char* function, const Body& body) {
  return guarded(function, kNoObject, [&]() -> Error {
    if (Error error = check_running(); !error.ok()) return error;
    return body(this_process().buffer_space);
  });
}

}  // namespace

}  // namespace weft::mpi

using namespace weft::mpi;  // NOLINT(google-build-using-namespace): the entry points are C functions

extern "C" {

int MPI_Bsend_c(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) {
  return guarded(__func__, comm, [&]() -> Error {
    SendCall call;
    if (Error error = prepare(buf, count, datatype, dest, tag, comm, &call); !error.ok()) return error;
    return call.no_process ? Error() : send_buffered(call);
  });
}
int MPI_Ibsend_c(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                 MPI_Request* request) {
  return guarded(__func__, comm,
                 [&] { return request_buffered(buf, count, datatype, dest, tag, comm, request, false); });
}
int MPI_Bsend_init_c(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
                     MPI_Comm comm, MPI_Request* request) {
  return guarded(__func__, comm,
                 [&] { return request_buffered(buf, count, datatype, dest, tag, comm, request, true); });
}

int MPI_Buffer_attach_c(void* buffer, MPI_Count size) {
  return with_process_space(__func__, [&](BufferSpace& space) { return attach(space, buffer, size); });
}
int MPI_Buffer_detach_c(void* buffer_addr, MPI_Count* size) {
  return with_process_space(__func__, [&](BufferSpace& space) { return detach(space, buffer_addr, size); });
}
int MPI_Buffer_flush(void) {
  return with_process_space(__func__, [&](BufferSpace& space) -> Error {
    flush(space);
    return {};
  });
}
int MPI_Buffer_iflush(MPI_Request* request) {
  return with_process_space(
      __func__, [&](BufferSpace& space) { return flush_later(space, nullptr, nullptr, request); });
}

int MPI_Comm_attach_buffer_c(MPI_Comm comm, void* buffer, MPI_Count size) {
  return with_communicator(__func__, comm, {},
                           [&](Communicator& found) { return attach(found.buffer_space, buffer, size); });
}
int MPI_Comm_detach_buffer_c(MPI_Comm comm, void* buffer_addr, MPI_Count* size) {
  return with_communicator(
      __func__, comm, {}, [&](Communicator& found) { return detach(found.buffer_space, buffer_addr, size); });
}
int MPI_Comm_flush_buffer(MPI_Comm comm) {
  return with_communicator(__func__, comm, {}, [&](Communicator& found) -> Error {
    flush(found.buffer_space);
    return {};
  });
}
int MPI_Comm_iflush_buffer(MPI_Comm comm, MPI_Request* request) {
  return with_communicator(__func__, comm, {}, [&](Communicator& found) {
    return flush_later(found.buffer_space, Ref<Communicator>(found), &found, request);
  });
}

int MPI_Session_attach_buffer_c(MPI_Session session, void* buffer, MPI_Count size) {
  return with_session(__func__, session, {},
                      [&](Session& found) { return attach(*found.buffer_space, buffer, size); });
}
int MPI_Session_detach_buffer_c(MPI_Session session, void* buffer_addr, MPI_Count* size) {
  return with_session(__func__, session, {},
                      [&](Session& found) { return detach(*found.buffer_space, buffer_addr, size); });
}
int MPI_Session_flush_buffer(MPI_Session session) {
  return with_session(__func__, session, {}, [&](Session& found) -> Error {
    flush(*found.buffer_space);
    return {};
  });
}
int MPI_Session_iflush_buffer(MPI_Session session, MPI_Request* request) {
  return with_session(__func__, session, {}, [&](Session& found) {
    return flush_later(*found.buffer_space, Ref<Session>(found), nullptr, request);
  });
}

}  // extern "C"
