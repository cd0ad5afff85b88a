#include "weft/chare/index.h"

#include "weft/base/error.h"

#include "base/format.h"

namespace weft::chare {

namespace {

[[noreturn, gnu::cold]] void refuse_index(std::string message) {
  throw base::Error(base::StatusCode::kInvalidArgument, message);
}

}  // namespace

Index::Index(std::initializer_list<int> coordinates)
    : num_dimensions_(static_cast<std::int32_t>(coordinates.size())) {
  if (coordinates.size() == 0 || coordinates.size() > kMaxDimensions) {
    refuse_index(
        base::format("an index has 1 to {} coordinates, not {}", kMaxDimensions, coordinates.size()));
  }
  std::copy(coordinates.begin(), coordinates.end(), coordinates_.begin());
}

std::string Index::to_string() const {
  if (num_dimensions_ == 1) return base::format("{}", coordinates_[0]);
  std::string text = "(";
  for (int d = 0; d < num_dimensions_; ++d) text += base::format("{}{}", d == 0 ? "" : ", ", (*this)[d]);
  return text + ")";
}

Shape::Shape(const int* extents, int num_dimensions) {
  if (num_dimensions < 1 || num_dimensions > kMaxDimensions) {
    refuse_index(base::format("a shape has 1 to {} dimensions, not {}", kMaxDimensions, num_dimensions));
  }
  extents_.num_dimensions_ = num_dimensions;
  size_ = 1;
  for (int d = 0; d < num_dimensions; ++d) {
    if (extents[d] < 1)
      refuse_index(base::format("extent {} of dimension {} is not at least 1", extents[d], d));
    extents_[d] = extents[d];
    if (__builtin_mul_overflow(size_, static_cast<std::uint64_t>(extents[d]), &size_)) {
      refuse_index(base::format("the shape {} has more than 2^64 elements", extents_.to_string()));
    }
  }
}

Shape Shape::with_map(Map map) const {
  Shape shape = *this;
  shape.map_ = map;
  return shape;
}

Shape Shape::on_pe(int pe) const {
  if (pe < 0) refuse_index(base::format("a collection was put on PE {}; PEs are numbered from 0", pe));
  Shape shape = with_map(Map::kOnePe);
  shape.map_argument_ = static_cast<std::uint32_t>(pe);
  return shape;
}

Shape Shape::with_user_map(std::uint32_t map_number) const {
  Shape shape = with_map(Map::kUser);
  shape.map_argument_ = map_number;
  return shape;
}

void Shape::check_homes(int num_pes) const {
  if (map_ == Map::kBlock || map_ == Map::kRoundRobin) return;
  std::uint64_t count = map_ == Map::kOnePe ? 1 : size_;
  for (std::uint64_t i = 0; i < count; ++i) static_cast<void>(home(i, num_pes));
}

Shape Shape::with_table(std::vector<std::uint32_t> pes) const {
  if (pes.size() != size_) {
    refuse_index(
        base::format("a map of {} PEs was given for a collection of {} elements", pes.size(), size_));
  }
  Shape shape = with_map(Map::kTable);
  shape.table_ = std::make_shared<const std::vector<std::uint32_t>>(std::move(pes));
  return shape;
}

Shape Shape::without_table() const {
  Shape shape = *this;
  shape.table_.reset();
  return shape;
}

std::uint64_t Shape::linear_of_any(const Index& index) const {
  bool inside = index.num_dimensions() == num_dimensions();
  std::uint64_t linear = 0;
  for (int d = 0; inside && d < num_dimensions(); ++d) {
    inside = index[d] >= 0 && index[d] < extent(d);
    linear = linear * static_cast<std::uint64_t>(extent(d)) + static_cast<std::uint64_t>(index[d]);
  }
  if (!inside) {
    throw base::Error(
        base::StatusCode::kOutOfRange,
        base::format("index {} is outside a collection of shape {}; each coordinate counts from 0 to its "
                     "extent - 1",
                     index.to_string(), to_string()));
  }
  return linear;
}

Index Shape::index(std::uint64_t linear) const {
  Index index = extents_;
  for (int d = num_dimensions() - 1; d >= 0; --d) {
    auto extent_here = static_cast<std::uint64_t>(extent(d));
    index[d] = static_cast<int>(linear % extent_here);
    linear /= extent_here;
  }
  return index;
}

int Shape::home(std::uint64_t linear, int num_pes) const {
  auto pes = static_cast<std::uint64_t>(num_pes);
  switch (map_) {
    case Map::kBlock: {
      // Runs for each call to another PE. A division of 128 bits is a call of a library, and 64 usually suffice.
      std::uint64_t scaled = 0;
      if (!__builtin_mul_overflow(linear + 1, pes, &scaled)) [[likely]]
        return static_cast<int>((scaled - 1) / size_);
      return static_cast<int>((static_cast<unsigned __int128>(linear + 1) * pes - 1) / size_);
    }
    case Map::kRoundRobin:
      return static_cast<int>(linear % pes);
    case Map::kOnePe:
      if (map_argument_ < pes) return static_cast<int>(map_argument_);
      refuse_index(base::format("a collection was put on PE {}; this job has PEs 0 to {}", map_argument_,
                                num_pes - 1));
    case Map::kTable: {
      std::uint32_t pe = table_->at(linear);
      if (pe < pes) return static_cast<int>(pe);
      refuse_index(base::format("the map puts element {} on PE {}; this job has PEs 0 to {}",
                                index(linear).to_string(), pe, num_pes - 1));
    }
    case Map::kUser:
      break;
  }
  const MapInfo* map = runtime::Registry<MapInfo>::find(map_argument_);
  if (map == nullptr) refuse_index(base::format("the map {} is not known on this PE", map_argument_));
  int pe = map->home(index(linear), *this, num_pes);
  if (pe < 0 || pe >= num_pes) {
    refuse_index(base::format("the map {} puts element {} on PE {}; this job has PEs 0 to {}", map->name,
                              index(linear).to_string(), pe, num_pes - 1));
  }
  return pe;
}

void Shape::pup(Pup& p) {
  int num_dimensions = extents_.num_dimensions_;
  p | num_dimensions;
  if (p.is_unpacking()) {
    std::array<int, kMaxDimensions> extents{};
    if (num_dimensions < 1 || num_dimensions > kMaxDimensions) p.skip(p.remaining_bytes() + 1);
    for (int d = 0; d < num_dimensions; ++d) p | extents[static_cast<std::size_t>(d)];
    *this = Shape(extents.data(), num_dimensions);
  } else {
    for (int d = 0; d < num_dimensions; ++d) p | extents_[d];
  }
  p | map_ | map_argument_;
  bool has_table = table_ != nullptr;
  p | has_table;
  if (!has_table) return;
  std::vector<std::uint32_t> pes;
  if (!p.is_unpacking()) pes = *table_;
  p | pes;
  if (p.is_unpacking()) *this = with_table(std::move(pes));
}

}  // namespace weft::chare
