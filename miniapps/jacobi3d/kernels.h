// The computations on a block's points, in memory of one kind. There is one implementation per kind:
// kernels_host.cpp, kernels_emulated.cpp and, where CMake finds a CUDA compiler, kernels_cuda.cu.
//
// On a device, all work is queued on the block's stream and done later, in order. On host memory it is done
// at once. The CPU never reads through a device's addresses.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "device_streams/graph.h"
#include "grid.h"

namespace weft::runtime {
class Stream;
}

namespace jacobi3d {

// The values of one face, in rows; as many as Layout::face_points().
struct Halo {
  int face = 0;
  double* values = nullptr;
};

struct Halos {
  int count = 0;
  Halo halo[kNumFaces] = {};

  void add(int face, double* values) { halo[count++] = {face, values}; }
};

enum class Phase { kCompute, kPack };

// When a kernel ran, in seconds since the same moment for all blocks of a PE.
struct Interval {
  Phase phase = Phase::kCompute;
  double start_s = 0;
  double end_s = 0;
};

using miniapps::Graph;

class Kernels {
 public:
  virtual ~Kernels() = default;

  // All points and ghost points to their initial values.
  virtual void fill(double* points, const Range& range) = 0;
  // One Jacobi iteration: every point of `to` becomes the mean of its six neighbours in `from`.
  virtual void update(const double* from, double* to, const Triple& size) = 0;
  // Copies the outermost points of each side into its halo.
  virtual void pack(const double* points, const Triple& size, const Halos& halos) = 0;
  // Sets the ghost points of each side.
  virtual void unpack(double* points, const Triple& size, const Halos& halos) = 0;

  // When updating and packing ran, since the last call. REQUIRES: all queued work is done.
  virtual std::vector<Interval> take_intervals() = 0;

  // A graph of what `queue` queues on the block's stream; that is not done then. Null for host memory. REQUIRES: the
  // kernels have run before, because a capture cannot load them.
  virtual std::unique_ptr<Graph> capture(const std::function<void()>& /*queue*/) { return nullptr; }
};

// A PE's device, with what the kernels need of it.
class KernelDevice {
 public:
  virtual ~KernelDevice() = default;
  // `stream` is the block's, of this device; null for host memory.
  virtual std::unique_ptr<Kernels> make_kernels(weft::runtime::Stream* stream) = 0;
};

std::unique_ptr<KernelDevice> make_host_device();
std::unique_ptr<KernelDevice> make_emulated_device();
// REQUIRES: cuda_is_built().
std::unique_ptr<KernelDevice> make_cuda_device(int ordinal);

// Whether this program has kernels_cuda.cu.
bool cuda_is_built();
// stream.handle(); the CUDA compiler does not see Weft's headers.
void* handle_of(const weft::runtime::Stream& stream);

}  // namespace jacobi3d
