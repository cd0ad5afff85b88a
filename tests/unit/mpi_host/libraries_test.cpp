#include "program/libraries.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "program/elf_file.h"
#include "program/refusal.h"

namespace weft::mpi_host {
namespace {

TEST(Libraries, TheRuntimeOfTheLanguageMayBeShared) {
  for (const char* const name : {"libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "libgomp.so.1",
                                 "ld-linux-x86-64.so.2", "libmpi_abi.so.1", "libopenblas.so.0",
                                 "libmkl_core.so.2", "libgfortran.so.5", "libquadmath.so.0", "libcuda.so.1"})
    EXPECT_TRUE(is_known_to_be_shareable(name)) << name;
}

TEST(Libraries, OthersMayNot) {
  // The second one keeps communicators of MPI.
  for (const char* const name :
       {"libhdf5.so.310", "libfftw3_mpi.so.3", "libcrypt.so.1", "libmy.so", "libnetcdf.so.19"})
    EXPECT_FALSE(is_known_to_be_shareable(name)) << name;
}

TEST(Libraries, ARequestNamesTheFileOrItsBegin) {
  EXPECT_TRUE(names_library("libhdf5.so.310", "libhdf5.so.310"));
  EXPECT_TRUE(names_library("libhdf5", "libhdf5.so.310"));
  EXPECT_FALSE(names_library("libhdf5", "libhdf5_hl.so.310"));
  EXPECT_FALSE(names_library("hdf5", "libhdf5.so.310"));
}

TEST(Libraries, TheLoaderFindsWhatAProgramLoadsLater) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  const std::string loader = ElfFile::read(program).interpreter();
  const std::vector<Library> libraries = libraries_with(loader, program, "libm.so.6", environ);
  EXPECT_EQ(libraries.front().name, "libm.so.6");
  EXPECT_TRUE(libraries.front().path.starts_with('/')) << libraries.front().path;
  EXPECT_GT(libraries.size(), 1U);
  try {
    libraries_with(loader, program, "libnone-of-these.so", environ);
    FAIL() << "the library does not exist";
  } catch (const Refusal& refusal) {
    EXPECT_EQ(std::string(refusal.what()), "libnone-of-these.so: cannot open shared object file");
  }
}

TEST(Libraries, NamesTheVariablesOfALibrary) {
  EXPECT_EQ(file_name_of({.name = "/usr/lib/libfoo.so.1", .path = {}}), "libfoo.so.1");
  EXPECT_TRUE(is_shared_by_rule("libfoo.so.1", {"libbar", "libfoo"}));
  EXPECT_FALSE(is_shared_by_rule("libfoo.so.1", {"libbar"}));
}

}  // namespace
}  // namespace weft::mpi_host
