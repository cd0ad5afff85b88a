// On a GPU, with the CUDA runtime: kernels on the block's stream, timed by events of the device.
//
// The CPU waits for the device in one place only: take_intervals() reads events that are long done.
#include <cuda_runtime.h>

#include <optional>
#include <utility>

#include "device_streams/cuda_graph.cuh"
#include "kernels.h"

namespace jacobi3d {
namespace {

using miniapps::check;

// z fastest, as in memory: the threads of a warp read neighbouring values.
constexpr unsigned kBlockZ = 64, kBlockY = 4;

constexpr unsigned divide_up(int count, unsigned by) { return (static_cast<unsigned>(count) + by - 1) / by; }

dim3 block_shape() { return {kBlockZ, kBlockY, 1}; }
// For `z` times `y` threads, and `x` in the slowest dimension.
dim3 grid_shape(int z, int y, int x) {
  return {divide_up(z, kBlockZ), divide_up(y, kBlockY), static_cast<unsigned>(x)};
}

__device__ int thread_z() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }
__device__ int thread_y() { return static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y); }
__device__ int thread_x() { return static_cast<int>(blockIdx.z); }

__global__ void fill_kernel(double* points, Range range) {
  const Layout layout(range.size);
  const int z = thread_z() - 1, y = thread_y() - 1, x = thread_x() - 1;
  if (z > range.size[2] || y > range.size[1]) return;
  points[layout.offset(x, y, z)] = initial_value(range.first[0] + x, range.first[1] + y, range.first[2] + z);
}

__global__ void update_kernel(const double* __restrict__ from_points, double* __restrict__ to_points,
                              Triple size) {
  const Layout layout(size);
  const int z = thread_z(), y = thread_y(), x = thread_x();
  if (z >= size[2] || y >= size[1]) return;
  const std::size_t at = layout.offset(x, y, z);
  const double* from = from_points + at;
  to_points[at] =
      mean_of_neighbours(*(from - layout.x_stride()), from[layout.x_stride()], *(from - layout.y_stride()),
                         from[layout.y_stride()], *(from - 1), from[1]);
}

// One launch for all faces: the slowest dimension of the grid is the face.
template <bool kPacking>
__global__ void faces_kernel(double* points, Triple size, Halos halos) {
  const Layout layout(size);
  const Halo halo = halos.halo[blockIdx.z];
  const int column = thread_z(), row = thread_y();
  const int columns = layout.face_columns(halo.face);
  if (column >= columns || row >= layout.face_rows(halo.face)) return;
  double* value = halo.values + static_cast<std::size_t>(row) * static_cast<std::size_t>(columns) + column;
  if (kPacking) {
    *value = points[layout.face_offset(halo.face, layout.outermost_layer(halo.face), row, column)];
  } else {
    points[layout.face_offset(halo.face, layout.ghost_layer(halo.face), row, column)] = *value;
  }
}

template <bool kPacking>
void launch_faces(double* points, const Triple& size, const Halos& halos, cudaStream_t stream) {
  const Layout layout(size);
  int rows = 0, columns = 0;
  for (int i = 0; i < halos.count; ++i) {
    const int face = halos.halo[i].face;
    rows = rows > layout.face_rows(face) ? rows : layout.face_rows(face);
    columns = columns > layout.face_columns(face) ? columns : layout.face_columns(face);
  }
  faces_kernel<kPacking>
      <<<grid_shape(columns, rows, halos.count), block_shape(), 0, stream>>>(points, size, halos);
  check(cudaGetLastError(), "launching a kernel");
}

class Event {
 public:
  Event() { check(cudaEventCreate(&event_), "cudaEventCreate"); }
  ~Event() {
    if (event_ != nullptr) cudaEventDestroy(event_);
  }
  Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  Event& operator=(Event&& other) noexcept {
    std::swap(event_, other.event_);
    return *this;
  }

