// Opening files. Threads: the PE's.
#pragma once

#include <string>

#include "weft/runtime/task.h"

#include "models/mpi/communicators/communicator.h"
#include "models/mpi/file/file.h"

namespace weft::mpi {

// Errors: MPI_ERR_AMODE for modes that the standard does not allow together.
Error check_access_mode(int mode);

// Collective. The view is that of bytes. Throws TransferFailed on all processes if one fails: the errors of PosixFile::open(), and
// MPI_ERR_NOT_SAME for different modes. If a process has `error` already, all fail.
runtime::Task<Ref<File>> open_file(Ref<Communicator> parent, std::string path, int mode,
                                   const Info::Pairs* hints, Error error, Ref<ErrorHandler> handler);

}  // namespace weft::mpi
