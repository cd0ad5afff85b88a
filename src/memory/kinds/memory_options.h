// The settings of a PE's memory layer.
#pragma once

#include <any>
#include <chrono>
#include <map>
#include <typeindex>

#include "weft/base/status.h"

namespace weft::memory {

// How long the end of a job waits for devices that are still at work, in all.
inline constexpr auto kDeviceTimeout = std::chrono::seconds(10);
// How long devices that only wait for signals may do so meanwhile, if their kind can tell. All PEs have ended by then, so a signal
// can only come from work that a peer's device still does.
inline constexpr auto kSignalTimeout = std::chrono::seconds(2);
// And then for steps whose waits it has ended. They take milliseconds.
inline constexpr auto kAbortTimeout = std::chrono::seconds(1);

class MemoryOptions {
 public:
  // The rank of this PE on its host. PE n uses device n of each kind, modulo the number of devices.
  int local_rank = 0;
  std::chrono::nanoseconds device_timeout = kDeviceTimeout;

  // The options of one kind, a struct of that kind's folder, with its defaults unless they were changed.
  template <class KindOptions>
  KindOptions& of() {
    std::any& options = of_kinds_[typeid(KindOptions)];
    if (!options.has_value()) options = KindOptions();
    return *std::any_cast<KindOptions>(&options);
  }
  template <class KindOptions>
  KindOptions of() const {
    const auto found = of_kinds_.find(typeid(KindOptions));
    return found == of_kinds_.end() ? KindOptions() : *std::any_cast<KindOptions>(&found->second);
  }

  // Reads the environment variables of every kind, such as WEFT_GPUS. kInvalidArgument for a value that its
  // kind does not understand.
  static base::Result<MemoryOptions> from_environment(int local_rank);

 private:
  std::map<std::type_index, std::any> of_kinds_;
};

}  // namespace weft::memory
