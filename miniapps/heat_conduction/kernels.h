// The computations on a strip's points in memory of a device: kernels_emulated.cpp and, where CMake finds a CUDA compiler,
// kernels_cuda.cu. All work is queued on the strip's stream and done later, in order.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "device_streams/graph.h"

namespace weft::runtime {
class Stream;
}

namespace heat_conduction {

class Kernels {
 public:
  virtual ~Kernels() = default;

  // As update_rows() of plate.h.
  virtual void update(const double* now, double* next, std::size_t num_rows, std::size_t width) = 0;
  // *hottest = hottest_of() of plate.h.
  virtual void find_hottest(const double* points, double* hottest, std::size_t num_rows,
                            std::size_t width) = 0;
  // A graph of what `queue` queues on the stream. The kernels have run before.
  virtual std::unique_ptr<miniapps::Graph> capture(const std::function<void()>& queue) = 0;
};

// The stream outlives the kernels.
std::unique_ptr<Kernels> make_emulated_kernels(weft::runtime::Stream& stream);
// REQUIRES: cuda_is_built(). `stream`: the handle of a CUDA stream of device `ordinal`.
std::unique_ptr<Kernels> make_cuda_kernels(void* stream, int ordinal);
// Whether kernels_cuda.cu is in this program.
bool cuda_is_built();

}  // namespace heat_conduction
