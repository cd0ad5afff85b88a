// A block's points in memory of one kind, with one layer of ghost points around them.
//
// The methods queue their work on the field's stream; on host memory they do it at once. done() waits for all
// queued work; only code that reads the points outside of the stream needs it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "weft/weft.h"

#include "decomposition.h"
#include "kernels.h"

namespace jacobi3d {

class Field {
 public:
  // All points at their initial values. `place` is the device's.
  Field(weft::Runtime& runtime, const Range& range, weft::Place place, KernelDevice& device);

  const Triple& size() const { return range_.size; }
  std::size_t face_points(int face) const { return Layout(range_.size).face_points(face); }
  weft::Place place() const { return current_.place(); }
  // Null on host memory.
  weft::Stream* stream() { return stream_ ? &*stream_ : nullptr; }

  // One Jacobi iteration: every point becomes the mean of its six neighbours.
  void update();
  // Computes the next points and does not take them, which loads the kernel.
  void rehearse_update() { kernels_->update(current_.data(), next_.data(), range_.size); }
  void pack(const Halos& halos) { kernels_->pack(current_.data(), range_.size, halos); }
  void unpack(const Halos& halos) { kernels_->unpack(current_.data(), range_.size, halos); }

  // A graph of what `queue` queues on the stream, as Kernels::capture().
  std::unique_ptr<Graph> capture(const std::function<void()>& queue) { return kernels_->capture(queue); }

  weft::Task<> done();
  // When kernels ran, since the last call. REQUIRES: done().
  std::vector<Interval> take_intervals() { return kernels_->take_intervals(); }

  // Without ghost points, z fastest.
  weft::Task<std::vector<double>> values();
  // The sum, modulo 2^64, of each value's bits times 2 i + 1, i being its place in the whole grid: equal for
  // every decomposition of the same grid, and for every language.
  weft::Task<std::uint64_t> checksum(Triple grid);

 private:
  weft::Runtime& runtime_;
  Range range_;
  std::optional<weft::Stream> stream_;
  std::unique_ptr<Kernels> kernels_;
  weft::DeviceArray<double> current_;
  weft::DeviceArray<double> next_;
};

}  // namespace jacobi3d
