// The operands of a reduction, and the steps that a process does alone. These do nothing once it has failed (transfers.h).
//
// Threads: the PE's.
#pragma once

#include "models/mpi/collective/transfers.h"
#include "models/mpi/collective/typed_view.h"
#include "models/mpi/operation/reduction_operator.h"

namespace weft::mpi {

struct Reduction {
  Ref<Datatype> type;
  Ref<ReductionOperator> operation;
  MPI_Count count = 0;

  // right = left op right. REQUIRES: elements as ScratchElements has them.
  void combine(const ScratchElements& left, ScratchElements& right) const {
    operation->reduce(left.buffer(), right.buffer(), count, *type);
  }
};

// right = left op right. Elements that have not all arrived are not combined.
inline void combine(Transfers& transfers, const Reduction& what, const ScratchElements& left,
                    ScratchElements& right) {
  transfers.compute([&] { what.combine(left, right); });
}

// Memory for the elements of a reduction. A process without memory has failed, and gets none.
inline ScratchElements elements_of(const Reduction& what, Transfers& transfers) {
  ScratchElements elements(what.type, 0);
  transfers.compute([&] { elements = ScratchElements(what.type, what.count); });
  return elements;
}

}  // namespace weft::mpi
