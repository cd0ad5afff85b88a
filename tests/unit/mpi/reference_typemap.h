// A second implementation of datatypes, for tests: the typemap written out, entry by entry, with the definitions of MPI 5.0,
// chapter 5, taken literally. And random datatypes, made by both implementations at once.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "models/mpi/datatype/describing/arrays.h"
#include "models/mpi/datatype/describing/constructors.h"
#include "models/mpi/datatype/predefined.h"

namespace weft::mpi::type_testing {

struct Typemap {
  struct TypemapEntry {
    const BasicType* type;
    MPI_Count displacement;
  };
  std::vector<TypemapEntry> entries;
  std::vector<MPI_Count> lower_markers;
  std::vector<MPI_Count> upper_markers;

  // The bounds of the parts, with the padding of structs.
  std::vector<MPI_Count> lowers;
  std::vector<MPI_Count> uppers;

  static Typemap of(const BasicType& type) { return {{{&type, 0}}, {}, {}, {0}, {type.size}}; }

  void add(const Typemap& part, MPI_Count displacement) {
    for (const TypemapEntry& entry : part.entries)
      entries.push_back({entry.type, entry.displacement + displacement});
    if (!part.entries.empty()) {
      lowers.push_back(part.least_lower() + displacement);
      uppers.push_back(part.largest_upper() + displacement);
    }
    for (const MPI_Count marker : part.lower_markers) lower_markers.push_back(marker + displacement);
    for (const MPI_Count marker : part.upper_markers) upper_markers.push_back(marker + displacement);
  }
  void add_block(const Typemap& part, MPI_Count displacement, MPI_Count length) {
    const MPI_Count extent = part.extent();
    for (MPI_Count i = 0; i < length; ++i) add(part, displacement + i * extent);
  }

  MPI_Count true_lower() const {
    MPI_Count found = entries.empty() ? 0 : entries[0].displacement;
    for (const TypemapEntry& entry : entries) found = std::min(found, entry.displacement);
    return found;
  }
  MPI_Count true_upper() const {
    MPI_Count found = entries.empty() ? 0 : entries[0].displacement + entries[0].type->size;
    for (const TypemapEntry& entry : entries) found = std::max(found, entry.displacement + entry.type->size);
    return found;
  }
  MPI_Count least_lower() const {
    return lowers.empty() ? 0 : *std::min_element(lowers.begin(), lowers.end());
  }
  MPI_Count largest_upper() const {
    return uppers.empty() ? 0 : *std::max_element(uppers.begin(), uppers.end());
  }
  // For structs.
  void pad() {
    MPI_Count alignment = 1;
    for (const TypemapEntry& entry : entries)
      alignment = std::max<MPI_Count>(alignment, entry.type->alignment);
    MPI_Count upper = largest_upper();
    while ((upper - least_lower()) % alignment != 0) ++upper;
    if (!entries.empty()) uppers.push_back(upper);
  }
  MPI_Count lower() const {
    return lower_markers.empty() ? least_lower()
                                 : *std::min_element(lower_markers.begin(), lower_markers.end());
  }
  MPI_Count upper() const {
    if (!upper_markers.empty()) return *std::max_element(upper_markers.begin(), upper_markers.end());
    return largest_upper();
  }
  MPI_Count extent() const { return upper() - lower(); }
  MPI_Count size() const {
    MPI_Count total = 0;
    for (const TypemapEntry& entry : entries) total += entry.type->size;
    return total;
  }

  // For each packed byte of `count` elements, its displacement.
  std::vector<MPI_Count> byte_displacements(MPI_Count count) const {
    std::vector<MPI_Count> found;
    for (MPI_Count i = 0; i < count; ++i)
      for (const TypemapEntry& entry : entries)
        for (MPI_Count byte = 0; byte < entry.type->size; ++byte)
          found.push_back(i * extent() + entry.displacement + byte);
    return found;
  }
};

struct BothTypes {
  Ref<Datatype> type;
  Typemap map;
};

class RandomTypes {
 public:
  explicit RandomTypes(std::uint64_t seed) : random_(seed) {}

  int number(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }

