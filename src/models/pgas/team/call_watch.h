// CallWatch: if a call of the engine lasts long, the rank that it waits for is asked whether it takes part in
// the same one. So ranks that disagree get an error also if no message of the one call reaches a rank in the
// other one. Threads: the PE's.
#pragma once

#include <cstdint>

#include "weft/runtime/scheduler.h"
#include "weft/runtime/work.h"

#include "collective/inbox.h"

namespace weft::pgas {

class CallWatch final : private runtime::Work {
 public:
  CallWatch(runtime::Scheduler& scheduler, collective::Inbox& inbox)
      : Work(&CallWatch::on_turn), scheduler_(scheduler), inbox_(inbox) {}

  // A call has begun, which waits.
  void note() {
    if (!is_posted_) [[unlikely]]
      post();
  }

 private:
  // Doubled as long as the oldest call stays the same: a rank that comes late gets few questions. A question
  // is asked again, so a rank that has not begun the call need not remember it.
  static constexpr double kFirstPauseSeconds = 0.02;

  void post() {
    is_posted_ = true;
    scheduler_.post_after(pause_s_, this);
  }
  static void on_turn(Work* self, runtime::Runtime& /*runtime*/, runtime::WorkAction action) {
    auto& watch = *static_cast<CallWatch*>(self);
    watch.is_posted_ = false;
    if (action == runtime::WorkAction::kRun) watch.look();
  }
  void look() {
    collective::Awaiting* const oldest = inbox_.oldest();
    const bool is_same = oldest != nullptr && oldest->number() == last_;
    pause_s_ = is_same ? 2 * pause_s_ : kFirstPauseSeconds;
    if (oldest == nullptr) return;
    last_ = oldest->number();
    if (is_same) oldest->ask();
    post();
  }

  runtime::Scheduler& scheduler_;
  collective::Inbox& inbox_;
  bool is_posted_ = false;
  double pause_s_ = kFirstPauseSeconds;
  std::uint64_t last_ = ~std::uint64_t{0};  // the oldest call when it was looked last
};

}  // namespace weft::pgas
