#include "field.h"

#include <algorithm>
#include <bit>

namespace jacobi3d {

HostField::HostField(const Range& range) : range_(range) {
  const Triple& size = range_.size;
  stride_ = {static_cast<std::size_t>(size[1] + 2) * static_cast<std::size_t>(size[2] + 2),
             static_cast<std::size_t>(size[2] + 2), 1};
  current_.resize(static_cast<std::size_t>(size[0] + 2) * stride_[0]);
  for (int x = -1; x <= size[0]; ++x) {
    for (int y = -1; y <= size[1]; ++y) {
      for (int z = -1; z <= size[2]; ++z) {
        current_[offset(x, y, z)] =
            initial_value(range_.first[0] + x, range_.first[1] + y, range_.first[2] + z);
      }
    }
  }
  next_ = current_;
}

void HostField::update() {
  const auto depth = static_cast<std::size_t>(range_.size[2]);
  for (int x = 0; x < range_.size[0]; ++x) {
    for (int y = 0; y < range_.size[1]; ++y) {
      const double* __restrict from = current_.data() + offset(x, y, 0);
      const double* __restrict x_lower = from - stride_[0];
      const double* __restrict x_upper = from + stride_[0];
      const double* __restrict y_lower = from - stride_[1];
      const double* __restrict y_upper = from + stride_[1];
      double* __restrict to = next_.data() + offset(x, y, 0);
      for (std::size_t z = 0; z < depth; ++z) {
        to[z] = mean_of_neighbours(x_lower[z], x_upper[z], y_lower[z], y_upper[z], from[z - 1], from[z + 1]);
      }
    }
  }
  current_.swap(next_);
}

std::size_t HostField::face_points(int face) const {
  return num_points(range_.size) /
         static_cast<std::size_t>(range_.size[static_cast<std::size_t>(dimension_of(face))]);
}

// Calls visit(offset, count) for the rows, or single points, of one layer of points parallel to `face`.
template <class Visit>
void HostField::for_each_row_of(int face, int layer, Visit visit) const {
  const Triple& size = range_.size;
  const auto depth = static_cast<std::size_t>(size[2]);
  if (dimension_of(face) == 0) {
    for (int y = 0; y < size[1]; ++y) visit(offset(layer, y, 0), depth);
  } else if (dimension_of(face) == 1) {
    for (int x = 0; x < size[0]; ++x) visit(offset(x, layer, 0), depth);
  } else {
    for (int x = 0; x < size[0]; ++x) {
      for (int y = 0; y < size[1]; ++y) visit(offset(x, y, layer), std::size_t{1});
    }
  }
}

void HostField::pack(int face, std::span<double> halo) const {
  int outermost = is_upper(face) ? range_.size[static_cast<std::size_t>(dimension_of(face))] - 1 : 0;
  double* to = halo.data();
  for_each_row_of(face, outermost, [&](std::size_t first, std::size_t count) {
    to = std::copy_n(current_.data() + first, count, to);
  });
}

void HostField::unpack(int face, std::span<const double> halo) {
  int ghost = is_upper(face) ? range_.size[static_cast<std::size_t>(dimension_of(face))] : -1;
  const double* from = halo.data();
  for_each_row_of(face, ghost, [&](std::size_t first, std::size_t count) {
    std::copy_n(from, count, current_.data() + first);
    from += count;
  });
}

std::vector<double> HostField::values() const {
  std::vector<double> values;
  values.reserve(num_points(range_.size));
  for (int x = 0; x < range_.size[0]; ++x) {
    for (int y = 0; y < range_.size[1]; ++y) {
      const double* row = current_.data() + offset(x, y, 0);
      values.insert(values.end(), row, row + range_.size[2]);
    }
  }
  return values;
}

std::uint64_t HostField::checksum(const Triple& grid) const {
  std::uint64_t sum = 0;
  for (int x = 0; x < range_.size[0]; ++x) {
    for (int y = 0; y < range_.size[1]; ++y) {
      auto line = static_cast<std::uint64_t>(range_.first[0] + x) * static_cast<std::uint64_t>(grid[1]) +
                  static_cast<std::uint64_t>(range_.first[1] + y);
      std::uint64_t place =
          line * static_cast<std::uint64_t>(grid[2]) + static_cast<std::uint64_t>(range_.first[2]);
      const double* row = current_.data() + offset(x, y, 0);
      for (int z = 0; z < range_.size[2]; ++z, ++place)
        sum += std::bit_cast<std::uint64_t>(row[z]) * (2 * place + 1);
    }
  }
  return sum;
}

}  // namespace jacobi3d
