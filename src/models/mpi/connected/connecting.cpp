#include "models/mpi/connected/connecting.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "weft/base/error.h"

#include "base/format.h"
#include "base/refuse_claim.h"

namespace weft::mpi {

namespace {

// What the root tells its group; the names of the other group follow.
struct Agreement {
  std::int32_t error = MPI_SUCCESS;
  std::uint32_t size = 0;
  std::uint64_t context = 0;
  std::uint64_t local_context = 0;
};

struct Connected {
  Agreement outcome;
  ProcessNames group;
  std::string text;  // of an error
};

Connected failed(int error_class, std::string text) {
  Connected result;
  result.outcome.error = error_class;
  result.text = std::move(text);
  return result;
}

CollectiveContext next_context(Communicator& communicator) {
  return communicator.next_collective_contexts().local;
}

// All processes can be connected, or all get an error: others may send to each of them as soon as the root has agreed.
Error open_together(Process& process, Communicator& communicator) {
  Error own = open_connections(process);
  const std::vector<std::byte> bytes =
      process.run(allgather_bytes(next_context(communicator), bytes_of_value(own.error_class)));
  if (!own.ok()) return own;
  for (std::size_t i = 0; i < bytes.size(); i += sizeof(int)) {
    int theirs = MPI_SUCCESS;
    std::memcpy(&theirs, bytes.data() + i, sizeof theirs);
    if (theirs != MPI_SUCCESS)
      return {theirs, base::format("rank {} cannot be connected, and says why", i / sizeof(int))};
  }
  return {};
}

// The root has the outcome. All make the communicator.
Error make_connected(Process& process, const Meeting& meeting, Connected connected, Ref<Communicator>* made) {
  Communicator& communicator = meeting.communicator;
  PointToPoint& engine = communicator.engine();
  Agreement& outcome = connected.outcome;
  outcome.size = static_cast<std::uint32_t>(connected.group.size());
  outcome.local_context = PointToPoint::new_outside_context_base();
  process.run(broadcast_bytes(next_context(communicator), meeting.root, bytes_of_value(outcome)));
  if (outcome.error != MPI_SUCCESS) {
    if (communicator.rank() != meeting.root)
      connected.text =
          base::format("the call failed at its root, rank {}, which has the reason", meeting.root);
    return {outcome.error, connected.text};
  }
  if (outcome.size == 0 || outcome.size > kMostProcesses)
    base::refuse_claim(base::format("a group of {} processes was announced", outcome.size));
  connected.group.resize(outcome.size);
  process.run(broadcast_bytes(next_context(communicator), meeting.root,
                              std::as_writable_bytes(std::span(connected.group))));
  auto members = std::make_shared<Members>();
  for (const ProcessName& name : connected.group) members->push_back(engine.shared().number_of(name));
  *made = Ref<Communicator>::adopt(new Communicator(
      engine, outcome.context, {communicator.group(), communicator.rank(), std::move(members)},
      outcome.local_context, communicator.error_handler()));
  process.connections->watch(connected.group);
  return {};
}

ProcessNames names_of(const Communicator& communicator) {
  return communicator.engine().shared().outsiders().names_of(*communicator.group());
}

bool has_common(const ProcessNames& one, const ProcessNames& other) {
  return std::ranges::any_of(
      one, [&](const ProcessName& name) { return std::ranges::find(other, name) != other.end(); });
}

Connected accept_at_root(Process& process, const Communicator& communicator, const Acceptance& acceptance) {
  std::string name = acceptance.port;
  if (acceptance.at_root) {
    if (Error error = acceptance.at_root(name); !error.ok()) return failed(error.error_class, error.text);
  }
  ConnectedProcesses& connections = *process.connections;
  if (connections.find_port(name) == nullptr) {
    return failed(MPI_ERR_PORT,
                  base::format("'{}' is no port of this process; the root opens it by MPI_Open_port", name));
  }
  const ProcessNames own = names_of(communicator);
  while (true) {
    ConnectedProcesses::Port* port = nullptr;  // another thread may close it
    process.wait_until([&] {
      port = connections.find_port(name);
      return port == nullptr || !port->callers.empty() || port->ended.has_value();
    });
    if (port == nullptr) return failed(MPI_ERR_PORT, base::format("the port '{}' is closed", name));
    if (port->callers.empty()) return failed(acceptance.ended_class, *port->ended);
    const ConnectedProcesses::Caller caller = std::move(port->callers.front());
    port->callers.pop_front();
    if (has_common(own, caller.group)) {
      connections.refuse(caller);
      return failed(MPI_ERR_COMM, "a process is in the group that accepts and in the one that calls");
    }
    Connected result;
    result.outcome.context = PointToPoint::new_outside_context_base();
    result.group = caller.group;
    if (acceptance.on_call) acceptance.on_call();
    if (connections.accept(caller, result.outcome.context, own)) return result;
  }
}

// An exception at the root alone would leave the others waiting.
template <class AtRoot>
Connected outcome_at_root(const AtRoot& at_root) {
  try {
    return at_root();
  } catch (const base::Error& error) {
    return failed(MPI_ERR_OTHER, error.what());
  }
}

Connected call_at_root(Process& process, const Communicator& communicator, const std::string& port) {
  ConnectedProcesses& connections = *process.connections;
  std::uint64_t number = 0;
  try {
    number = connections.call(port, names_of(communicator));
  } catch (const base::Error& error) {
    return failed(MPI_ERR_PORT, error.what());
  }
  const ConnectedProcesses::Call& call = connections.call(number);
  using State = ConnectedProcesses::Call::State;
  process.wait_until([&] { return call.state != State::kWaits; });
  Connected result;
  if (call.state == State::kAccepted && has_common(names_of(communicator), call.group)) {
    result = failed(MPI_ERR_COMM, "a process is in the group that calls and in the one that accepts");
  } else if (call.state == State::kAccepted) {
    result.outcome.context = call.context;
    result.group = call.group;
  } else {
    result = failed(MPI_ERR_PORT, base::format("the port '{}' is closed", port));
  }
  connections.forget_call(number);
  return result;
}

}  // namespace

Error open_connections(Process& process) {
  if (process.connections != nullptr) return {};
  PointToPoint& engine = process.engine();
  if (VirtualRank::current() != nullptr) {
    return {
        MPI_ERR_UNSUPPORTED_OPERATION,
        "ranks that share a process cannot be connected to other jobs; start the program without --ranks"};
  }
  if (engine.shared().outsiders().job() == machine::JobNumber{}) {
    return {
        MPI_ERR_UNSUPPORTED_OPERATION,
        "the launcher of this job gives it no name that other jobs could know; start the program with `weft "
        "run`"};
  }
  try {
    process.connections = std::make_shared<ConnectedProcesses>(process.runtime(), engine);
  } catch (const base::Error& error) {
    return {MPI_ERR_OTHER, error.what()};
  }
  return {};
}

Error accept(Process& process, const Meeting& meeting, const Acceptance& acceptance,
             Ref<Communicator>* made) {
  if (Error error = open_together(process, meeting.communicator); !error.ok()) return error;
  Connected connected;
  if (meeting.communicator.rank() == meeting.root)
    connected = outcome_at_root([&] { return accept_at_root(process, meeting.communicator, acceptance); });
  return make_connected(process, meeting, std::move(connected), made);
}

Error connect(Process& process, const Meeting& meeting, const std::string& port, Ref<Communicator>* made) {
  if (Error error = open_together(process, meeting.communicator); !error.ok()) return error;
  Connected connected;
  if (meeting.communicator.rank() == meeting.root)
    connected = outcome_at_root([&] { return call_at_root(process, meeting.communicator, port); });
  return make_connected(process, meeting, std::move(connected), made);
}

}  // namespace weft::mpi
