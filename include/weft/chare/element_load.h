// The measurements that an element of a collection keeps for load balancing. Elements have them whose class overrides resume_from_sync(), and
// those of a C++ class with conditions (when.h): it tells them that a coroutine of theirs has been resumed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "weft/base/pup.h"
#include "weft/chare/sent_messages.h"
#include "weft/runtime/metering/device_time.h"
#include "weft/runtime/work_meter.h"

namespace weft::chare {

class ChareBase;

// Between two steps of load balancing an element runs. at_sync() makes it wait for the step. If a move of its own is pending
// then, it waits only when it has moved.
enum class SyncPhase : std::uint8_t { kRuns, kMovesFirst, kWaits };

// The part that travels with an element that moves.
struct ElementSync {
  std::uint64_t step = 0;  // the number of steps that the element has taken part in
  SyncPhase phase = SyncPhase::kRuns;
  // The load that the program has set; it replaces the measured one.
  std::optional<double> set_load_s;
  // What it was at the last report; 0: nothing. The time measured since then has been taken by that load.
  double reported_load_s = 0;
  void pup(Pup& p) { p | step | phase | set_load_s | reported_load_s; }
};

struct ElementLoad final : runtime::WorkTime {
  ElementSync sync;
  double load_s() const { return sync.set_load_s.value_or(seconds()); }
  // The time of its device work since its last report, as far as devices are done with it.
  double device_load_s() {
    if (device == nullptr) return 0;
    device->settle();
    return device->seconds();
  }
  runtime::DeviceTime& device_time(runtime::Runtime& runtime) {
    if (device == nullptr) device = std::make_unique<runtime::DeviceTime>(runtime);
    return *device;
  }
  void resumed() override;
  void sent(runtime::ElementId to, std::uint64_t size_bytes) override {
    if (messages != nullptr) messages->add(to, size_bytes);
  }

  std::unique_ptr<runtime::DeviceTime> device;  // null until the element has had device work
  // The messages that the element has sent since its last report; null if the job does not count messages (BalancingOptions).
  std::unique_ptr<SentMessages> messages;
  // The element if its class has conditions; null if not, and when the element does not exist any more.
  ChareBase* conditional = nullptr;
};

}  // namespace weft::chare
