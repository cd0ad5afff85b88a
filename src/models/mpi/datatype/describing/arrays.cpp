#include "models/mpi/datatype/describing/arrays.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "base/format.h"
#include "models/mpi/datatype/describing/assembly.h"

namespace weft::mpi {
namespace {

Error check_order(int order) {
  if (order == MPI_ORDER_C || order == MPI_ORDER_FORTRAN) return {};
  return {MPI_ERR_ARG, base::format("order is {}; give MPI_ORDER_C or MPI_ORDER_FORTRAN", order)};
}

Error check_subarray(const Subarray& array) {
  if (array.sizes.empty()) return {MPI_ERR_ARG, "an array needs at least one dimension"};
  for (std::size_t i = 0; i < array.sizes.size(); ++i) {
    const MPI_Count size = array.sizes[i];
    const MPI_Count subsize = array.subsizes[i];
    const MPI_Count start = array.starts[i];
    if (size < 1 || subsize < 1 || subsize > size || start < 0 || start > size - subsize)
      return {MPI_ERR_ARG,
              base::format("dimension {}: a part of {} elements from element {} on is not within {} elements",
                           i, subsize, start, size)};
  }
  return check_order(array.order);
}

// The dimensions from the one whose elements are neighbours in memory to the outermost one.
class InnermostFirst {
 public:
  InnermostFirst(std::size_t dimensions, int order) : dimensions_(dimensions), c_(order == MPI_ORDER_C) {}
  std::size_t operator[](std::size_t i) const { return c_ ? dimensions_ - 1 - i : i; }

 private:
  std::size_t dimensions_;
  bool c_;
};

// Where the elements of one dimension are that a process has: `blocks` blocks of `length` elements, `period` apart, and then one of
// `last` elements.
struct Share {
  MPI_Count start = 0;
  MPI_Count blocks = 0;
  MPI_Count length = 0;
  MPI_Count period = 0;
  MPI_Count last = 0;
};

Share cyclic_share(MPI_Count size, MPI_Count length, MPI_Count processes, MPI_Count coordinate) {
  Share share;
  const Wide start = Wide{coordinate} * length;
  if (start >= size) return share;
  share.start = static_cast<MPI_Count>(start);
  share.length = length;
  const MPI_Count rest = size - share.start;  // from the first element of this process on
  const Wide period = Wide{length} * processes;
  MPI_Count after = rest;  // elements behind the last whole period
  if (period < rest) {
    share.period = static_cast<MPI_Count>(period);
    share.blocks = rest / share.period;
    after = rest - share.blocks * share.period;
  }
  if (after >= length) {
    ++share.blocks;
  } else {
    share.last = after;
  }
  return share;
}

Error block_share(MPI_Count size, int argument, MPI_Count processes, MPI_Count coordinate, Share* share) {
  const MPI_Count length = argument == MPI_DISTRIBUTE_DFLT_DARG ? (size - 1) / processes + 1 : argument;
  if (length < 1 || Wide{length} * processes < size)
    return {MPI_ERR_ARG, base::format("blocks of {} elements on {} processes do not hold {} elements", length,
                                      processes, size)};
  *share = cyclic_share(size, length, processes, coordinate);
  return {};
}

Error find_share(const DistributedArray& array, std::size_t i, MPI_Count coordinate, Share* share) {
  const MPI_Count size = array.sizes[i];
  const int argument = array.arguments[i];
  const int processes = array.processes[i];
  switch (array.distributions[i]) {
    case MPI_DISTRIBUTE_BLOCK:
      return block_share(size, argument, processes, coordinate, share);
    case MPI_DISTRIBUTE_CYCLIC: {
      const MPI_Count length = argument == MPI_DISTRIBUTE_DFLT_DARG ? 1 : argument;
      if (length < 1)
        return {MPI_ERR_ARG, base::format("dimension {}: blocks of {} elements; give 1 or more", i, length)};
      *share = cyclic_share(size, length, processes, coordinate);
      return {};
    }
    case MPI_DISTRIBUTE_NONE:
      if (processes != 1)
        return {
            MPI_ERR_ARG,
            base::format("dimension {} is not distributed, but {} processes share it; give 1", i, processes)};
      *share = cyclic_share(size, size, 1, 0);
      return {};
    default:
      return {MPI_ERR_ARG,
              base::format("dimension {}: no distribution has the number {}", i, array.distributions[i])};
  }
}

Error check_darray(const DistributedArray& array) {
  if (array.sizes.empty()) return {MPI_ERR_ARG, "an array needs at least one dimension"};
  Wide processes = 1;
  for (std::size_t i = 0; i < array.sizes.size(); ++i) {
    if (array.sizes[i] < 1)
      return {MPI_ERR_ARG, base::format("dimension {} has {} elements; give 1 or more", i, array.sizes[i])};
    if (array.processes[i] < 1)
      return {MPI_ERR_ARG,
              base::format("dimension {} has {} processes; give 1 or more", i, array.processes[i])};
    processes *= array.processes[i];
    if (processes > array.size) break;
  }
  if (processes != array.size)
    return {MPI_ERR_ARG,
            base::format("the grid of processes does not have {} processes, as the group has", array.size)};
  if (array.rank < 0 || array.rank >= array.size)
    return {MPI_ERR_ARG, base::format("rank {} is not in a group of {} processes", array.rank, array.size)};
  return check_order(array.order);
}

// The process grid is in C order for arrays of both orders.
std::vector<MPI_Count> grid_coordinates(const DistributedArray& array) {
  std::vector<MPI_Count> coordinates(array.processes.size());
  int rest = array.rank;
  for (std::size_t i = coordinates.size(); i-- > 0;) {
    coordinates[i] = rest % array.processes[i];
    rest /= array.processes[i];
  }
  return coordinates;
}

Shape empty_shape() { return {Bounds(), run_layout(0), SignatureList().finish()}; }

// Adds `count` times the part to a shape under construction.
class ShareAssembly {
 public:
  [[nodiscard]] bool add(const Shape& part, Wide displacement) {
    if (part.signature->size == 0) return true;
    bounds_.add(part.bounds, displacement);
    size_ += part.signature->size;
    if (!bounds_.fits() || !fits_count(size_) || !fits_count(displacement)) return false;
    layout_.add(static_cast<MPI_Count>(displacement), part.layout);
    signature_.add(part.signature, 1);
    return true;
  }
  Shape finish() { return {bounds_, layout_.finish(), signature_.finish()}; }

