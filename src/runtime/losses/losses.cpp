#include "runtime/losses/losses.h"

#include <algorithm>
#include <cstddef>

#include "machine/peer_memory/peer_memory.h"

namespace weft::runtime {

namespace {

// What a lost PE has sent last is handled first, as far as it is here.
constexpr int kMostLastPolls = 1000;

}  // namespace

int Losses::first_living() const {
  return static_cast<int>(std::ranges::find(reasons_, std::string()) - reasons_.begin());
}

void Losses::survive() {
  are_survived_ = true;
  machine_.peer_memory().turn_off();
}

void Losses::tell(int pe, std::string why) {
  if (why.empty()) why = "it has ended";
  const std::lock_guard lock(mutex_);
  told_.push_back({pe, std::move(why)});
}

bool Losses::is_explained(int pe, Clock::time_point at) const {
  return pe < 0 ? last_loss_ > at - std::chrono::duration<double>(patience_s_) : is_lost(pe);
}

void Losses::await_loss(int pe, const base::Status& status) {
  const bool is_awaited = std::ranges::find(unexplained_, pe, &Unexplained::pe) != unexplained_.end();
  const Clock::time_point now = Clock::now();
  if (is_awaited || is_explained(pe, now)) return;
  Unexplained& failure = unexplained_.emplace_back();
  failure.function = [](Work* work, Runtime&, WorkAction action) {
    auto& self = *static_cast<Unexplained*>(work);
    if (action == WorkAction::kRun) self.losses->check(self);
  };
  failure.losses = this;
  failure.pe = pe;
  failure.what = status.to_string();
  failure.at = now;
  ways_.post_after(patience_s_, &failure);
}

void Losses::check(const Unexplained& failure) {
  if (!is_explained(failure.pe, failure.at)) {
    ways_.fail(base::format(
        "PE {}: an operation has failed, and the launcher has told of no loss of its peer within {} s: {}",
        machine_.pe(), patience_s_, failure.what));
  }
  unexplained_.remove_if([&](const Unexplained& one) { return &one == &failure; });
}

void Losses::unblock_told() {
  const std::lock_guard lock(mutex_);
  for (Told& told : told_) {
    if (!std::exchange(told.is_unblocked, true) && unblock_) unblock_(told.pe);
  }
}

std::vector<Losses::Told> Losses::take_told() {
  const std::lock_guard lock(mutex_);
  return std::exchange(told_, {});
}

void Losses::handle_told() {
  unblock_told();
  for (Told& told : take_told()) {
    if (is_lost(told.pe) || !are_survived_) continue;
    for (int i = 0; i < kMostLastPolls && machine_.progress(); ++i) {
    }
    reasons_[static_cast<std::size_t>(told.pe)] = std::move(told.why);
    in_order_.push_back(told.pe);
    last_loss_ = Clock::now();
    // While the job ends, the hooks are called all the same: the end is to be passed on.
    if (const base::Status status = machine_.lose_peer(told.pe);
        status.failed() && ways_.fail(status.to_string()))
      return;
    // A hook may add another one.
    for (const auto& hook : hooks_) hook(told.pe);
  }
}

}  // namespace weft::runtime
