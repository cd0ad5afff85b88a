#include "connected/reasons.h"

#include <cstdio>
#include <string>

#include "base/format.h"
#include "entry/python_interpreter.h"

namespace weft::mpi {

namespace {

// The thread in which mpi4py starts workers would end, and the program would wait for their results for ever.
void end_executor(const char* function, const Error& error) {
  Rank& rank = this_rank();
  rank.end_job(
      base::format(
          "weft: rank {}: {} cannot start or find the workers of mpi4py's MPIPoolExecutor: {}. Or start "
          "them with the job: `weft run -n 4 python -m mpi4py.futures program.py` has three of them",
          rank.number, function, error.text),
      1);
}

}  // namespace

Error with_reason(const char* function, const Meeting& meeting, Error error) {
  const Communicator& communicator = meeting.communicator;
  const int error_class = error.error_class;
  const bool is_refusal = error_class == MPI_ERR_SPAWN || error_class == MPI_ERR_UNSUPPORTED_OPERATION;
  if ((!is_refusal && error_class != MPI_ERR_PORT) || communicator.rank() != meeting.root) return error;
  if (is_refusal && is_on_thread_of_executor()) end_executor(function, error);
  if (communicator.error_handler()->action() != ErrorHandler::Action::kReturn) return error;
  const std::string line = base::format("weft: {}: {}\n", function, error.text);
  if (this_rank().is_first_report(line)) std::fputs(line.c_str(), stderr);
  return error;
}

}  // namespace weft::mpi
