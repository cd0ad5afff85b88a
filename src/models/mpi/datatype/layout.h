// Layout: where the bytes of one element of a datatype are, in the order in which they travel.
//
// A layout is a tree that never changes. Its size follows the arguments of the constructors, not the count of elements: a vector of
// 10^9 blocks is one node. Adjacent bytes are merged when the tree is built, whatever basic types they belong to; signature.h knows
// the types.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "weft/mpi/mpi.h"

namespace weft::mpi {

struct Layout;
using LayoutPointer = std::shared_ptr<const Layout>;

struct Layout {
  enum class Kind {
    kRun,   // `size` bytes, one after another
    kLoop,  // `count` times `child`, `stride` bytes apart
    kRuns,  // blocks of bytes: displacements and offsets
    kList,  // children[i] at displacements[i]
  };

  Kind kind = Kind::kRun;
  MPI_Count size = 0;   // packed bytes
  MPI_Count start = 0;  // of kRun and kLoop: displacement of the first child

  MPI_Count count = 0;  // kLoop
  MPI_Count stride = 0;
  LayoutPointer child;

  std::vector<MPI_Count> displacements;  // kRuns, kList
  std::vector<MPI_Count> offsets;        // where each block or child begins in the packed bytes; then `size`
  std::vector<LayoutPointer> children;   // kList
};

// The sizes and displacements that these functions compute must fit 64 bits: the constructors of datatypes check that before.
LayoutPointer run_layout(MPI_Count bytes);
LayoutPointer repeat_layout(const LayoutPointer& child, MPI_Count count, MPI_Count stride);
LayoutPointer shift_layout(const LayoutPointer& child, MPI_Count displacement);

// Makes the layout of parts at given displacements, in the order of the calls.
class LayoutList {
 public:
  void reserve(std::size_t parts);
  void add_run(MPI_Count displacement, MPI_Count bytes);
  void add(MPI_Count displacement, const LayoutPointer& part);
  LayoutPointer finish();

 private:
  struct Part {
    MPI_Count displacement;
    MPI_Count bytes;
    LayoutPointer layout;  // null: a run
  };
  LayoutPointer evenly_spaced_runs() const;

  std::vector<Part> parts_;
  bool only_runs_ = true;
};

}  // namespace weft::mpi
