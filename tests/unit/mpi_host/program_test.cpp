#include "program.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "refusal.h"
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

TEST(Program, TheImageHasNoMarkOfAnExecutableAndRunsNothing) {
  const Program program(ElfFile("program", SmallProgram().bytes()));
  const ElfFile image("image", program.image());
  EXPECT_EQ(*image.dynamic_value(DT_FLAGS_1) & DF_1_PIE, 0U);
  EXPECT_EQ(*image.dynamic_value(DT_FLAGS_1) & DF_1_NOW, static_cast<std::uint64_t>(DF_1_NOW));
  EXPECT_EQ(image.dynamic_value(DT_INIT_ARRAYSZ), 0U);
  EXPECT_EQ(image.dynamic_value(DT_FINI), std::nullopt);
  EXPECT_EQ(image.needed(), std::vector<std::string>{"libfoo.so.1"});
}

TEST(Program, ItsFunctionsAreKept) {
  const Program program(ElfFile("program", SmallProgram().bytes()));
  EXPECT_EQ(program.constructors.offset, 0x500U);
  EXPECT_EQ(program.constructors.count, 3U);
  EXPECT_EQ(program.destructors.count, 0U);
  EXPECT_EQ(program.first_constructor, 0U);
  EXPECT_EQ(program.last_destructor, 0x700U);
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
