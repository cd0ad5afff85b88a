// What the entry points of files have in common.
#pragma once

#include <initializer_list>

#include "weft/mpi/mpi.h"

#include "communication/communication.h"
#include "entry/entry.h"
#include "models/mpi/file/file.h"
#include "models/mpi/objects/error.h"

namespace weft::mpi {

// Errors: MPI_ERR_FILE; MPI_ERR_OTHER if MPI has ended.
Error find_file(MPI_File handle, File** found);
// Calls `body(file)`, which returns an Error, after the checks.
template <class Body>
int with_file(const char* function, MPI_File fh, std::initializer_list<PointerArgument> arguments,
              const Body& body) {
  return guarded(function, fh, [&]() -> Error {
    if (Error error = require(arguments); !error.ok()) return error;
    File* file = nullptr;
    if (Error error = find_file(fh, &file); !error.ok()) return error;
    return body(*file);
  });
}

}  // namespace weft::mpi
