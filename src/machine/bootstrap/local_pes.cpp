#include "machine/bootstrap/local_pes.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/format.h"
#include "machine/bootstrap/blocked_signals.h"
#include "machine/bootstrap/last_words.h"

namespace weft::machine::bootstrap {
namespace {

// Calls `say` if it still exists after that time. Without a thread to be had, it never does.
class Notice {
 public:
  Notice(int patience_ms, std::function<void()> say) : say_(std::move(say)) {
    const BlockedSignals blocked;
    try {
      thread_ = std::thread([this, patience_ms] {
        std::unique_lock lock(mutex_);
        const auto patience = std::chrono::milliseconds(patience_ms);
        if (!changed_.wait_for(lock, patience, [this] { return is_over_; })) say_();
      });
    } catch (const std::system_error&) {
      say_ = nullptr;
    }
  }
  ~Notice() {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  Notice(const Notice&) = delete;
  Notice& operator=(const Notice&) = delete;

 private:
  std::function<void()> say_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_over_ = false;
  std::thread thread_;
};

base::Result<std::vector<std::vector<std::byte>>> first_exchange(
    Bootstrap& bootstrap, const std::vector<std::byte>& mine, int patience_ms,
    const std::function<void(std::string_view)>& say) {
  if (bootstrap.pe() != 0) return bootstrap.exchange(mine);
  const Notice notice(patience_ms, [&] {
    const std::string sentence = base::format(
        "weft: PE 0 has waited {} s for the other {} PEs to start. Not every launcher notices a process that "
        "ended "
        "before it joined the job: if one has, end the job",
        patience_ms / 1000, bootstrap.num_pes() - 1);
    if (say) {
      say(sentence);
    } else {
      print_last_words(sentence);
    }
  });
  return bootstrap.exchange(mine);
}

}  // namespace

base::Result<LocalPes> find_local_pes(Bootstrap& bootstrap, std::uint64_t host, int patience_ms,
                                      const std::function<void(std::string_view)>& say) {
  std::vector<std::byte> mine(sizeof host);
  std::memcpy(mine.data(), &host, mine.size());
  auto all = first_exchange(bootstrap, mine, patience_ms, say);
  if (!all.ok()) return all.status();
  return LocalPes{.rank = static_cast<int>(std::count(all->begin(), all->begin() + bootstrap.pe(), mine)),
                  .size = static_cast<int>(std::count(all->begin(), all->end(), mine))};
}

}  // namespace weft::machine::bootstrap
