// Events of kind cuda, which are points in a stream's queue, some of them with a time; and what a copy has left to do.
#include <chrono>
#include <utility>

#include "base/format.h"
#include "memory/kinds/cuda/cuda_backend.h"

namespace weft::memory {

using base::Result;
using base::Status;

Result<CudaBackend::Event*> CudaBackend::take_event(Device& device, int ordinal, bool is_timed) {
  std::vector<Event*>& free_events = device.free_list(is_timed);
  if (!free_events.empty()) {
    Event* const event = free_events.back();
    free_events.pop_back();
    return event;
  }
  auto event = std::make_unique<Event>();
  event->device = ordinal;
  event->is_timed = is_timed;
  const CudaResult result =
      driver_->EventCreate(&event->handle, is_timed ? cuda::kEventDefault : cuda::kEventDisableTiming);
  if (result != cuda::kSuccess) return call_failed(result, "cuEventCreate", ordinal);
  events_.push_back(std::move(event));
  return events_.back().get();
}

Result<EventHandle> CudaBackend::record(StreamHandle stream, int ordinal, bool is_timed) {
  Result<Device*> device = use(ordinal);
  if (!device.ok()) return device.status();
  CudaContextScope scope(*driver_, (*device)->context);
  Result<CudaStream> queue = stream_of(stream, **device);
  if (!queue.ok()) return queue.status();
  Result<Event*> event = take_event(**device, ordinal, is_timed);
  if (!event.ok()) return event.status();
  const CudaResult result = driver_->EventRecord((*event)->handle, *queue);
  if (result == cuda::kSuccess) return static_cast<EventHandle>(*event);
  release_event(*event);
  return driver_->status(
      result, "cuEventRecord",
      base::format("stream {} for memory of cuda:{} (is it a stream of that device?)", stream, ordinal));
}

Status CudaBackend::query(EventHandle event) {
  const Event& recorded = *static_cast<Event*>(event);
  CudaContextScope scope(*driver_, devices_[static_cast<std::size_t>(recorded.device)].context);
  const CudaResult result = driver_->EventQuery(recorded.handle);
  if (result == cuda::kSuccess) return {};
  if (result == cuda::kNotReady) return Status::pending();
  return call_failed(result, "cuEventQuery", recorded.device);
}

// Whether all is done that an event recorded in the stream now would wait for. An event also waits for the legacy default
// stream, unless the stream was made not to synchronize with it. A query of the legacy stream includes the streams that
// synchronize with it. A query of such a stream does not include the legacy stream (seen with driver 580), so both are asked.
// False for a stream of another device: recording an event then reports the error.
bool CudaBackend::is_idle(StreamHandle stream, int ordinal) {
  Result<Device*> device = use(ordinal);
  if (!device.ok()) return false;
  CudaContextScope scope(*driver_, (*device)->context);
  if (scope.result() != cuda::kSuccess) return false;
  Result<CudaStream> queue = stream_of(stream, **device);
  CudaContext context = nullptr;
  if (!queue.ok() || driver_->StreamGetCtx(*queue, &context) != cuda::kSuccess ||
      context != (*device)->context) {
    return false;
  }
  return driver_->StreamQuery(*queue) == cuda::kSuccess &&
         (*queue == cuda::kLegacyStream || driver_->StreamQuery(cuda::kLegacyStream) == cuda::kSuccess);
}

// The driver has a call for it that memory of pools and of virtual addresses refuses; then the program has to synchronise.
void CudaBackend::make_copies_synchronous(CudaAddress address) {
  const unsigned on = 1;
  static_cast<void>(driver_->PointerSetAttribute(&on, cuda::kAttributeSyncMemops, address));
}

// Copies of the driver's synchronous calls are in the legacy default stream. What takes longer than a millisecond there is a
// kernel, or waits for one, which the program has to wait for.
void CudaBackend::first_seen(const Allocation& allocation) {
  constexpr std::chrono::milliseconds kSpinBudget{1};
  Result<Device*> device = use(allocation.place.device);
  if (!device.ok()) return;
  CudaContextScope scope(*driver_, (*device)->context);
  if (scope.result() != cuda::kSuccess) return;
  make_copies_synchronous(allocation.base);
  const auto start = std::chrono::steady_clock::now();
  while (driver_->StreamQuery(cuda::kLegacyStream) == cuda::kNotReady &&
         std::chrono::steady_clock::now() - start < kSpinBudget) {
  }
}

Status CudaBackend::stream_wait(StreamHandle stream, int ordinal, EventHandle event) {
  Result<Device*> device = use(ordinal);
  if (!device.ok()) return device.status();
  CudaContextScope scope(*driver_, (*device)->context);
  Result<CudaStream> queue = stream_of(stream, **device);
  if (!queue.ok()) return queue.status();
  const CudaResult result = driver_->StreamWaitEvent(*queue, static_cast<Event*>(event)->handle, 0);
  return result == cuda::kSuccess ? Status() : call_failed(result, "cuStreamWaitEvent", ordinal);
}

// The backend's own stream is never captured.
bool CudaBackend::is_capturing(StreamHandle stream, int ordinal) {
  if (stream == nullptr) return false;
  Result<Device*> device = use(ordinal);
  if (!device.ok()) return false;
  CudaContextScope scope(*driver_, (*device)->context);
  int capture = cuda::kCaptureNone;
  return scope.result() == cuda::kSuccess &&
         driver_->StreamIsCapturing(static_cast<CudaStream>(stream), &capture) == cuda::kSuccess &&
         capture != cuda::kCaptureNone;
}

void CudaBackend::release_event(EventHandle event) {
  Event* const recorded = static_cast<Event*>(event);
  devices_[static_cast<std::size_t>(recorded->device)].free_list(recorded->is_timed).push_back(recorded);
}

Status CudaBackend::elapsed(EventHandle begin, EventHandle end, double& seconds) {
  const Event& from = *static_cast<Event*>(begin);
  const Event& to = *static_cast<Event*>(end);
  CudaContextScope scope(*driver_, devices_[static_cast<std::size_t>(from.device)].context);
  float milliseconds = 0;
  const CudaResult result = driver_->EventElapsedTime(&milliseconds, from.handle, to.handle);
  if (result == cuda::kNotReady) return Status::pending();
  if (result != cuda::kSuccess) return call_failed(result, "cuEventElapsedTime", from.device);
  seconds = 1e-3 * static_cast<double>(milliseconds);
  return {};
}

}  // namespace weft::memory
