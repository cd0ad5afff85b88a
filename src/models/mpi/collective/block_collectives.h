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

// Whether the engine serves a collective. The choice is a function of what all processes of the context know.
// `size_bytes`: of the data, of one process.
bool is_small_broadcast(std::size_t size_bytes);
bool is_small_reduction(std::size_t size_bytes);
// `total_bytes`: of all parts together.
bool is_small_allgather(int num_processes, std::size_t total_bytes);
// `part_bytes`: of one part. REQUIRES: all parts of all processes have this size.
bool is_small_alltoall(int num_processes, std::size_t part_bytes);
bool is_small_gather(int num_processes, std::size_t part_bytes);
// Whether operators may work on elements there.
bool is_aligned_for(const Reduction& what, const void* data);

// Combines packed elements for the engine, any number of them. It outlives the run, as does `what`. An exception of the operator is kept.
class PackedCombiner {
 public:
  explicit PackedCombiner(const Reduction& what) : what_(what) {}
  collective::Combiner get() { return {&PackedCombiner::combine, this, !what_.operation->is_predefined()}; }
  const std::exception_ptr& error() const { return error_; }

 private:
  static bool combine(void* self, const std::byte* left, std::byte* right, std::size_t size_bytes);
  void combine_packed(const std::byte* left, std::byte* right, std::size_t size_bytes) const;

  const Reduction& what_;
  VirtualRank* rank_ = VirtualRank::current();
  std::exception_ptr error_;
};

runtime::Task<> broadcast_blocks(Transfers& transfers, int root, DataView data);
runtime::Task<> reduce_blocks(Transfers& transfers, int root, Reduction what, DataView in, DataView out);
runtime::Task<> allreduce_blocks(Transfers& transfers, Reduction what, DataView in, DataView out);
// How the engine reduces and scatters: by parts, or all of it at all processes.
collective::Kind reduce_scatter_kind(int num_processes, const Reduction& what);
// Where the parts of the packed result begin, and the end of the last one.
std::vector<std::size_t> begins_of(const Reduction& what, const std::vector<MPI_Count>& counts);
// Process i gets the bytes from begins[i] to begins[i + 1] of the packed result.
runtime::Task<> reduce_scatter_blocks(Transfers& transfers, Reduction what, std::vector<std::size_t> begins,
                                      DataView in, DataView out);
runtime::Task<> scan_blocks(Transfers& transfers, Reduction what, bool exclusive, DataView in, DataView out);
// All processes know the sizes of all parts.
runtime::Task<> allgather_blocks(Transfers& transfers, OwnView mine, Views parts);
// REQUIRES from here on: all parts of all processes have the same size. `out` and `in` may be the same memory.
runtime::Task<> alltoall_blocks(Transfers& transfers, Views out, Views in);
// `parts` at the root alone.
runtime::Task<> gather_blocks(Transfers& transfers, int root, OwnView mine, Views parts,
                              std::size_t part_bytes);
runtime::Task<> scatter_blocks(Transfers& transfers, int root, Views parts, OwnView mine,
                               std::size_t part_bytes);

}  // namespace weft::mpi
