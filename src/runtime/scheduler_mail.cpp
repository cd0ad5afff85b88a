// What comes to a scheduler from other threads, and when: mail, questions, timers.
#include <algorithm>
#include <chrono>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

#include "weft/runtime/scheduler.h"

#include "base/format.h"
#include "machine/machine.h"
#include "runtime/losses/losses.h"

namespace weft::runtime {

void Scheduler::post_mail(Mail mail) {
  {
    std::lock_guard lock(mailbox_mutex_);
    mailbox_.push_back(std::move(mail));
  }
  // One wake-up for all that is posted before the PE reads its mail.
  if (!mail_arrived_.exchange(true, std::memory_order_acq_rel)) machine_.wake();
}

// As one piece of mail, for which nothing is allocated.
void Scheduler::ask_for_report() {
  is_report_asked_.store(true, std::memory_order_relaxed);
  mail_arrived_.store(true, std::memory_order_release);
  machine_.wake();
}

void Scheduler::ask_urgently() {
  interrupts_.fetch_or(kAsked, std::memory_order_release);
  mail_arrived_.store(true, std::memory_order_release);
  machine_.wake();
}

void Scheduler::tell_loss(int pe, std::string why) {
  losses_->tell(pe, std::move(why));
  ask_urgently();
}

void Scheduler::answer_urgently() {
  const auto others = static_cast<std::uint8_t>(~kAsked);
  const bool is_asked = (interrupts_.fetch_and(others, std::memory_order_acquire) & kAsked) != 0;
  if (is_asked) losses_->unblock_told();
  if (is_asked && urgent_function_ && !ending()) urgent_function_();
}

bool Scheduler::read_mail() {
  std::vector<Mail> mail;
  {
    std::lock_guard lock(mailbox_mutex_);
    mail.swap(mailbox_);
    mail_arrived_.store(false, std::memory_order_relaxed);
  }
  thread_ = pthread_self();  // it makes the turns now: a function may call fail()
  serves_threads_ = idle_hook_ != nullptr;
  batch_left_ = kBatch;  // see progress()
  const int num_lost = losses_->count();
  try {
    for (auto& [function, ends_pe] : mail) {
      if (!exiting_ || ends_pe) function();
    }
    answer_urgently();
    losses_->handle_told();
    if (is_report_asked_.exchange(false) && report_function_ && !exiting_) report_function_();
  } catch (...) {
    fail_unawaited(std::current_exception(),
                   base::format("a function posted by another thread to PE {}", pe_));
  }
  batch_left_ = 0;
  // The hooks of a loss may have ended what a call waits for.
  return !mail.empty() || losses_->count() != num_lost;
}

Scheduler::TimerId Scheduler::post_after(double seconds, Work* work) {
  constexpr double kLongestSeconds = 1e9;  // about 32 years; the clock can add it without overflow
  double bounded = seconds > 0 ? std::min(seconds, kLongestSeconds) : 0;
  auto delay = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(bounded));
  const TimerId timer{Clock::now() + delay, next_timer_++};
  timers_.emplace(timer, work);
  return timer;
}

bool Scheduler::expire_timers() {
  auto now = Clock::now();
  bool any = false;
  while (!timers_.empty() && timers_.begin()->first.when <= now) {
    queue_.push(timers_.begin()->second);
    timers_.erase(timers_.begin());
    any = true;
  }
  return any;
}

}  // namespace weft::runtime
