// Ports, the calls that connect two jobs, and published names.
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "weft/mpi/mpi.h"

#include "base/format.h"
#include "communication/communication.h"
#include "connected/published_names.h"
#include "connected/reasons.h"
#include "entry/entry.h"
#include "entry/objects.h"
#include "models/mpi/connected/connecting.h"
#include "models/mpi/virtual_ranks/running_code.h"

namespace weft::mpi {

namespace {

// The text of an argument that is significant here.
Error read_text(const char* text, const char* name, std::string* result) {
  if (Error error = require({{text, name}}); !error.ok()) return error;
  *result = std::string(text, strnlen(text, MPI_MAX_PORT_NAME));
  return {};
}

// Both ends of MPI_Comm_accept and MPI_Comm_connect: `meet(process, meeting, port, made)`.
template <class Meet>
int meet(const char* function, const char* port_name, MPI_Info info, int root, MPI_Comm comm,
         MPI_Comm* newcomm, const Meet& meet) {
  return guarded(function, comm, [&]() -> Error {
    if (Error error = require({{newcomm, "newcomm"}}); !error.ok()) return error;
    *newcomm = MPI_COMM_NULL;
    Communicator* communicator = nullptr;
    Info* hints = nullptr;
    std::string port;
    if (Error error = find_intracommunicator(comm, &communicator); !error.ok()) return error;
    if (root < 0 || root >= communicator->size())
      return {MPI_ERR_ROOT, base::format("the root {} does not exist", root)};
    if (communicator->rank() == root) {
      if (Error error = read_text(port_name, "port_name", &port); !error.ok()) return error;
      if (Error error = find_optional(info, &hints); !error.ok()) return error;
    }
    Ref<Communicator> made;
    if (Error error = meet(this_process(), Meeting{*communicator, root}, port, &made); !error.ok())
      return with_reason(function, {*communicator, root}, std::move(error));
    *newcomm = make_handle<MPI_Comm>(std::move(made));
    return {};
  });
}

Error check_text(const char* text, const char* name, std::string* result) {
  if (Error error = check_running(); !error.ok()) return error;
  return read_text(text, name, result);
}

// Returns when the socket may be ready, or a moment later. The other end, and other threads, may wait for this process first.
void await_socket(int fd, short events) {
  this_process().progress();
  const ProgramRuns program;
  pollfd watched{fd, events, 0};
  poll(&watched, 1, 1);
}

// Calls `transfer(offset)`, as send() or recv(), until `size` bytes have been transferred. Returns the number of the error; 0 without.
template <class Transfer>
int transfer_all(int fd, short events, std::size_t size, const Transfer& transfer) {
  for (std::size_t done = 0; done < size;) {
    const ssize_t count = transfer(done);
    if (count > 0) {
      done += static_cast<std::size_t>(count);
    } else if (count == 0) {
      return ECONNRESET;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      await_socket(fd, events);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

// Sends `mine` and receives the other end's, of the same size. Returns the number of the error; 0 without.
int swap_over(int fd, std::span<const char> mine, std::span<char> theirs) {
  const int sending = transfer_all(fd, POLLOUT, mine.size(), [&](std::size_t offset) {
    const std::span<const char> rest = mine.subspan(offset);
    return ::send(fd, rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  });
  if (sending != 0) return sending;
  return transfer_all(fd, POLLIN, theirs.size(), [&](std::size_t offset) {
    const std::span<char> rest = theirs.subspan(offset);
    return ::recv(fd, rest.data(), rest.size(), MSG_DONTWAIT);
  });
}

// Both ends open a port and tell its name. The one whose name is smaller accepts.
Error join(int fd, Ref<Communicator>* made) {
  Process& process = this_process();
  if (Error error = open_connections(process); !error.ok()) return error;
  std::string port = process.connections->open_port();
  std::array<char, 256> mine{};
  std::array<char, 256> theirs{};
  std::memcpy(mine.data(), port.data(), std::min(port.size(), mine.size() - 1));
  Error error;
  const int problem = swap_over(fd, mine, theirs);
  const std::string other(theirs.data(), strnlen(theirs.data(), theirs.size() - 1));
  if (problem != 0) {
    error = {MPI_ERR_OTHER, base::format("descriptor {} is no socket whose other end calls MPI_Comm_join: {}",
                                         fd, std::generic_category().message(problem))};
  } else if (!process.connections->await_caller(port, other)) {
    error = {MPI_ERR_OTHER,
             base::format("the other end of descriptor {} is no process that calls MPI_Comm_join", fd)};
  } else {
    const Meeting meeting{*process.self(), 0};
    error = port < other ? accept(process, meeting, {.port = port}, made)
                         : connect(process, meeting, other, made);
  }
  process.connections->close_port(port);
  return error;
}

}  // namespace

}  // namespace weft::mpi

using namespace weft::mpi;  // NOLINT(google-build-using-namespace): the entry points are C functions

extern "C" {

int MPI_Open_port(MPI_Info info, char* port_name) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    Info* hints = nullptr;
    if (Error error = check_running(); !error.ok()) return error;
    if (Error error = require({{port_name, "port_name"}}); !error.ok()) return error;
    if (Error error = find_optional(info, &hints); !error.ok()) return error;
    if (Error error = open_connections(this_process()); !error.ok()) return error;
    copy_string(this_process().connections->open_port(), MPI_MAX_PORT_NAME, port_name);
    return {};
  });
}
int MPI_Close_port(const char* port_name) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    std::string port;
    if (Error error = check_text(port_name, "port_name", &port); !error.ok()) return error;
    ConnectedProcesses* const connections = this_process().connections.get();
    if (connections != nullptr && connections->close_port(port)) return {};
    return {MPI_ERR_PORT, weft::base::format("'{}' is no port that this process has open", port)};
  });
}

