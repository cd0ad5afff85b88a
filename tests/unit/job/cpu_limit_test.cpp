#include "job/cpu_limit.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace weft::job {
namespace {

// A folder as /sys/fs/cgroup.
class CpuLimitTest : public ::testing::Test {
 protected:
  CpuLimitTest() {
    std::string name = (std::filesystem::temp_directory_path() / "weft-groups-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  ~CpuLimitTest() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = root_ / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  std::optional<CpuLimit> find(const std::string& groups) const {
    return find_cpu_limit(groups, root_.string());
  }
  int found(const std::string& groups) const {
    const auto limit = find(groups);
    return limit ? limit->num_processors : 0;
  }

 private:
  std::filesystem::path root_;
};

TEST_F(CpuLimitTest, ReadsTheUnifiedHierarchy) {
  write("job/cpu.max", "250000 100000\n");
  write("free/cpu.max", "max 100000\n");
  write("part/cpu.max", "50000 100000\n");
  EXPECT_EQ(found("0::/job\n"), 2) << "rounded down";
  EXPECT_EQ(found("0::/free\n"), 0);
  EXPECT_EQ(found("0::/part\n"), 1) << "at least one";
  EXPECT_EQ(found("0::/none\n"), 0);
  EXPECT_NE(find("0::/job\n")->group, find("0::/part\n")->group);
}

TEST_F(CpuLimitTest, TakesTheTightestOfTheGroupsAround) {
  write("cpu.max", "1600000 100000\n");
  write("outer/cpu.max", "400000 100000\n");
  write("outer/inner/cpu.max", "800000 100000\n");
  write("outer/other/cpu.max", "max 100000\n");
  EXPECT_EQ(found("0::/outer/inner\n"), 4);
  EXPECT_EQ(found("0::/outer/other\n"), 4);
  EXPECT_EQ(find("0::/outer/inner\n")->group, find("0::/outer/other\n")->group);
  write("outer/equal/cpu.max", "400000 100000\n");
  EXPECT_EQ(find("0::/outer/equal\n")->group, find("0::/outer/other\n")->group)
      << "which more processes share";
  EXPECT_EQ(found("0::/\n"), 16);
  EXPECT_EQ(found("0::/outside/the/container\n"), 16) << "only the root can be seen";
}

TEST_F(CpuLimitTest, ReadsTheHierarchyOfTheController) {
  write("cpu/job/cpu.cfs_quota_us", "300000\n");
  write("cpu/job/cpu.cfs_period_us", "100000\n");
  write("cpu/free/cpu.cfs_quota_us", "-1\n");
  write("cpu/free/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(found("4:memory:/m\n3:cpu,cpuacct:/job\n0::/\n"), 3);
  EXPECT_EQ(found("3:cpuacct,cpu:/free\n"), 0);
  EXPECT_EQ(found("3:cpuset:/job\n"), 0) << "another controller";
}

TEST_F(CpuLimitTest, DamagedFilesAreNoLimit) {
  for (const char* text :
       {"", "x y\n", "100000\n", "100000 0\n", "0 100000\n", "99999999999999999999999 1\n"}) {
    write("job/cpu.max", text);
    EXPECT_EQ(found("0::/job\n"), 0) << text;
  }
  for (const char* groups : {"", "\n", "0", "0:", "::", "0::", "a:b:c:d\n"})
    EXPECT_EQ(found(groups), 0) << groups;
}

}  // namespace
}  // namespace weft::job
