// Collectives on small data, which lies in blocks in host memory: the engine below the models runs them (src/collective).
//
// Data that lies elsewhere, or with gaps, is copied to such blocks and back. The transfers keep the error; a process that has failed takes
// part all the same, and then the others fail too. Each function makes one call of the engine with the tag of the context, so an operation
// calls at most one of them.
#pragma once

#include <cstddef>
#include <exception>
#include <vector>

#include "weft/runtime/task.h"

#include "collective/run.h"
#include "models/mpi/collective/operands.h"
#include "models/mpi/collective/transfers.h"
#include "models/mpi/virtual_ranks/virtual_rank.h"

namespace weft::mpi {

inline std::size_t packed_bytes(const Reduction& what) {
  return static_cast<std::size_t>(what.count * what.type->size_bytes());
}
// Whether operators may work on elements there.
bool is_aligned_for(const Reduction& what, const void* data);

// Combines packed elements for the engine, any number of them. It outlives the run, as does `what`. An exception of the operator is kept.
class PackedCombiner {
 public:
  explicit PackedCombiner(const Reduction& what) : what_(what), size_bytes_(packed_bytes(what)) {
    if (what.type->is_contiguous()) loop_ = what.operation->loop(*what.type);
  }
  collective::Combiner get() {
    return {loop_.kernel != nullptr ? &PackedCombiner::combine_in_loop : &PackedCombiner::combine, this,
            !what_.operation->is_predefined(), what_.operation->is_commutative()};
  }
  const std::exception_ptr& error() const { return error_; }

 private:
  // Each block of most reductions: numbers without gaps.
  static bool combine_in_loop(void* self, const std::byte* left, std::byte* right, std::size_t size_bytes) {
    const auto& mine = *static_cast<const PackedCombiner*>(self);
    mine.loop_.kernel(left, right, mine.count_of(size_bytes) * mine.loop_.values);
    return true;
  }
  static bool combine(void* self, const std::byte* left, std::byte* right, std::size_t size_bytes);
  void combine_packed(const std::byte* left, std::byte* right, std::size_t size_bytes) const;
  // All elements in most calls: a division takes longer than many combinations.
  MPI_Count count_of(std::size_t size_bytes) const {
    return size_bytes == size_bytes_ ? what_.count
                                     : static_cast<MPI_Count>(size_bytes) / what_.type->size_bytes();
  }

  const Reduction& what_;
  std::size_t size_bytes_;  // of all elements
  ReductionOperator::Loop loop_;
  VirtualRank* rank_ = VirtualRank::current();
  std::exception_ptr error_;
};

// Whether the engine serves a collective is asked of its group (Group::serves()), with what all processes of the context know.

// `size_bytes`: of the data, also for a process that has no memory for it.
runtime::Task<> broadcast_blocks(Transfers& transfers, int root, DataView data, std::size_t size_bytes);
runtime::Task<> reduce_blocks(Transfers& transfers, int root, Reduction what, DataView in, DataView out);
runtime::Task<> allreduce_blocks(Transfers& transfers, Reduction what, DataView in, DataView out);
// As equal as possible.
std::vector<MPI_Count> equal_counts(MPI_Count count, int num_processes);
// A reduction of `counts` elements for each process, of which kReduceScatter gives each its own; null for all other kinds. The memory of
// the elements and the combiner are for the caller to add. If the form is kDirect, `input` is the elements, and `data` need not have them.
struct EngineReduction {
  EngineReduction(const collective::Group& group, collective::Kind kind, int root, const Reduction& what,
                  const std::vector<MPI_Count>* counts);
  EngineReduction(const EngineReduction&) = delete;
  EngineReduction& operator=(const EngineReduction&) = delete;

  bool is_direct() const { return call.form == collective::Form::kDirect; }

  collective::Call call;
  std::vector<std::size_t> begins;  // of the packed parts, and the end of the last one; may be empty
};
// Process i gets counts[i] elements of the result.
runtime::Task<> reduce_scatter_blocks(Transfers& transfers, Reduction what, std::vector<MPI_Count> counts,
                                      DataView in, DataView out);
runtime::Task<> scan_blocks(Transfers& transfers, Reduction what, bool exclusive, DataView in, DataView out);
// All processes know the sizes of all parts. `most_bytes`: of the largest one, also for a process that has no memory for them.
runtime::Task<> allgather_blocks(Transfers& transfers, OwnView mine, Views parts, std::size_t most_bytes);
// REQUIRES from here on: all parts of all processes have the same size. `out` and `in` may be the same memory.
runtime::Task<> alltoall_blocks(Transfers& transfers, Views out, Views in);
// `parts` at the root alone.
runtime::Task<> gather_blocks(Transfers& transfers, int root, OwnView mine, Views parts,
                              std::size_t part_bytes);
runtime::Task<> scatter_blocks(Transfers& transfers, int root, Views parts, OwnView mine,
                               std::size_t part_bytes);

}  // namespace weft::mpi
