// Steps, messages and reductions of kind cuda, see device_step.h and device_message.h: each is one launch of a kernel of
// step_kernels.h or message_kernel.h.
#include <algorithm>
#include <array>
#include <atomic>
#include <new>
#include <optional>
#include <string>

#include "base/format.h"
#include "memory/kinds/cuda/cuda_backend.h"
#include "memory/kinds/cuda/message_kernel.h"

namespace weft::memory {

using base::Result;
using base::Status;
using base::StatusCode;

namespace {

// Whether the device, the driver or its compiler is too old for the kernels.
bool knows_no_kernels(CudaResult result) {
  return result == cuda::kNoBinaryForGpu || result == cuda::kInvalidPtx ||
         result == cuda::kJitCompilerNotFound || result == cuda::kUnsupportedPtxVersion;
}

CudaResult launch_kernel(const CudaDriver& driver, CudaFunction function, unsigned blocks, unsigned threads,
                         CudaStream stream, void** parameters) {
  return driver.LaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, stream, parameters, nullptr);
}

// The kernels take parameters by value, from addresses that are not const.
template <class T>
void* parameter(T& value) {
  return const_cast<void*>(static_cast<const void*>(&value));
}

}  // namespace

CudaResult CudaBackend::launch_step(const Kernels& kernels, const DeviceStep& step, CudaStream stream) {
  const std::uint64_t vectors = num_vectors(step);
  std::array<void*, 3> parameters{parameter(step), parameter(report_), parameter(vectors)};
  CudaFunction function = kernels.step;
  const std::optional<ShortStep> shortened = short_step(step);
  if (kernels.short_step != nullptr && shortened.has_value()) {
    function = kernels.short_step;
    parameters[0] = parameter(*shortened);
  }
  return launch_kernel(*driver_, function, 1, step_threads(step), stream, parameters.data());
}

CudaResult CudaBackend::launch_short_steps(const Kernels& kernels, std::span<const ShortStep> steps,
                                           unsigned threads, CudaStream stream) {
  std::array<ShortStep, kMostShortSteps> all;
  std::ranges::copy(steps, all.begin());
  const std::uint64_t num_steps = steps.size();
  std::array<void*, 3> parameters{parameter(all), parameter(report_), parameter(num_steps)};
  return launch_kernel(*driver_, kernels.short_steps, 1, threads, stream, parameters.data());
}

CudaResult CudaBackend::launch_messages(const Kernels& kernels, std::span<const MessageEnd> ends,
                                        CudaStream stream) {
  std::array<MessageEnd, kMaxMessageEnds> all;
  std::ranges::copy(ends, all.begin());
  number_ends({all.data(), ends.size()});
  std::array<void*, 2> parameters{parameter(all), parameter(report_)};
  const MessageGrid grid = message_grid(ends);
  return driver_->LaunchKernel(ends.size() <= kFewMessageEnds ? kernels.few_messages : kernels.messages,
                               grid.blocks, grid.ends, 1, grid.threads, 1, 1, 0, stream, parameters.data(),
                               nullptr);
}

CudaResult CudaBackend::launch_reduction(const Kernels& kernels, const DeviceReduction& reduction,
                                         CudaStream stream) {
  const std::uint64_t vectors = num_vectors(reduction);
  std::array<void*, 2> parameters{parameter(reduction), parameter(vectors)};
  return launch_kernel(*driver_, kernels.reduction, reduction_blocks(reduction), kReductionThreads, stream,
                       parameters.data());
}

