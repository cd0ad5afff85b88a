// Which GPUs reach one another, and which of them a job uses.
#include <cstdint>

#include "gtest/gtest.h"

#include "memory/kinds/cuda/cuda_options.h"
#include "memory/report.h"
#include "tests/unit/memory/fake_cuda.h"

namespace weft::memory {
namespace {

using base::StatusCode;

class PeerAccessTest : public ::testing::Test {
 protected:
  PeerAccessTest() {
    fake_cuda_reset();
    fake_cuda()->num_devices = 4;
    fake_cuda()->unreachable = {{0, 3}, {3, 0}, {3, 1}};
    options.of<CudaOptions>().driver = FAKE_CUDA;
  }

  MemoryOptions options;
};

TEST_F(PeerAccessTest, IsAskedOfTheDriver) {
  Memory memory(options);
  const KindBackend& cuda = *memory.backend(Kind::kCuda);
  EXPECT_TRUE(cuda.can_access_peer(0, 1));
  EXPECT_TRUE(cuda.can_access_peer(1, 3));
  EXPECT_FALSE(cuda.can_access_peer(3, 1));
  EXPECT_TRUE(cuda.can_access_peer(2, 2)) << "a device reaches itself, whatever the driver says";
  EXPECT_FALSE(cuda.can_access_peer(0, 7));
  EXPECT_EQ(fake_cuda()->calls["cuDevicePrimaryCtxRetain"], 0) << "asking must not make a context";
}

TEST_F(PeerAccessTest, TheReportNamesWhatIsMissing) {
  Memory memory(options);
  const std::string line = report(memory)[1];
  EXPECT_TRUE(line.starts_with("memory cuda: 4 devices: 0 Fake GPU, 1 Fake GPU,")) << line;
  EXPECT_TRUE(line.ends_with("; no peer access from 0 to 3, 3 to 0, 3 to 1")) << line;
  fake_cuda()->unreachable.clear();
  EXPECT_TRUE(report(memory)[1].ends_with("; peer access between all of them"));
}

TEST_F(PeerAccessTest, AJobIsWarnedOfThePairsThatItUses) {
  Memory all(options);
  EXPECT_EQ(peer_access_warning(all, 3), "");
  EXPECT_TRUE(peer_access_warning(all, 4).starts_with(
      "the cuda devices of this job have no peer access from 0 to 3, 3 to 0, 3 to 1: messages between them"));
  ASSERT_TRUE(options.of<CudaOptions>().set_gpus("0,3").ok());
  Memory some(options);
  EXPECT_TRUE(peer_access_warning(some, 2).starts_with(
      "the cuda devices of this job have no peer access from 0 to 3, 3 to 0:"));
  EXPECT_EQ(peer_access_warning(some, 1), "");
}

TEST_F(PeerAccessTest, PesAreGivenTheListedGpusInTurn) {
  ASSERT_TRUE(options.of<CudaOptions>().set_gpus("3,1").ok());
  options.local_rank = 2;
  const Memory memory(options);
  EXPECT_TRUE(memory.check_options().ok());
  EXPECT_EQ(memory.default_place(Kind::kCuda), (Place{Kind::kCuda, 3}));
  EXPECT_EQ(memory.default_place(Kind::kCuda, 1), (Place{Kind::kCuda, 1}));
  EXPECT_EQ(memory.default_place(Kind::kEmulated), (Place{Kind::kEmulated, 0}));
}

TEST_F(PeerAccessTest, AGpuThatIsNotThereIsRefused) {
  ASSERT_TRUE(options.of<CudaOptions>().set_gpus("0,4").ok());
  const base::Status status = Memory(options).check_options();
  EXPECT_EQ(status.code(), StatusCode::kOutOfRange);
  EXPECT_EQ(status.message(),
            "--gpus (WEFT_GPUS) names device 4: there is no cuda:4: this process has 4 cuda devices");
}

}  // namespace
}  // namespace weft::memory
