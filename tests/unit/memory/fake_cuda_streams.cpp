// Copies, streams and events of the stand-in driver.
#include <cstring>
#include <string>

#include "tests/unit/memory/fake_cuda_shared.h"

using namespace fake_driver;

namespace {

void step_streams() {
  for (CudaStreamTag* stream : fake_cuda()->streams) {
    if (!stream->queue.empty() && stream->queue.front()()) stream->queue.pop_front();
  }
}

int queue_copy(std::uintptr_t destination, std::uintptr_t source, std::size_t size_bytes,
               CudaStreamTag* stream) {
  bool known_destination = false;
  bool known_source = false;
  if (check_range(destination, size_bytes, &known_destination) != 0) return kInvalidValue;
  if (check_range(source, size_bytes, &known_source) != 0) return kInvalidValue;
  if (!known_destination || !known_source) ++fake_cuda()->blocking_copies;
  stream->queue.emplace_back([=] {
    std::memcpy(reinterpret_cast<void*>(destination), reinterpret_cast<void*>(source), size_bytes);
    ++fake_cuda()->now_ms;
    return true;
  });
  return 0;
}

}  // namespace

CudaStreamTag* fake_driver::resolve(CudaStreamTag* stream) {
  if (reinterpret_cast<std::uintptr_t>(stream) > 2) return stream;
  const int device = current() == nullptr ? 0 : current()->device;
  const auto [own, is_new] = fake_cuda()->default_streams.try_emplace(device);
  own->second.device = device;
  if (is_new) fake_cuda()->streams.push_back(&own->second);
  return &own->second;
}

