#include "program/elf_file.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

#include "base/format.h"
#include "program/refusal.h"

namespace weft::mpi_host {

namespace {

using base::format;

// Variables that the compiler and the linker add to each library.
constexpr std::array kStartFileVariables = {
    std::string_view("__dso_handle"), std::string_view("completed.0"), std::string_view("__TMC_END__"),
    std::string_view("_GLOBAL_OFFSET_TABLE_"), std::string_view("_DYNAMIC")};

bool is_of_start_files(std::string_view name) {
  for (const std::string_view known : kStartFileVariables) {
    if (name == known) return true;
  }
  return name.starts_with("completed.");
}

std::vector<std::byte> content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Refusal(format("{}: cannot be read: {}", path, std::strerror(errno)));
  const std::vector<char> characters{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::byte> bytes(characters.size());
  if (!characters.empty()) std::memcpy(bytes.data(), characters.data(), characters.size());
  return bytes;
}

}  // namespace

ElfFile ElfFile::read(const std::string& path) { return {path, content(path)}; }

ElfFile::ElfFile(std::string path, std::vector<std::byte> bytes)
    : path_(std::move(path)), bytes_(std::move(bytes)) {
  if (bytes_.size() >= 2 && bytes_[0] == std::byte('#') && bytes_[1] == std::byte('!')) {
    throw Refusal(
        format("{}: is a script, and a script has one rank per process; start one PE per rank (-n)", path_));
  }
  if (bytes_.size() < sizeof header_) throw Refusal(format("{}: is no program", path_));
  std::memcpy(&header_, bytes_.data(), sizeof header_);
  if (std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0) throw Refusal(format("{}: is no program", path_));
  if (header_.e_ident[EI_CLASS] != ELFCLASS64 || header_.e_ident[EI_DATA] != ELFDATA2LSB ||
      header_.e_machine != EM_X86_64) {
    throw Refusal(format("{}: is for another processor; virtual ranks need a program for x86-64", path_));
  }
  read_segments();
  read_sections();
  read_dynamic();
}

void ElfFile::refuse_damaged(std::string_view part) const {
  throw Refusal(format("{}: is damaged: its {} are not in the file; build it again", path_, part));
}

void ElfFile::read_segments() {
  if (header_.e_phnum != 0 && header_.e_phentsize != sizeof(Elf64_Phdr)) refuse_damaged("segments");
  segments_ = records<Elf64_Phdr>(header_.e_phoff, header_.e_phnum, "segments");
  for (const Elf64_Phdr& segment : segments_) {
    if (segment.p_offset > bytes_.size() || segment.p_filesz > bytes_.size() - segment.p_offset)
      refuse_damaged("segments");
  }
}

void ElfFile::read_sections() {
  if (header_.e_shnum == 0) return;
  if (header_.e_shentsize != sizeof(Elf64_Shdr)) refuse_damaged("sections");
  sections_ = records<Elf64_Shdr>(header_.e_shoff, header_.e_shnum, "sections");
}

void ElfFile::read_dynamic() {
  const Elf64_Phdr* const found = segment(PT_DYNAMIC);
  if (found == nullptr) return;
  dynamic_ = records<Elf64_Dyn>(found->p_offset, found->p_filesz / sizeof(Elf64_Dyn), "dynamic entries");
  for (std::size_t i = 0; i < dynamic_.size(); ++i) {
    if (dynamic_[i].d_tag == DT_NULL) dynamic_.resize(i);
  }
}

const Elf64_Phdr* ElfFile::segment(std::uint32_t type) const {
  for (const Elf64_Phdr& candidate : segments_) {
    if (candidate.p_type == type) return &candidate;
  }
  return nullptr;
}

std::optional<std::uint64_t> ElfFile::dynamic_value(std::int64_t tag) const {
  for (const Elf64_Dyn& entry : dynamic_) {
    if (entry.d_tag == tag) return entry.d_un.d_val;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> ElfFile::offset_of(std::uint64_t address) const {
  for (const Elf64_Phdr& segment : segments_) {
    if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
        address - segment.p_vaddr < segment.p_filesz)
      return address - segment.p_vaddr + segment.p_offset;
  }
  return std::nullopt;
}

std::string ElfFile::text_at(std::uint64_t offset) const {
  if (offset >= bytes_.size()) refuse_damaged("names");
  const auto* const begin = reinterpret_cast<const char*>(bytes_.data()) + offset;
  return {begin, strnlen(begin, bytes_.size() - offset)};
}

std::string ElfFile::dynamic_text(std::uint64_t offset) const {
  const std::optional<std::uint64_t> table = offset_of(dynamic_value(DT_STRTAB).value_or(0));
  if (!table || offset > bytes_.size()) refuse_damaged("names");
  return text_at(*table + offset);
}

std::string ElfFile::interpreter() const {
  const Elf64_Phdr* const found = segment(PT_INTERP);
  return found == nullptr ? std::string() : text_at(found->p_offset);
}

std::vector<std::string> ElfFile::needed() const {
  std::vector<std::string> names;
  for (const Elf64_Dyn& entry : dynamic_) {
    if (entry.d_tag == DT_NEEDED) names.push_back(dynamic_text(entry.d_un.d_val));
  }
  return names;
}

std::string ElfFile::section_name(const Elf64_Shdr& section) const {
  if (header_.e_shstrndx >= sections_.size()) return {};
  const std::uint64_t table = sections_[header_.e_shstrndx].sh_offset;
  if (table > bytes_.size() || section.sh_name >= bytes_.size() - table) refuse_damaged("names");
  return text_at(table + section.sh_name);
}

// Sections that hold variables: the loader fills the others, and write-protects most of them.
bool ElfFile::is_written_after_start(const Elf64_Shdr& section) const {
  const std::uint64_t wanted = SHF_WRITE | SHF_ALLOC;
  if ((section.sh_flags & wanted) != wanted) return false;
  if ((section.sh_flags & SHF_TLS) != 0) return true;
  const Elf64_Phdr* const protected_part = segment(PT_GNU_RELRO);
  if (protected_part != nullptr && section.sh_addr >= protected_part->p_vaddr &&
      section.sh_addr - protected_part->p_vaddr < protected_part->p_memsz)
    return false;
  const bool has_variables = section.sh_type == SHT_PROGBITS || section.sh_type == SHT_NOBITS;
  return has_variables && !section_name(section).starts_with(".got");
}

std::optional<std::vector<std::string>> ElfFile::writable_variables() const {
  std::vector<std::string> names;
  bool has_table = false;
  for (const Elf64_Shdr& table : sections_) {
    if (table.sh_type != SHT_SYMTAB || table.sh_link >= sections_.size()) continue;
    has_table = true;
    const std::uint64_t texts = sections_[table.sh_link].sh_offset;
    for (const Elf64_Sym& symbol :
         records<Elf64_Sym>(table.sh_offset, table.sh_size / sizeof(Elf64_Sym), "symbols")) {
      const unsigned type = ELF64_ST_TYPE(symbol.st_info);
      if ((type != STT_OBJECT && type != STT_TLS) || symbol.st_size == 0) continue;
      if (symbol.st_shndx >= sections_.size() || !is_written_after_start(sections_[symbol.st_shndx]))
        continue;
      if (texts > bytes_.size()) refuse_damaged("names");
      std::string name = text_at(texts + symbol.st_name);
      if (!is_of_start_files(name)) names.push_back(std::move(name));
    }
  }
  if (!has_table) return std::nullopt;
  return names;
}

std::vector<std::string> ElfFile::copied_variables() const {
  std::vector<std::string> names;
  const std::optional<std::uint64_t> relocations = offset_of(dynamic_value(DT_RELA).value_or(0));
  const std::optional<std::uint64_t> symbols = offset_of(dynamic_value(DT_SYMTAB).value_or(0));
  if (!relocations || !symbols) return names;
  const std::uint64_t count = dynamic_value(DT_RELASZ).value_or(0) / sizeof(Elf64_Rela);
  for (const Elf64_Rela& relocation : records<Elf64_Rela>(*relocations, count, "relocations")) {
    if (ELF64_R_TYPE(relocation.r_info) != R_X86_64_COPY) continue;
    const std::uint64_t offset = *symbols + ELF64_R_SYM(relocation.r_info) * sizeof(Elf64_Sym);
    names.push_back(dynamic_text(records<Elf64_Sym>(offset, 1, "symbols").front().st_name));
  }
  return names;
}

}  // namespace weft::mpi_host
