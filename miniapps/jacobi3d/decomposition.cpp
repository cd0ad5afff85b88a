#include "decomposition.h"

#include "fmt/format.h"

namespace jacobi3d {
namespace {

// Calls visit(factors) for each way to write `count` as a product of three, more along x first.
template <class Visit>
void for_each_factorisation(int count, Visit visit) {
  for (int x = count; x >= 1; --x) {
    if (count % x != 0) continue;
    for (int y = count / x; y >= 1; --y) {
      if (count / x % y == 0) visit(Triple{x, y, count / x / y});
    }
  }
}

// Area between parts when a grid of `size` is cut into `parts`.
std::size_t cut_area(const Triple& size, const Triple& parts) {
  std::size_t area = 0;
  for (std::size_t d = 0; d < 3; ++d) {
    area += static_cast<std::size_t>(parts[d] - 1) * (num_points(size) / static_cast<std::size_t>(size[d]));
  }
  return area;
}

template <class Allowed>
Triple least_cut(const Triple& size, int count, Allowed allowed) {
  Triple best{};
  for_each_factorisation(count, [&](const Triple& parts) {
    if (allowed(parts) && (best[0] == 0 || cut_area(size, parts) < cut_area(size, best))) best = parts;
  });
  return best;
}

}  // namespace

Triple divide(const Triple& points, int num_blocks) {
  Triple best = least_cut(points, num_blocks, [&](const Triple& parts) {
    return parts[0] <= points[0] && parts[1] <= points[1] && parts[2] <= points[2];
  });
  if (best[0] == 0) {
    throw UserError(fmt::format(
        "a grid of {} x {} x {} points cannot be cut into {} blocks (PEs x ODF) that have a point each; "
        "make --size larger or --odf smaller",
        points[0], points[1], points[2], num_blocks));
  }
  return best;
}

Range range_of(const Problem& problem, const Triple& index) {
  Range range;
  for (std::size_t d = 0; d < 3; ++d) {
    auto bound = [&](long i) { return static_cast<int>(problem.points[d] * i / problem.blocks[d]); };
    range.first[d] = bound(index[d]);
    range.size[d] = bound(index[d] + 1L) - range.first[d];
  }
  return range;
}

std::vector<int> faces_inside(const Problem& problem, const Triple& index) {
  std::vector<int> faces;
  for (int face = 0; face < kNumFaces; ++face) {
    auto d = static_cast<std::size_t>(dimension_of(face));
    bool at_boundary = is_upper(face) ? index[d] == problem.blocks[d] - 1 : index[d] == 0;
    if (!at_boundary) faces.push_back(face);
  }
  return faces;
}

weft::Index neighbour_of(const Triple& index, int face) {
  weft::Index neighbour{index[0], index[1], index[2]};
  neighbour[dimension_of(face)] += is_upper(face) ? 1 : -1;
  return neighbour;
}

int home_pe(const weft::Index& index, const weft::Shape& blocks, int num_pes) {
  Triple extents{blocks.extent(0), blocks.extent(1), blocks.extent(2)};
  // Such bricks exist: share out the prime factors of num_pes, which divides the product of the extents.
  Triple bricks = least_cut(extents, num_pes, [&](const Triple& parts) {
    return extents[0] % parts[0] == 0 && extents[1] % parts[1] == 0 && extents[2] % parts[2] == 0;
  });
  int pe = 0;
  for (int d = 0; d < 3; ++d) {
    auto i = static_cast<std::size_t>(d);
    pe = pe * bricks[i] + index[d] / (extents[i] / bricks[i]);
  }
  return pe;
}

}  // namespace jacobi3d
