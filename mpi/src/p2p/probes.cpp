// Probes, and receives of messages that a probe has taken.
#include <initializer_list>
#include <utility>

#include "weft/mpi/mpi-ext.h"
#include "weft/mpi/mpi.h"

#include "communication/communication.h"
#include "entry/entry.h"
#include "models/mpi/objects/addresses.h"
#include "models/mpi/p2p/point_to_point_requests.h"

namespace weft::mpi {

namespace {

// The object of a handle of type MPI_Message.
class ProbedMessage final : public Object {
 public:
  ProbedMessage(ArrivedMessage* message, Communicator& communicator)
      : Object(ObjectKind::kMessage), message_(message), communicator_(communicator) {}
  ~ProbedMessage() override {
    if (message_ != nullptr) communicator_->engine().drop_probed(message_);
  }
  Communicator& communicator() const { return *communicator_; }
  const MatchKey& key() const { return message_->key; }
  ArrivedMessage* take() { return std::exchange(message_, nullptr); }

 private:
  ArrivedMessage* message_;
  Ref<Communicator> communicator_;
};

struct Probe {
  Communicator* communicator = nullptr;
  MatchKey key;
  bool no_process = false;
};

// `results`: where the call puts them.
Error prepare_probe(std::initializer_list<PointerArgument> results, int source, int tag, MPI_Comm comm,
                    Probe* probe) {
  if (Error error = require(results); !error.ok()) return error;
  if (Error error = find_communicator(comm, &probe->communicator); !error.ok()) return error;
  if (Error error = check_source(*probe->communicator, source, tag); !error.ok()) return error;
  probe->no_process = source == MPI_PROC_NULL;
  if (!probe->no_process) {
    probe->key =
        probe->communicator->key(source == MPI_ANY_SOURCE ? kAny : source, tag == MPI_ANY_TAG ? kAny : tag);
  }
  return {};
}

const ArrivedMessage* poll(const Probe& probe) { return probe.communicator->engine().probe(probe.key); }

// Why no message can come; MPI_SUCCESS if one can.
int fate_of(const Probe& probe) {
  if (!probe.communicator->has_troubles()) [[likely]]
    return MPI_SUCCESS;
  const Troubles& troubles = probe.communicator->engine().shared().troubles();
  const int fate = troubles.fate_of_receive(probe.key.context, probe.key.source, kAny);
  return fate == MPIX_ERR_PROC_FAILED_PENDING ? MPIX_ERR_PROC_FAILED : fate;
}

// Polls once more after some progress.
const ArrivedMessage* poll_after_progress(const Probe& probe) {
  if (const ArrivedMessage* const found = poll(probe)) return found;
  this_process().progress();
  return poll(probe);
}

// Null if none can come.
const ArrivedMessage* wait_for_message(const Probe& probe) {
  const ArrivedMessage* found = poll(probe);
  if (found != nullptr) return found;
  PointToPoint& engine = probe.communicator->engine();
  engine.probe_began(probe.key);
  this_process().wait_until(
      [&] { return (found = poll(probe)) != nullptr || fate_of(probe) != MPI_SUCCESS; });
  engine.probe_ended(probe.key);
  return found;
}

void give_message(const Probe& probe, const ArrivedMessage* found, MPI_Message* message, MPI_Status* status) {
  if (found == nullptr) {
    *message = MPI_MESSAGE_NO_PROC;
    return write_status(Outcome::of_no_process(), status);
  }
  write_status(found->outcome(), status);
  ArrivedMessage* const taken = probe.communicator->engine().take_probed(found->key);
  *message = handle_of<MPI_Message>(new ProbedMessage(taken, *probe.communicator));
}

// The receive of a probed message, started. `message` becomes MPI_MESSAGE_NULL.
Error start_probed_receive(void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Message* message,
                           Ref<Request>* request, Communicator** communicator) {
  *communicator = nullptr;
  DataView view;
  if (Error error = require({{message, "message"}}); !error.ok()) return error;
  if (Error error = check_running(); !error.ok()) return error;
  const bool no_process = *message == MPI_MESSAGE_NO_PROC;
  if (!no_process || !is_nothing(count, datatype))
    if (Error error = make_view(buf, count, datatype, &view); !error.ok()) return error;
  if (no_process) {
    *request = as_request(Request::make<FinishedRequest>(this_process().runtime(), Request::Type::kReceive,
                                                         Outcome::of_no_process()));
    (*request)->start();
    *message = MPI_MESSAGE_NULL;
    return {};
  }
  auto* const probed = object_of<ProbedMessage>(*message, ObjectKind::kMessage);
  if (probed == nullptr)
    return {MPI_ERR_REQUEST, "the handle is no message of MPI_Mprobe; has it been received already?"};
  const Ref<ProbedMessage> owner = Ref<ProbedMessage>::adopt(probed);
  *communicator = &owner->communicator();
  if (!view.place.is_host()) view.stream = owner->communicator().stream;
  PointToPoint& engine = owner->communicator().engine();
  const auto receive = engine.make_receive(owner->key(), view);
  receive->set_scope(owner->communicator());
  engine.start_probed(*receive, owner->take());
  *request = as_request(receive);
  *message = MPI_MESSAGE_NULL;
  return {};
}

MPI_Comm comm_of_message(const MPI_Message* message) {
  auto* const probed = is_address(static_cast<const void*>(message))
                           ? object_of<ProbedMessage>(*message, ObjectKind::kMessage)
                           : nullptr;
  return handle_of_scope(probed == nullptr ? nullptr : &probed->communicator());
}

}  // namespace

}  // namespace weft::mpi