  // A datatype of at most `depth` constructors, with at most 2000 entries.
  BothTypes make(int depth) {
    if (depth == 0) return basic();
    BothTypes made = number(0, 3) == 0 ? make_of_several(depth) : make_of_one(make(depth - 1));
    return made.map.entries.size() > 2000 ? basic() : made;
  }

 private:
  BothTypes basic() {
    static const MPI_Datatype kTypes[] = {MPI_BYTE,        MPI_SHORT,           MPI_INT,    MPI_DOUBLE,
                                          MPI_LONG_DOUBLE, MPI_C_FLOAT_COMPLEX, MPI_INT64_T};
    const MPI_Datatype handle = kTypes[static_cast<std::size_t>(number(0, 6))];
    return {Ref<Datatype>(*predefined_.find(handle)), Typemap::of(*basic_type(handle))};
  }

  std::vector<MPI_Count> numbers(int count, int least, int most) {
    std::vector<MPI_Count> made;
    for (int i = 0; i < count; ++i) made.push_back(number(least, most));
    return made;
  }

  BothTypes make_of_one(BothTypes old) {
    Ref<Datatype> made;
    Typemap map;
    Error error;
    const CallForm form = number(0, 1) == 0 ? CallForm::kSmall : CallForm::kLarge;
    switch (number(0, 9)) {
      case 0: {
        const int count = number(0, 4);
        error = make_contiguous(count, *old.type, form, &made);
        map.add_block(old.map, 0, count);
        break;
      }
      case 1:
      case 2: {
        const bool bytes = number(0, 1) == 0;
        const VectorShape vector{number(0, 4), number(0, 3), bytes ? number(-40, 60) : number(-5, 6)};
        error = bytes ? make_hvector(vector, *old.type, form, &made)
                      : make_vector(vector, *old.type, form, &made);
        const MPI_Count stride = bytes ? vector.stride : vector.stride * old.map.extent();
        for (MPI_Count i = 0; i < vector.count; ++i) map.add_block(old.map, i * stride, vector.blocklength);
        break;
      }
      case 3:
      case 4: {
        const bool bytes = number(0, 1) == 0;
        const int count = number(0, 5);
        const std::vector<MPI_Count> lengths = numbers(count, 0, 3);
        const std::vector<MPI_Count> places = numbers(count, bytes ? -50 : -6, bytes ? 90 : 9);
        error = bytes ? make_hindexed(lengths, places, *old.type, form, &made)
                      : make_indexed(lengths, places, *old.type, form, &made);
        for (std::size_t i = 0; i < places.size(); ++i)
          map.add_block(old.map, places[i] * (bytes ? 1 : old.map.extent()), lengths[i]);
        break;
      }
      case 5: {
        const bool bytes = number(0, 1) == 0;
        const MPI_Count length = number(0, 3);
        const std::vector<MPI_Count> places = numbers(number(0, 5), bytes ? -50 : -6, bytes ? 90 : 9);
        error = bytes ? make_hindexed_block(length, places, *old.type, form, &made)
                      : make_indexed_block(length, places, *old.type, form, &made);
        for (const MPI_Count place : places)
          map.add_block(old.map, place * (bytes ? 1 : old.map.extent()), length);
        break;
      }
      case 6: {
        const int lower = number(-20, 20);
        const int extent = number(-10, 80);
        error = make_resized(lower, extent, *old.type, form, &made);
        map = old.map;
        map.lower_markers = {lower};
        map.upper_markers = {lower + extent};
        break;
      }
      case 7:
        error = make_dup(*old.type, &made);
        map = old.map;
        break;
      case 8:
        error = subarray(old, form, &made, &map);
        break;
      default:
        error = darray(old, form, &made, &map);
        break;
    }
    EXPECT_TRUE(error.ok()) << error.text;
    return {made, map};
  }

  BothTypes make_of_several(int depth) {
    std::vector<BothTypes> parts;
    std::vector<Datatype*> types;
    const int count = number(0, 4);
    for (int i = 0; i < count; ++i) parts.push_back(make(depth - 1));
    for (const BothTypes& part : parts) types.push_back(part.type.get());
    const std::vector<MPI_Count> lengths = numbers(count, 0, 2);
    const std::vector<MPI_Count> places = numbers(count, -60, 120);
    BothTypes made;
    const Error error = make_struct(lengths, places, types, CallForm::kLarge, &made.type);
    EXPECT_TRUE(error.ok()) << error.text;
    for (std::size_t i = 0; i < parts.size(); ++i) made.map.add_block(parts[i].map, places[i], lengths[i]);
    made.map.pad();
    return made;
  }

