// The kernels of steps and reductions (device_step.h): their text, which the driver compiles for its devices, and the sizes of their
// launches.
//
// The text is PTX for compute capability 7.0 and later, and for drivers of CUDA 11 and later. A build therefore needs no CUDA. A
// module has the kernels kStepKernel and kReductionKernel of one type and one combination, or kStepKernel without a reduction.
//
//   kStepKernel       one block of step_threads(). Parameters: DeviceStep, the address of the abort word, num_vectors().
//   kReductionKernel  reduction_blocks() blocks of kReductionThreads. Parameters: DeviceReduction, num_vectors().
//
// The abort word is in page-locked host memory. A step that waits looks at it about once a millisecond. If it is not 0, the step ends
// and does nothing more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "memory/kinds/device_step.h"

namespace weft::memory {

inline constexpr const char* kStepKernel = "weft_step";
inline constexpr const char* kReductionKernel = "weft_reduction";
inline constexpr unsigned kReductionThreads = 512;

// The modules of a device, by number: first the one without reductions.
inline constexpr std::size_t kNumCombinations = 4;
inline constexpr std::size_t kNumStepModules = 1 + 6 * kNumCombinations;

constexpr std::size_t module_of(ElementType type, Combination combination) {
  return 1 + static_cast<std::size_t>(type) * kNumCombinations + static_cast<std::size_t>(combination);
}
constexpr bool is_empty(const DeviceReduction& reduction) {
  return reduction.num_elements == 0 || reduction.sources.size == 0;
}
constexpr std::size_t module_of(const DeviceReduction& reduction) {
  return is_empty(reduction) ? 0 : module_of(reduction.type, reduction.combination);
}

// REQUIRES: module < kNumStepModules.
std::string step_module_text(std::size_t module);

// How many whole vectors of elements a reduction reads and writes at a time. 0 if its memory is not aligned for them.
std::uint64_t num_vectors(const DeviceReduction& reduction);
unsigned step_threads(const DeviceStep& step);
unsigned reduction_blocks(const DeviceReduction& reduction);

}  // namespace weft::memory
