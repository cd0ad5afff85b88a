#include "stencil.h"

#include <algorithm>

namespace jacobi3d {

void fill_points(double* points, const Range& range) {
  const Layout layout(range.size);
  for (int x = -1; x <= range.size[0]; ++x) {
    for (int y = -1; y <= range.size[1]; ++y) {
      for (int z = -1; z <= range.size[2]; ++z) {
        points[layout.offset(x, y, z)] =
            initial_value(range.first[0] + x, range.first[1] + y, range.first[2] + z);
      }
    }
  }
}

void update_points(const double* from_points, double* to_points, const Triple& size) {
  const Layout layout(size);
  const auto depth = static_cast<std::size_t>(size[2]);
  for (int x = 0; x < size[0]; ++x) {
    for (int y = 0; y < size[1]; ++y) {
      const double* __restrict from = from_points + layout.offset(x, y, 0);
      const double* __restrict x_lower = from - layout.x_stride();
      const double* __restrict x_upper = from + layout.x_stride();
      const double* __restrict y_lower = from - layout.y_stride();
      const double* __restrict y_upper = from + layout.y_stride();
      double* __restrict to = to_points + layout.offset(x, y, 0);
      for (std::size_t z = 0; z < depth; ++z) {
        to[z] = mean_of_neighbours(x_lower[z], x_upper[z], y_lower[z], y_upper[z], from[z - 1], from[z + 1]);
      }
    }
  }
}

namespace {

// Calls visit(offset, count) for the rows, or single points, of one layer of points parallel to `face`.
template <class Visit>
void for_each_run_of(const Layout& layout, int face, int layer, Visit visit) {
  const int columns = layout.face_columns(face);
  const bool together = dimension_of(face) != 2;  // the columns of a row, in memory
  for (int row = 0; row < layout.face_rows(face); ++row) {
    if (together) {
      visit(layout.face_offset(face, layer, row, 0), columns);
    } else {
      for (int column = 0; column < columns; ++column) visit(layout.face_offset(face, layer, row, column), 1);
    }
  }
}

}  // namespace

void pack_faces(const double* points, const Triple& size, const Halos& halos) {
  const Layout layout(size);
  for (int i = 0; i < halos.count; ++i) {
    const auto [face, values] = halos.halo[i];
    double* to = values;
    for_each_run_of(layout, face, layout.outermost_layer(face),
                    [&](std::size_t first, int count) { to = std::copy_n(points + first, count, to); });
  }
}

void unpack_faces(double* points, const Triple& size, const Halos& halos) {
  const Layout layout(size);
  for (int i = 0; i < halos.count; ++i) {
    const auto [face, values] = halos.halo[i];
    const double* from = values;
    for_each_run_of(layout, face, layout.ghost_layer(face), [&](std::size_t first, int count) {
      std::copy_n(from, count, points + first);
      from += count;
    });
  }
}

}  // namespace jacobi3d