  // Adds the elements of an array for which owns(dimension, index) holds in all dimensions.
  template <class Owns>
  static void add_array(const Typemap& old, const std::vector<MPI_Count>& sizes, int order, const Owns& owns,
                        Typemap* map) {
    const auto dimensions = static_cast<int>(sizes.size());
    MPI_Count total = 1;
    for (const MPI_Count size : sizes) total *= size;
    for (MPI_Count element = 0; element < total; ++element) {
      MPI_Count rest = element;
      bool owned = true;
      for (int step = 0; step < dimensions; ++step) {
        const int i = order == MPI_ORDER_C ? dimensions - 1 - step : step;
        owned = owned && owns(static_cast<std::size_t>(i), rest % sizes[static_cast<std::size_t>(i)]);
        rest /= sizes[static_cast<std::size_t>(i)];
      }
      if (owned) map->add(old, element * old.extent());
    }
    map->lower_markers = {0};
    map->upper_markers = {total * old.extent()};
  }

  Error subarray(const BothTypes& old, CallForm form, Ref<Datatype>* made, Typemap* map) {
    const std::vector<MPI_Count> sizes = numbers(number(1, 3), 1, 4);
    std::vector<MPI_Count> parts;
    std::vector<MPI_Count> starts;
    for (const MPI_Count size : sizes) {
      parts.push_back(number(1, static_cast<int>(size)));
      starts.push_back(number(0, static_cast<int>(size - parts.back())));
    }
    const int order = number(0, 1) == 0 ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
    add_array(
        old.map, sizes, order,
        [&](std::size_t i, MPI_Count at) { return at >= starts[i] && at < starts[i] + parts[i]; }, map);
    return make_subarray({sizes, parts, starts, order}, *old.type, form, made);
  }

  Error darray(const BothTypes& old, CallForm form, Ref<Datatype>* made, Typemap* map) {
    const int dimensions = number(1, 3);
    const std::vector<MPI_Count> sizes = numbers(dimensions, 1, 6);
    std::vector<int> distributions;
    std::vector<int> arguments;
    std::vector<int> processes;
    int size = 1;
    for (int i = 0; i < dimensions; ++i) {
      const int kind = number(0, 2);
      const int all = static_cast<int>(sizes[static_cast<std::size_t>(i)]);
      const int sharing = kind == 0 ? 1 : number(1, 3);
      distributions.push_back(kind == 0   ? MPI_DISTRIBUTE_NONE
                              : kind == 1 ? MPI_DISTRIBUTE_BLOCK
                                          : MPI_DISTRIBUTE_CYCLIC);
      const int least = kind == 1 ? (all + sharing - 1) / sharing : 1;
      arguments.push_back(number(0, 1) == 0 ? MPI_DISTRIBUTE_DFLT_DARG : number(least, least + 2));
      processes.push_back(sharing);
      size *= sharing;
    }
    const int rank = number(0, size - 1);
    std::vector<int> coordinates(static_cast<std::size_t>(dimensions));
    int rest = rank;
    for (std::size_t i = coordinates.size(); i-- > 0;) {
      coordinates[i] = rest % processes[i];
      rest /= processes[i];
    }
    const int order = number(0, 1) == 0 ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
    const auto owns = [&](std::size_t i, MPI_Count at) {
      if (distributions[i] == MPI_DISTRIBUTE_NONE) return true;
      MPI_Count length = arguments[i];
      if (length == MPI_DISTRIBUTE_DFLT_DARG)
        length = distributions[i] == MPI_DISTRIBUTE_CYCLIC ? 1 : (sizes[i] + processes[i] - 1) / processes[i];
      return at / length % processes[i] == coordinates[i];
    };
    add_array(old.map, sizes, order, owns, map);
    return make_darray({size, rank, sizes, distributions, arguments, processes, order}, *old.type, form,
                       made);
  }

  std::mt19937_64 random_;
  PredefinedTypes predefined_;
};

}  // namespace weft::mpi::type_testing
