#include "machine/bootstrap/launcher/start_notice.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft::machine::bootstrap {
namespace {

// Collectives take until release(), or a minute.
class BlockingBootstrap final : public Bootstrap {
 public:
  BlockingBootstrap(std::string_view name, int pe, int num_pes) : name_(name), pe_(pe), num_pes_(num_pes) {}

  std::string_view name() const override { return name_; }
  int pe() const override { return pe_; }
  int num_pes() const override { return num_pes_; }
  int local_rank() const override { return 0; }
  int local_size() const override { return 1; }
  base::Result<std::vector<std::vector<std::byte>>> exchange(const std::vector<std::byte>& mine) override {
    wait();
    return std::vector<std::vector<std::byte>>(static_cast<std::size_t>(num_pes_), mine);
  }
  base::Status barrier() override {
    wait();
    return {};
  }
  void finished(int /*exit_code*/) override {}
  void abort(int /*exit_code*/, std::string_view /*message*/) override {}
  int watch_fd() const override { return -1; }

  void release() {
    const std::lock_guard lock(mutex_);
    is_released_ = true;
    changed_.notify_one();
  }

 private:
  void wait() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::minutes(1), [this] { return is_released_; }))
        << "nothing was said";
    is_released_ = false;
  }

  std::string_view name_;
  int pe_;
  int num_pes_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_released_ = false;
};

// Each sentence lets the collective end.
struct Started {
  Started(std::string_view name, int pe, int num_pes, int notice_ms) {
    auto inner = std::make_unique<BlockingBootstrap>(name, pe, num_pes);
    blocking = inner.get();
    bootstrap =
        std::make_unique<StartingBootstrap>(std::move(inner), notice_ms, [this](std::string_view text) {
          said.emplace_back(text);
          blocking->release();
        });
  }

  std::vector<std::string> said;
  BlockingBootstrap* blocking = nullptr;
  std::unique_ptr<StartingBootstrap> bootstrap;
};

TEST(StartNoticeTest, EveryCollectiveOfTheStartHasIt) {
  Started started("pmi", 0, 3, 1);
  EXPECT_TRUE(started.bootstrap->exchange({}).ok());
  EXPECT_TRUE(started.bootstrap->exchange({}).ok());
  EXPECT_TRUE(started.bootstrap->barrier().ok());
  ASSERT_EQ(started.said.size(), 3U);
  for (const std::string& sentence : started.said) {
    EXPECT_NE(sentence.find("PE 0 has waited 0 s for the other 2 PEs to start"), std::string::npos)
        << sentence;
  }
}

TEST(StartNoticeTest, TheLastPeSaysItLater) {
  Started started("pmix", 2, 3, 1 - kLastPeNoticeMs);
  EXPECT_TRUE(started.bootstrap->barrier().ok());
  ASSERT_EQ(started.said.size(), 1U);
  EXPECT_NE(started.said[0].find("PE 2 has waited"), std::string::npos) << started.said[0];
}

// They would say it at once, and the collective is released a second time then.
TEST(StartNoticeTest, TheOthersAndACompleteStartAreSilent) {
  Started middle("pmi", 1, 3, -kLastPeNoticeMs);
  Started local("local", 0, 3, 0);
  Started complete("pmi", 0, 3, 0);
  complete.bootstrap->start_is_complete();
  for (Started* one : {&middle, &local, &complete}) {
    std::promise<void> has_begun;
    auto collective = std::async(std::launch::async, [&] {
      has_begun.set_value();
      return one->bootstrap->barrier().ok();
    });
    has_begun.get_future().wait();
    EXPECT_EQ(collective.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
    one->blocking->release();
    EXPECT_TRUE(collective.get());
    EXPECT_TRUE(one->said.empty());
  }
}

}  // namespace
}  // namespace weft::machine::bootstrap
