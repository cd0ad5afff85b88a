// The index of a chare in its collection, and the shape of a collection with the map from indices to home
// PEs.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "weft/base/pup.h"
#include "weft/runtime/registry.h"

namespace weft::chare {

inline constexpr int kMaxDimensions = 6;

// One to six coordinates, each at least 0. An int is a one-dimensional index.
class Index {
 public:
  Index() = default;
  Index(int i) : num_dimensions_(1), coordinates_{i} {}
  Index(std::initializer_list<int> coordinates);

  int num_dimensions() const { return num_dimensions_; }
  int operator[](int dimension) const { return coordinates_[static_cast<std::size_t>(dimension)]; }
  int& operator[](int dimension) { return coordinates_[static_cast<std::size_t>(dimension)]; }
  // The only coordinate of a one-dimensional index.
  operator int() const { return coordinates_[0]; }

  friend bool operator==(const Index&, const Index&) = default;
  friend bool operator==(const Index& index, int i) { return index == Index(i); }
  std::string to_string() const;  // "3" or "(0, 2, 1)"

 private:
  friend class Shape;
  std::int32_t num_dimensions_ = 1;
  std::array<std::int32_t, kMaxDimensions> coordinates_{};
};

class Shape;

// Computes the home of an element from its index alone, the same on every PE.
struct MapInfo {
  std::string_view name;
  int (*home)(const Index& index, const Shape& shape, int num_pes) = nullptr;
  std::uint32_t id = 0;
};

enum class Map : std::uint8_t {
  kBlock,       // contiguous runs of the row-major order, whose sizes differ by at most one
  kRoundRobin,  // element i on PE i modulo the number of PEs
  kOnePe,       // all on one PE
  kUser,        // a function that every PE has
  kTable,       // a PE for each element, computed by the creator of the collection
};

// Extents in one to six dimensions, all at least 1, in row-major order (the last coordinate varies fastest),
// and the map.
class Shape {
 public:
  Shape() = default;
  Shape(int extent) : Shape({extent}) {}
  Shape(std::initializer_list<int> extents) : Shape(extents.begin(), static_cast<int>(extents.size())) {}
  Shape(const int* extents, int num_dimensions);

  Shape with_map(Map map) const;
  Shape on_pe(int pe) const;
  // pes[i] is the home of the i-th element in row-major order. The table travels with the creation of the
  // collection, not with its proxies.
  Shape with_table(std::vector<std::uint32_t> pes) const;
  // Whether home() can be called: false for a shape whose table has not arrived on this PE.
  bool knows_homes() const { return map_ != Map::kTable || table_ != nullptr; }
  Shape without_table() const;
  // Home is a function `int home(const Index&, const Shape&, int num_pes)`. It is a template argument, so
  // that every PE has it: Shape{8, 8}.with_map<&my_home>().
  template <auto Home>
  Shape with_map() const;

  Map map() const { return map_; }
  // kOnePe: the PE; kUser: the number of the MapInfo; else 0.
  std::uint32_t map_argument() const { return map_argument_; }
  // kTable: the PE of each element, null if it has not arrived on this PE.
  const std::vector<std::uint32_t>* table() const { return table_.get(); }
  // The map is the registered function with that number.
  Shape with_user_map(std::uint32_t map_number) const;

  int num_dimensions() const { return extents_.num_dimensions(); }
  int extent(int dimension) const { return extents_[dimension]; }
  std::uint64_t size() const { return size_; }

  // Throws Error(kOutOfRange) naming index and shape.
  std::uint64_t linear(const Index& index) const {
    if (num_dimensions() == 1 && index.num_dimensions() == 1 && index[0] >= 0 && index[0] < extent(0))
        [[likely]]
      return static_cast<std::uint64_t>(index[0]);
    return linear_of_any(index);
  }
  Index index(std::uint64_t linear) const;
  // Throws Error naming the element that the map puts on a PE that does not exist.
  void check_homes(int num_pes) const;
  // REQUIRES: linear < size() and knows_homes().
  int home(std::uint64_t linear, int num_pes) const;

  std::string to_string() const { return extents_.to_string(); }
  void pup(Pup& p);

 private:
  std::uint64_t linear_of_any(const Index& index) const;

  Index extents_;
  std::uint64_t size_ = 0;
  Map map_ = Map::kBlock;
  std::uint32_t map_argument_ = 0;  // kOnePe: the PE; kUser: the MapInfo's id
  std::shared_ptr<const std::vector<std::uint32_t>> table_;
};

namespace map_detail {
template <auto Home>
struct UserMap {
  static inline MapInfo info{runtime::value_name<Home>(), Home, 0};
  static inline bool registered = runtime::Registry<MapInfo>::add(&info);
};
}  // namespace map_detail

template <auto Home>
Shape Shape::with_map() const {
  static_cast<void>(map_detail::UserMap<Home>::registered);
  static_cast<void>(runtime::Registry<MapInfo>::all());  // numbers it
  return with_user_map(map_detail::UserMap<Home>::info.id);
}

}  // namespace weft::chare
