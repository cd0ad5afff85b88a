#include "machine/ucx/setup/shared_memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <ucs/debug/log_def.h>

#include <cstdarg>
#include <cstdlib>
#include <string_view>

#include "tests/unit/machine/ucx/setting.h"

namespace weft::machine::ucx {
namespace {

using base::StatusCode;

bool says(const base::Status& status, std::string_view words) {
  return status.message().find(words) != std::string_view::npos;
}

TEST(SharedMemory, AFolderThatDoesNotExistIsNamed) {
  const Setting folder("UCX_POSIX_DIR", "/there/is/no/such/folder");
  const base::Status status = check_room_for_segments(4);
  EXPECT_EQ(status.code(), StatusCode::kUnreachable);
  EXPECT_TRUE(says(status, "/there/is/no/such/folder cannot be written")) << status.to_string();
}

TEST(SharedMemory, WhatIsFreeAndWhatIsNeededIsSaid) {
  const Setting folder("UCX_POSIX_DIR", "/tmp");
  const Setting buffers("UCX_MM_RX_BUFS_GROW", "100000000000");  // more than any file system holds
  const base::Status status = check_room_for_segments(28);
  EXPECT_EQ(status.code(), StatusCode::kOutOfMemory);
  for (const char* const words :
       {" are free in /tmp", "needs 805664062.5 MiB there for each of the 28 PEs", "--shm-size"})
    EXPECT_TRUE(says(status, words)) << words << ": " << status.to_string();
}

TEST(SharedMemory, AFileSizeLimitIsSaid) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{segment_bytes() - 1, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const base::Status status = check_room_for_segments(2);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_TRUE(says(status, "ulimit -f")) << status.to_string();
}

TEST(SharedMemory, TransportsThatMakeNoSegmentsNeedNoRoom) {
  const Setting folder("UCX_POSIX_DIR", "/there/is/no/such/folder");
  EXPECT_TRUE(check_shared_memory({"self/memory"}, 1).ok());
  EXPECT_TRUE(check_shared_memory({"posix/memory", "self/memory"}, 1).failed());
  const NoSetting by_default("UCX_TLS");
  EXPECT_TRUE(check_shared_memory({"self/memory", "cma/memory"}, 2).failed()) << "UCX has left `posix` out";
  const Setting by_user("UCX_TLS", "tcp,self");
  EXPECT_TRUE(check_shared_memory({"self/memory", "tcp/lo"}, 2).ok());
}

TEST(SharedMemory, SmallerQueuesNeedAQuarter) {
  const std::uint64_t usual = segment_bytes();
  const Setting elements("UCX_MM_FIFO_SIZE", "64");
  const Setting buffers("UCX_MM_RX_BUFS_GROW", "72");
  EXPECT_LT(segment_bytes(), usual / 3);
  EXPECT_GT(segment_bytes(), usual / 5);
}

// What UCX logs when it cannot add buffers.
TEST(SharedMemoryDeathTest, AProcessThatWouldLoseMessagesEnds) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto log = [](ucs_log_level_t level, const char* pool) {
    ucs_log_dispatch("mpool.c", 1, "ucs_mpool_grow", level, nullptr,
                     "Failed to allocate memory pool (name=%s) chunk: Out of memory", pool);
  };
  const auto run = [&](bool with_loss) {
    ucs_log_push_handler([](const char*, unsigned, const char*, ucs_log_level_t,
                            const ucs_log_component_config_t*, const char*,
                            va_list) { return UCS_LOG_FUNC_RC_STOP; });  // nothing is printed
    end_process_when_full(3, 4);
    log(UCS_LOG_LEVEL_ERROR, "ucp_requests");
    log(UCS_LOG_LEVEL_WARN, "mm_recv_desc");
    if (with_loss) log(UCS_LOG_LEVEL_ERROR, "mm_recv_desc");
    std::_Exit(0);
  };
  EXPECT_EXIT(run(true), ::testing::ExitedWithCode(1),
              "weft: PE 3 ends: .* are free in .* each of the 4 PEs");
  EXPECT_EXIT(run(false), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace weft::machine::ucx
