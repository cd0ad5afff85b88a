// The kernels of reductions (device_step.h): their text, in steps too, and the sizes of their launches. Modules: step_kernels.h.
//
//   kReductionKernel  reduction_blocks() blocks of kReductionThreads. Parameters: DeviceReduction, num_vectors().
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "memory/kinds/device_step.h"

namespace weft::memory {

inline constexpr const char* kReductionKernel = "weft_reduction";
inline constexpr unsigned kReductionThreads = 512;

constexpr bool is_empty(const DeviceReduction& reduction) {
  return reduction.num_elements == 0 || reduction.sources.size == 0;
}

// The kernel kReductionKernel.
std::string reduction_kernel_text(ElementType type, Combination combination);
// The reduction of another kernel, whose DeviceReduction is at `parameter`+`offset`. The kernel has the registers `index`, the thread's
// number, `stride`, the number of threads, and `shift`, which is added to the address of each source.
std::string reduction_text(ElementType type, Combination combination, const std::string& parameter,
                           std::size_t offset);

// How many whole vectors of elements a reduction reads and writes at a time. 0 if its memory, with sources any multiple of
// place_bytes further on, is not aligned for them.
std::uint64_t num_vectors(const DeviceReduction& reduction, std::size_t place_bytes = 0);
// How many threads have something to do, if a reduction has so many vectors.
std::uint64_t reduction_units(const DeviceReduction& reduction, std::uint64_t vectors);
unsigned reduction_blocks(const DeviceReduction& reduction);

}  // namespace weft::memory
