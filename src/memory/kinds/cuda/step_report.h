// What the kernels of steps and of messages have in common.
#pragma once

#include <cstdint>

namespace weft::memory {

inline constexpr std::uint64_t kMaxStepThreads = 1024;
inline constexpr std::uint64_t kWarpThreads = 32;

// What steps and the host tell one another, in page-locked host memory.
struct StepReport {
  // A step that waits looks at it about once a millisecond. If it is not 0, the step ends and does nothing more.
  std::uint32_t is_aborted = 0;
  // Not 0: a message has another label than this one, and the kernel has trapped, which breaks its device's context.
  std::uint64_t expected_label = 0;
  std::uint64_t found_label = 0;
};

}  // namespace weft::memory
