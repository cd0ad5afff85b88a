#include "program/program.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>

#include "program/refusal.h"
#include "ranks/host_interface.h"
#include "tests/unit/mpi_host/small_program.h"

namespace weft::mpi_host {
namespace {

std::string refusal_of(SmallProgram program) {
  try {
    const Program read(ElfFile("program", program.bytes()));
  } catch (const Refusal& refusal) {
    return refusal.what();
  }
  return {};
}

TEST(Program, ItsSegmentsHaveWholePages) {
  SmallProgram program;
  program.segments.push_back(SmallProgram::segment(PT_LOAD, 0, 0));  // loads nothing
  Elf64_Phdr variables = SmallProgram::segment(PT_LOAD, 0x10, 0x20);
  variables.p_vaddr = 0x3010;
  variables.p_memsz = 0x1000;
  variables.p_flags = PF_R | PF_W;
  program.segments.push_back(variables);
  const Program read(ElfFile("program", program.bytes()));
  EXPECT_EQ(read.loaded_segments().size(), 2U);
  EXPECT_EQ(read.image_bytes(), 0x5000U);
}

TEST(Program, SegmentsThatCannotBeMappedAreRefused) {
  const auto refusal_with = [](std::uint64_t address, std::uint64_t memory, std::uint32_t flags) {
    SmallProgram program;
    Elf64_Phdr segment = SmallProgram::segment(PT_LOAD, 0x10, 0x20);
    segment.p_vaddr = address;
    segment.p_memsz = memory;
    segment.p_flags = flags;
    program.segments.push_back(segment);
    return refusal_of(std::move(program));
  };
  EXPECT_EQ(refusal_with(0x3010, 0x30, PF_R | PF_W), "");
  constexpr std::uint64_t kHuge = std::uint64_t{1} << 62;
  for (const std::string& refusal :
       {refusal_with(0x3014, 0x30, PF_R | PF_W), refusal_with(0x10, 0x30, PF_R | PF_W),
        refusal_with(0x3010, 0x10, PF_R | PF_W), refusal_with(0x3010, 0x30, PF_R),
        refusal_with(kHuge + 0x10, 0x30, PF_R | PF_W), refusal_with(0x3010, kHuge, PF_R | PF_W)})
    EXPECT_NE(refusal.find("is damaged: its segments"), std::string::npos) << refusal;
}

TEST(Program, RanksWithVariablesInTooManySegmentsCannotMove) {
  SmallProgram program;
  for (std::uint64_t i = 1; i <= WEFT_MPI_HOST_MOST_RANGES; ++i) {
    Elf64_Phdr variables = SmallProgram::segment(PT_LOAD, 0x10, 0x20);
    variables.p_vaddr = i * 0x1000 + 0x10;
    variables.p_flags = PF_R | PF_W;
    program.segments.push_back(variables);
    const char* const obstacle = Program(ElfFile("program", program.bytes())).obstacle_to_moves();
    EXPECT_EQ(obstacle != nullptr, i == WEFT_MPI_HOST_MOST_RANGES) << i << " segments";
  }
}

TEST(Program, ItsFunctionsAreKept) {
  const Program program(ElfFile("program", SmallProgram().bytes()));
  EXPECT_EQ(program.constructors.offset, 0x500U);
  EXPECT_EQ(program.constructors.count, 3U);
  EXPECT_EQ(program.destructors.count, 0U);
  EXPECT_EQ(program.first_constructor, 0U);
  EXPECT_EQ(program.last_destructor, 0x700U);
}

TEST(Program, FunctionsOutsideAreRefused) {
  SmallProgram program;
  program.add(DT_INIT, 0x7000);
  EXPECT_NE(refusal_of(program).find("its constructors are not"), std::string::npos);
  program = {};
  program.add(DT_PREINIT_ARRAY, 0xff8);
  program.add(DT_PREINIT_ARRAYSZ, 16);
  EXPECT_NE(refusal_of(program).find("its constructors are not"), std::string::npos);
}

TEST(Program, FixedAddressesAreRefused) {
  SmallProgram program;
  program.header.e_type = ET_EXEC;
  EXPECT_NE(refusal_of(std::move(program)).find("has fixed addresses"), std::string::npos);
}

TEST(Program, ASharedLibraryIsRefused) {
  SmallProgram program;
  program.dynamic[2].d_un.d_val = 0;
  EXPECT_NE(refusal_of(std::move(program)), "");
}

TEST(Program, StaticProgramsAreRefused) {
  SmallProgram program;
  program.header.e_type = ET_EXEC;
  program.segments.erase(program.segments.begin() + 1);
  EXPECT_NE(refusal_of(program).find("is linked statically"), std::string::npos);
  program.header.e_type = ET_DYN;
  EXPECT_NE(refusal_of(program).find("-static-pie"), std::string::npos);
}

TEST(Program, ThreadLocalVariablesAreRefused) {
  SmallProgram program;
  program.segments.push_back(SmallProgram::segment(PT_TLS, 3000, 8));
  EXPECT_NE(refusal_of(std::move(program)).find("thread-local"), std::string::npos);
}

TEST(Program, OtherProcessorsAreRefused) {
  SmallProgram program;
  program.header.e_machine = EM_AARCH64;
  EXPECT_NE(refusal_of(std::move(program)).find("x86-64"), std::string::npos);
}

}  // namespace
}  // namespace weft::mpi_host
