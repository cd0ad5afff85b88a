// Modules and kernels of the stand-in driver: it knows those of Weft (memory/kinds/cuda/step_kernels.h), and does what they do.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <string>
#include <vector>

#include "memory/kinds/cuda/step_kernels.h"
#include "memory/kinds/software/software_reduction.h"
#include "tests/unit/memory/fake_cuda_shared.h"

using namespace fake_driver;
using namespace weft::memory;

struct CudaFunctionTag {
  std::size_t module = 0;
  int device = 0;
  enum class Kernel { kStep, kShortStep, kShortSteps, kReduction } kernel = Kernel::kStep;
};
struct CudaModuleTag {
  CudaFunctionTag step;
  CudaFunctionTag short_step;
  CudaFunctionTag short_steps;
  CudaFunctionTag reduction;
};

namespace {

bool is_word(const std::uint32_t* word) {
  const auto address = reinterpret_cast<std::uintptr_t>(word);
  return address % sizeof *word == 0 && is_known(address, sizeof *word);
}

bool are_words(const StepList<StepWord>& words) {
  return std::ranges::all_of(words, [](const StepWord& word) {
    return is_word(word.word) && (word.number == nullptr || is_word(word.number));
  });
}

bool is_valid(const std::byte* data, std::size_t size_bytes) {
  return size_bytes == 0 || is_known(reinterpret_cast<std::uintptr_t>(data), size_bytes);
}

bool is_valid(const DeviceReduction& reduction, std::size_t other_places_bytes = 0) {
  if (is_empty(reduction)) return true;
  const std::size_t size_bytes = reduction.num_elements * size_of(reduction.type);
  return is_valid(reduction.out, size_bytes) &&
         std::ranges::all_of(reduction.sources, [&](const std::byte* source) {
           return is_valid(source, other_places_bytes + size_bytes);
         });
}

// The data of one side, and its labels.
bool is_valid(const DeviceStep& step, const std::byte* data, StepRing ring) {
  const std::size_t label_bytes = step.label != 0 && (step.rings & ring) != 0 ? sizeof step.label : 0;
  if (step.size_bytes == 0 && label_bytes == 0) return true;
  return is_valid(data - label_bytes, label_bytes + step.extent_of(step.size_bytes, ring));
}

bool is_valid(const DeviceStep& step) {
  const bool has_copies = std::ranges::all_of(step.more_copies, [](const StepCopy& copy) {
    return is_valid(copy.to, copy.size_bytes) && is_valid(copy.from, copy.size_bytes);
  });
  return (step.count == nullptr || is_word(step.count)) && std::ranges::all_of(step.more_counts, is_word) &&
         has_copies && are_words(step.before) && is_valid(step, step.to, kRingOfTargets) &&
         is_valid(step, step.from, kRingOfSources) && are_words(step.signals) && are_words(step.after) &&
         is_valid(step.reduction, step.extent_of(0, kRingOfContributions));
}

// A step on a stream. Each call goes on as far as the words allow and returns whether the step is over.
class RunningStep {
 public:
  RunningStep(const DeviceStep& step, StepReport* report) : step_(step), report_(report) {}

  bool operator()() {
    if (!is_valid(step_)) return fake_cuda()->broken = kIllegalAddress, true;
    if (!has_begun_) begin();
    if (!has_signalled_) {
      if (!have_reached(step_.before)) return report_->is_aborted != 0;
      if (!move_label()) return fake_cuda()->broken = kLaunchFailed, true;
      if (step_.size_bytes > 0)
        std::memcpy(place(step_.to, kRingOfTargets), place(step_.from, kRingOfSources), step_.size_bytes);
      for (const StepCopy& copy : step_.more_copies)
        if (copy.size_bytes > 0) std::memmove(copy.to, copy.from, copy.size_bytes);
      for (const StepWord& signal : step_.signals) std::atomic_ref(*signal.word).store(signal.offset);
      has_signalled_ = true;
    }
    if (!have_reached(step_.after)) return report_->is_aborted != 0;
    if (!is_empty(step_.reduction)) reduce_on_cpu(reduction_of_this_step());
    if (step_.count != nullptr) *step_.count = number_ + 1;
    for (std::uint32_t* const count : step_.more_counts) ++*count;
    return true;
  }

 private:
  template <class Byte>
  Byte* place(Byte* data, StepRing ring) const {
    return data + step_.place_of(number_, ring);
  }
  DeviceReduction reduction_of_this_step() const {
    DeviceReduction reduction = step_.reduction;
    reduction.sources = {};
    for (const std::byte* const source : step_.reduction.sources)
      reduction.sources.add(place(source, kRingOfContributions));
    return reduction;
  }
  // From then on the words have their values as offsets.
  void begin() {
    has_begun_ = true;
    number_ = step_.count == nullptr ? 0 : *step_.count;
    for (StepList<StepWord>* const words : {&step_.before, &step_.signals, &step_.after}) {
      for (std::uint32_t i = 0; i < words->size; ++i) {
        StepWord& word = words->items[i];
        word.offset += word.number == nullptr ? number_ : *word.number;
      }
    }
  }
  // Returns false if the source has another label.
  bool move_label() const {
    if (step_.label == 0) return true;
    if ((step_.rings & kRingOfSources) != 0) {
      std::uint64_t found = 0;
      std::memcpy(&found, place(step_.from, kRingOfSources) - sizeof found, sizeof found);
      if (found != step_.label) {
        report_->found_label = found;
        report_->expected_label = step_.label;
        return false;
      }
    }
    if ((step_.rings & kRingOfTargets) != 0)
      std::memcpy(place(step_.to, kRingOfTargets) - sizeof step_.label, &step_.label, sizeof step_.label);
    return true;
  }
  static bool have_reached(const StepList<StepWord>& words) {
    return std::ranges::all_of(words, [](const StepWord& word) {
      return has_reached(std::atomic_ref(*word.word).load(), word.offset);
    });
  }

