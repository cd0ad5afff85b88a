#include "queued/step_queue.h"

#include <algorithm>
#include <utility>

#include "weft/base/error.h"

namespace weft::queued {

namespace {

// More than a launch takes, and few enough to be kept: a step has 2 KiB.
constexpr std::size_t kMostSteps = 8;

}  // namespace

void StepQueue::add(const memory::DeviceStep& step, std::shared_ptr<void> keeper) {
  steps_.push_back(step);
  if (std::ranges::find(keepers_, keeper) == keepers_.end()) keepers_.push_back(std::move(keeper));
  if (steps_.size() == kMostSteps) flush();
}

void StepQueue::flush() {
  if (steps_.empty()) return;
  const base::Status status = kind_.queue_steps(steps_, device_, stream_);
  for (std::shared_ptr<void>& keeper : keepers_) watch_.note(device_, stream_, std::move(keeper));
  steps_.clear();
  keepers_.clear();
  base::check(status);
}

}  // namespace weft::queued
