// Functions that allocate memory: which of them the copies of a program call in place of those of the C library.
//
// Memory that the program of a rank allocates lies in the rank's slot; all other memory is the C library's. libc/memory.cpp
// says how the two are told apart.
#pragma once

#include <string_view>

#include "slots/slots.h"

namespace weft::mpi_host {

// The function that a copy calls under that name; null if it is the library's own.
void* own_memory_function(std::string_view name);

// Until its end the host itself allocates on behalf of a rank's program: memory of the C library, which stays with the process.
class HostAllocates {
 public:
  HostAllocates();
  ~HostAllocates();
  HostAllocates(const HostAllocates&) = delete;
  HostAllocates& operator=(const HostAllocates&) = delete;

 private:
  const bool before_;
};

// From now on, ranks allocate in their slots. Once, before a rank runs; the slots stay.
void begin_rank_memory(const Slots& slots);

}  // namespace weft::mpi_host
