// On a GPU, with the CUDA runtime: kernels on the strip's stream. The CPU never waits for the device.
#include <cuda_runtime.h>

#include <memory>

#include "device_streams/cuda_graph.cuh"
#include "kernels.h"

namespace heat_conduction {
namespace {

using miniapps::check;

constexpr double kRateOnDevice = 0.2;  // kRate of plate.h
constexpr unsigned kThreadsX = 64, kThreadsY = 4;
constexpr unsigned kHottestThreads = 1024;

__global__ void update_kernel(const double* __restrict__ now, double* __restrict__ next, std::size_t num_rows,
                              std::size_t width) {
  const std::size_t column = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x + 1;
  const std::size_t row = std::size_t{blockIdx.y} * blockDim.y + threadIdx.y + 1;
  if (row > num_rows || column + 1 >= width) return;
  const std::size_t at = row * width + column;
  const double around = now[at - width] + now[at + width] + now[at - 1] + now[at + 1];
  next[at] = now[at] + kRateOnDevice * (around - 4.0 * now[at]);
}

// One block.
__global__ void hottest_kernel(const double* __restrict__ points, double* hottest, std::size_t num_rows,
                               std::size_t width) {
  __shared__ double largest[kHottestThreads];
  double own = 0.0;
  for (std::size_t i = threadIdx.x; i < num_rows * width; i += blockDim.x)
    own = fmax(own, fabs(points[width + i]));
  largest[threadIdx.x] = own;
  for (unsigned half = kHottestThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) largest[threadIdx.x] = fmax(largest[threadIdx.x], largest[threadIdx.x + half]);
  }
  if (threadIdx.x == 0) *hottest = largest[0];
}

unsigned groups(std::size_t count, unsigned threads) {
  return static_cast<unsigned>((count + threads - 1) / threads);
}

class CudaKernels final : public Kernels {
 public:
  explicit CudaKernels(cudaStream_t stream) : stream_(stream) {}

  void update(const double* now, double* next, std::size_t num_rows, std::size_t width) override {
    const dim3 grid{groups(width - 2, kThreadsX), groups(num_rows, kThreadsY), 1};
    update_kernel<<<grid, dim3{kThreadsX, kThreadsY, 1}, 0, stream_>>>(now, next, num_rows, width);
    check(cudaGetLastError(), "launching a kernel");
  }
  void find_hottest(const double* points, double* hottest, std::size_t num_rows, std::size_t width) override {
    hottest_kernel<<<1, kHottestThreads, 0, stream_>>>(points, hottest, num_rows, width);
    check(cudaGetLastError(), "launching a kernel");
  }
  std::unique_ptr<miniapps::Graph> capture(const std::function<void()>& queue) override {
    return std::make_unique<miniapps::CudaGraph>(stream_, queue);
  }

 private:
  cudaStream_t stream_;
};

}  // namespace

std::unique_ptr<Kernels> make_cuda_kernels(void* stream, int ordinal) {
  check(cudaSetDevice(ordinal), "cudaSetDevice");
  return std::make_unique<CudaKernels>(static_cast<cudaStream_t>(stream));
}

bool cuda_is_built() { return true; }

}  // namespace heat_conduction
