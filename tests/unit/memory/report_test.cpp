#include "memory/report.h"

#include <gtest/gtest.h>

#include "memory/kinds/cuda/cuda_options.h"
#include "memory/kinds/emulated/emulated_options.h"

namespace weft::memory {
namespace {

TEST(ReportTest, SaysWhatEveryKindHasOrLacks) {
  MemoryOptions options;
  options.of<CudaOptions>().driver = "";
  options.of<EmulatedOptions>().num_devices = 1;
  Memory memory(options);
  const std::vector<std::string> lines = report(memory);
  ASSERT_EQ(lines.size(), std::size_t{kNumKinds});
  EXPECT_EQ(lines[0], "memory host: usable");
  EXPECT_TRUE(lines[1].starts_with("memory cuda: not usable: ")) << lines[1];
  EXPECT_GT(lines[1].size(), std::string("memory cuda: not usable: ").size());
  EXPECT_TRUE(lines[2].starts_with("memory emulated: 1 device: 0 ")) << lines[2];
}

TEST(ReportTest, NobodyIsWarnedWithoutGpus) {
  MemoryOptions options;
  options.of<CudaOptions>().driver = "";
  Memory memory(options);
  EXPECT_EQ(peer_access_warning(memory, 4), "");
}

}  // namespace
}  // namespace weft::memory
