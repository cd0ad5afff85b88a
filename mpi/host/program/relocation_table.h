// The places of a program that its loader fills in, and the symbols that they refer to.
//
// Offsets and values are relative to the load address. The file may be anything: each table and each place is checked.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "program/elf_file.h"

namespace weft::mpi_host {

struct Symbol {
  std::string name;
  std::string version;  // empty: any
  bool is_defined = false;
  bool is_weak = false;
  unsigned type = 0;  // STT_...
  std::uint64_t value = 0;
  std::uint64_t size_bytes = 0;
};

struct Relocation {
  std::uint32_t type = 0;  // R_X86_64_...
  std::uint64_t place = 0;
  std::int64_t addend = 0;
  const Symbol* symbol = nullptr;
};

class RelocationTable {
 public:
  // Throws: Refusal.
  explicit RelocationTable(const ElfFile& file);
  RelocationTable(const RelocationTable&) = delete;
  RelocationTable& operator=(const RelocationTable&) = delete;

  const std::vector<Relocation>& relocations() const { return relocations_; }

 private:
  void read_versions();
  void read_table(std::int64_t table, std::int64_t size);
  void read_packed();
  void add(const Elf64_Rela& entry);
  void add_packed(std::uint64_t place);
  const Symbol* symbol(std::uint32_t index);
  // Refuses a place that no writable segment has.
  void check_place(std::uint64_t place, std::uint64_t size_bytes) const;

  const ElfFile& file_;
  std::map<unsigned, std::string> versions_;  // by the number in the table of the symbols' versions
  std::map<std::uint32_t, Symbol> symbols_;
  std::vector<Relocation> relocations_;
};

}  // namespace weft::mpi_host
