#include "part.h"

#include <utility>

namespace jacobi3d {
namespace {

Triple triple_of(const weft::Index& index) { return {index[0], index[1], index[2]}; }

}  // namespace

Part::Part(const Problem& problem, const weft::Index& index, Reporting reporting)
    : problem_(problem),
      index_(triple_of(index)),
      reporting_(std::move(reporting)),
      field_(range_of(problem_, index_)) {
  if (index_ != Triple{}) reporting_.every = 0;
  for (int face = 0; face < kNumFaces; ++face) {
    auto d = static_cast<std::size_t>(dimension_of(face));
    bool at_boundary = is_upper(face) ? index_[d] == problem_.blocks[d] - 1 : index_[d] == 0;
    if (!at_boundary) faces_.push_back(face);
  }
}

weft::Index Part::neighbour(int face) const {
  weft::Index index{index_[0], index_[1], index_[2]};
  index[dimension_of(face)] += is_upper(face) ? 1 : -1;
  return index;
}

void Part::update() {
  auto start = std::chrono::steady_clock::now();
  field_.update();
  add_time(times_.compute_s, start);
  ++iteration_;
  if (reporting_.every != 0 && iteration_ % reporting_.every == 0) {
    reporting_.progress.send<&ProgressBar::advance>(iteration_);
  }
}

void Part::pack(int face, std::span<double> halo) {
  auto start = std::chrono::steady_clock::now();
  field_.pack(face, halo);
  add_time(times_.pack_s, start);
}

void Part::unpack(int face, std::span<const double> halo) {
  auto start = std::chrono::steady_clock::now();
  field_.unpack(face, halo);
  add_time(times_.pack_s, start);
}

}  // namespace jacobi3d