  DeviceStep step_;
  StepReport* report_;
  std::uint32_t number_ = 0;
  bool has_begun_ = false;
  bool has_signalled_ = false;
};

template <class T>
void lengthen(const ShortStep::List<T>& from, StepList<T>& to) {
  for (const T& item : from) to.add(item);
}

DeviceStep lengthened(const ShortStep& step) {
  DeviceStep result;
  result.count = step.count;
  lengthen(step.before, result.before);
  result.to = step.to;
  result.from = step.from;
  result.size_bytes = step.size_bytes;
  lengthen(step.signals, result.signals);
  lengthen(step.after, result.after);
  result.rings = step.rings;
  result.num_places = step.num_places;
  result.place_bytes = step.place_bytes;
  result.label = step.label;
  lengthen(step.more_counts, result.more_counts);
  return result;
}

template <class T>
const T& parameter(void** parameters, std::size_t number) {
  return *static_cast<const T*>(parameters[number]);
}

bool is_report(const StepReport* report) {
  return is_known(reinterpret_cast<std::uintptr_t>(report), sizeof *report);
}

int launch_short_steps(CudaStreamTag* stream, unsigned blocks, unsigned threads, void** parameters) {
  const auto& all = parameter<std::array<ShortStep, kMostShortSteps>>(parameters, 0);
  auto* const report = parameter<StepReport*>(parameters, 1);
  const auto num_steps = parameter<std::uint64_t>(parameters, 2);
  if (blocks != 1 || num_steps > kMostShortSteps || !is_report(report)) return kInvalidValue;
  std::vector<DeviceStep> steps;
  unsigned wanted = 0;
  for (std::size_t i = 0; i < num_steps; ++i) {
    steps.push_back(lengthened(all[i]));
    wanted = std::max(wanted, step_threads(steps.back()));
    if (!is_valid(steps.back())) return kInvalidValue;
  }
  if (threads != wanted) return kInvalidValue;
  for (const DeviceStep& step : steps) stream->queue.emplace_back(RunningStep(step, report));
  return 0;
}

}  // namespace

extern "C" {

int cuModuleLoadData(CudaModuleTag** module, const void* image) {
  const int result = enter_uncaptured("cuModuleLoadData");
  if (result != 0) return result;
  for (std::size_t i = 0; i < kNumStepModules; ++i) {
    if (step_module_text(i) != static_cast<const char*>(image)) continue;
    const auto made = std::make_shared<CudaModuleTag>();
    made->step = {i, current()->device, CudaFunctionTag::Kernel::kStep};
    made->short_step = {i, current()->device, CudaFunctionTag::Kernel::kShortStep};
    made->short_steps = {i, current()->device, CudaFunctionTag::Kernel::kShortSteps};
    made->reduction = {i, current()->device, CudaFunctionTag::Kernel::kReduction};
    fake_cuda()->modules.push_back(made);
    *module = made.get();
    return 0;
  }
  return kInvalidPtx;
}

int cuModuleGetFunction(CudaFunctionTag** function, CudaModuleTag* module, const char* name) {
  const int result = enter_context("cuModuleGetFunction", module->step.device);
  if (result != 0) return result;
  const bool has_reduction = module->step.module > 0;
  *function = std::strcmp(name, kStepKernel) == 0                           ? &module->step
              : std::strcmp(name, kShortStepKernel) == 0 && !has_reduction  ? &module->short_step
              : std::strcmp(name, kShortStepsKernel) == 0 && !has_reduction ? &module->short_steps
              : std::strcmp(name, kReductionKernel) == 0 && has_reduction   ? &module->reduction
                                                                            : nullptr;
  return *function == nullptr ? kNotFound : 0;
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
  const auto does = [&](const DeviceReduction& reduction) {
    return is_empty(reduction) || module_of(reduction) == function->module;
  };
  if (function->kernel == CudaFunctionTag::Kernel::kReduction) {
    const auto& reduction = parameter<DeviceReduction>(parameters, 0);
    if (threads != kReductionThreads || blocks != reduction_blocks(reduction) ||
        parameter<std::uint64_t>(parameters, 1) != num_vectors(reduction) || !is_valid(reduction) ||
        !does(reduction)) {
      return kInvalidValue;
    }
    stream->queue.emplace_back([reduction] {
      if (!is_valid(reduction)) return fake_cuda()->broken = kIllegalAddress, true;
      if (!is_empty(reduction)) reduce_on_cpu(reduction);
      return true;
    });
    return 0;
  }
  if (function->kernel == CudaFunctionTag::Kernel::kShortSteps)
    return launch_short_steps(stream, blocks, threads, parameters);
  const DeviceStep step = function->kernel == CudaFunctionTag::Kernel::kShortStep
                              ? lengthened(parameter<ShortStep>(parameters, 0))
                              : parameter<DeviceStep>(parameters, 0);
  auto* const report = parameter<StepReport*>(parameters, 1);
  if (blocks != 1 || threads != step_threads(step) || !is_valid(step) || !is_report(report) ||
      parameter<std::uint64_t>(parameters, 2) != num_vectors(step) || !does(step.reduction)) {
    return kInvalidValue;
  }
  stream->queue.emplace_back(RunningStep(step, report));
  return 0;
}

}  // extern "C"
