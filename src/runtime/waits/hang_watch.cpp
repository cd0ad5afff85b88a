#include "runtime/waits/hang_watch.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>

#include "base/format.h"
#include "machine/machine.h"
#include "memory/memory.h"
#include "runtime/collective/quiescence.h"
#include "runtime/message/handlers.h"

namespace weft::runtime {

namespace {

using std::chrono::milliseconds;

// A PE that has had nothing to do for so long is idle. Waves must be farther apart, because each gives the PEs something to do.
constexpr milliseconds kLeastIdle{100};
constexpr milliseconds kShortestInterval{250};
constexpr milliseconds kLongestQuietInterval{2000};
constexpr milliseconds kLongestInterval{1000};  // or the time of the settings, if that is longer
// A PE that has not answered a user by then is busy.
constexpr milliseconds kGatherTime{1000};
// In a job that hangs all PEs are idle. One that does not answer waits for its core, and without its waits the report lacks the cause.
constexpr milliseconds kHangGatherTime{20'000};

std::int64_t microseconds_of(std::chrono::steady_clock::duration duration) {
  return std::max<std::int64_t>(1, std::chrono::ceil<std::chrono::microseconds>(duration).count());
}

double seconds_of(std::chrono::steady_clock::duration duration) {
  return static_cast<double>(std::chrono::duration_cast<milliseconds>(duration).count()) / 1e3;
}

}  // namespace

HangWatch::HangWatch(Messenger& messenger, Quiescence& quiescence,
                     std::function<void(WaitList& waits)> list_models)
    : messenger_(messenger), quiescence_(quiescence), list_models_(std::move(list_models)) {
  messenger_.set_urgent_handler(
      kHangProbeHandler,
      [](void* context, MessagePtr message) { static_cast<HangWatch*>(context)->on_probe(message); }, this);
  messenger_.set_urgent_handler(
      kHangAnswerHandler,
      [](void* context, MessagePtr message) { static_cast<HangWatch*>(context)->on_answer(message); }, this);
  messenger_.set_urgent_handler(
      kWaitsAskHandler,
      [](void* context, MessagePtr message) { static_cast<HangWatch*>(context)->on_ask(message); }, this);
  messenger_.set_urgent_handler(
      kWaitsTellHandler,
      [](void* context, MessagePtr message) { static_cast<HangWatch*>(context)->on_tell(message); }, this);
}

HangWatch::~HangWatch() {
  quiescence_.set_stall_function(nullptr);
  messenger_.set_idle_watch(nullptr);
}

void HangWatch::start(const HangSettings& settings) {
  settings_ = settings;
  is_on_ = true;
  interval_ = std::clamp<Clock::duration>(settings_.idle_time / 4, kShortestInterval, kLongestQuietInterval);
  messenger_.set_idle_watch(this);
  quiescence_.set_stall_function([this] { quiescence_stalls(); });
}

// --- Messages

void HangWatch::send_urgent(int pe, MessagePtr message) {
  message->envelope().flags |= kControlFlag | kUrgentFlag;
  messenger_.send(pe, std::move(message));
}

void HangWatch::in_turn(std::function<void()> function) {
  struct Turn : Work {
    explicit Turn(std::function<void()> function_in) : Work(&Turn::call), function(std::move(function_in)) {}
    static void call(Work* self, Runtime&, WorkAction action) {
      const std::unique_ptr<Turn> turn(static_cast<Turn*>(self));
      if (action == WorkAction::kRun) turn->function();
    }
    std::function<void()> function;
  };
  if (messenger_.waits_in_call()) return function();
  messenger_.post(new Turn(std::move(function)));
}

// --- Waves

std::int64_t HangWatch::look(Clock::duration idle_for) {
  const auto now = Clock::now();
  if (lists_left_ > 0) {
    if (now < deadline_) return microseconds_of(deadline_ - now);
    finish_gathering();
    return 0;
  }
  if (!is_on_ || answers_left_ > 0 || messenger_.must_end()) return -1;
  // Not by a long idle time alone: `weft top` on another host wakes PEs once a second.
  const Clock::duration left =
      std::max<Clock::duration>(kLeastIdle - idle_for, wave_began_ + interval_ - now);
  if (left > Clock::duration::zero()) return microseconds_of(left);
  begin_wave(false);
  return 0;
}

void HangWatch::quiescence_stalls() {
  if (!is_on_ || answers_left_ > 0 || lists_left_ > 0 || Clock::now() < wave_began_ + interval_) return;
  begin_wave(true);
}

void HangWatch::begin_wave(bool is_in_quiescence) {
  ++wave_;
  wave_began_ = Clock::now();
  const auto num_pes = static_cast<std::size_t>(messenger_.num_pes());
  samples_.assign(num_pes, {});
  answers_left_ = messenger_.num_pes() - 1;
  for (int pe = 1; pe < messenger_.num_pes(); ++pe)
    send_urgent(pe, Message::pack(messenger_, kHangProbeHandler, wave_, is_in_quiescence));
  samples_[0] = sample(wave_, is_in_quiescence);
  if (answers_left_ == 0) judge();
}

bool HangWatch::is_same(const Sample& one, const Sample& other) {
  return one.sent == other.sent && one.processed == other.processed && one.steps == other.steps;
}

HangWatch::Clock::time_point HangWatch::idle_since() const {
  const auto now = Clock::now();
  const bool is_known = last_sample_.is_idle != 0 && last_sample_.may_go_on == 0 &&
                        last_sample_.sent == messenger_.sent() &&
                        last_sample_.processed == messenger_.processed();
  return is_known ? idle_since_ : now - messenger_.idle_for();
}

HangWatch::Sample HangWatch::sample(std::uint64_t wave, bool is_in_quiescence) {
  Sample sample{.wave = wave, .sent = messenger_.sent(), .processed = messenger_.processed()};
  const bool is_idle = messenger_.queue_empty() && (is_in_quiescence || messenger_.idle_for() >= kLeastIdle);
  sample.is_idle = is_idle ? 1 : 0;
  if (!is_idle) return last_sample_ = sample;
  const auto steps = quiescence_.steps();
  // A sleep of the program is an uncounted operation, or steps() knows it: other timers are of Weft's own.
  const memory::Memory& memory = messenger_.memory();
  const bool may_go_on = !steps || quiescence_.num_uncounted() > 0 || messenger_.awaits_room() ||
                         messenger_.machine().needs_polling() ||
                         (memory.has_pending() && !memory.awaits_words_alone());
  sample.may_go_on = may_go_on ? 1 : 0;
  sample.steps = steps.value_or(0);
  const bool was_idle = last_sample_.is_idle != 0 && last_sample_.may_go_on == 0 && !may_go_on;
  if (!was_idle || !is_same(sample, last_sample_)) idle_since_ = Clock::now() - messenger_.idle_for();
  return last_sample_ = sample;
}

void HangWatch::on_probe(const MessagePtr& message) {
  std::uint64_t wave = 0;
  bool is_in_quiescence = false;
  message->unpacker() | wave | is_in_quiescence;
  in_turn([this, wave, is_in_quiescence] {
    const Sample mine = sample(wave, is_in_quiescence);
    if (!messenger_.ending()) send_urgent(0, Message::pack(messenger_, kHangAnswerHandler, mine));
  });
}

void HangWatch::on_answer(const MessagePtr& message) {
  Sample answer;
  message->unpacker() | answer;
  const auto pe = static_cast<std::size_t>(message->envelope().source_pe);
  if (answer.wave != wave_ || pe >= samples_.size() || samples_[pe].wave == wave_) return;
  samples_[pe] = answer;
  if (--answers_left_ == 0) in_turn([this] { judge(); });
}

void HangWatch::judge() {
  const auto now = Clock::now();
  const bool is_quiet =
      std::ranges::all_of(samples_, [](const Sample& one) { return one.is_idle != 0 && one.may_go_on == 0; });
  if (!is_quiet) {
    quiet_.clear();
    interval_ = std::min(2 * interval_, std::max<Clock::duration>(kLongestInterval, settings_.idle_time));
    return;
  }
  interval_ = std::clamp<Clock::duration>(settings_.idle_time / 4, kShortestInterval, kLongestQuietInterval);
  if (!std::ranges::equal(samples_, quiet_, is_same)) {
    quiet_ = samples_;
    quiet_since_ = wave_began_;
    is_reported_ = false;
    return;
  }
  if (is_reported_) {
    interval_ = std::max<Clock::duration>(kLongestInterval, settings_.idle_time);
  } else if (now - quiet_since_ >= settings_.idle_time && lists_left_ == 0) {
    is_reported_ = true;  // gather() does nothing beside a report that a user has asked for
    report(now - quiet_since_);
  }
}

void HangWatch::report(Clock::duration idle_for) {
  std::uint64_t sent = 0;
  std::uint64_t processed = 0;
  for (const Sample& one : quiet_) {
    sent += one.sent;
    processed += one.processed;
  }
  const std::string unreceived =
      sent == processed ? "no message is under way"
                        : base::format("{} message{} wait{} for a receive", sent - processed,
                                       sent - processed == 1 ? "" : "s", sent - processed == 1 ? "s" : "");
  const std::string sentence =
      base::format("the program hangs: its {} PE{} been idle for {} s, no timer runs, and {}", quiet_.size(),
                   quiet_.size() == 1 ? " has" : "s have", seconds_of(idle_for), unreceived);
  gather(true, [this, sentence](const std::string& text) {
    if (listener_) return listener_(base::format("{}\n{}", sentence, text));
    if (settings_.ends_job) return messenger_.fail(base::format("{}\n{}", sentence, text));
    std::fputs(base::format("weft: {}\n{}  the job goes on; see docs/hangs.md, and weft run --hang-report\n",
                            sentence, text)
                   .c_str(),
               stderr);
    std::fflush(stderr);
  });
}

// --- Gathering

void HangWatch::gather(bool hangs, std::function<void(const std::string& report)> done) {
  if (lists_left_ > 0) return;
  messenger_.set_idle_watch(this);  // for the deadline
  ++gathering_;
  hangs_ = hangs;
  done_ = std::move(done);
  lists_.assign(static_cast<std::size_t>(messenger_.num_pes()), {});
  for (std::size_t pe = 0; pe < lists_.size(); ++pe) lists_[pe].pe = static_cast<int>(pe);
  lists_left_ = messenger_.num_pes();
  const Clock::duration time = hangs ? kHangGatherTime : kGatherTime;
  deadline_ = Clock::now() + time;
  for (int pe = 1; pe < messenger_.num_pes(); ++pe)
    send_urgent(pe, Message::pack(messenger_, kWaitsAskHandler, gathering_));
  end_gathering_later(time);
  lists_[0].list = list_waits();
  lists_[0].has_answered = true;
  if (--lists_left_ == 0) finish_gathering();
}

// A timer, because a PE that polls does not look. A PE that waits in a call has no timers, and looks.
void HangWatch::end_gathering_later(Clock::duration time) {
  struct Deadline : Work {
    Deadline(HangWatch& watch_in, std::uint64_t number_in)
        : Work(&Deadline::call), watch(watch_in), number(number_in) {}
    static void call(Work* self, Runtime&, WorkAction action) {
      const std::unique_ptr<Deadline> deadline(static_cast<Deadline*>(self));
      HangWatch& watch = deadline->watch;
      if (action == WorkAction::kRun && watch.gathering_ == deadline->number && watch.lists_left_ > 0)
        watch.finish_gathering();
    }
    HangWatch& watch;
    const std::uint64_t number;
  };
  messenger_.post_after(std::chrono::duration<double>(time).count(), new Deadline(*this, gathering_));
}

void HangWatch::on_ask(const MessagePtr& message) {
  std::uint64_t number = 0;
  message->unpacker() | number;
  in_turn([this, number] { tell(number); });
}

void HangWatch::tell(std::uint64_t number) {
  const WaitList list = list_waits();
  if (!messenger_.ending()) send_urgent(0, Message::pack(messenger_, kWaitsTellHandler, number, list));
}

void HangWatch::on_tell(const MessagePtr& message) {
  std::uint64_t number = 0;
  WaitList list;
  message->unpacker() | number | list;
  const auto pe = static_cast<std::size_t>(message->envelope().source_pe);
  if (number != gathering_ || lists_left_ == 0 || pe >= lists_.size() || lists_[pe].has_answered) return;
  lists_[pe].list = std::move(list);
  lists_[pe].has_answered = true;
  if (--lists_left_ == 0) in_turn([this] { finish_gathering(); });
}

WaitList HangWatch::list_waits() {
  WaitList list;
  list.set_idle_s(seconds_of(Clock::now() - idle_since()));
  messenger_.list_task_waits(list);
  messenger_.list_flow_waits(list);
  list_models_(list);
  return list;
}

void HangWatch::finish_gathering() {
  lists_left_ = 0;
  const auto done = std::exchange(done_, nullptr);
  const std::string text = wait_report(std::exchange(lists_, {}), hangs_);
  if (done) done(text);
}

}  // namespace weft::runtime
