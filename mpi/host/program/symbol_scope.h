// Where the symbols are that copies of a program refer to: first in weft-mpi-host, which replaces functions of the C library,
// then in the libraries of this process, then in those of the program.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "program/relocation_table.h"

namespace weft::mpi_host {

class SymbolScope {
 public:
  // `libraries`: handles of dlopen() for the program's libraries, in the order in which the system's loader finds them.
  explicit SymbolScope(std::vector<void*> libraries);

  // The address of a symbol that the program does not define; null if there is none.
  void* find(const Symbol& symbol) const;
  // The distance of a thread-local variable of a library from the thread pointer. The same for all threads.
  // Throws: Refusal if the library's variables are elsewhere in each thread; `program` is named.
  std::int64_t thread_offset(const Symbol& symbol, const std::string& program) const;

 private:
  bool is_in_host(const void* address) const;

  std::vector<void*> libraries_;
  const void* host_ = nullptr;  // its load address
};

}  // namespace weft::mpi_host
