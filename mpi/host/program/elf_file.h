// A program or a shared library as a file: the parts of its ELF headers that matter for virtual ranks.
//
// The file may be anything. Each offset is checked before use.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft::mpi_host {

class ElfFile {
 public:
  // Reads a file that the system's loader could load here. Throws: Refusal.
  static ElfFile read(const std::string& path);
  // For tests: `bytes` as the content of a file of that name.
  ElfFile(std::string path, std::vector<std::byte> bytes);

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  const Elf64_Ehdr& header() const { return header_; }
  const std::vector<Elf64_Phdr>& segments() const { return segments_; }
  const std::vector<Elf64_Shdr>& sections() const { return sections_; }
  const std::vector<Elf64_Dyn>& dynamic() const { return dynamic_; }

  const Elf64_Phdr* segment(std::uint32_t type) const;
  // The value of a dynamic entry.
  std::optional<std::uint64_t> dynamic_value(std::int64_t tag) const;
  // The file that loads it; empty if it is linked statically, or is no program.
  std::string interpreter() const;
  // DT_NEEDED.
  std::vector<std::string> needed() const;
  std::string section_name(const Elf64_Shdr& section) const;

  // The names of the variables in memory that the file can write; thread-local ones too. Nothing if its symbol table has
  // been removed and this cannot be said.
  std::optional<std::vector<std::string>> writable_variables() const;

  // The names of the variables of shared libraries that the file has copies of (COPY relocations).
  std::vector<std::string> copied_variables() const;

  // The `count` objects of type T that the loader puts at an address. Refuses the program if the file does not have them all; `part`
  // names them.
  template <class T>
  std::vector<T> at_address(std::uint64_t address, std::uint64_t count, std::string_view part) const {
    const std::optional<std::uint64_t> offset = offset_of(address);
    if (!offset) refuse_damaged(part);
    return records<T>(*offset, count, part);
  }
  // A name in the table that the dynamic entries give.
  std::string dynamic_text(std::uint64_t offset) const;
  // Throws: Refusal.
  [[noreturn]] void refuse_damaged(std::string_view part) const;

 private:
  void read_segments();
  void read_sections();
  void read_dynamic();
  std::string text_at(std::uint64_t offset) const;
  std::optional<std::uint64_t> offset_of(std::uint64_t address) const;
  bool is_written_after_start(const Elf64_Shdr& section) const;

  template <class T>
  std::vector<T> records(std::uint64_t offset, std::uint64_t count, std::string_view part) const {
    if (offset > bytes_.size() || count > (bytes_.size() - offset) / sizeof(T)) refuse_damaged(part);
    std::vector<T> result(count);
    if (count != 0) std::memcpy(result.data(), bytes_.data() + offset, count * sizeof(T));
    return result;
  }

  std::string path_;
  std::vector<std::byte> bytes_;
  Elf64_Ehdr header_{};
  std::vector<Elf64_Phdr> segments_;
  std::vector<Elf64_Shdr> sections_;
  std::vector<Elf64_Dyn> dynamic_;
};

}  // namespace weft::mpi_host
