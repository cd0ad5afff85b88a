// The kernel of steps (device_step.h), and the modules that the driver compiles for its devices: their text, and the sizes of launches.
//
// The text is PTX for compute capability 7.0 and later, and for drivers of CUDA 11 and later. A build therefore needs no CUDA. A
// module has the kernels kStepKernel and kReductionKernel of one type and one combination, or kStepKernel without a reduction.
//
//   kStepKernel       one block of step_threads(). Parameters: DeviceStep, the address of the StepReport, num_vectors().
//   kShortStepKernel  the same for a ShortStep, in the module without a reduction
//   kShortStepsKernel up to kMostShortSteps of them, one after the other: their number takes the place of num_vectors()
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "memory/kinds/cuda/reduction_kernels.h"
#include "memory/kinds/cuda/step_report.h"
#include "memory/kinds/device_step.h"

namespace weft::memory {

inline constexpr const char* kStepKernel = "weft_step";
inline constexpr const char* kShortStepKernel = "weft_short_step";
inline constexpr const char* kShortStepsKernel = "weft_short_steps";
inline constexpr std::size_t kMostShortSteps = 4;

// A step as most are: a launch with the 1.7 KiB of a DeviceStep would copy mostly zeros. The names are those of DeviceStep.
struct ShortStep {
  template <class T>
  using List = StepList<T, 2>;

  std::uint32_t* count = nullptr;
  List<StepWord> before;
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  std::size_t size_bytes = 0;
  List<StepWord> signals;
  List<StepWord> after;
  std::uint32_t rings = 0;
  std::uint32_t num_places = 1;
  std::size_t place_bytes = 0;
};

static_assert(kMostShortSteps * sizeof(ShortStep) <= 2048, "the parameters of a kernel may have 4 KiB");

// None if the step has more than that.
std::optional<ShortStep> short_step(const DeviceStep& step);

// The modules of a device, by number: first the one without reductions.
inline constexpr std::size_t kNumCombinations = 4;
inline constexpr std::size_t kNumStepModules = 1 + 6 * kNumCombinations;

constexpr std::size_t module_of(ElementType type, Combination combination) {
  return 1 + static_cast<std::size_t>(type) * kNumCombinations + static_cast<std::size_t>(combination);
}
constexpr std::size_t module_of(const DeviceReduction& reduction) {
  return is_empty(reduction) ? 0 : module_of(reduction.type, reduction.combination);
}

// REQUIRES: module < kNumStepModules.
std::string step_module_text(std::size_t module);

std::uint64_t num_vectors(const DeviceStep& step);
unsigned step_threads(const DeviceStep& step);

}  // namespace weft::memory
