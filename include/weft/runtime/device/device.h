// Memory of any kind and streams for programs, and kernels for emulated devices.
//
//   weft::Place place = weft::device_of(runtime, weft::Kind::kEmulated);
//   weft::DeviceArray<double> points(runtime, 1000, place);
//   weft::Stream stream(runtime, place);
//   stream.launch([span = points.span()](const weft::DeviceView& view) { view(span)[0] = 1; });
//   co_await stream.done();
//   channel.send(points.buffer(stream));     // without an await: starts when the queued work is done
//
// A program with CUDA kernels launches them on stream.handle(). It may also use memory and streams that it
// made by CUDA's own means.
//
// Threads: the PE's. Only allocating and freeing memory waits for a device. A failure throws Error.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/base/status.h"
#include "weft/memory/buffer.h"
#include "weft/runtime/operation.h"

namespace weft::memory {
class SoftwareDevice;
}

namespace weft::runtime {

// This PE's device of `kind`, Runtime::own_place(). Throws kUnsupported with the reason if this process
// cannot use that kind.
memory::Place device_of(Runtime& runtime, memory::Kind kind);

// Owns memory of one place; DeviceArray adds a type. REQUIRES: when it is destroyed, no operation in flight
// uses it and the runtime's memory layer exists.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(Runtime& runtime, std::size_t size_bytes, memory::Place place);
  // Host memory that copies to and from `device` reach without blocking the CPU (cuda: page-locked).
  static DeviceMemory staging(Runtime& runtime, std::size_t size_bytes, memory::Place device);
  ~DeviceMemory();
  DeviceMemory(DeviceMemory&& other) noexcept { swap(other); }
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    swap(other);
    return *this;
  }

  const memory::Buffer& buffer() const { return buffer_; }

 private:
  void swap(DeviceMemory& other) noexcept {
    std::swap(runtime_, other.runtime_);
    std::swap(buffer_, other.buffer_);
    std::swap(staging_for_, other.staging_for_);
  }

  Runtime* runtime_ = nullptr;
  memory::Buffer buffer_;
  memory::Place staging_for_;  // host: ordinary memory of buffer_.place
};

class DeviceView;
class Stream;

// Work of an emulated device's stream that was captured once, to be launched as often as wanted, as a CUDA graph is.
class StreamGraph {
 public:
  // Does nothing.
  StreamGraph() = default;

 private:
  friend Stream;
  std::vector<std::function<base::Status()>> work_;
};

// A queue of work on a device. Its work is done in order.
class Stream {
 public:
  Stream(Runtime& runtime, memory::Place place);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  memory::Place place() const { return place_; }
  // As the kind names it; for cuda a CUstream.
  memory::StreamHandle handle() const { return handle_; }

  // Queues a copy behind the work that is queued now. Both buffers have the same size; they are of this
  // place, or one of them is host memory. For host memory other than DeviceMemory::staging the CPU may wait
  // for the device. REQUIRES: both buffers stay valid until the copy is done.
  void copy(const memory::Buffer& destination, const memory::ConstBuffer& source);

  // Completes when the work that is queued now is done.
  Operation done();

  // On an emulated device: queues `kernel`, which the CPU runs at a later poll. An exception that it throws
  // is the failure of this stream's next done().
  void launch(std::function<void(const DeviceView&)> kernel);

  // On an emulated device: calls `queue`, and takes up what that queues here instead of doing it: kernels, copies,
  // messages of a QueuedChannel. The stream cannot be awaited meanwhile. Throws what `queue` throws; then nothing is
  // queued.
  StreamGraph capture(const std::function<void()>& queue);
  // Queues the work of a graph that was captured on a stream of this device. What it uses stays valid until it is done.
  void launch(const StreamGraph& graph);

 private:
  memory::SoftwareDevice& software_device(const char* use) const;

  Runtime& runtime_;
  memory::Place place_;
  memory::StreamHandle handle_ = nullptr;
};

// The device's view of its memory, for kernels that the CPU runs. Outside a kernel, an access to an address
// of emulated memory faults, as it does for a real device.
class DeviceView {
 public:
  explicit DeviceView(memory::SoftwareDevice& device) : device_(device) {}

  // The elements of a span in one allocation. Throws Error if the span is not inside one, for example because
  // it was freed.
  template <class T, std::size_t Extent>
  std::span<T> operator()(std::span<T, Extent> device_span) const {
    void* data = find(device_span.data(), device_span.size_bytes());
    return {static_cast<T*>(data), device_span.size()};
  }

 private:
  void* find(const void* address, std::size_t size_bytes) const;

  memory::SoftwareDevice& device_;
};

// The bytes of `count` elements. Throws kOutOfMemory if that number does not fit in a size_t.
std::size_t device_bytes(std::size_t count, std::size_t element_bytes);

template <class T>
class DeviceArray {
 public:
  static_assert(std::is_trivially_copyable_v<T>, "device memory holds plain bytes");

  DeviceArray() = default;
  // Not initialised.
  DeviceArray(Runtime& runtime, std::size_t size, memory::Place place)
      : memory_(runtime, device_bytes(size, sizeof(T)), place) {}
  static DeviceArray staging(Runtime& runtime, std::size_t size, memory::Place device) {
    DeviceArray array;
    array.memory_ = DeviceMemory::staging(runtime, device_bytes(size, sizeof(T)), device);
    return array;
  }

  T* data() const { return static_cast<T*>(memory_.buffer().data); }
  std::size_t size() const { return memory_.buffer().size_bytes / sizeof(T); }
  memory::Place place() const { return memory_.buffer().place; }
  std::span<T> span() const { return {data(), size()}; }
  // For channels and copies; with a stream, whatever takes it waits for the work queued there first.
  memory::Buffer buffer() const { return memory_.buffer(); }
  memory::Buffer buffer(const Stream& stream) const {
    memory::Buffer buffer = memory_.buffer();
    buffer.stream = stream.handle();
    return buffer;
  }

 private:
  DeviceMemory memory_;
};

}  // namespace weft::runtime
