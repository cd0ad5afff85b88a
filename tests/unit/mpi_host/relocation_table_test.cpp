#include "program/relocation_table.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "program/refusal.h"
#include "tests/unit/mpi_host/small_program.h"

namespace weft::mpi_host {
namespace {

// Where the tables lie in the file, which has one segment at address 0.
constexpr std::uint64_t kSymbols = 0xa00;
constexpr std::uint64_t kVersionNumbers = 0xb00;
constexpr std::uint64_t kVersions = 0xb40;
constexpr std::uint64_t kRelocations = 0xc00;
constexpr std::uint64_t kPacked = 0xd00;
constexpr std::uint64_t kVariables = 0xe00;

class RelocatedProgram {
 public:
  RelocatedProgram() {
    program_.segments.front().p_flags = PF_R | PF_W;
    program_.add(DT_SYMTAB, kSymbols);
    program_.add(DT_RELA, kRelocations);
    program_.add(DT_RELASZ, 0);
  }

  SmallProgram& program() { return program_; }

  std::uint64_t add_text(const std::string& text) {
    const std::uint64_t offset = program_.texts.size();
    program_.texts += text + '\0';
    return offset;
  }

  template <class T>
  void put(std::uint64_t offset, const T& value) {
    parts_.push_back({offset, std::vector<std::byte>(sizeof value)});
    std::memcpy(parts_.back().bytes.data(), &value, sizeof value);
  }

  void add_symbol(std::uint64_t index, const std::string& name, unsigned binding, bool is_defined) {
    Elf64_Sym symbol{};
    symbol.st_name = static_cast<Elf64_Word>(add_text(name));
    symbol.st_info = static_cast<unsigned char>(ELF64_ST_INFO(binding, STT_OBJECT));
    symbol.st_shndx = is_defined ? 1 : SHN_UNDEF;
    symbol.st_value = 0x123;
    symbol.st_size = 16;
    put(kSymbols + index * sizeof symbol, symbol);
  }

  void add_relocation(std::uint64_t place, std::uint64_t symbol, std::uint64_t type, std::int64_t addend) {
    Elf64_Rela entry{};
    entry.r_offset = place;
    entry.r_info = ELF64_R_INFO(symbol, type);
    entry.r_addend = addend;
    put(kRelocations + num_relocations_++ * sizeof entry, entry);
    for (Elf64_Dyn& dynamic : program_.dynamic) {
      if (dynamic.d_tag == DT_RELASZ) dynamic.d_un.d_val = num_relocations_ * sizeof entry;
    }
  }

  std::vector<std::byte> bytes() {
    std::vector<std::byte> result = program_.bytes();
    for (const Part& part : parts_)
      std::memcpy(result.data() + part.offset, part.bytes.data(), part.bytes.size());
    return result;
  }

