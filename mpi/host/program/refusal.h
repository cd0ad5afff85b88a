// Why a program, or a request, cannot have virtual ranks. The message says what was found and what to do.
#pragma once

#include <stdexcept>

namespace weft::mpi_host {

class Refusal : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace weft::mpi_host
