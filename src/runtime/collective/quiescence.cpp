#include "runtime/collective/quiescence.h"

#include <algorithm>
#include <limits>
#include <memory>

#include "weft/runtime/messenger.h"

#include "runtime/collective/reductions.h"
#include "runtime/handlers.h"

namespace weft::runtime {

namespace {

constexpr ScopeId kScope{0, 0};
// Between waves that found something under way; doubled up to the limit so that waiting for a long
// computation or for a receive that is never posted costs little.
constexpr double kFirstPauseSeconds = 20e-6;
constexpr double kLongestPauseSeconds = 5e-3;

// A look at an idle queue must not keep work of a low priority from being done.
constexpr std::int32_t kBehindEverything = std::numeric_limits<std::int32_t>::max();

using Counts = std::vector<std::uint64_t>;

}  // namespace

Quiescence::Quiescence(Messenger& messenger, Reductions& reductions)
    : messenger_(messenger), reductions_(reductions) {
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

Future<> Quiescence::detect() {
  Future<> future(messenger_);
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

void Quiescence::start(Future<> waiter) {
  waiters_.push_back(std::move(waiter));
  have_previous_ = false;
  if (active_) return;
  active_ = true;
  pause_seconds_ = kFirstPauseSeconds;
  begin_wave();
}

void Quiescence::begin_wave() {
  MessagePtr message = Message::pack(messenger_, kQuiescenceProbeHandler, wave_++);
  message->envelope().flags |= kControlFlag;
  messenger_.broadcast(std::move(message));
}

void Quiescence::on_probe(Pup p) {
  std::uint64_t wave = 0;
  p | wave;
  if (messenger_.queue_empty()) {
    answer(wave);
    return;
  }
  // Not idle: look again behind the work that is queued now.
  struct Retry : Work {
    Retry(Quiescence* owner_in, std::uint64_t wave_in) : Work(&Retry::call), owner(owner_in), wave(wave_in) {}
    static void call(Work* self, Runtime&, WorkAction action) {
      std::unique_ptr<Retry> retry(static_cast<Retry*>(self));
      if (action == WorkAction::kDrop) return;
      if (retry->owner->messenger_.queue_empty()) {
        retry->owner->answer(retry->wave);
      } else {
        Messenger& messenger = retry->owner->messenger_;
        messenger.post(retry.release(), kBehindEverything);
      }
    }
    Quiescence* owner;
    std::uint64_t wave;
  };
  messenger_.post(new Retry(this, wave), kBehindEverything);
}

void Quiescence::answer(std::uint64_t wave) {
  // PE 0 may have stopped: what it is sent would never arrive. What waits for quiescence has been dropped.
  if (messenger_.ending()) return;
  reductions_.open(kScope, static_cast<std::uint64_t>(messenger_.num_pes()), 1, false);
  Target target;
  target.handler = kQuiescenceResultHandler;
  target.flags = kControlFlag;
  std::vector<std::byte> counts = base::pack(Counts{messenger_.sent(), messenger_.processed()});
  reductions_.contribute(kScope, wave, static_cast<std::uint64_t>(messenger_.pe()), Reducer::kSum,
                         value_combiner<Counts>(Reducer::kSum), counts, target);
}

void Quiescence::on_result(Pup p) {
  Counts counts;
  p | counts;
  std::uint64_t sent = counts.at(0);
  std::uint64_t processed = counts.at(1);
  bool same = have_previous_ && sent == previous_sent_ && processed == previous_processed_;
  if (same && sent == processed) {
    active_ = false;
    std::vector<Future<>> ready;
    ready.swap(waiters_);
    for (auto& waiter : ready) waiter.set();
    return;
  }
  pause_seconds_ =
      sent == processed ? kFirstPauseSeconds : std::min(2 * pause_seconds_, kLongestPauseSeconds);
  have_previous_ = true;
  previous_sent_ = sent;
  previous_processed_ = processed;
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

}  // namespace weft::runtime