  void record(cudaStream_t stream) { check(cudaEventRecord(event_, stream), "cudaEventRecord"); }
  double seconds_since(const Event& origin) const {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, origin.event_, event_), "cudaEventElapsedTime");
    return milliseconds * 1e-3;
  }
  void wait() { check(cudaEventSynchronize(event_), "cudaEventSynchronize"); }

 private:
  cudaEvent_t event_ = nullptr;
};

class CudaKernels final : public Kernels {
 public:
  // Times count from `origin`, which must outlive this.
  CudaKernels(cudaStream_t stream, const Event& origin) : stream_(stream), origin_(origin) {}

  void fill(double* points, const Range& range) override {
    const Triple& size = range.size;
    fill_kernel<<<grid_shape(size[2] + 2, size[1] + 2, size[0] + 2), block_shape(), 0, stream_>>>(points,
                                                                                                  range);
    check(cudaGetLastError(), "launching a kernel");
  }

  void update(const double* from, double* to, const Triple& size) override {
    timed(Phase::kCompute, [&] {
      update_kernel<<<grid_shape(size[2], size[1], size[0]), block_shape(), 0, stream_>>>(from, to, size);
      check(cudaGetLastError(), "launching a kernel");
    });
  }

  void pack(const double* points, const Triple& size, const Halos& halos) override {
    timed(Phase::kPack, [&] { launch_faces<true>(const_cast<double*>(points), size, halos, stream_); });
  }

  void unpack(double* points, const Triple& size, const Halos& halos) override {
    timed(Phase::kPack, [&] { launch_faces<false>(points, size, halos, stream_); });
  }

  std::vector<Interval> take_intervals() override {
    std::vector<Interval> intervals;
    intervals.reserve(spans_.size());
    // From one event to the next: a difference comes as a float, too coarse for the seconds since the origin.
    for (Span& span : spans_) {
      const double start_s = mark_s_ + span.start.seconds_since(mark_ ? *mark_ : origin_);
      mark_s_ = start_s + span.end.seconds_since(span.start);
      intervals.push_back({span.phase, start_s, mark_s_});
      free_events_.push_back(std::move(span.start));
      if (mark_) free_events_.push_back(std::move(*mark_));
      mark_ = std::move(span.end);
    }
    spans_.clear();
    return intervals;
  }

  std::unique_ptr<Graph> capture(const std::function<void()>& queue) override {
    is_captured_ = true;
    auto graph = std::make_unique<miniapps::CudaGraph>(stream_, queue);
    is_captured_ = false;
    return graph;
  }

 private:
  struct Span {
    Phase phase;
    Event start;
    Event end;
  };

  template <class Launch>
  void timed(Phase phase, Launch launch) {
    if (is_captured_) return launch();  // an event has the time of one launch only
    Event start = take_event();
    Event end = take_event();
    start.record(stream_);
    launch();
    end.record(stream_);
    spans_.push_back({phase, std::move(start), std::move(end)});
  }

  Event take_event() {
    if (free_events_.empty()) return Event();
    Event event = std::move(free_events_.back());
    free_events_.pop_back();
    return event;
  }

  cudaStream_t stream_;
  const Event& origin_;
  std::optional<Event> mark_;  // the end of the last span whose time is known
  double mark_s_ = 0;
  std::vector<Span> spans_;
  std::vector<Event> free_events_;
  bool is_captured_ = false;
};

class CudaDevice final : public KernelDevice {
 public:
  explicit CudaDevice(int ordinal) {
    check(cudaSetDevice(ordinal), "cudaSetDevice");
    origin_.emplace_back();
    origin_[0].record(nullptr);
    origin_[0].wait();
  }

  std::unique_ptr<Kernels> make_kernels(weft::runtime::Stream* stream) override {
    return std::make_unique<CudaKernels>(static_cast<cudaStream_t>(handle_of(*stream)), origin_[0]);
  }

 private:
  std::vector<Event> origin_;  // one, made once the device is current
};

}  // namespace

bool cuda_is_built() { return true; }

std::unique_ptr<KernelDevice> make_cuda_device(int ordinal) { return std::make_unique<CudaDevice>(ordinal); }

}  // namespace jacobi3d
