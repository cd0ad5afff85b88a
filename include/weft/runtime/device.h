// Memory of any kind and streams for programs, and kernels for the emulated kind.
//
//   weft::Place place = weft::device_of(runtime, weft::Kind::kEmulated);
//   weft::DeviceArray<double> points(runtime, 1000, place);
//   weft::Stream stream(runtime, place);
//   stream.launch([span = points.span()](const weft::EmulatedView& view) { view(span)[0] = 1; });
//   co_await stream.done();
//   channel.send(points.buffer(stream));     // or so: starts when what is queued on the stream is done
//
// Programs with a compiler of their own for a kind (CUDA) launch their kernels on stream.handle(), and may
// just as well bring memory and streams that they made themselves.
//
// Threads: the PE's. Nothing here waits for a device but making and freeing memory. What fails throws Error.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <type_traits>
#include <utility>

#include "weft/base/status.h"
#include "weft/memory/buffer.h"
#include "weft/runtime/operation.h"

namespace weft::memory {
class EmulatedBackend;
}

namespace weft::runtime {

// Runtime::own_place(), the device of `kind` that is this PE's; kUnsupported, saying why, when this process
// has none.
memory::Place device_of(Runtime& runtime, memory::Kind kind);

// Owns memory of one place; DeviceArray adds a type. REQUIRES: nothing in flight uses it when it goes, and
// the runtime's memory outlives it.
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

// A queue of work on a device, done in order; or any other stream of that place that somebody else owns.
class Stream {
 public:
  // REQUIRES: all work queued on it is done when it goes, else it is still done.
  Stream(Runtime& runtime, memory::Place place);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  memory::Place place() const { return place_; }
  // As the kind names it; for cuda a CUstream.
  memory::StreamHandle handle() const { return handle_; }

  // Queues a copy behind what is queued already, of equally many bytes between two buffers of this place or
  // one of them and host memory. With host memory that is not DeviceMemory::staging the CPU may have to wait
  // for the device. REQUIRES: both stay until it is done.
  void copy(const memory::Buffer& destination, const memory::ConstBuffer& source);

  // Done when everything queued so far is.
  Operation done();

  // On an emulated device: queues `kernel`, which runs on the CPU at a later poll. What it throws is the
  // failure of this stream's next done().
  void launch(std::function<void(const class EmulatedView&)> kernel);

 private:
  Runtime& runtime_;
  memory::Place place_;
  memory::StreamHandle handle_ = nullptr;
};

// Where a kernel on an emulated device finds its memory: the addresses that programs hold fault, as those of
// a real device would.
class EmulatedView {
 public:
  explicit EmulatedView(memory::EmulatedBackend& backend) : backend_(backend) {}

  // The elements of a span in one emulated allocation; throws Error when it is none, for instance since it
  // was freed.
  template <class T, std::size_t Extent>
  std::span<T> operator()(std::span<T, Extent> device_span) const {
    void* data = find(device_span.data(), device_span.size_bytes());
    return {static_cast<T*>(data), device_span.size()};
  }

 private:
  void* find(const void* address, std::size_t size_bytes) const;

  memory::EmulatedBackend& backend_;
};

template <class T>
class DeviceArray {
 public:
  static_assert(std::is_trivially_copyable_v<T>, "device memory holds plain bytes");

  DeviceArray() = default;
  // Not initialised.
  DeviceArray(Runtime& runtime, std::size_t size, memory::Place place)
      : memory_(runtime, size * sizeof(T), place) {}
  static DeviceArray staging(Runtime& runtime, std::size_t size, memory::Place device) {
    DeviceArray array;
    array.memory_ = DeviceMemory::staging(runtime, size * sizeof(T), device);
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
