// All state of one rank, reached through this_rank() alone.
//
// A process has one rank, or several that take turns (virtual_ranks/). So nothing of a rank may be in a global variable.
//
// The object is there before MPI_Init and after MPI_Finalize, because programs may make info objects, error handlers and
// error codes at any time.
#pragma once

#include <climits>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "weft/memory/buffer.h"

#include "models/mpi/datatype/describing/representation.h"
#include "models/mpi/datatype/predefined.h"
#include "models/mpi/objects/attributes.h"
#include "models/mpi/objects/error_codes.h"
#include "models/mpi/objects/error_handler.h"
#include "models/mpi/objects/group.h"
#include "models/mpi/objects/handle_numbers.h"
#include "models/mpi/objects/info.h"
#include "models/mpi/objects/tool_state.h"
#include "models/mpi/operation/reduction_operator.h"
#include "models/mpi/virtual_ranks/running_rank.h"

namespace weft::mpi {

class Process;

// The values of predefined attributes, which programs read through their addresses. They stay where they are if the rank moves, so they
// are no part of Rank.
struct PredefinedAttributes {
  int tag_upper_bound = INT_MAX;
  int io = MPI_ANY_SOURCE;  // every process
  int host = MPI_PROC_NULL;
  int wtime_is_global = 0;
  int app_number = 0;
  int universe_size = 1;                  // MPI_Init sets it
  int last_used_code = MPI_ERR_LASTCODE;  // ErrorCodes counts there
  int survives_losses = 0;                // MPI_Init sets it
};

// The statements of a Fortran layer over the library, see MPI_Abi_set_fortran_info and MPI_Abi_set_fortran_booleans.
struct FortranSettings {
  Ref<Info> info;
  std::vector<std::byte> true_value;  // both are empty until they are set
  std::vector<std::byte> false_value;
};

class Rank {
 public:
  // `attributes` outlives it.
  explicit Rank(PredefinedAttributes& attributes);
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  // The error handlers of mpi.h.
  const Ref<ErrorHandler> errors_are_fatal;
  const Ref<ErrorHandler> errors_abort;
  const Ref<ErrorHandler> errors_return;

  ErrorCodes error_codes;
  AttributeKeys attribute_keys;
  HandleNumbers handle_numbers;
  // MPI_INFO_ENV.
  const Ref<Info> environment;
  // MPI_GROUP_EMPTY.
  const Ref<Group> empty_group;
  PredefinedAttributes& predefined_attributes;
  FortranSettings fortran;
  ToolState tools;

  // The datatypes and operators of mpi.h, and the datatypes that MPI makes on request.
  PredefinedTypes types;
  PredefinedOperators operations;

  // How the values of files are written, with those of MPI_Register_datarep.
  Representations representations;

  // MPI_COMM_WORLD and MPI_COMM_SELF from MPI_Init to MPI_Finalize, else null. Errors that belong to no object go to `self`.
  ErrorScope* world = nullptr;
  ErrorScope* self = nullptr;
  // Stands for MPI_FILE_NULL: errors that belong to no open file, and the handler that new files get.
  const Ref<ErrorScope> no_file;
  // Messages and communicators, from the start of MPI to its end; else null. See process.h.
  Process* process = nullptr;
  // The phase by MPI_Init and MPI_Finalize; sessions do not count.
  enum class Phase : std::uint8_t { kBefore, kRunning, kAfter };
  Phase phase = Phase::kBefore;
  // The rank has taken part in the end of the job: neither MPI_Init nor a session starts MPI again.
  bool has_left_job = false;
  // The number in MPI_COMM_WORLD, for messages; -1 before MPI_Init.
  int number = -1;

  // Ends the job with that sentence on stderr and a status that is not 0, and does not return. MPI_Init replaces it; until
  // then the process alone ends.
  void (*end_job)(const std::string& sentence, int status);

  // Device memory that MPI_Alloc_mem has allocated, by address. The end of the job frees it.
  std::map<void*, memory::Buffer> device_memory;

  // Whether this is the first time with that name, for sentences that appear once.
  bool is_first_report(const std::string& name);

 private:
  std::mutex mutex_;
  std::set<std::string> reported_;
};

// The state of the rank that runs, see VirtualRank::current().
inline Rank& this_rank() { return RunningRank::state(); }

}  // namespace weft::mpi