extern "C" {

int cuMemcpyAsync(unsigned long long destination, unsigned long long source, std::size_t size_bytes,
                  CudaStreamTag* stream) {
  stream = resolve(stream);
  const int result = enter_context("cuMemcpyAsync", stream->device);
  return result != 0 ? result : queue_copy(destination, source, size_bytes, stream);
}

int cuMemcpy2DAsync_v2(const FakeCopy2D* copy, CudaStreamTag* stream) {
  stream = resolve(stream);
  const int result = enter_context("cuMemcpy2DAsync", stream->device);
  if (result != 0) return result;
  for (const FakeCopySide& side : {copy->from, copy->to})
    if (side.type != 2 || side.x != 0 || side.y != 0 || side.pitch < copy->row_bytes) return kInvalidValue;
  for (std::size_t row = 0; row < copy->rows; ++row) {
    const int queued = queue_copy(copy->to.address + row * copy->to.pitch,
                                  copy->from.address + row * copy->from.pitch, copy->row_bytes, stream);
    if (queued != 0) return queued;
  }
  return 0;
}

int cuMemcpyPeerAsync(unsigned long long destination, CudaContextTag* destination_context,
                      unsigned long long source, CudaContextTag* source_context, std::size_t size_bytes,
                      CudaStreamTag* stream) {
  stream = resolve(stream);
  const int result = enter_context("cuMemcpyPeerAsync", stream->device);
  if (result != 0) return result;
  const FakeCuda::Block* to = fake_cuda()->find(destination);
  const FakeCuda::Block* from = fake_cuda()->find(source);
  if (to == nullptr || to->device != destination_context->device) return kInvalidContext;
  if (from == nullptr || from->device != source_context->device) return kInvalidContext;
  ++fake_cuda()->peer_copies;
  return queue_copy(destination, source, size_bytes, stream);
}

int cuStreamCreate(CudaStreamTag** stream, unsigned) {
  const int result = enter_context("cuStreamCreate");
  if (result != 0) return result;
  *stream = new CudaStreamTag;
  (*stream)->device = current()->device;
  fake_cuda()->streams.push_back(*stream);
  return 0;
}

int cuStreamDestroy_v2(CudaStreamTag* stream) {
  const int result = enter_context("cuStreamDestroy");
  if (result != 0) return result;
  if (std::erase(fake_cuda()->streams, stream) == 0) return kInvalidHandle;
  while (!stream->queue.empty() && stream->queue.front()()) stream->queue.pop_front();
  delete stream;
  return 0;
}

int cuStreamGetCtx(CudaStreamTag* stream, CudaContextTag** context) {
  stream = resolve(stream);
  const int result = enter("cuStreamGetCtx");
  if (result != 0) return result;
  *context = fake_cuda()->contexts[static_cast<std::size_t>(stream->device)].get();
  return 0;
}

int cuStreamQuery(CudaStreamTag* stream) {
  stream = resolve(stream);
  const int result = enter_context("cuStreamQuery", stream->device);
  if (result != 0) return result;
  if (stream->is_captured) return kCaptureUnsupported;
  if (fake_cuda()->broken != 0) return fake_cuda()->broken;
  const auto found = fake_cuda()->default_streams.find(stream->device);
  const bool is_default = found != fake_cuda()->default_streams.end() && &found->second == stream;
  if (is_default && fake_cuda()->busy_queries > 0) return --fake_cuda()->busy_queries, kNotReady;
  return stream->queue.empty() ? 0 : kNotReady;
}

int cuStreamIsCapturing(CudaStreamTag* stream, int* status) {
  stream = resolve(stream);
  const int result = enter_context("cuStreamIsCapturing", stream->device);
  *status = stream->is_captured ? 1 : 0;
  return result;
}

int cuStreamWaitEvent(CudaStreamTag* stream, CudaEventTag* event, unsigned) {
  stream = resolve(stream);
  const int result = enter_context("cuStreamWaitEvent", stream->device);
  if (result != 0) return result;
  // What was recorded at the time of this call counts, whatever the event is used for later.
  stream->queue.emplace_back([recorded = event->recorded] { return recorded->done; });
  return 0;
}

// For programs in other languages.
int fake_cuda_calls(const char* name) { return fake_cuda()->calls[name]; }
void fake_cuda_capture(CudaStreamTag* stream, int is_captured) { stream->is_captured = is_captured != 0; }

int cuEventCreate(CudaEventTag** event, unsigned flags) {
  const int result = enter_context("cuEventCreate");
  if (result != 0) return result;
  if (flags != 2 && flags != 0) return kInvalidValue;
  *event = new CudaEventTag;
  (*event)->is_timed = flags == 0;
  (*event)->device = current()->device;
  fake_cuda()->events.insert(*event);
  return 0;
}

int cuEventDestroy_v2(CudaEventTag* event) {
  const int result = enter_context("cuEventDestroy", event->device);
  if (result != 0) return result;
  fake_cuda()->events.erase(event);
  delete event;
  return 0;
}

int cuEventRecord(CudaEventTag* event, CudaStreamTag* stream) {
  stream = resolve(stream);
  const int result = enter_context("cuEventRecord", event->device);
  if (result != 0) return result;
  if (stream->device != event->device) return kInvalidHandle;
  if (stream->is_captured) return kCaptureUnsupported;
  event->recorded = std::make_shared<FakeEventState>();
  event->recorded->done = false;
  stream->queue.emplace_back([recorded = event->recorded] {
    recorded->at_ms = fake_cuda()->now_ms;
    return recorded->done = true;
  });
  return 0;
}

int cuEventQuery(CudaEventTag* event) {
  const int result = enter_context("cuEventQuery", event->device);
  if (result != 0) return result;
  if (fake_cuda()->broken != 0) return fake_cuda()->broken;
  if (event->recorded->done) return 0;
  step_streams();
  return event->recorded->done ? 0 : kNotReady;
}

int cuEventElapsedTime(float* milliseconds, CudaEventTag* begin, CudaEventTag* end) {
  const int result = enter_context("cuEventElapsedTime", begin->device);
  if (result != 0) return result;
  if (fake_cuda()->broken != 0) return fake_cuda()->broken;
  if (begin->device != end->device || !begin->is_timed || !end->is_timed) return kInvalidHandle;
  if (!begin->recorded->done || !end->recorded->done) return kNotReady;
  if (begin->recorded->at_ms < 0 || end->recorded->at_ms < 0) return kInvalidHandle;
  *milliseconds = static_cast<float>(end->recorded->at_ms - begin->recorded->at_ms);
  return 0;
}

}  // extern "C"
