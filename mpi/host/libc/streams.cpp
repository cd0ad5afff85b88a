// setvbuf() and its kin. The streams belong to the process, and a buffer in the memory of a rank would go with the rank when it moves:
// such a stream keeps its mode and gets a buffer of the C library.
#include <cstddef>
#include <cstdio>

#include "slots/rank_state.h"

using weft::mpi_host::program_state;
using weft::mpi_host::RankState;
using weft::mpi_host::replaced;

extern "C" {

int setvbuf(FILE* stream, char* buffer, int mode, std::size_t size) noexcept {
  const RankState* const state = program_state();
  static auto* const form = replaced<int(FILE*, char*, int, std::size_t)>("setvbuf");
  const bool goes_with_rank = state != nullptr && state->is_in_slot(buffer);
  return form(stream, goes_with_rank ? nullptr : buffer, mode, size);
}

void setbuffer(FILE* stream, char* buffer, std::size_t size) noexcept {
  static_cast<void>(setvbuf(stream, buffer, buffer == nullptr ? _IONBF : _IOFBF, size));
}

void setbuf(FILE* stream, char* buffer) noexcept { setbuffer(stream, buffer, BUFSIZ); }

}  // extern "C"
