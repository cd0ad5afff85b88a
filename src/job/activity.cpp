#include "job/activity.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/format.h"

namespace weft::job {

namespace {

constexpr std::string_view kMethodTitle = "entry method";
constexpr auto kLongMs = std::chrono::duration_cast<std::chrono::milliseconds>(Activity::kLong).count();

double seconds(Activity::Clock::duration time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

Activity::Activity(runtime::Runtime& runtime, Clock::time_point (*now)())
    : runtime_(runtime), now_(now), began_(now()) {
  if (runtime.observer() == nullptr) runtime.set_observer(this);
}

Activity::~Activity() {
  if (runtime_.observer() == this) runtime_.set_observer(nullptr);
}

void Activity::entry_began(const runtime::EntryEvent& event) {
  ++methods_[event.method].count;
  const Clock::time_point now = now_();
  running_[event.run] = {event.method, now, now, false, !runtime_.queue_empty()};
}

void Activity::entry_ended(const runtime::EntryEvent& event) {
  const auto found = running_.find(event.run);
  if (found == running_.end()) return;  // it began before the measurement
  const Clock::time_point now = now_();
  end_part(found->second, now);
  methods_[event.method].time += now - found->second.began;
  running_.erase(found);
}

void Activity::entry_suspended(const void* run) {
  const auto found = running_.find(run);
  if (found != running_.end()) end_part(found->second, now_());
}

void Activity::entry_resumed(const void* run) {
  const auto found = running_.find(run);
  if (found == running_.end()) return;
  found->second.resumed = now_();
  found->second.is_suspended = false;
  found->second.is_awaited = !runtime_.queue_empty();
}

void Activity::end_part(Run& run, Clock::time_point now) {
  if (std::exchange(run.is_suspended, true)) return;
  const Clock::duration time = now - run.resumed;
  if (time < kLong) return;
  Runs& runs = methods_[run.method];
  ++runs.num_long;
  runs.longest = std::max(runs.longest, time);
  if (!run.is_awaited) return;
  ++runs.num_awaited;
  runs.longest_awaited = std::max(runs.longest_awaited, time);
}

std::vector<std::string> Activity::long_runs() const {
  std::vector<std::pair<std::string_view, Runs>> rows;
  std::ranges::copy_if(methods_, std::back_inserter(rows),
                       [](const auto& row) { return row.second.num_long > 0; });
  std::ranges::sort(rows, [](const auto& a, const auto& b) {
    return a.second.longest != b.second.longest ? a.second.longest > b.second.longest : a.first < b.first;
  });
  std::vector<std::string> lines;
  for (const auto& [method, runs] : rows) {
    lines.push_back(base::format(
        "{} has run for {} ms or more without a wait, {} time{}, the longest {:.3f} s; the PE does "
        "nothing else meanwhile",
        method, kLongMs, runs.num_long, runs.num_long == 1 ? "" : "s", seconds(runs.longest)));
  }
  return lines;
}

std::vector<std::string> Activity::end() {
  if (runtime_.observer() != this) {
    return {
        "entry methods and idle time were not measured: the program has an observer of its own, or a trace "
        "is recorded"};
  }
  runtime_.set_observer(nullptr);  // also ends idleness
  std::vector<std::pair<std::string_view, Runs>> rows(methods_.begin(), methods_.end());
  std::ranges::sort(rows, [](const auto& a, const auto& b) {
    return a.second.time != b.second.time ? a.second.time > b.second.time : a.first < b.first;
  });
  std::uint64_t num_runs = 0;
  std::size_t width = kMethodTitle.size();
  for (const auto& [method, runs] : rows) {
    num_runs += runs.count;
    width = std::max(width, method.size());
  }
  std::vector<std::string> lines = {base::format("ran {} entry methods; busy {:.6f} s, idle {:.6f} s",
                                                 num_runs, seconds(now_() - began_ - idle_time_),
                                                 seconds(idle_time_))};
  if (rows.empty()) return lines;
  lines.push_back(base::format("{:<{}}  {:>12}  {:>14}", kMethodTitle, width, "runs", "seconds"));
  for (const auto& [method, runs] : rows) {
    lines.push_back(base::format("{:<{}}  {:>12}  {:>14.6f}", method, width, runs.count, seconds(runs.time)));
  }
  for (const auto& [method, runs] : rows) {
    if (runs.num_awaited == 0) continue;
    lines.push_back(base::format(
        "{} has kept other work waiting for {} ms or more, {} time{}, the longest {:.3f} s", method, kLongMs,
        runs.num_awaited, runs.num_awaited == 1 ? "" : "s", seconds(runs.longest_awaited)));
  }
  return lines;
}

}  // namespace weft::job
