#include "machine/ucx/handles/quiet.h"

#include <gtest/gtest.h>
#include <ucs/debug/log_def.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

namespace weft::machine::ucx {
namespace {

std::vector<std::string> printed;

ucs_log_func_rc_t record(const char*, unsigned, const char*, ucs_log_level_t,
                         const ucs_log_component_config_t*, const char* format, va_list arguments) {
  char line[256];
  va_list copy;
  va_copy(copy, arguments);
  static_cast<void>(std::vsnprintf(line, sizeof line, format, copy));
  va_end(copy);
  printed.emplace_back(line);
  return UCS_LOG_FUNC_RC_STOP;
}

// What UCX would print is recorded. Who runs the tests may have named a level.
struct QuietTest : ::testing::Test {
  QuietTest() {
    if (const char* const level = std::getenv("UCX_LOG_LEVEL")) level_of_user = level;
    unsetenv("UCX_LOG_LEVEL");
    printed.clear();
    ucs_log_push_handler(&record);
  }
  ~QuietTest() override {
    ucs_log_pop_handler();
    if (level_of_user) setenv("UCX_LOG_LEVEL", level_of_user->c_str(), 1);
  }
  static void log(ucs_log_level_t level, const char* format, const char* argument) {
    ucs_log_dispatch("a_file.c", 1, "a_function", level, nullptr, format, argument);
  }
  using Lines = std::vector<std::string>;

  std::optional<std::string> level_of_user;
};

TEST_F(QuietTest, RemappingsOfUcxAreNotPrinted) {
  const char* const format = "cuIpcOpenMemHandle() failed: %s";
  {
    QuietRemapping quiet;
    log(UCS_LOG_LEVEL_ERROR, format, "resource already mapped");
    log(UCS_LOG_LEVEL_ERROR, format, "invalid argument");
    log(UCS_LOG_LEVEL_FATAL, "%s: failed to open ipc mem handle. addr:0x1 len:1 (already mapped)", "a cache");
    log(UCS_LOG_LEVEL_WARN, "another line: %s", "already mapped");
  }
  EXPECT_EQ(printed, (Lines{"cuIpcOpenMemHandle() failed: invalid argument",
                            "a cache: failed to open ipc mem handle. addr:0x1 len:1 (already mapped)",
                            "another line: already mapped"}));
  log(UCS_LOG_LEVEL_ERROR, format, "resource already mapped");
  EXPECT_EQ(printed.size(), 4U) << "it ends with the object";
}

TEST_F(QuietTest, WarningsAreNotPrinted) {
  QuietRemapping outer;
  {
    QuietUcx quiet;
    log(UCS_LOG_LEVEL_WARN, "a warning: %s", "one");
    log(UCS_LOG_LEVEL_ERROR, "an error: %s", "two");
    log(UCS_LOG_LEVEL_ERROR, "cuIpcOpenMemHandle() failed: %s", "resource already mapped");
  }
  log(UCS_LOG_LEVEL_WARN, "a warning: %s", "three");
  EXPECT_EQ(printed, (Lines{"an error: two", "a warning: three"}));
}

TEST_F(QuietTest, LostPeersAreNotPrintedWhereAJobOutlivesThem) {
  const auto log_all = [] {
    log(UCS_LOG_LEVEL_ERROR, "no %s transport to a peer", "am");
    ucs_log_dispatch("a_file.c", 1, "a_function", UCS_LOG_LEVEL_ERROR, nullptr,
                     "%s(file_name=%s flags=0x%x) failed: %s", "open", "a_file", 0, "no such file");
    log(UCS_LOG_LEVEL_ERROR, "mm ep failed to connect to remote FIFO id 0x1: %s", "shared memory error");
    log(UCS_LOG_LEVEL_ERROR, "another error: %s", "one");
  };
  QuietLostPeers quiet;
  log_all();
  EXPECT_EQ(printed.size(), 4U) << "the job ends with a loss";
  printed.clear();
  ASSERT_EQ(setenv("WEFT_ON_LOSS", "restart", 1), 0);
  log_all();
  unsetenv("WEFT_ON_LOSS");
  EXPECT_EQ(printed, Lines{"another error: one"});
}

TEST_F(QuietTest, AUserWhoNamesALevelSeesAll) {
  ASSERT_EQ(setenv("UCX_LOG_LEVEL", "error", 1), 0);
  {
    QuietRemapping remapping;
    QuietUcx warnings;
    log(UCS_LOG_LEVEL_WARN, "a warning: %s", "one");
    log(UCS_LOG_LEVEL_ERROR, "cuIpcOpenMemHandle() failed: %s", "resource already mapped");
  }
  unsetenv("UCX_LOG_LEVEL");
  EXPECT_EQ(printed.size(), 2U);
}

}  // namespace
}  // namespace weft::machine::ucx
