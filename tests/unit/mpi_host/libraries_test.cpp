#include "libraries.h"

#include <gtest/gtest.h>

namespace weft::mpi_host {
namespace {

TEST(Libraries, TheRuntimeOfTheLanguageMayBeShared) {
  for (const char* const name :
       {"libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "libgomp.so.1", "ld-linux-x86-64.so.2",
        "libmpi_abi.so.1", "libopenblas.so.0", "libmkl_core.so.2"})
    EXPECT_TRUE(is_known_to_be_shareable(name)) << name;
}

TEST(Libraries, OthersMayNot) {
  // The second one keeps communicators of MPI.
  for (const char* const name :
       {"libhdf5.so.310", "libfftw3_mpi.so.3", "libcrypt.so.1", "libmy.so", "libgfortran.so.5"})
    EXPECT_FALSE(is_known_to_be_shareable(name)) << name;
}

TEST(Libraries, ARequestNamesTheFileOrItsBegin) {
  EXPECT_TRUE(names_library("libhdf5.so.310", "libhdf5.so.310"));
  EXPECT_TRUE(names_library("libhdf5", "libhdf5.so.310"));
  EXPECT_FALSE(names_library("libhdf5", "libhdf5_hl.so.310"));
  EXPECT_FALSE(names_library("hdf5", "libhdf5.so.310"));
}

}  // namespace
}  // namespace weft::mpi_host
