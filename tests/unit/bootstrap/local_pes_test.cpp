#include "machine/bootstrap/launcher/local_pes.h"

#include <gtest/gtest.h>

#include <cstring>
#include <future>
#include <string>
#include <utility>
#include <vector>

namespace weft::machine::bootstrap {
namespace {

// Gives the host numbers of all PEs, after `ready`.
class FakeBootstrap final : public Bootstrap {
 public:
  FakeBootstrap(int pe, std::vector<std::uint64_t> hosts, std::future<void> ready = {})
      : pe_(pe), hosts_(std::move(hosts)), ready_(std::move(ready)) {}

  std::string_view name() const override { return "fake"; }
  int pe() const override { return pe_; }
  int num_pes() const override { return static_cast<int>(hosts_.size()); }
  int local_rank() const override { return 0; }
  int local_size() const override { return 1; }
  base::Result<std::vector<std::vector<std::byte>>> exchange(const std::vector<std::byte>& mine) override {
    if (ready_.valid()) ready_.wait();
    std::vector<std::vector<std::byte>> all;
    for (const std::uint64_t host : hosts_) {
      all.emplace_back(sizeof host);
      std::memcpy(all.back().data(), &host, sizeof host);
    }
    all[static_cast<std::size_t>(pe_)] = mine;
    return all;
  }
  base::Status barrier() override { return {}; }
  void finished(int /*exit_code*/) override {}
  void abort(int /*exit_code*/, std::string_view /*message*/) override {}
  int watch_fd() const override { return -1; }

 private:
  int pe_;
  std::vector<std::uint64_t> hosts_;
  std::future<void> ready_;
};

TEST(LocalPesTest, ThePesWithTheSameHostNumberAreCounted) {
  FakeBootstrap bootstrap(3, {7, 8, 7, 7, 8});
  auto local = find_local_pes(bootstrap, 7);
  ASSERT_TRUE(local.ok());
  EXPECT_EQ(local->rank, 2);
  EXPECT_EQ(local->size, 3);
}

// The exchange ends only when the sentence has come.
TEST(LocalPesTest, PeZeroSaysThatItWaits) {
  std::promise<void> others_start;
  FakeBootstrap bootstrap(0, {7, 8, 9}, others_start.get_future());
  std::string said;
  const auto local = find_local_pes(bootstrap, 7, 1, [&](std::string_view sentence) {
    said = sentence;
    others_start.set_value();
  });
  ASSERT_TRUE(local.ok());
  EXPECT_NE(said.find("for the other 2 PEs to start"), std::string::npos) << said;
}

TEST(LocalPesTest, AQuickStartIsSilent) {
  FakeBootstrap bootstrap(0, {7, 8});
  const auto local = find_local_pes(bootstrap, 7, kStartNoticeMs,
                                    [](std::string_view sentence) { ADD_FAILURE() << sentence; });
  EXPECT_TRUE(local.ok());
}

}  // namespace
}  // namespace weft::machine::bootstrap