// The driver may load a kernel only when it is first launched, and then wait for the device, where a step may already wait for this
// PE. So each kernel is launched once with nothing to do.
Status CudaBackend::load_kernels(std::size_t module, Device& device, int ordinal) {
  if (report_ == nullptr) {
    Result<void*> report = allocate_host(sizeof *report_, ordinal);
    if (!report.ok()) return report.status();
    report_ = new (*report) StepReport;
    report_->is_aborted = steps_are_aborted_ ? 1 : 0;
  }
  CudaModule loaded = nullptr;
  CudaResult result = driver_->ModuleLoadData(&loaded, step_module_text(module).c_str());
  if (knows_no_kernels(result)) {
    return Status(StatusCode::kUnsupported,
                  base::format("{}: streams order their work by kernels, which need a GPU of compute "
                               "capability 7.0 (Volta) or later, a driver of CUDA 11 or later and its "
                               "library libnvidia-ptxjitcompiler",
                               call_failed(result, "cuModuleLoadData", ordinal).message()));
  }
  if (result != cuda::kSuccess) return call_failed(result, "cuModuleLoadData", ordinal);
  Kernels kernels;
  const auto find = [&](CudaFunction& function, const char* name) {
    if (result == cuda::kSuccess) result = driver_->ModuleGetFunction(&function, loaded, name);
  };
  find(kernels.step, kStepKernel);
  if (module > 0) {
    find(kernels.reduction, kReductionKernel);
  } else {
    find(kernels.short_step, kShortStepKernel);
    find(kernels.short_steps, kShortStepsKernel);
    find(kernels.few_messages, kFewMessagesKernel);
    find(kernels.messages, kMessagesKernel);
  }
  if (result != cuda::kSuccess) return call_failed(result, "cuModuleGetFunction", ordinal);
  Result<CudaStream> own = stream_of(nullptr, device);
  if (!own.ok()) return own.status();
  result = launch_step(kernels, DeviceStep(), *own);
  if (result == cuda::kSuccess && module == 0) {
    Kernels full = kernels;
    full.short_step = nullptr;
    result = launch_step(full, DeviceStep(), *own);
    constexpr std::array<ShortStep, 1> kNone;
    if (result == cuda::kSuccess)
      result = launch_short_steps(kernels, kNone, step_threads(DeviceStep()), *own);
    constexpr std::array<MessageEnd, kMaxMessageEnds> kNoEnds;
    if (result == cuda::kSuccess) result = launch_messages(kernels, {kNoEnds.data(), 1}, *own);
    if (result == cuda::kSuccess) result = launch_messages(kernels, kNoEnds, *own);
  }
  if (result == cuda::kSuccess && module > 0) result = launch_reduction(kernels, DeviceReduction(), *own);
  if (result != cuda::kSuccess) return call_failed(result, "cuLaunchKernel", ordinal);
  device.kernels[module] = kernels;
  return {};
}

Result<CudaBackend::Kernels> CudaBackend::kernels_of(std::size_t module, Device& device, int ordinal,
                                                     StreamHandle stream) {
  if (device.kernels[module].step == nullptr) {
    if (is_capturing(stream, ordinal)) {
      return Status(StatusCode::kUnsupported,
                    base::format("a graph is being captured, and the kernels that it needs are not loaded on "
                                 "cuda:{}: queue the same once before the capture",
                                 ordinal));
    }
    Status status = load_kernels(module, device, ordinal);
    if (status.failed()) return status;
  }
  for (int peer = 0; peer < num_devices(); ++peer) {
    if (peer != ordinal && devices_[static_cast<std::size_t>(peer)].context != nullptr)
      enable_peer(ordinal, peer);
  }
  return device.kernels[module];
}

Result<CudaBackend::Device*> CudaBackend::use_for_steps(int ordinal) {
  if (driver_->ModuleLoadData == nullptr || driver_->ModuleGetFunction == nullptr ||
      driver_->LaunchKernel == nullptr) {
    return Status(StatusCode::kUnsupported,
                  "this CUDA driver cannot load kernels, so streams cannot signal one another: wait for the "
                  "stream, and tell the other PE by a message");
  }
  return use(ordinal);
}

