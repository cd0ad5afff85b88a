// Linkage: the values that are written into each copy of a program, so that it refers to itself and to the libraries of this
// process. The symbols are found once, for all copies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "program/program.h"
#include "program/symbol_scope.h"

namespace weft::mpi_host {

// A place of the program that holds a variable of a library (R_X86_64_COPY), or the address of a library's symbol.
struct Reference {
  std::uint32_t type = 0;  // R_X86_64_...
  std::string name;
  std::uint64_t place = 0;
  void* library_address = nullptr;
};

class Linkage {
 public:
  // Throws: Refusal for a symbol that no library has, and for a relocation that is unknown.
  Linkage(const Program& program, const SymbolScope& scope);

  // Fills in the copy at `base`. REQUIRES: its segments are mapped, and those with variables are writable.
  void apply(char* base) const;

  const std::vector<Reference>& references() const { return references_; }

 private:
  enum class Kind : std::uint8_t {
    kValue,     // value
    kAddress,   // base + value
    kResolved,  // what the function at base + value returns
    kBytes,     // `size_bytes` bytes at the address `value`
  };
  struct Fixup {
    Kind kind = Kind::kValue;
    std::uint64_t place = 0;
    std::uint64_t value = 0;
    std::uint64_t size_bytes = 0;
  };

  void add(const Relocation& relocation, const SymbolScope& scope);
  void add_address(const Relocation& relocation, const SymbolScope& scope);
  void* library_address(const Symbol& symbol, const SymbolScope& scope) const;

  const Program& program_;
  std::vector<Fixup> fixups_;  // those that call functions of the program last
  std::vector<Reference> references_;
};

}  // namespace weft::mpi_host
