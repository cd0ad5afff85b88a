// A message of one word from a device to another, as the step of its sender and that of its receiver.
#pragma once

#include <cstddef>
#include <cstdint>

#include "memory/kinds/device_step.h"

namespace weft::memory {

// Copies `data` to `landing`, when the receiver has received the message before. `sent` counts, `credit` is the receiver's signal.
inline DeviceStep send_word(std::uint32_t* sent, std::uint32_t* credit, const std::uint32_t* data,
                            std::uint32_t* landing, std::uint32_t* arrived) {
  DeviceStep step;
  step.count = sent;
  step.before.add({credit, 0});
  step.to = reinterpret_cast<std::byte*>(landing);
  step.from = reinterpret_cast<const std::byte*>(data);
  step.size_bytes = sizeof *data;
  step.signals.add({arrived, 1});
  return step;
}

inline DeviceStep receive_word(std::uint32_t* received, std::uint32_t* credit, std::uint32_t* arrived) {
  DeviceStep step;
  step.count = received;
  step.signals.add({credit, 0});
  step.after.add({arrived, 1});
  return step;
}

}  // namespace weft::memory