 private:
  Bounds bounds_;
  Wide size_ = 0;
  LayoutList layout_;
  SignatureList signature_;
};

// Replaces `shape`, one element of a dimension, by the elements that the process has. `unit`: bytes between neighbouring elements.
bool take_share(const Share& share, Wide unit, Shape* shape) {
  Shape block = empty_shape();
  Shape blocks = empty_shape();
  Shape last = empty_shape();
  if (share.blocks > 0 && (!repeat_shape(*shape, share.length, unit, &block) ||
                           !repeat_shape(block, share.blocks, unit * share.period, &blocks)))
    return false;
  if (share.last > 0 && !repeat_shape(*shape, share.last, unit, &last)) return false;
  ShareAssembly both;
  const Wide end = (Wide{share.start} + Wide{share.blocks} * share.period) * unit;
  if (!both.add(blocks, Wide{share.start} * unit) || !both.add(last, end)) return false;
  *shape = both.finish();
  return true;
}

// Sets the bounds to those of the whole array and makes the datatype.
Error finish_array(Shape shape, Wide bytes, Recipe recipe, Ref<Datatype>* made) {
  shape.bounds = shape.bounds.resized(0, bytes);
  if (!shape.bounds.fits()) return too_large_error();
  *made = make_datatype(std::move(shape), std::move(recipe));
  return {};
}

Recipe darray_recipe(const DistributedArray& array, Datatype& old, CallForm form) {
  Recipe recipe(MPI_COMBINER_DARRAY, form);
  recipe.add_integer(array.size);
  recipe.add_integer(array.rank);
  recipe.add_integer(static_cast<int>(array.sizes.size()));
  for (const MPI_Count size : array.sizes) recipe.add_count(size);
  for (const std::span<const int> values : {array.distributions, array.arguments, array.processes})
    for (const int value : values) recipe.add_integer(value);
  recipe.add_integer(array.order);
  recipe.datatypes.emplace_back(old);
  return recipe;
}

}  // namespace

Error make_subarray(const Subarray& array, Datatype& old, CallForm form, Ref<Datatype>* made) {
  if (Error error = check_subarray(array); !error.ok()) return error;
  Recipe recipe(MPI_COMBINER_SUBARRAY, form);
  recipe.add_integer(static_cast<int>(array.sizes.size()));
  for (const CountSpan values : {array.sizes, array.subsizes, array.starts})
    for (const MPI_Count value : values) recipe.add_count(value);
  recipe.add_integer(array.order);
  recipe.datatypes.emplace_back(old);

  Shape shape = old.shape();
  Wide unit = old.extent();  // bytes between neighbours of the dimension
  const InnermostFirst order(array.sizes.size(), array.order);
  for (std::size_t step = 0; step < array.sizes.size(); ++step) {
    const std::size_t i = order[step];
    const Share share{array.starts[i], 1, array.subsizes[i], 0, 0};
    if (!take_share(share, unit, &shape)) return too_large_error();
    unit *= array.sizes[i];
    if (!fits_count(unit)) return too_large_error();
  }
  return finish_array(std::move(shape), unit, std::move(recipe), made);
}

Error make_darray(const DistributedArray& array, Datatype& old, CallForm form, Ref<Datatype>* made) {
  if (Error error = check_darray(array); !error.ok()) return error;
  const std::vector<MPI_Count> coordinates = grid_coordinates(array);
  Shape shape = old.shape();
  Wide unit = old.extent();
  const InnermostFirst order(array.sizes.size(), array.order);
  for (std::size_t step = 0; step < array.sizes.size(); ++step) {
    const std::size_t i = order[step];
    Share share;
    if (Error error = find_share(array, i, coordinates[i], &share); !error.ok()) return error;
    if (!take_share(share, unit, &shape)) return too_large_error();
    unit *= array.sizes[i];
    if (!fits_count(unit)) return too_large_error();
  }
  return finish_array(std::move(shape), unit, darray_recipe(array, old, form), made);
}

}  // namespace weft::mpi
