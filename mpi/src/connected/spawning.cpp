// MPI_Comm_spawn: the root asks the launcher for a job, which connects to a port of the root when it starts.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "weft/base/error.h"
#include "weft/mpi/mpi.h"

#include "base/format.h"
#include "base/refuse_claim.h"
#include "communication/communication.h"
#include "connected/reasons.h"
#include "entry/entry.h"
#include "entry/objects.h"
#include "models/mpi/connected/connecting.h"
#include "ranks/environment.h"

namespace weft::mpi {

namespace {

// A request to the launcher: texts, each with a zero byte behind it. python/weft/launch/mpi/spawned.py reads it.
class Request {
 public:
  void add(std::string_view text) { texts_.append(text.substr(0, text.find('\0'))) += '\0'; }
  void add(std::size_t number) { add(base::format("{}", number)); }
  const std::string& texts() const { return texts_; }

 private:
  std::string texts_;
};

// The arguments of one command, which are significant at the root.
struct Command {
  const char* program = nullptr;
  char** arguments = nullptr;
  int num_processes = 0;
  MPI_Info info = MPI_INFO_NULL;
};

// A pointer that may be null, as MPI_ARGV_NULL and MPI_ERRCODES_IGNORE are.
template <class T>
Error require_or_null(T* pointer, const char* name) {
  return pointer == nullptr ? Error() : require({{pointer, name}});
}

Error add_command(const Command& command, Request* request) {
  if (Error error = require({{command.program, "command"}}); !error.ok()) return error;
  if (Error error = require_or_null(command.arguments, "argv"); !error.ok()) return error;
  if (command.num_processes < 1)
    return {MPI_ERR_ARG, base::format("maxprocs is {}; give 1 or more", command.num_processes)};
  Info* hints = nullptr;
  if (Error error = find_optional(command.info, &hints); !error.ok()) return error;
  request->add(static_cast<std::size_t>(command.num_processes));
  const Info::Pairs none;
  const Info::Pairs& pairs = hints == nullptr ? none : hints->pairs();
  request->add(pairs.size());
  for (const auto& [key, value] : pairs) {
    request->add(key);
    request->add(value);
  }
  std::vector<std::string_view> words{command.program};
  if (command.arguments != nullptr)
    for (char** one = command.arguments; *one != nullptr; ++one) words.emplace_back(*one);
  request->add(words.size());
  for (const std::string_view word : words) request->add(word);
  return {};
}

// At the root: opens a port, and asks the launcher for a job that connects to it.
Error begin_spawn(const std::vector<Command>& commands, std::string* port) {
  ConnectedProcesses& connections = *this_process().connections;
  Request request;
  request.add(connections.address());
  *port = connections.open_port();
  request.add(*port);
  request.add(commands.size());
  for (const Command& command : commands)
    if (Error error = add_command(command, &request); !error.ok()) return error;
  try {
    start_job(request.texts());
  } catch (const base::Error& failure) {
    return {MPI_ERR_SPAWN, failure.what()};
  }
  return {};
}

// The launcher then takes a failure of the spawned job for one of this job.
void tell_connected(const std::string& port) {
  Request request;
  request.add(std::string_view());
  request.add(port);
  start_job(request.texts());
}

// `find_commands(&commands)` is called at the root alone.
template <class FindCommands>
int spawn(const char* function, int root, MPI_Comm comm, MPI_Comm* intercomm, int* codes,
          const FindCommands& find_commands) {
  return guarded(function, comm, [&]() -> Error {
    if (Error error = require({{intercomm, "intercomm"}}); !error.ok()) return error;
    if (Error error = require_or_null(codes, "array_of_errcodes"); !error.ok()) return error;
    *intercomm = MPI_COMM_NULL;
    Communicator* communicator = nullptr;
    if (Error error = find_intracommunicator(comm, &communicator); !error.ok()) return error;
    if (root < 0 || root >= communicator->size())
      return {MPI_ERR_ROOT, base::format("the root {} does not exist", root)};
    std::string port;
    std::uint64_t num_processes = 0;
    const auto begin = [&](std::string& name) -> Error {
      std::vector<Command> commands;
      if (Error error = find_commands(&commands); !error.ok()) return error;
      for (const Command& command : commands)
        num_processes += static_cast<std::uint64_t>(std::max(command.num_processes, 0));
      if (num_processes > kMostProcesses) {
        return {MPI_ERR_SPAWN, base::format("{} processes are more than a job has; spawn {} at most",
                                            std::exchange(num_processes, 0), kMostProcesses)};
      }
      Error error = begin_spawn(commands, &port);
      name = port;
      return error;
    };
    Process& process = this_process();
    Ref<Communicator> made;
    const Meeting meeting{*communicator, root};
    Error error = accept(
        process, meeting,
        {.at_root = begin, .on_call = [&] { tell_connected(port); }, .ended_class = MPI_ERR_SPAWN}, &made);
    if (!port.empty()) process.connections->close_port(port);
    process.run(
        broadcast_bytes(communicator->next_collective_contexts().local, root, bytes_of_value(num_processes)));
    if (num_processes > kMostProcesses)  // the root may be in another job
      base::refuse_claim(base::format("{} processes were spawned", num_processes));
    if (codes != nullptr)
      for (std::uint64_t i = 0; i < num_processes; ++i) codes[i] = error.error_class;
    if (!error.ok()) return with_reason(function, meeting, std::move(error));
    *intercomm = make_handle<MPI_Comm>(std::move(made));
    return {};
  });
}

}  // namespace

}  // namespace weft::mpi

using namespace weft::mpi;  // NOLINT(google-build-using-namespace): the entry points are C functions

extern "C" {

int MPI_Comm_spawn(const char* command, char* argv[], int maxprocs, MPI_Info info, int root, MPI_Comm comm,
                   MPI_Comm* intercomm, int array_of_errcodes[]) {
  return spawn(__func__, root, comm, intercomm, array_of_errcodes,
               [&](std::vector<Command>* commands) -> Error {
                 commands->push_back({command, argv, maxprocs, info});
                 return {};
               });
}
int MPI_Comm_spawn_multiple(int count, char* array_of_commands[], char** array_of_argv[],
                            const int array_of_maxprocs[], const MPI_Info array_of_info[], int root,
                            MPI_Comm comm, MPI_Comm* intercomm, int array_of_errcodes[]) {
  return spawn(
      __func__, root, comm, intercomm, array_of_errcodes, [&](std::vector<Command>* commands) -> Error {
        if (count < 1) return {MPI_ERR_ARG, weft::base::format("the count is {}; give 1 or more", count)};
        if (Error error = require({{array_of_commands, "array_of_commands"},
                                   {array_of_maxprocs, "array_of_maxprocs"},
                                   {array_of_info, "array_of_info"}});
            !error.ok())
          return error;
        if (Error error = require_or_null(array_of_argv, "array_of_argv"); !error.ok()) return error;
        for (int i = 0; i < count; ++i)
          commands->push_back({array_of_commands[i], array_of_argv == nullptr ? nullptr : array_of_argv[i],
                               array_of_maxprocs[i], array_of_info[i]});
        return {};
      });
}

}  // extern "C"
