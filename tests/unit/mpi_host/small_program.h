// A program that no system would load, with the parts that weft-mpi-host reads.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace weft::mpi_host {

// An executable for x86-64: a loaded segment that is the whole file, the name of its loader, and dynamic entries.
struct SmallProgram {
  Elf64_Ehdr header{};
  std::vector<Elf64_Phdr> segments;
  std::vector<Elf64_Dyn> dynamic;
  std::string texts;  // begins at kTextsOffset

  static constexpr std::uint64_t kDynamicOffset = 1024;
  static constexpr std::uint64_t kTextsOffset = 2048;
  static constexpr std::uint64_t kSize = 4096;

  SmallProgram() {
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_type = ET_DYN;
    header.e_machine = EM_X86_64;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_phoff = sizeof header;
    texts = std::string("/lib64/ld-linux-x86-64.so.2") + '\0' + "libfoo.so.1" + '\0';
    segments = {segment(PT_LOAD, 0, kSize), segment(PT_INTERP, kTextsOffset, 28),
                segment(PT_DYNAMIC, kDynamicOffset, 512)};
    add(DT_STRTAB, kTextsOffset);
    add(DT_NEEDED, 28);
    add(DT_FLAGS_1, DF_1_PIE | DF_1_NOW);
    add(DT_INIT_ARRAY, 0x500);
    add(DT_INIT_ARRAYSZ, 24);
    add(DT_FINI, 0x700);
  }

  static Elf64_Phdr segment(std::uint32_t type, std::uint64_t offset, std::uint64_t size) {
    Elf64_Phdr result{};
    result.p_type = type;
    result.p_offset = offset;
    result.p_vaddr = offset;
    result.p_filesz = size;
    result.p_memsz = size;
    return result;
  }

  void add(std::int64_t tag, std::uint64_t value) {
    Elf64_Dyn entry{};
    entry.d_tag = tag;
    entry.d_un.d_val = value;
    dynamic.push_back(entry);
  }

  std::vector<std::byte> bytes() {
    std::vector<std::byte> result(kSize);
    header.e_phnum = static_cast<Elf64_Half>(segments.size());
    std::memcpy(result.data(), &header, sizeof header);
    std::memcpy(result.data() + sizeof header, segments.data(), segments.size() * sizeof(Elf64_Phdr));
    std::memcpy(result.data() + kDynamicOffset, dynamic.data(), dynamic.size() * sizeof(Elf64_Dyn));
    std::memcpy(result.data() + kTextsOffset, texts.data(), texts.size());
    return result;
  }
};

}  // namespace weft::mpi_host