template <class Launch>
Status CudaBackend::with_kernels(std::size_t module, int ordinal, StreamHandle stream, const char* what,
                                 Launch launch) {
  Result<Device*> device = use_for_steps(ordinal);
  if (!device.ok()) return device.status();
  CudaContextScope scope(*driver_, (*device)->context);
  if (scope.result() != cuda::kSuccess) return call_failed(scope.result(), "cuCtxSetCurrent", ordinal);
  Result<Kernels> kernels = kernels_of(module, **device, ordinal, stream);
  if (!kernels.ok()) return kernels.status();
  Result<CudaStream> queue = stream_of(stream, **device);
  if (!queue.ok()) return queue.status();
  const CudaResult result = launch(*kernels, *queue);
  return result == cuda::kSuccess
             ? Status()
             : driver_->status(result, "cuLaunchKernel",
                               base::format("{} on cuda:{}, stream {}", what, ordinal, stream));
}

Status CudaBackend::prepare_steps(int ordinal) {
  return with_kernels(0, ordinal, nullptr, "", [](const Kernels&, CudaStream) { return cuda::kSuccess; });
}

Status CudaBackend::prepare_reductions(int ordinal, ElementType type, Combination combination) {
  return with_kernels(module_of(type, combination), ordinal, nullptr, "",
                      [](const Kernels&, CudaStream) { return cuda::kSuccess; });
}

Status CudaBackend::queue_step(const DeviceStep& step, Place place, StreamHandle stream) {
  has_steps_ = true;
  return with_kernels(
      module_of(step.reduction), place.device, stream, "a step",
      [&](const Kernels& kernels, CudaStream queue) { return launch_step(kernels, step, queue); });
}

// Steps that are short go together, as many as one launch takes.
Status CudaBackend::queue_steps(std::span<const DeviceStep> steps, Place place, StreamHandle stream) {
  while (!steps.empty()) {
    if (steps.size() == 1) return queue_step(steps.front(), place, stream);
    std::array<ShortStep, kMostShortSteps> shorts;
    std::size_t num_shorts = 0;
    unsigned threads = 0;
    for (; num_shorts < std::min(steps.size(), kMostShortSteps); ++num_shorts) {
      const std::optional<ShortStep> shortened = short_step(steps[num_shorts]);
      if (!shortened) break;
      shorts[num_shorts] = *shortened;
      threads = std::max(threads, step_threads(steps[num_shorts]));
    }
    const std::size_t count = std::max<std::size_t>(num_shorts, 1);
    Status status;
    if (num_shorts < 2) {
      status = queue_step(steps.front(), place, stream);
    } else {
      has_steps_ = true;
      status = with_kernels(0, place.device, stream, "steps", [&](const Kernels& kernels, CudaStream queue) {
        return launch_short_steps(kernels, {shorts.data(), num_shorts}, threads, queue);
      });
    }
    if (status.failed()) return status;
    steps = steps.subspan(count);
  }
  return {};
}

Status CudaBackend::queue_messages(std::span<const MessageEnd> ends, Place place, StreamHandle stream) {
  has_steps_ = true;
  return with_kernels(0, place.device, stream, "messages", [&](const Kernels& kernels, CudaStream queue) {
    return launch_messages(kernels, ends, queue);
  });
}

Status CudaBackend::queue_reduction(const DeviceReduction& reduction, Place place, StreamHandle stream) {
  if (is_empty(reduction)) return {};
  return with_kernels(
      module_of(reduction), place.device, stream, "a reduction",
      [&](const Kernels& kernels, CudaStream queue) { return launch_reduction(kernels, reduction, queue); });
}

bool CudaBackend::abort_steps() {
  steps_are_aborted_ = true;
  if (report_ != nullptr) std::atomic_ref(report_->is_aborted).store(1, std::memory_order_release);
  return has_steps_;
}

std::string CudaBackend::why_a_step_failed() const {
  if (report_ == nullptr) return {};
  const std::uint64_t expected = std::atomic_ref(report_->expected_label).load(std::memory_order_acquire);
  return expected == 0 ? std::string() : wrong_label(expected, report_->found_label);
}

}  // namespace weft::memory
