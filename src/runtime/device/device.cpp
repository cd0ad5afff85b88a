#include "weft/runtime/device/device.h"

#include <exception>

#include "weft/base/error.h"
#include "weft/runtime/device/stream.h"
#include "weft/runtime/runtime.h"

#include "base/format.h"
#include "base/value_or_throw.h"
#include "memory/kinds/kind.h"
#include "memory/kinds/software_device.h"
#include "memory/memory.h"

namespace weft::runtime {
namespace {

memory::KindBackend& backend_of(Runtime& runtime, memory::Kind kind) {
  memory::KindBackend* backend = runtime.memory().backend(kind);
  if (backend == nullptr) base::throw_status(runtime.memory().availability(kind));
  return *backend;
}

}  // namespace

memory::Place device_of(Runtime& runtime, memory::Kind kind) {
  backend_of(runtime, kind);
  return runtime.own_place(kind);
}

DeviceMemory::DeviceMemory(Runtime& runtime, std::size_t size_bytes, memory::Place place)
    : runtime_(&runtime), buffer_(base::value_or_throw(runtime.memory().allocate(size_bytes, place))) {}

DeviceMemory DeviceMemory::staging(Runtime& runtime, std::size_t size_bytes, memory::Place device) {
  if (device.is_host()) return DeviceMemory(runtime, size_bytes, device);
  DeviceMemory memory;
  memory.buffer_.data =
      base::value_or_throw(backend_of(runtime, device.kind).allocate_host(size_bytes, device.device));
  memory.buffer_.size_bytes = size_bytes;
  memory.staging_for_ = device;
  memory.runtime_ = &runtime;
  return memory;
}

DeviceMemory::~DeviceMemory() {
  if (buffer_.data == nullptr) return;
  if (staging_for_.is_host()) {
    // The result is ignored: deallocate fails only if the device has failed, and later operations report that.
    static_cast<void>(runtime_->memory().deallocate(buffer_));
  } else {
    backend_of(*runtime_, staging_for_.kind).deallocate_host(buffer_.data);
  }
}

Stream::Stream(Runtime& runtime, memory::Place place)
    : runtime_(runtime),
      place_(place),
      handle_(base::value_or_throw(backend_of(runtime, place.kind).create_stream(place.device))) {}

Stream::~Stream() { static_cast<void>(backend_of(runtime_, place_.kind).destroy_stream(handle_)); }

void Stream::copy(const memory::Buffer& destination, const memory::ConstBuffer& source) {
  if (destination.size_bytes != source.size_bytes) {
    throw base::Error(
        base::StatusCode::kInvalidArgument,
        base::format("a copy of {} bytes on {} cannot fill {} bytes on {}", source.size_bytes,
                     place_name(source.place), destination.size_bytes, place_name(destination.place)));
  }
  base::check(backend_of(runtime_, place_.kind)
                  .copy_async(destination.data, destination.place, source.data, source.place,
                              source.size_bytes, handle_));
}

Operation Stream::done() { return stream_done(runtime_, place_, handle_); }

memory::SoftwareDevice& Stream::software_device(const char* use) const {
  memory::SoftwareDevice* const device = backend_of(runtime_, place_.kind).software_device();
  if (device != nullptr) return *device;
  throw base::Error(
      base::StatusCode::kUnsupported,
      base::format("{} on emulated devices; on {} use that device's own means, on stream.handle()", use,
                   place_name(place_)));
}

void Stream::launch(std::function<void(const DeviceView&)> kernel) {
  memory::SoftwareDevice& device = software_device("Stream::launch runs kernels");
  auto run = [&device, kernel = std::move(kernel)]() -> base::Status {
    try {
      kernel(DeviceView(device));
      return {};
    } catch (const base::Error& error) {
      return base::Status(error.code(), error.what());
    } catch (const std::exception& error) {
      return base::Status(base::StatusCode::kInternal, base::format("a kernel threw '{}'", error.what()));
    }
  };
  base::check(device.launch(handle_, place_.device, std::move(run)));
}

StreamGraph Stream::capture(const std::function<void()>& queue) {
  memory::SoftwareDevice& device = software_device("Stream::capture makes graphs");
  base::check(device.begin_capture(handle_, place_.device));
  try {
    queue();
  } catch (...) {
    static_cast<void>(device.end_capture(handle_, place_.device));
    throw;
  }
  StreamGraph graph;
  graph.work_ = base::value_or_throw(device.end_capture(handle_, place_.device));
  return graph;
}

void Stream::launch(const StreamGraph& graph) {
  base::check(
      software_device("Stream::launch queues graphs").launch_graph(graph.work_, handle_, place_.device));
}

void* DeviceView::find(const void* address, std::size_t size_bytes) const {
  if (size_bytes == 0) return nullptr;
  return base::value_or_throw(device_.device_view(address, size_bytes));
}

std::size_t device_bytes(std::size_t count, std::size_t element_bytes) {
  std::size_t size_bytes = 0;
  if (__builtin_mul_overflow(count, element_bytes, &size_bytes)) {
    throw base::Error(base::StatusCode::kOutOfMemory,
                      base::format("no memory for {} elements of {} bytes", count, element_bytes));
  }
  return size_bytes;
}

}  // namespace weft::runtime
