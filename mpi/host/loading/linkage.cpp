#include "loading/linkage.h"

#include <algorithm>
#include <cstring>

#include "base/format.h"
#include "loading/loaded_libraries.h"
#include "program/refusal.h"
#include "program/relocation_table.h"
#include "slots/rank_memory.h"

namespace weft::mpi_host {

namespace {

using base::format;

void store(char* place, std::uint64_t value) { std::memcpy(place, &value, sizeof value); }
void store(char* place, const void* value) { store(place, reinterpret_cast<std::uint64_t>(value)); }

}  // namespace

Linkage::Linkage(const Program& program, const SymbolScope& scope) : program_(program) {
  const RelocationTable table(program.file());
  for (const Relocation& relocation : table.relocations()) add(relocation, scope);
  std::ranges::stable_partition(fixups_, [](const Fixup& fixup) { return fixup.kind != Kind::kResolved; });
}

void Linkage::add(const Relocation& relocation, const SymbolScope& scope) {
  const auto addend = static_cast<std::uint64_t>(relocation.addend);
  const Symbol* const symbol = relocation.symbol;
  if (relocation.type == R_X86_64_RELATIVE) {
    fixups_.push_back({.kind = Kind::kAddress, .place = relocation.place, .value = addend});
  } else if (relocation.type == R_X86_64_IRELATIVE) {
    fixups_.push_back({.kind = Kind::kResolved, .place = relocation.place, .value = addend});
  } else if (symbol != nullptr && (relocation.type == R_X86_64_GLOB_DAT ||
                                   relocation.type == R_X86_64_JUMP_SLOT || relocation.type == R_X86_64_64)) {
    add_address(relocation, scope);
  } else if (symbol != nullptr && relocation.type == R_X86_64_COPY) {
    void* const source = library_address(*symbol, scope);
    if (source == nullptr) return;
    fixups_.push_back({.kind = Kind::kBytes,
                       .place = relocation.place,
                       .value = reinterpret_cast<std::uint64_t>(source),
                       .size_bytes = symbol->size_bytes});
    references_.push_back({relocation.type, symbol->name, relocation.place, source});
  } else if (symbol != nullptr && !symbol->is_defined && relocation.type == R_X86_64_TPOFF64) {
    const auto offset = static_cast<std::uint64_t>(scope.thread_offset(*symbol, program_.path()));
    fixups_.push_back({.kind = Kind::kValue, .place = relocation.place, .value = offset + addend});
  } else {
    throw Refusal(format(
        "{}: has a reference of a kind that weft-mpi-host does not know (relocation {}); start one PE per "
        "rank (-n)",
        program_.path(), relocation.type));
  }
}

// The address of a symbol of the program itself, or of a library.
void Linkage::add_address(const Relocation& relocation, const SymbolScope& scope) {
  const Symbol& symbol = *relocation.symbol;
  const auto addend =
      relocation.type == R_X86_64_64 ? static_cast<std::uint64_t>(relocation.addend) : std::uint64_t{0};
  if (symbol.is_defined) {
    const Kind kind = symbol.type == STT_GNU_IFUNC ? Kind::kResolved : Kind::kAddress;
    fixups_.push_back({.kind = kind, .place = relocation.place, .value = symbol.value + addend});
    return;
  }
  void* const address = library_address(symbol, scope);
  const std::uint64_t value = address == nullptr ? 0 : reinterpret_cast<std::uint64_t>(address) + addend;
  fixups_.push_back({.kind = Kind::kValue, .place = relocation.place, .value = value});
  references_.push_back({relocation.type, symbol.name, relocation.place, address});
}

// Null for a weak symbol that no library has.
void* Linkage::library_address(const Symbol& symbol, const SymbolScope& scope) const {
  if (void* const own = own_memory_function(symbol.name)) return own;
  if (void* const own = own_loading_function(symbol.name)) return own;
  void* const address = scope.find(symbol);
  if (address != nullptr || symbol.is_weak) return address;
  throw Refusal(format("{}: needs {}{}{}, which no library of the program has; link the library that has it",
                       program_.path(), symbol.name, symbol.version.empty() ? "" : " of version ",
                       symbol.version));
}

void Linkage::apply(char* base) const {
  for (const Fixup& fixup : fixups_) {
    char* const place = base + fixup.place;
    switch (fixup.kind) {
      case Kind::kValue:
        store(place, fixup.value);
        break;
      case Kind::kAddress:
        store(place, base + fixup.value);
        break;
      case Kind::kResolved:
        store(place, reinterpret_cast<void* (*)()>(base + fixup.value)());
        break;
      case Kind::kBytes:
        // NOLINTNEXTLINE(performance-no-int-to-ptr): an address that the loader computed
        std::memcpy(place, reinterpret_cast<const void*>(fixup.value), fixup.size_bytes);
        break;
    }
  }
}

}  // namespace weft::mpi_host
