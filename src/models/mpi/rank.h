// All state of one rank, reached through this_rank() alone.
//
// A rank is a process today. Virtual ranks, several for each process, need no more than a this_rank() that returns the state
// of the rank that runs. So nothing of a rank may be in a global variable.
//
// The object is there before MPI_Init and after MPI_Finalize, because programs may make info objects, error handlers and
// error codes at any time.
#pragma once

#include <mutex>
#include <set>
#include <string>

#include "models/mpi/datatype/predefined.h"
#include "models/mpi/error_codes.h"
#include "models/mpi/error_handler.h"
#include "models/mpi/operation/operation.h"

namespace weft::mpi {

class Process;

class Rank {
 public:
  Rank();
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  // The error handlers of mpi.h.
  const Ref<ErrorHandler> errors_are_fatal;
  const Ref<ErrorHandler> errors_abort;
  const Ref<ErrorHandler> errors_return;

  ErrorCodes error_codes;

  // The datatypes and operators of mpi.h, and the datatypes that MPI makes on request.
  PredefinedTypes types;
  PredefinedOperations operations;

  // MPI_COMM_WORLD and MPI_COMM_SELF from MPI_Init to MPI_Finalize, else null. Errors that belong to no object go to `self`.
  ErrorScope* world = nullptr;
  ErrorScope* self = nullptr;
  // Stands for MPI_FILE_NULL: errors that belong to no open file, and the handler that new files get.
  const Ref<ErrorScope> no_file;
  // Messages and communicators, from the start of MPI to its end; else null. See process.h.
  Process* process = nullptr;
  // The number in MPI_COMM_WORLD, for messages; -1 before MPI_Init.
  int number = -1;

  // Ends the job with that sentence on stderr and a status that is not 0, and does not return. MPI_Init replaces it; until
  // then the process alone ends.
  void (*end_job)(const std::string& sentence, int status);

  // Whether this is the first time with that name, for sentences that appear once.
  bool is_first_report(const std::string& name);

 private:
  std::mutex mutex_;
  std::set<std::string> reported_;
};

Rank& this_rank();

}  // namespace weft::mpi
