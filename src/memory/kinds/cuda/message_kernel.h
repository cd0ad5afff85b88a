// The kernels of messages (device_message.h), in the module without a reduction: their text, and the sizes of launches.
//
// A launch has a row of blocks for each end, those that send first. Blocks of ends that receive wait only for what blocks of ends that
// send do, and these for what earlier launches do: so a launch needs no more of its blocks on the device at a time than are in front
// of one.
//
//   kFewMessagesKernel   up to kFewMessageEnds. Parameters: the ends, and the address of the StepReport
//   kMessagesKernel      up to kMaxMessageEnds
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "memory/kinds/device_message.h"

namespace weft::memory {

inline constexpr const char* kFewMessagesKernel = "weft_few_messages";
inline constexpr const char* kMessagesKernel = "weft_messages";
inline constexpr std::size_t kFewMessageEnds = 2;

std::string message_kernels_text();

struct MessageGrid {
  unsigned blocks = 1;  // the most of an end
  unsigned ends = 1;
  unsigned threads = 32;
};
MessageGrid message_grid(std::span<const MessageEnd> ends);

}  // namespace weft::memory
