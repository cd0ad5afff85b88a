#include "field.h"

#include <bit>
#include <utility>

namespace jacobi3d {

Field::Field(weft::Runtime& runtime, const Range& range, weft::Place place, KernelDevice& device)
    : runtime_(runtime),
      range_(range),
      current_(runtime, Layout(range.size).num_values(), place),
      next_(runtime, Layout(range.size).num_values(), place) {
  if (!place.is_host()) stream_.emplace(runtime, place);
  kernels_ = device.make_kernels(stream());
  // Both buffers, because the updates never write the boundary.
  kernels_->fill(current_.data(), range_);
  kernels_->fill(next_.data(), range_);
}

void Field::update() {
  rehearse_update();
  std::swap(current_, next_);
}

weft::Task<> Field::done() {
  if (stream_) co_await stream_->done();
}

weft::Task<std::vector<double>> Field::values() {
  const Layout layout(range_.size);
  const double* points = current_.data();
  weft::DeviceArray<double> copy;
  if (stream_) {
    copy = weft::DeviceArray<double>::staging(runtime_, layout.num_values(), place());
    stream_->copy(copy.buffer(), current_.buffer());
    co_await stream_->done();
    points = copy.data();
  }
  std::vector<double> values;
  values.reserve(num_points(range_.size));
  for (int x = 0; x < range_.size[0]; ++x) {
    for (int y = 0; y < range_.size[1]; ++y) {
      const double* row = points + layout.offset(x, y, 0);
      values.insert(values.end(), row, row + range_.size[2]);
    }
  }
  co_return values;
}

weft::Task<std::uint64_t> Field::checksum(Triple grid) {
  const std::vector<double> points = co_await values();
  const double* value = points.data();
  std::uint64_t sum = 0;
  for (int x = 0; x < range_.size[0]; ++x) {
    for (int y = 0; y < range_.size[1]; ++y) {
      auto line = static_cast<std::uint64_t>(range_.first[0] + x) * static_cast<std::uint64_t>(grid[1]) +
                  static_cast<std::uint64_t>(range_.first[1] + y);
      std::uint64_t place =
          line * static_cast<std::uint64_t>(grid[2]) + static_cast<std::uint64_t>(range_.first[2]);
      for (int z = 0; z < range_.size[2]; ++z, ++place)
        sum += std::bit_cast<std::uint64_t>(*value++) * (2 * place + 1);
    }
  }
  co_return sum;
}

}  // namespace jacobi3d
