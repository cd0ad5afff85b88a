// The kernels of a block of the body. Faces are packed and unpacked by those of Jacobi3D; filling and stepping are here, one
// implementation per kind of memory: heat_kernels.cpp, heat_kernels_emulated.cpp and, where CMake finds a CUDA compiler,
// heat_kernels_cuda.cu.
//
// Threads and streams: as in kernels.h of Jacobi3D.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "body.h"
#include "kernels.h"

namespace heat3d {

class HeatKernels : public jacobi3d::Kernels {
 public:
  HeatKernels(const Body& body, std::unique_ptr<jacobi3d::Kernels> faces)
      : body_(body), faces_(std::move(faces)) {}

  // Also says which part of the body the block is.
  void fill(double* points, const Range& range) final {
    range_ = range;
    fill_with(points, jacobi3d::Layout(range.size).num_values(), body_.initial_temperature);
  }
  // The next step. Power enters in the first ones.
  void update(const double* from, double* to, const Triple&) final {
    step({body_, range_, num_steps_ < body_.power_steps ? body_.power : 0.0}, from, to);
    ++num_steps_;
  }
  void pack(const double* points, const Triple& size, const jacobi3d::Halos& halos) final {
    faces_->pack(points, size, halos);
  }
  void unpack(double* points, const Triple& size, const jacobi3d::Halos& halos) final {
    faces_->unpack(points, size, halos);
  }
  std::vector<jacobi3d::Interval> take_intervals() override { return faces_->take_intervals(); }

 protected:
  virtual void fill_with(double* points, std::size_t count, double value) = 0;
  virtual void step(const Step& step, const double* from, double* to) = 0;

 private:
  Body body_;
  Range range_;
  int num_steps_ = 0;
  std::unique_ptr<jacobi3d::Kernels> faces_;
};

// Makes the kernels of a block. `faces` is the device that packs its faces, and outlives this object.
class HeatDevice : public jacobi3d::KernelDevice {
 public:
  HeatDevice(const Body& body, jacobi3d::KernelDevice& faces) : body_(body), faces_(faces) {}

 protected:
  const Body& body() const { return body_; }
  jacobi3d::KernelDevice& faces() { return faces_; }

 private:
  Body body_;
  jacobi3d::KernelDevice& faces_;
};

std::unique_ptr<HeatDevice> make_host_heat(const Body& body, jacobi3d::KernelDevice& faces);
std::unique_ptr<HeatDevice> make_emulated_heat(const Body& body, jacobi3d::KernelDevice& faces);
// REQUIRES: jacobi3d::cuda_is_built().
std::unique_ptr<HeatDevice> make_cuda_heat(const Body& body, jacobi3d::KernelDevice& faces);

}  // namespace heat3d
