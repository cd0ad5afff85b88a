#include "program/elf_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "program/program.h"
#include "program/refusal.h"
#include "tests/unit/mpi_host/small_program.h"

namespace weft::mpi_host {
namespace {

// Reads all that ElfFile can say. Throws: Refusal.
void read_everything(const std::vector<std::byte>& bytes) {
  const Program program(ElfFile("program", bytes));
  const ElfFile& file = program.file();
  (void)file.interpreter();
  (void)file.needed();
  (void)file.writable_variables();
  (void)file.copied_variables();
}

TEST(ElfFile, ReadsTheDynamicEntries) {
  const ElfFile file("program", SmallProgram().bytes());
  EXPECT_EQ(file.interpreter(), "/lib64/ld-linux-x86-64.so.2");
  EXPECT_EQ(file.needed(), std::vector<std::string>{"libfoo.so.1"});
  EXPECT_EQ(file.dynamic_value(DT_FINI), 0x700U);
  EXPECT_EQ(file.writable_variables(), std::nullopt);  // without sections
}

TEST(ElfFile, ReadsTheProgramThatRuns) {
  const ElfFile file = ElfFile::read("/proc/self/exe");
  EXPECT_FALSE(file.interpreter().empty());
  EXPECT_FALSE(file.needed().empty());
}

TEST(ElfFile, OtherFilesAreRefused) {
  const auto refusal_of = [](const std::string& text) {
    std::vector<std::byte> bytes(text.size());
    if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
    try {
      ElfFile("file", bytes);
    } catch (const Refusal& refusal) {
      return std::string(refusal.what());
    }
    return std::string();
  };
  EXPECT_EQ(refusal_of(""), "file: is no program");
  EXPECT_EQ(refusal_of(std::string(200, 'x')), "file: is no program");
  EXPECT_NE(refusal_of("#!/bin/sh\n").find("is a script"), std::string::npos);
  EXPECT_THROW(ElfFile::read("/nowhere/program"), Refusal);
}

TEST(ElfFile, EachCutFileIsReadOrRefused) {
  const std::vector<std::byte> whole = SmallProgram().bytes();
  for (std::size_t size = 0; size < whole.size(); size += 7) {
    try {
      read_everything({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)});
    } catch (const Refusal&) {
      continue;
    }
  }
}

TEST(ElfFile, DamagedFilesAreReadOrRefused) {
  constexpr unsigned kSeed = 20240817;
  std::mt19937 random(kSeed);
  SCOPED_TRACE(::testing::Message() << "seed " << kSeed);
  const std::vector<std::byte> small = SmallProgram().bytes();
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::byte> bytes = small;
    for (int i = 0; i < 4; ++i)
      bytes[random() % (SmallProgram::kDynamicOffset + 200)] = static_cast<std::byte>(random());
    try {
      read_everything(bytes);
    } catch (const Refusal&) {
      continue;
    }
  }
}

}  // namespace
}  // namespace weft::mpi_host