using namespace weft::mpi;  // NOLINT(google-build-using-namespace): the entry points are C functions

extern "C" {

int MPI_Probe(int source, int tag, MPI_Comm comm, MPI_Status* status) {
  return guarded(__func__, comm, [&]() -> Error {
    Probe probe;
    if (Error error = prepare_probe({}, source, tag, comm, &probe); !error.ok()) return error;
    const ArrivedMessage* const found = probe.no_process ? nullptr : wait_for_message(probe);
    if (!probe.no_process && found == nullptr) return {fate_of(probe), {}};
    write_status(probe.no_process ? Outcome::of_no_process() : found->outcome(), status);
    return {};
  });
}
int MPI_Iprobe(int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status) {
  return guarded(__func__, comm, [&]() -> Error {
    Probe probe;
    if (Error error = prepare_probe({{flag, "flag"}}, source, tag, comm, &probe); !error.ok()) return error;
    const ArrivedMessage* const found = probe.no_process ? nullptr : poll_after_progress(probe);
    if (const int fate = fate_of(probe); !probe.no_process && found == nullptr && fate != MPI_SUCCESS)
      return {fate, {}};
    *flag = probe.no_process || found != nullptr ? 1 : 0;
    if (*flag != 0) write_status(found == nullptr ? Outcome::of_no_process() : found->outcome(), status);
    return {};
  });
}
int MPI_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message* message, MPI_Status* status) {
  return guarded(__func__, comm, [&]() -> Error {
    Probe probe;
    if (Error error = prepare_probe({{message, "message"}}, source, tag, comm, &probe); !error.ok())
      return error;
    const ArrivedMessage* const found = probe.no_process ? nullptr : wait_for_message(probe);
    if (!probe.no_process && found == nullptr) return {fate_of(probe), {}};
    give_message(probe, found, message, status);
    return {};
  });
}
int MPI_Improbe(int source, int tag, MPI_Comm comm, int* flag, MPI_Message* message, MPI_Status* status) {
  return guarded(__func__, comm, [&]() -> Error {
    Probe probe;
    if (Error error = prepare_probe({{flag, "flag"}, {message, "message"}}, source, tag, comm, &probe);
        !error.ok())
      return error;
    const ArrivedMessage* const found = probe.no_process ? nullptr : poll_after_progress(probe);
    if (const int fate = fate_of(probe); !probe.no_process && found == nullptr && fate != MPI_SUCCESS)
      return {fate, {}};
    *flag = probe.no_process || found != nullptr ? 1 : 0;
    if (*flag != 0) {
      give_message(probe, found, message, status);
    } else {
      *message = MPI_MESSAGE_NULL;
    }
    return {};
  });
}

int MPI_Mrecv_c(void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Message* message, MPI_Status* status) {
  return guarded(__func__, comm_of_message(message), [&]() -> Error {
    Ref<Request> request;
    Communicator* communicator = nullptr;
    if (Error error = start_probed_receive(buf, count, datatype, message, &request, &communicator);
        !error.ok())
      return error;
    this_process().wait(*request);
    write_status(request->outcome(), status);
    return error_of(request->outcome());
  });
}
int MPI_Imrecv_c(void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Message* message,
                 MPI_Request* request) {
  return guarded(__func__, comm_of_message(message), [&]() -> Error {
    // Before the message is taken.
    if (Error error = require({{request, "request"}}); !error.ok()) return error;
    Ref<Request> started;
    Communicator* communicator = nullptr;
    if (Error error = start_probed_receive(buf, count, datatype, message, &started, &communicator);
        !error.ok())
      return error;
    return give_request(std::move(started), communicator, request, false);
  });
}

}  // extern "C"
