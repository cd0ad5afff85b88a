#include "program/relocation_table.h"

#include <climits>
#include <utility>

#include "base/format.h"
#include "program/refusal.h"

namespace weft::mpi_host {

namespace {

using base::format;

// Relative relocations in few bytes (-z pack-relative-relocs). <elf.h> of older systems does not have them.
constexpr std::int64_t kPackedSize = 35;   // DT_RELRSZ
constexpr std::int64_t kPackedTable = 36;  // DT_RELR

constexpr unsigned kVersionMask = 0x7fff;

}  // namespace

RelocationTable::RelocationTable(const ElfFile& file) : file_(file) {
  read_versions();
  read_packed();
  read_table(DT_RELA, DT_RELASZ);
  read_table(DT_JMPREL, DT_PLTRELSZ);
}

// A list of libraries, each with a list of the versions that the program needs of it.
void RelocationTable::read_versions() {
  constexpr std::string_view kPart = "symbol versions";
  std::uint64_t library = file_.dynamic_value(DT_VERNEED).value_or(0);
  const std::uint64_t count = library == 0 ? 0 : file_.dynamic_value(DT_VERNEEDNUM).value_or(0);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto needed = file_.at_address<Elf64_Verneed>(library, 1, kPart).front();
    std::uint64_t place = library + needed.vn_aux;
    for (unsigned k = 0; k < needed.vn_cnt; ++k) {
      const auto version = file_.at_address<Elf64_Vernaux>(place, 1, kPart).front();
      versions_[version.vna_other & kVersionMask] = file_.dynamic_text(version.vna_name);
      if (version.vna_next == 0) break;
      place += version.vna_next;
    }
    if (needed.vn_next == 0) break;
    library += needed.vn_next;
  }
}

void RelocationTable::read_table(std::int64_t table, std::int64_t size) {
  const std::uint64_t count = file_.dynamic_value(size).value_or(0) / sizeof(Elf64_Rela);
  if (count == 0) return;
  const std::uint64_t address = file_.dynamic_value(table).value_or(0);
  for (const Elf64_Rela& entry : file_.at_address<Elf64_Rela>(address, count, "relocations")) add(entry);
}

// A word with bit 0 clear is a place. Each set bit above bit 0 of any other word stands for one of the next 63 places.
void RelocationTable::read_packed() {
  constexpr std::uint64_t kWord = sizeof(std::uint64_t);
  const std::uint64_t count = file_.dynamic_value(kPackedSize).value_or(0) / kWord;
  if (count == 0) return;
  const std::uint64_t address = file_.dynamic_value(kPackedTable).value_or(0);
  std::uint64_t next = 0;
  for (std::uint64_t entry : file_.at_address<std::uint64_t>(address, count, "relocations")) {
    if ((entry & 1) == 0) {
      add_packed(entry);
      next = entry + kWord;
      continue;
    }
    std::uint64_t place = next;
    while ((entry >>= 1) != 0) {
      if ((entry & 1) != 0) add_packed(place);
      place += kWord;
    }
    next += (CHAR_BIT * kWord - 1) * kWord;
  }
}

// The addend is what the place contains.
void RelocationTable::add_packed(std::uint64_t place) {
  check_place(place, sizeof(std::uint64_t));
  const auto addend = file_.at_address<std::int64_t>(place, 1, "relocations").front();
  relocations_.push_back({.type = R_X86_64_RELATIVE, .place = place, .addend = addend});
}

void RelocationTable::add(const Elf64_Rela& entry) {
  Relocation relocation = {.type = static_cast<std::uint32_t>(ELF64_R_TYPE(entry.r_info)),
                           .place = entry.r_offset,
                           .addend = entry.r_addend,
                           .symbol = symbol(static_cast<std::uint32_t>(ELF64_R_SYM(entry.r_info)))};
  if (relocation.type == R_X86_64_NONE) return;
  const bool copies = relocation.type == R_X86_64_COPY && relocation.symbol != nullptr;
  check_place(entry.r_offset, copies ? relocation.symbol->size_bytes : sizeof(std::uint64_t));
  relocations_.push_back(relocation);
}

const Symbol* RelocationTable::symbol(std::uint32_t index) {
  if (index == 0) return nullptr;
  const auto [known, is_new] = symbols_.try_emplace(index);
  Symbol& result = known->second;
  if (!is_new) return &result;
  const std::uint64_t table = file_.dynamic_value(DT_SYMTAB).value_or(0);
  const auto entry = file_.at_address<Elf64_Sym>(table + index * sizeof(Elf64_Sym), 1, "symbols").front();
  result = {.name = file_.dynamic_text(entry.st_name),
            .version = {},
            .is_defined = entry.st_shndx != SHN_UNDEF,
            .is_weak = ELF64_ST_BIND(entry.st_info) == STB_WEAK,
            .type = static_cast<unsigned>(ELF64_ST_TYPE(entry.st_info)),
            .value = entry.st_value,
            .size_bytes = entry.st_size};
  if (const auto numbers = file_.dynamic_value(DT_VERSYM)) {
    const std::uint64_t place = *numbers + index * sizeof(Elf64_Half);
    const unsigned number = file_.at_address<Elf64_Half>(place, 1, "symbol versions").front() & kVersionMask;
    if (const auto version = versions_.find(number); version != versions_.end())
      result.version = version->second;
  }
  return &result;
}

void RelocationTable::check_place(std::uint64_t place, std::uint64_t size_bytes) const {
  for (const Elf64_Phdr& segment : file_.segments()) {
    if (segment.p_type != PT_LOAD || place < segment.p_vaddr || place - segment.p_vaddr > segment.p_memsz ||
        size_bytes > segment.p_memsz - (place - segment.p_vaddr))
      continue;
    if ((segment.p_flags & PF_W) != 0) return;
    throw Refusal(
        format("{}: has addresses in its code, so a copy of it cannot share the code; compile all its parts "
               "with -fPIE",
               file_.path()));
  }
  file_.refuse_damaged("relocations");
}

}  // namespace weft::mpi_host
