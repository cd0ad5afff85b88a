#include "runtime/collective/quiescence.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "weft/base/error.h"
#include "weft/runtime/messenger.h"

#include "memory/memory.h"
#include "runtime/collective/reductions.h"
#include "runtime/losses/losses.h"
#include "runtime/message/handlers.h"

namespace weft::runtime {

namespace {

constexpr ScopeId kScope{0, 0};
// Between waves that found something under way; doubled up to the limit so that waiting for a long
// computation or for a receive that is never posted costs little.
constexpr double kFirstPauseSeconds = 20e-6;
constexpr double kLongestPauseSeconds = 5e-3;
// Between waves that look for a standstill.
constexpr double kFirstPollSeconds = 50e-3;
constexpr double kLongestPollSeconds = 1;
// Behind a poll that has found none that can go on. In this time arrive what no PE says that it waits for: control messages, and
// one-sided copies of some GB.
constexpr double kConfirmingPollSeconds = 1;

// A poll of an idle queue must not keep work of a low priority from being done.
constexpr std::int32_t kBehindEverything = std::numeric_limits<std::int32_t>::max();

// The indices of the sums that a wave collects.
enum Count : std::size_t {
  kSent,
  kProcessed,
  kWaits,  // what PEs wait for besides counted messages
  kSteps,  // of the program. This and kWaits are 0 in a wave that does not poll ProgramActivity
  kNumCounts
};

}  // namespace

Quiescence::Quiescence(Messenger& messenger, Reductions& reductions)
    : messenger_(messenger), reductions_(reductions) {
  messenger_.losses().on_loss([this](int pe) { on_loss(pe); });
  messenger_.set_handler(
      kQuiescenceStartHandler,
      [](void* context, MessagePtr message) {
        auto* self = static_cast<Quiescence*>(context);
        FutureAddress waiter;
        message->unpacker() | waiter.pe | waiter.id;
        self->start(Future<>::at(self->messenger_, waiter));
      },
      this);
  messenger_.set_handler(
      kQuiescenceProbeHandler,
      [](void* context, MessagePtr message) {
        static_cast<Quiescence*>(context)->on_probe(message->unpacker());
      },
      this);
  messenger_.set_handler(
      kQuiescenceResultHandler,
      [](void* context, MessagePtr message) {
        static_cast<Quiescence*>(context)->on_result(message->unpacker());
      },
      this);
}

// --- What waits

Future<> Quiescence::detect() {
  Future<> future(messenger_);
  note_uncounted(future);
  ++num_detecting_;
  future.then([this](const Future<>&) { --num_detecting_; });
  if (messenger_.pe() == 0) {
    start(future);
  } else {
    const FutureAddress waiter = future.state()->address();
    MessagePtr message = Message::pack(messenger_, kQuiescenceStartHandler, waiter.pe, waiter.id);
    message->envelope().flags |= kControlFlag;
    messenger_.send(0, std::move(message));
  }
  return future;
}

void Quiescence::note_uncounted(const Future<>& end) {
  ++num_uncounted_;
  end.then([this](const Future<>&) { --num_uncounted_; });
}

Future<> Quiescence::standstill() {
  if (messenger_.pe() != 0) {
    throw base::Error(base::StatusCode::kInvalidArgument, "only PE 0 can wait for a standstill of the job");
  }
  watchers_.emplace_back(messenger_);
  last_poll_.clear();
  if (watchers_.size() == 1) {
    poll_pause_seconds_ = kFirstPollSeconds;
    poll_after(poll_pause_seconds_);
  }
  return watchers_.back();
}

void Quiescence::start(Future<> waiter) {
  const Losses& losses = messenger_.losses();
  if (losses.count() > 0) return waiter.set_error(lost_error(losses.in_order().front(), "quiescence"));
  if (waiters_.empty()) pause_seconds_ = kFirstPauseSeconds;
  waiters_.push_back(std::move(waiter));
  previous_.clear();
  if (!active_) begin_wave();
}

// --- Waves

// Messages to the lost PE are never handled, so the job cannot be seen to be quiescent, or to stand still, any more.
void Quiescence::on_loss(int pe) {
  watchers_.clear();
  for (auto& waiter : std::exchange(waiters_, {})) waiter.set_error(lost_error(pe, "quiescence"));
}

void Quiescence::begin_wave() {
  if (messenger_.losses().count() > 0) return;
  active_ = true;
  wave_polls_ = std::exchange(poll_is_due_, false);
  MessagePtr message = Message::pack(messenger_, kQuiescenceProbeHandler, wave_++, wave_polls_);
  message->envelope().flags |= kControlFlag;
  messenger_.broadcast(std::move(message));
}

// A PE that is not idle looks again behind the work that is queued now.
struct Quiescence::Retry : Work {
  Retry(Quiescence* owner_in, std::uint64_t wave_in, bool polls_in)
      : Work(&Retry::call), owner(owner_in), wave(wave_in), polls(polls_in) {}
  static void call(Work* self, Runtime&, WorkAction action) {
    std::unique_ptr<Retry> retry(static_cast<Retry*>(self));
    if (action == WorkAction::kDrop) return;
    Messenger& messenger = retry->owner->messenger_;
    if (messenger.queue_empty()) {
      retry->owner->answer(retry->wave, retry->polls);
    } else {
      messenger.post(retry.release(), kBehindEverything);
    }
  }
  Quiescence* owner;
  std::uint64_t wave;
  bool polls;
};

void Quiescence::on_probe(Pup p) {
  std::uint64_t wave = 0;
  bool polls = false;
  p | wave | polls;
  if (messenger_.queue_empty()) {
    answer(wave, polls);
  } else {
    messenger_.post(new Retry(this, wave, polls), kBehindEverything);
  }
}

Quiescence::Counts Quiescence::counts(bool polls) const {
  Counts counts(kNumCounts);
  counts[kSent] = messenger_.sent();
  counts[kProcessed] = messenger_.processed();
  if (!polls) return counts;
  counts[kWaits] =
      num_uncounted_ + (messenger_.memory().has_pending() ? 1 : 0) + (messenger_.awaits_room() ? 1 : 0);
  if (activity_ == nullptr) return counts;
  const std::optional<std::uint64_t> steps = activity_->poll();
  if (!steps) ++counts[kWaits];
  counts[kSteps] = steps.value_or(0);
  return counts;
}

void Quiescence::answer(std::uint64_t wave, bool polls) {
  // PE 0 may have stopped: what it is sent would never arrive. What waits for quiescence has been dropped.
  if (messenger_.ending()) return;
  const Counts mine = counts(polls);
  if (messenger_.ending()) return;  // the poll of the program has failed
  reductions_.open(kScope, static_cast<std::uint64_t>(messenger_.num_pes()), 1, false);
  Target target;
  target.handler = kQuiescenceResultHandler;
  target.flags = kControlFlag;
  reductions_.contribute(kScope, wave, static_cast<std::uint64_t>(messenger_.pe()), Reducer::kSum,
                         value_combiner<Counts>(Reducer::kSum), base::pack(mine), target);
}

void Quiescence::on_result(Pup p) {
  Counts counts;
  p | counts;
  if (counts.size() != kNumCounts) p.refuse("the sums of a wave of quiescence");
  active_ = false;
  if (wave_polls_) judge_standstill(counts);
  if (!waiters_.empty()) judge_quiescence(counts);
  if (!active_ && poll_is_due_) begin_wave();
}

// --- Quiescence

void Quiescence::judge_quiescence(const Counts& counts) {
  const bool is_balanced = counts[kSent] == counts[kProcessed];
  if (is_balanced && !previous_.empty() && counts[kSent] == previous_[kSent] &&
      counts[kProcessed] == previous_[kProcessed]) {
    std::vector<Future<>> ready;
    ready.swap(waiters_);
    for (auto& waiter : ready) waiter.set();
    return;
  }
  if (!is_balanced && counts == previous_ && on_stall_) on_stall_();
  pause_seconds_ = is_balanced ? kFirstPauseSeconds : std::min(2 * pause_seconds_, kLongestPauseSeconds);
  previous_ = counts;
  active_ = true;
  struct NextWave : Work {
    explicit NextWave(Quiescence* owner_in) : Work(&NextWave::call), owner(owner_in) {}
    static void call(Work* self, Runtime&, WorkAction action) {
      std::unique_ptr<NextWave> work(static_cast<NextWave*>(self));
      if (action == WorkAction::kRun) work->owner->begin_wave();
    }
    Quiescence* owner;
  };
  messenger_.post_after(pause_seconds_, new NextWave(this));
}

// --- The standstill

void Quiescence::poll_after(double seconds) {
  struct Poll : Work {
    explicit Poll(Quiescence* owner_in) : Work(&Poll::call), owner(owner_in) {}
    static void call(Work* self, Runtime&, WorkAction action) {
      std::unique_ptr<Poll> work(static_cast<Poll*>(self));
      if (action != WorkAction::kRun) return;
      work->owner->poll_is_due_ = true;
      if (!work->owner->active_) work->owner->begin_wave();
    }
    Quiescence* owner;
  };
  messenger_.post_after(seconds, new Poll(this));
}

void Quiescence::judge_standstill(Counts counts) {
  const bool may_be = counts[kSent] == counts[kProcessed] && counts[kWaits] == 0;
  if (may_be && counts == last_poll_) {
    std::vector<Future<>> ready;
    ready.swap(watchers_);
    for (auto& watcher : ready) watcher.set();
    return;
  }
  if (may_be) {
    last_poll_ = std::move(counts);
    return poll_after(kConfirmingPollSeconds);
  }
  last_poll_.clear();
  poll_pause_seconds_ = std::min(2 * poll_pause_seconds_, kLongestPollSeconds);
  poll_after(poll_pause_seconds_);
}

}  // namespace weft::runtime
