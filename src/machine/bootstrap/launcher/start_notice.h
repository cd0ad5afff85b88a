// A PE that waits long for the others during the start of a job says so: not every launcher notices a PE or a host that is
// lost before the job has started.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "machine/bootstrap/bootstrap.h"

namespace weft::machine::bootstrap {

// PE 0 says so once in each collective that takes that long.
inline constexpr int kStartNoticeMs = 30000;
// The last PE waits this much longer: it speaks where PE 0 is the missing one.
inline constexpr int kLastPeNoticeMs = 5000;

using Say = std::function<void(std::string_view)>;

// Around one collective. Silent on all PEs but the first and the last. `say` gets the sentence, on another thread; without
// it, it is printed.
class StartNotice {
 public:
  StartNotice(const Bootstrap& bootstrap, int notice_ms, const Say& say = {});
  ~StartNotice();
  StartNotice(const StartNotice&) = delete;
  StartNotice& operator=(const StartNotice&) = delete;

 private:
  class Timer;
  std::unique_ptr<Timer> timer_;
};

// A bootstrap with the notice around its collectives until the start is complete. Not under `weft run`, which notices every
// end of a PE.
class StartingBootstrap final : public Bootstrap {
 public:
  explicit StartingBootstrap(std::unique_ptr<Bootstrap> inner, int notice_ms = kStartNoticeMs, Say say = {});

  // From now on PEs may wait as long as they want.
  void start_is_complete() { is_starting_ = false; }

  std::string_view name() const override { return inner_->name(); }
  bool has_launcher() const override { return inner_->has_launcher(); }
  int pe() const override { return inner_->pe(); }
  int num_pes() const override { return inner_->num_pes(); }
  int local_rank() const override { return inner_->local_rank(); }
  int local_size() const override { return inner_->local_size(); }
  base::Result<std::vector<std::vector<std::byte>>> exchange(const std::vector<std::byte>& mine) override;
  base::Status barrier() override;
  void finished(int exit_code) override { inner_->finished(exit_code); }
  void abort(int exit_code, std::string_view message) override { inner_->abort(exit_code, message); }
  int watch_fd() const override { return inner_->watch_fd(); }
  base::Status watch_status() override { return inner_->watch_status(); }
  std::string unique_name() const override { return inner_->unique_name(); }
  base::Status start_job(std::string_view request) override { return inner_->start_job(request); }
  bool can_begin_again() const override { return inner_->can_begin_again(); }
  Incarnation incarnation() const override { return inner_->incarnation(); }
  void tell_protected(std::uint64_t number, std::uint32_t plan) override {
    inner_->tell_protected(number, plan);
  }
  void refuse_resize(std::uint32_t plan, std::string_view why) override { inner_->refuse_resize(plan, why); }
  Resizing* resizing() override { return inner_->resizing(); }
  base::Status ask_for_resize(std::uint32_t num_pes) override { return inner_->ask_for_resize(num_pes); }
  void give_up_connection() override { inner_->give_up_connection(); }
  LauncherWord next_word() const override { return inner_->next_word(); }
  bool can_outlive_losses() const override { return inner_->can_outlive_losses(); }
  void outlive_losses(bool may_lose_pe_0) override { inner_->outlive_losses(may_lose_pe_0); }
  std::optional<LostPe> take_loss() override { return inner_->take_loss(); }

 private:
  std::unique_ptr<StartNotice> notice() const;

  std::unique_ptr<Bootstrap> inner_;
  int notice_ms_;
  Say say_;
  bool is_starting_;
};

}  // namespace weft::machine::bootstrap
