// On a GPU, with the CUDA runtime: kernels on the block's stream. The CPU never waits for the device.
#include <cuda_runtime.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "heat_kernels.h"

namespace heat3d {
namespace {

void expect_launched(const char* what) {
  const cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) return;
  throw std::runtime_error(std::string(what) + " failed: " + cudaGetErrorString(error));
}

// z fastest, as in memory: the threads of a warp read neighbouring values.
constexpr unsigned kThreadsZ = 64, kThreadsY = 4;
constexpr unsigned kFillThreads = 256;

constexpr unsigned groups(std::size_t count, unsigned threads) {
  return static_cast<unsigned>((count + threads - 1) / threads);
}

__global__ void fill_kernel(double* points, std::size_t count, double value) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) points[i] = value;
}

__global__ void step_kernel(Step step, const double* __restrict__ from, double* __restrict__ to) {
  const jacobi3d::Layout layout(step.range.size);
  const int z = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int y = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
  const int x = static_cast<int>(blockIdx.z);
  if (z >= step.range.size[2] || y >= step.range.size[1]) return;
  const std::size_t at = layout.offset(x, y, z);
  to[at] = step_point(step, Row(step, x, y), from + at, z);
}

class CudaHeatKernels final : public HeatKernels {
 public:
  CudaHeatKernels(const Body& body, std::unique_ptr<jacobi3d::Kernels> faces, cudaStream_t stream)
      : HeatKernels(body, std::move(faces)), stream_(stream) {}

 private:
  void fill_with(double* points, std::size_t count, double value) override {
    fill_kernel<<<groups(count, kFillThreads), kFillThreads, 0, stream_>>>(points, count, value);
    expect_launched("filling a block");
  }
  void step(const Step& step, const double* from, double* to) override {
    const Triple& size = step.range.size;
    const dim3 grid{groups(static_cast<std::size_t>(size[2]), kThreadsZ),
                    groups(static_cast<std::size_t>(size[1]), kThreadsY), static_cast<unsigned>(size[0])};
    step_kernel<<<grid, dim3{kThreadsZ, kThreadsY, 1}, 0, stream_>>>(step, from, to);
    expect_launched("a step of a block");
  }

  cudaStream_t stream_;
};

class CudaHeat final : public HeatDevice {
 public:
  using HeatDevice::HeatDevice;
  std::unique_ptr<jacobi3d::Kernels> make_kernels(weft::runtime::Stream* stream) override {
    return std::make_unique<CudaHeatKernels>(body(), faces().make_kernels(stream),
                                             static_cast<cudaStream_t>(jacobi3d::handle_of(*stream)));
  }
};

}  // namespace

std::unique_ptr<HeatDevice> make_cuda_heat(const Body& body, jacobi3d::KernelDevice& faces) {
  return std::make_unique<CudaHeat>(body, faces);
}

}  // namespace heat3d
