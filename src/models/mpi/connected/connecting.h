// Connecting the processes of two jobs: the group of a communicator accepts or calls, and gets an intercommunicator.
//
// Each function is called by all processes of an intracommunicator, with the same root. It waits. Threads: the PE's.
#pragma once

#include <functional>
#include <string>

#include "models/mpi/communicators/communicator.h"
#include "models/mpi/connected/connected_processes.h"
#include "models/mpi/objects/error.h"
#include "models/mpi/process.h"

namespace weft::mpi {

// MPI_ERR_UNSUPPORTED_OPERATION, with the reason, if this process cannot be connected; else it can from now on.
Error open_connections(Process& process);

struct Meeting {
  Communicator& communicator;
  int root;
};

// `port`, at the root: a port that it has open. If `at_root` is set, the root calls it first. It may open the port: the name that
// is used is the one that `port` has then.
struct Acceptance {
  std::string port = {};
  std::function<Error(std::string& port)> at_root = {};
  // At the root: a group has called, and continues when it is accepted.
  std::function<void()> on_call = {};
  // Of an error if the job behind the port has ended before it has called.
  int ended_class = MPI_ERR_PORT;
};
Error accept(Process& process, const Meeting& meeting, const Acceptance& acceptance, Ref<Communicator>* made);
// `port`: significant at the root.
Error connect(Process& process, const Meeting& meeting, const std::string& port, Ref<Communicator>* made);

}  // namespace weft::mpi
