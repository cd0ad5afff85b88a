#include "models/mpi/objects/handle_numbers.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <utility>
#include <vector>

namespace weft::mpi {

int HandleNumbers::number_of(std::uintptr_t handle) {
  if (handle < kFirst) return static_cast<int>(handle);
  const std::lock_guard lock(mutex_);
  if (const auto found = numbers_.find(handle); found != numbers_.end()) return found->second;
  if (handles_.size() >= static_cast<std::size_t>(std::numeric_limits<int>::max() - kFirst)) return -1;
  const int number = kFirst + static_cast<int>(handles_.size());
  handles_.push_back(handle);
  numbers_.emplace(handle, number);
  return number;
}

std::uintptr_t HandleNumbers::handle_of(int number) const {
  if (number < 0) return 0;
  if (number < kFirst) return static_cast<std::uintptr_t>(number);
  const std::lock_guard lock(mutex_);
  const auto at = static_cast<std::size_t>(number - kFirst);
  return at < handles_.size() ? handles_[at] : 0;
}

std::vector<std::uintptr_t> HandleNumbers::all() const {
  const std::lock_guard lock(mutex_);
  return handles_;
}

void HandleNumbers::replace(std::vector<std::uintptr_t> handles) {
  const std::lock_guard lock(mutex_);
  handles_ = std::move(handles);
  numbers_.clear();
  for (std::size_t at = 0; at < handles_.size(); ++at)
    numbers_.emplace(handles_[at], kFirst + static_cast<int>(at));
}

}  // namespace weft::mpi
