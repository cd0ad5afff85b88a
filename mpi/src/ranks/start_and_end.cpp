// The functions of MPI that start and end it, and tell of its state.

#include <string>

#include "weft/mpi/mpi.h"

#include "base/format.h"
#include "communication/communication.h"
#include "entry/entry.h"
#include "entry/python_interpreter.h"
#include "models/mpi/objects/error.h"
#include "models/mpi/process.h"
#include "models/mpi/rank.h"
#include "models/mpi/virtual_ranks/running_code.h"
#include "objects/attributes.h"
#include "ranks/environment.h"

namespace weft::mpi {

namespace {

Error finalize() {
  if (is_forked_child()) return {};
  Rank& rank = this_rank();
  if (rank.phase != Rank::Phase::kRunning)
    return {MPI_ERR_OTHER, "MPI_Finalize is called once, after MPI_Init"};
  if (rank.process->has_waiting_threads()) {
    return {
        MPI_ERR_OTHER,
        "another thread of this process waits in a call of MPI; end all communication of the threads before "
        "MPI_Finalize"};
  }
  // The others wait for this rank elsewhere.
  if (rank.process->world()->size() > 1 && has_python_failed()) {
    rank.end_job(
        base::format("weft: rank {} ends by an exception of Python, which its program has not handled",
                     rank.number),
        1);
  }
  // Attributes of MPI_COMM_SELF go first: programs hang their own cleanup on them.
  if (Error error = remove_attributes(MPI_COMM_SELF, *rank.self); !error.ok()) return error;
  if (Error error = remove_attributes(MPI_COMM_WORLD, *rank.world); !error.ok()) return error;
  return end_mpi(Starter::kWorld);
}

}  // namespace

}  // namespace weft::mpi

using namespace weft::mpi;  // NOLINT(google-build-using-namespace): the entry points are C functions

extern "C" {

int MPI_Init(int* /*argc*/, char*** /*argv*/) {
  return guarded(__func__, kNoObject, [] { return start_mpi(Starter::kWorld, MPI_THREAD_SINGLE); });
}
int MPI_Init_thread(int* /*argc*/, char*** /*argv*/, int required, int* provided) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    if (Error error = require({{provided, "provided"}}); !error.ok()) return error;
    if (required < MPI_THREAD_SINGLE || required > MPI_THREAD_MULTIPLE)
      return {MPI_ERR_ARG, weft::base::format("there is no thread level {}", required)};
    if (Error error = start_mpi(Starter::kWorld, required); !error.ok()) return error;
    *provided = thread_level();
    return {};
  });
}
int MPI_Finalize(void) { return guarded(__func__, kNoObject, finalize); }

int MPI_Initialized(int* flag) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    if (Error error = require({{flag, "flag"}}); !error.ok()) return error;
    *flag = this_rank().phase != Rank::Phase::kBefore ? 1 : 0;
    return {};
  });
}
int MPI_Finalized(int* flag) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    if (Error error = require({{flag, "flag"}}); !error.ok()) return error;
    *flag = this_rank().phase == Rank::Phase::kAfter ? 1 : 0;
    return {};
  });
}

int MPI_Query_thread(int* provided) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    if (Error error = require({{provided, "provided"}}); !error.ok()) return error;
    *provided = thread_level();
    return check_running();
  });
}
int MPI_Is_thread_main(int* flag) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    if (Error error = require({{flag, "flag"}}); !error.ok()) return error;
    *flag = is_main_thread() ? 1 : 0;
    return check_running();
  });
}

int MPI_Abort(MPI_Comm /*comm*/, int errorcode) {
  const LibraryRuns library;
  const Rank& rank = this_rank();
  const std::string who = rank.phase == Rank::Phase::kBefore ? "a rank that has not called MPI_Init"
                                                             : weft::base::format("rank {}", rank.number);
  const std::string sentence = weft::base::format("weft: {} called MPI_Abort with code {}", who, errorcode);
  rank.end_job(sentence, errorcode);
  return MPI_ERR_INTERN;
}

}  // extern "C"
