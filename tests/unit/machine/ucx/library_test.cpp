#include "machine/ucx/setup/library.h"

#include <gtest/gtest.h>

#include "machine/factory/factory.h"

namespace weft::machine::ucx {
namespace {

TEST(Library, TheOneInUseWillDo) {
  EXPECT_TRUE(check_library().ok()) << check_library().to_string();
  EXPECT_NE(library_path().find("libucp"), std::string::npos) << library_path();
}

TEST(Library, AnOldOneIsRefusedInASentence) {
  const base::Status status = check_library_version(1, 13, "1.13.1", "/usr/lib/libucp.so.0");
  EXPECT_EQ(status.code(), base::StatusCode::kUnsupported);
  for (const char* part : {"1.16", "1.13.1", "/usr/lib/libucp.so.0", "LD_LIBRARY_PATH"}) {
    EXPECT_NE(status.message().find(part), std::string_view::npos) << part;
  }
  EXPECT_TRUE(check_library_version(1, 16, "1.16.0", "x").ok());
  EXPECT_TRUE(check_library_version(2, 0, "2.0.0", "x").failed());
}

TEST(Report, NamesVersionFileAndTransports) {
  const auto lines = machine_report();
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_NE(lines[0].find(library_version()), std::string::npos);
  EXPECT_NE(lines[1].find("memory"), std::string::npos) << lines[1];
  EXPECT_NE(lines[3].find("copied by both PEs"), std::string::npos) << lines[3];
}

}  // namespace
}  // namespace weft::machine::ucx
