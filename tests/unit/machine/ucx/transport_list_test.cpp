#include "machine/ucx/setup/transport_list.h"

#include <gtest/gtest.h>

#include <string>

namespace weft::machine::ucx {
namespace {

std::string without_drivers(std::string_view list) { return without_sysv(list, false, false); }

TEST(TransportList, NamesOfSeveralTransportsAreReplacedByThem) {
  EXPECT_EQ(without_drivers("self,sm"), "self,posix,cma");
  EXPECT_EQ(without_drivers("shm,self"), "posix,cma,self");
  EXPECT_EQ(without_drivers("self,sm,tcp"), "self,posix,cma,tcp");
  EXPECT_EQ(without_drivers("mm,self"), "posix,self");
  EXPECT_EQ(without_sysv("sm", true, true), "posix,xpmem,knem,cma");
  EXPECT_EQ(without_sysv("mm", true, true), "posix,xpmem");
}

TEST(TransportList, PosixTakesThePlaceOfSysv) {
  EXPECT_EQ(without_drivers("sysv"), "posix");
  EXPECT_EQ(without_drivers("self,posix,sysv,cma"), "self,posix,cma");
  EXPECT_EQ(without_drivers("\\sysv,self"), "posix,self");
  EXPECT_EQ(without_drivers("sysv:aux,self"), "posix,self");
  EXPECT_EQ(without_drivers(" sysv , self "), "posix,self");
}

TEST(TransportList, AListOfWhatIsLeftOutHasSysvToo) {
  EXPECT_EQ(without_drivers("all"), "^sysv");
  EXPECT_EQ(without_drivers("^all"), "^sysv") << "UCX takes it for all";
  EXPECT_EQ(without_drivers("^tcp"), "^tcp,sysv");
  EXPECT_EQ(without_drivers("^tcp,sysv"), "^tcp,sysv");
  EXPECT_EQ(without_drivers("^sm"), "^sm,sysv");
}

TEST(TransportList, OtherListsStay) {
  EXPECT_EQ(without_drivers("self,posix"), "self,posix");
  EXPECT_EQ(without_drivers("tcp,self"), "tcp,self");
  EXPECT_EQ(without_drivers("rc_x,cuda,self"), "rc_x,cuda,self");
  for (const char* const refused_by_ucx : {"", "all,sysv", "^", ","}) {
    EXPECT_EQ(without_drivers(refused_by_ucx), refused_by_ucx);
  }
}

}  // namespace
}  // namespace weft::machine::ucx
