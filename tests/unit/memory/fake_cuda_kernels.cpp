// Modules and kernels of the stand-in driver: it knows those of Weft (memory/kinds/cuda/step_kernels.h), and does what they do.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>

#include "memory/kinds/cuda/step_kernels.h"
#include "memory/kinds/software/software_reduction.h"
#include "tests/unit/memory/fake_cuda_shared.h"

using namespace fake_driver;
using namespace weft::memory;

struct CudaFunctionTag {
  std::size_t module = 0;
  int device = 0;
  bool is_reduction = false;
};
struct CudaModuleTag {
  CudaFunctionTag step;
  CudaFunctionTag reduction;
};

namespace {

bool is_word(const std::uint32_t* word) {
  const auto address = reinterpret_cast<std::uintptr_t>(word);
  return address % sizeof *word == 0 && is_known(address, sizeof *word);
}

bool are_words(const StepList<StepWord>& words) {
  return std::ranges::all_of(words, [](const StepWord& word) { return is_word(word.word); });
}

bool is_valid(const std::byte* data, std::size_t size_bytes) {
  return size_bytes == 0 || is_known(reinterpret_cast<std::uintptr_t>(data), size_bytes);
}

bool is_valid(const DeviceReduction& reduction) {
  if (is_empty(reduction)) return true;
  const std::size_t size_bytes = reduction.num_elements * size_of(reduction.type);
  return is_valid(reduction.out, size_bytes) &&
         std::ranges::all_of(reduction.sources,
                             [&](const std::byte* source) { return is_valid(source, size_bytes); });
}

bool is_valid(const DeviceStep& step) {
  return (step.count == nullptr || is_word(step.count)) && are_words(step.before) &&
         is_valid(step.to, step.size_bytes) && is_valid(step.from, step.size_bytes) &&
         are_words(step.signals) && are_words(step.after) && is_valid(step.reduction);
}

// A step on a stream. Each call goes on as far as the words allow and returns whether the step is over.
class RunningStep {
 public:
  RunningStep(const DeviceStep& step, const std::uint32_t* abort_word)
      : step_(step), abort_word_(abort_word) {}

  bool operator()() {
    if (!is_valid(step_)) return fake_cuda()->broken = kIllegalAddress, true;
    const std::uint32_t number = step_.count == nullptr ? 0 : *step_.count;
    if (!has_signalled_) {
      if (!have_reached(step_.before, number)) return *abort_word_ != 0;
      if (step_.size_bytes > 0) std::memcpy(step_.to, step_.from, step_.size_bytes);
      for (const StepWord& signal : step_.signals)
        std::atomic_ref(*signal.word).store(number + signal.offset);
      has_signalled_ = true;
    }
    if (!have_reached(step_.after, number)) return *abort_word_ != 0;
    if (!is_empty(step_.reduction)) reduce_on_cpu(step_.reduction);
    if (step_.count != nullptr) *step_.count = number + 1;
    return true;
  }

 private:
  static bool have_reached(const StepList<StepWord>& words, std::uint32_t number) {
    return std::ranges::all_of(words, [&](const StepWord& word) {
      return has_reached(std::atomic_ref(*word.word).load(), number + word.offset);
    });
  }

  DeviceStep step_;
  const std::uint32_t* abort_word_;
  bool has_signalled_ = false;
};

template <class T>
const T& parameter(void** parameters, std::size_t number) {
  return *static_cast<const T*>(parameters[number]);
}

}  // namespace

extern "C" {

int cuModuleLoadData(CudaModuleTag** module, const void* image) {
  const int result = enter_uncaptured("cuModuleLoadData");
  if (result != 0) return result;
  for (std::size_t i = 0; i < kNumStepModules; ++i) {
    if (step_module_text(i) != static_cast<const char*>(image)) continue;
    const auto made = std::make_shared<CudaModuleTag>();
    made->step = {i, current()->device, false};
    made->reduction = {i, current()->device, true};
    fake_cuda()->modules.push_back(made);
    *module = made.get();
    return 0;
  }
  return kInvalidPtx;
}

int cuModuleGetFunction(CudaFunctionTag** function, CudaModuleTag* module, const char* name) {
  const int result = enter_context("cuModuleGetFunction", module->step.device);
  if (result != 0) return result;
  const bool is_reduction = std::strcmp(name, kReductionKernel) == 0;
  if (is_reduction ? module->reduction.module == 0 : std::strcmp(name, kStepKernel) != 0) return kNotFound;
  *function = is_reduction ? &module->reduction : &module->step;
  return 0;
}

int cuLaunchKernel(CudaFunctionTag* function, unsigned blocks, unsigned blocks_y, unsigned blocks_z,
                   unsigned threads, unsigned threads_y, unsigned threads_z, unsigned shared_bytes,
                   CudaStreamTag* stream, void** parameters, void** extra) {
  stream = resolve(stream);
  const int result = enter_context("cuLaunchKernel", stream->device);
  if (result != 0) return result;
  if (function->device != stream->device) return kInvalidHandle;
  if (blocks_y * blocks_z * threads_y * threads_z != 1 || shared_bytes != 0 || extra != nullptr)
    return kInvalidValue;
  const auto does = [&](const DeviceReduction& reduction, std::uint64_t vectors) {
    return is_valid(reduction) && vectors == num_vectors(reduction) &&
           (is_empty(reduction) || module_of(reduction) == function->module);
  };
  if (function->is_reduction) {
    const auto& reduction = parameter<DeviceReduction>(parameters, 0);
    if (threads != kReductionThreads || blocks != reduction_blocks(reduction) ||
        !does(reduction, parameter<std::uint64_t>(parameters, 1))) {
      return kInvalidValue;
    }
    stream->queue.emplace_back([reduction] {
      if (!is_valid(reduction)) return fake_cuda()->broken = kIllegalAddress, true;
      if (!is_empty(reduction)) reduce_on_cpu(reduction);
      return true;
    });
    return 0;
  }
  const auto& step = parameter<DeviceStep>(parameters, 0);
  const auto* const abort_word = parameter<const std::uint32_t*>(parameters, 1);
  if (blocks != 1 || threads != step_threads(step) || !is_valid(step) || !is_word(abort_word) ||
      !does(step.reduction, parameter<std::uint64_t>(parameters, 2))) {
    return kInvalidValue;
  }
  stream->queue.emplace_back(RunningStep(step, abort_word));
  return 0;
}

}  // extern "C"
