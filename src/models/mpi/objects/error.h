// The outcome of an operation of the MPI model: success, or an error class with a sentence.
//
// The entry points (mpi/src/entry/entry.h) hand an error to the error handler that applies, and return its class.
#pragma once

#include <string>
#include <utility>

#include "weft/mpi/mpi.h"

namespace weft::mpi {

struct [[nodiscard]] Error {
  // MPI_SUCCESS, or an error class or code: those of mpi.h, or one that the program has added.
  int error_class = MPI_SUCCESS;
  // A text that says what happened and what to do about it, without the function's name; empty for a success.
  std::string text;

  Error() = default;
  Error(int error_class_in, std::string text_in) : error_class(error_class_in), text(std::move(text_in)) {}

  bool ok() const { return error_class == MPI_SUCCESS; }
};

}  // namespace weft::mpi