int MPI_Comm_accept(const char* port_name, MPI_Info info, int root, MPI_Comm comm, MPI_Comm* newcomm) {
  return meet(__func__, port_name, info, root, comm, newcomm,
              [](Process& process, const Meeting& meeting, const std::string& port, Ref<Communicator>* made) {
                return accept(process, meeting, {.port = port}, made);
              });
}
int MPI_Comm_connect(const char* port_name, MPI_Info info, int root, MPI_Comm comm, MPI_Comm* newcomm) {
  return meet(__func__, port_name, info, root, comm, newcomm,
              [](Process& process, const Meeting& meeting, const std::string& port, Ref<Communicator>* made) {
                return connect(process, meeting, port, made);
              });
}
int MPI_Comm_join(int fd, MPI_Comm* intercomm) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    if (Error error = check_running(); !error.ok()) return error;
    if (Error error = require({{intercomm, "intercomm"}}); !error.ok()) return error;
    *intercomm = MPI_COMM_NULL;
    Ref<Communicator> made;
    if (Error error = join(fd, &made); !error.ok()) return error;
    *intercomm = make_handle<MPI_Comm>(std::move(made));
    return {};
  });
}
int MPI_Comm_get_parent(MPI_Comm* parent) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    if (Error error = require({{parent, "parent"}}); !error.ok()) return error;
    *parent = MPI_COMM_NULL;
    if (Error error = check_running(); !error.ok()) return error;
    if (this_process().parent != nullptr) *parent = handle_of<MPI_Comm>(this_process().parent);
    return {};
  });
}

int MPI_Publish_name(const char* service_name, MPI_Info info, const char* port_name) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    std::string service;
    std::string port;
    Info* hints = nullptr;
    if (Error error = check_text(service_name, "service_name", &service); !error.ok()) return error;
    if (Error error = check_text(port_name, "port_name", &port); !error.ok()) return error;
    if (Error error = find_optional(info, &hints); !error.ok()) return error;
    return publish_name(service, port);
  });
}
int MPI_Unpublish_name(const char* service_name, MPI_Info info, const char* port_name) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    std::string service;
    std::string port;
    Info* hints = nullptr;
    if (Error error = check_text(service_name, "service_name", &service); !error.ok()) return error;
    if (Error error = check_text(port_name, "port_name", &port); !error.ok()) return error;
    if (Error error = find_optional(info, &hints); !error.ok()) return error;
    return unpublish_name(service);
  });
}
int MPI_Lookup_name(const char* service_name, MPI_Info info, char* port_name) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    std::string service;
    std::string port;
    Info* hints = nullptr;
    if (Error error = check_text(service_name, "service_name", &service); !error.ok()) return error;
    if (Error error = require({{port_name, "port_name"}}); !error.ok()) return error;
    if (Error error = find_optional(info, &hints); !error.ok()) return error;
    if (Error error = look_up_name(service, &port); !error.ok()) return error;
    copy_string(port, MPI_MAX_PORT_NAME, port_name);
    return {};
  });
}

}  // extern "C"