 private:
  struct Part {
    std::uint64_t offset;
    std::vector<std::byte> bytes;
  };
  SmallProgram program_;
  std::vector<Part> parts_;
  std::uint64_t num_relocations_ = 0;
};

std::string refusal_of(RelocatedProgram& program) {
  const ElfFile file("program", program.bytes());
  try {
    const RelocationTable table(file);
  } catch (const Refusal& refusal) {
    return refusal.what();
  }
  return {};
}

TEST(RelocationTable, ReadsRelocationsWithTheirSymbols) {
  RelocatedProgram program;
  program.add_symbol(1, "outside", STB_GLOBAL, false);
  program.add_symbol(2, "weak", STB_WEAK, false);
  program.add_symbol(3, "own", STB_GLOBAL, true);
  program.add_relocation(kVariables, 0, R_X86_64_RELATIVE, 0x777);
  program.add_relocation(kVariables + 8, 1, R_X86_64_GLOB_DAT, 0);
  program.add_relocation(kVariables + 16, 2, R_X86_64_64, 5);
  program.add_relocation(kVariables + 24, 3, R_X86_64_COPY, 0);
  program.add_relocation(0, 0, R_X86_64_NONE, 0);
  const ElfFile file("program", program.bytes());
  const RelocationTable table(file);
  const std::vector<Relocation>& found = table.relocations();
  ASSERT_EQ(found.size(), 4U);
  EXPECT_EQ(found[0].place, kVariables);
  EXPECT_EQ(found[0].addend, 0x777);
  EXPECT_EQ(found[0].symbol, nullptr);
  EXPECT_EQ(found[1].type, static_cast<std::uint32_t>(R_X86_64_GLOB_DAT));
  EXPECT_EQ(found[1].symbol->name, "outside");
  EXPECT_FALSE(found[1].symbol->is_defined || found[1].symbol->is_weak);
  EXPECT_TRUE(found[2].symbol->is_weak);
  EXPECT_EQ(found[2].addend, 5);
  EXPECT_TRUE(found[3].symbol->is_defined);
  EXPECT_EQ(found[3].symbol->value, 0x123U);
  EXPECT_EQ(found[3].symbol->size_bytes, 16U);
}

TEST(RelocationTable, SymbolsHaveTheirVersions) {
  RelocatedProgram program;
  program.add_symbol(1, "versioned", STB_GLOBAL, false);
  program.add_symbol(2, "any", STB_GLOBAL, false);
  program.add_relocation(kVariables, 1, R_X86_64_GLOB_DAT, 0);
  program.add_relocation(kVariables, 2, R_X86_64_GLOB_DAT, 0);
  Elf64_Verneed needed{};
  needed.vn_cnt = 1;
  needed.vn_aux = sizeof needed;
  Elf64_Vernaux version{};
  version.vna_other = 5;
  version.vna_name = static_cast<Elf64_Word>(program.add_text("VERSION_1.2"));
  program.put(kVersions, needed);
  program.put(kVersions + sizeof needed, version);
  program.put(kVersionNumbers + sizeof(Elf64_Half), static_cast<Elf64_Half>(5 | 0x8000));  // hidden
  program.put(kVersionNumbers + 2 * sizeof(Elf64_Half), static_cast<Elf64_Half>(1));
  program.program().add(DT_VERSYM, kVersionNumbers);
  program.program().add(DT_VERNEED, kVersions);
  program.program().add(DT_VERNEEDNUM, 1);
  const ElfFile file("program", program.bytes());
  const RelocationTable table(file);
  ASSERT_EQ(table.relocations().size(), 2U);
  EXPECT_EQ(table.relocations()[0].symbol->version, "VERSION_1.2");
  EXPECT_EQ(table.relocations()[1].symbol->version, "");
}

TEST(RelocationTable, UnpacksRelativeRelocations) {
  RelocatedProgram program;
  program.put(kPacked, kVariables);
  program.put(kPacked + 8, std::uint64_t{0b1011});         // the 1st and the 3rd of the next 63 words
  program.put(kPacked + 16, std::uint64_t{1} | 1U << 1U);  // the 1st after those
  program.put(kVariables, std::uint64_t{100});
  program.put(kVariables + 8, std::uint64_t{101});
  program.put(kVariables + 24, std::uint64_t{103});
  program.program().add(36, kPacked);  // DT_RELR
  program.program().add(35, 24);       // DT_RELRSZ
  program.program().segments.front().p_filesz = SmallProgram::kSize;
  const ElfFile file("program", program.bytes());
  try {
    const RelocationTable table(file);
    FAIL() << "the last place is outside of the file";
  } catch (const Refusal&) {
  }
  program.program().dynamic.back().d_un.d_val = 16;
  const ElfFile shorter("program", program.bytes());
  const RelocationTable table(shorter);
  ASSERT_EQ(table.relocations().size(), 3U);
  EXPECT_EQ(table.relocations()[0].place, kVariables);
  EXPECT_EQ(table.relocations()[0].addend, 100);
  EXPECT_EQ(table.relocations()[1].place, kVariables + 8);
  EXPECT_EQ(table.relocations()[2].place, kVariables + 24);
  EXPECT_EQ(table.relocations()[2].addend, 103);
}

TEST(RelocationTable, PlacesInCodeAreRefused) {
  RelocatedProgram program;
  program.program().segments.front().p_flags = PF_R | PF_X;
  program.add_relocation(kVariables, 0, R_X86_64_RELATIVE, 1);
  EXPECT_NE(refusal_of(program).find("has addresses in its code"), std::string::npos);
}

TEST(RelocationTable, PlacesOutsideAreRefused) {
  for (const std::uint64_t place : {std::uint64_t{4089}, std::uint64_t{4096}, ~std::uint64_t{0} - 3}) {
    RelocatedProgram program;
    program.add_relocation(place, 0, R_X86_64_RELATIVE, 1);
    EXPECT_NE(refusal_of(program).find("is damaged: its relocations"), std::string::npos) << place;
  }
  RelocatedProgram program;
  program.add_symbol(1, "variable", STB_GLOBAL, true);
  program.add_relocation(4096 - 8, 1, R_X86_64_COPY, 0);  // of 16 bytes
  EXPECT_NE(refusal_of(program), "");
}

TEST(RelocationTable, WrongBytesAreRefusedOrRead) {
  const unsigned seed = std::random_device()();
  RecordProperty("seed", static_cast<int>(seed));
  std::mt19937 random(seed);
  RelocatedProgram whole;
  whole.add_symbol(1, "outside", STB_GLOBAL, false);
  for (unsigned i = 0; i < 5; ++i) whole.add_relocation(kVariables + 8 * i, i % 2, R_X86_64_64, i);
  whole.program().add(DT_VERSYM, kVersionNumbers);
  whole.program().add(DT_VERNEED, kVersions);
  whole.program().add(DT_VERNEEDNUM, 100);
  whole.program().add(36, kPacked);
  whole.program().add(35, 64);
  const std::vector<std::byte> bytes = whole.bytes();
  for (int i = 0; i < 3000; ++i) {
    std::vector<std::byte> wrong = bytes;
    for (int k = 0; k < 4; ++k) wrong[random() % wrong.size()] = std::byte(random() % 256);
    try {
      const ElfFile file("program", wrong);
      const RelocationTable table(file);
    } catch (const Refusal&) {
    }
  }
}

}  // namespace
}  // namespace weft::mpi_host
