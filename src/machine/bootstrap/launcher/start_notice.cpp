#include "machine/bootstrap/launcher/start_notice.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "base/format.h"
#include "machine/bootstrap/last_words.h"
#include "machine/bootstrap/launcher/blocked_signals.h"

namespace weft::machine::bootstrap {

// Calls `say` if it still exists after that time. Without a thread to be had, it never does.
class StartNotice::Timer {
 public:
  Timer(int notice_ms, std::function<void()> say) : say_(std::move(say)) {
    const BlockedSignals blocked;
    try {
      thread_ = std::thread([this, notice_ms] {
        std::unique_lock lock(mutex_);
        const auto wait = std::chrono::milliseconds(notice_ms);
        if (!changed_.wait_for(lock, wait, [this] { return is_over_; })) say_();
      });
    } catch (const std::system_error&) {
      say_ = nullptr;
    }
  }
  ~Timer() {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

 private:
  std::function<void()> say_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;
  std::thread thread_;
};

StartNotice::StartNotice(const Bootstrap& bootstrap, int notice_ms, const Say& say) {
  const int pe = bootstrap.pe();
  const int others = bootstrap.num_pes() - 1;
  if (others == 0 || (pe != 0 && pe != others)) return;
  if (pe != 0) notice_ms += kLastPeNoticeMs;
  timer_ = std::make_unique<Timer>(notice_ms, [=] {
    const std::string sentence = base::format(
        "weft: PE {} has waited {} s for the other {} PEs to start. Not every launcher notices a process "
        "that "
        "ended before it joined the job, or a host that is lost during the start: if one is, end the job",
        pe, notice_ms / 1000, others);
    if (say) {
      say(sentence);
    } else {
      print_last_words(sentence);
    }
  });
}

StartNotice::~StartNotice() = default;

StartingBootstrap::StartingBootstrap(std::unique_ptr<Bootstrap> inner, int notice_ms, Say say)
    : inner_(std::move(inner)),
      notice_ms_(notice_ms),
      say_(std::move(say)),
      is_starting_(inner_->name() != "local") {}

std::unique_ptr<StartNotice> StartingBootstrap::notice() const {
  return is_starting_ ? std::make_unique<StartNotice>(*inner_, notice_ms_, say_) : nullptr;
}

base::Result<std::vector<std::vector<std::byte>>> StartingBootstrap::exchange(
    const std::vector<std::byte>& mine) {
  const auto noticed = notice();
  return inner_->exchange(mine);
}

base::Status StartingBootstrap::barrier() {
  const auto noticed = notice();
  return inner_->barrier();
}

}  // namespace weft::machine::bootstrap
