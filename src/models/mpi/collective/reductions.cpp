#include "models/mpi/collective/reductions.h"

#include <cstddef>
#include <utility>

#include "weft/mpi/mpi.h"

#include "models/mpi/collective/block_collectives.h"

namespace weft::mpi {

using collective::Kind;

namespace {

// Two sets of elements: what this process has combined, and what arrives.
struct Operands {
  Operands(const Reduction& what, Transfers& transfers)
      : mine(elements_of(what, transfers)), theirs(elements_of(what, transfers)) {}
  ScratchElements mine;
  ScratchElements theirs;

  // mine = mine op theirs
  void combine_from_right(Transfers& transfers, const Reduction& what) {
    combine(transfers, what, mine, theirs);
    std::swap(mine, theirs);
  }
};

// Up a binomial tree whose subtrees are ranges of ranks. The result is in `operands.mine` of `top`.
runtime::Task<> reduce_up(Transfers& transfers, int top, const Reduction& what, Operands& operands) {
  const int size = transfers.context().size();
  const int place = (transfers.context().rank() - top + size) % size;
  for (int distance = 1; distance < size; distance *= 2) {
    if ((place & distance) != 0) {
      transfers.send((place - distance + top) % size, operands.mine.view());
      co_await transfers.wait();
      co_return;
    }
    if (place + distance >= size) continue;
    transfers.receive((place + distance + top) % size, operands.theirs.view());
    co_await transfers.wait();
    operands.combine_from_right(transfers, what);
  }
}

// From this size on, an all-reduce cuts the data into a part for each process. It then sends 2 (p - 1) / p times the data, and not
// log2 p times, but in 2 (p - 1) messages. Not measured yet.
constexpr std::size_t kCutBytes = 32768;

bool is_cut(const CollectiveContext& context, const Reduction& what) {
  return what.operation->is_commutative() && context.size() > 1 && what.count >= context.size() &&
         packed_bytes(what) >= kCutBytes;
}

// The parts of the result that the processes get.
Views parts_of(const ScratchElements& result, const std::vector<MPI_Count>& counts) {
  Views parts;
  MPI_Count first = 0;
  for (const MPI_Count count : counts) {
    parts.push_back(result.part(first, count));
    first += count;
  }
  return parts;
}

// Around a ring: each part collects the contributions of all, and ends at its process. REQUIRES: a commutative operator.
runtime::Task<> reduce_parts(Transfers& transfers, const Reduction& what,
                             const std::vector<MPI_Count>& counts, Operands& operands) {
  const CollectiveContext& context = transfers.context();
  const int size = context.size();
  std::vector<MPI_Count> firsts(1, 0);
  for (const MPI_Count count : counts) firsts.push_back(firsts.back() + count);
  const auto part_of = [&](const ScratchElements& elements, std::size_t i) {
    return elements.part(firsts[i], counts[i]);
  };
  for (int step = 1; step < size; ++step) {
    const auto out = static_cast<std::size_t>((context.rank() - step + size) % size);
    const auto in = static_cast<std::size_t>((context.rank() - step - 1 + 2 * size) % size);
    transfers.receive(context.left(), part_of(operands.theirs, in));
    transfers.send(context.right(), part_of(operands.mine, out));
    co_await transfers.wait();
    transfers.compute([&] {
      const MPI_Count distance = firsts[in] * what.type->extent();
      what.operation->reduce(operands.theirs.buffer() + distance, operands.mine.buffer() + distance,
                             counts[in], *what.type);
    });
  }
}

}  // namespace

runtime::Task<> reduce(Transfers& transfers, int root, Reduction what, DataView in, DataView out) {
  const Kind kind = what.operation->is_commutative() ? Kind::kReduce : Kind::kReduceInOrder;
  if (transfers.context().group()->serves(kind, packed_bytes(what))) {
    co_await reduce_blocks(transfers, root, what, in, out);
    co_return;
  }
  const int rank = transfers.context().rank();
  Operands operands(what, transfers);
  transfers.copy(in, operands.mine.view());
  co_await transfers.wait();
  const int top = what.operation->is_commutative() ? root : 0;
  co_await reduce_up(transfers, top, what, operands);
  if (rank == root && root == top) {
    transfers.copy(operands.mine.view(), out);
  } else if (rank == top && root != top) {
    transfers.send(root, operands.mine.view());
  } else if (rank == root) {
    transfers.receive(top, out);
  }
  co_await transfers.wait();
}

runtime::Task<> allreduce(Transfers& transfers, Reduction what, DataView in, DataView out) {
  const CollectiveContext& context = transfers.context();
  if (context.group()->serves(Kind::kAllreduce, packed_bytes(what)) || !is_cut(context, what)) {
    co_await allreduce_blocks(transfers, what, in, out);
    co_return;
  }
  Operands operands(what, transfers);
  transfers.copy(in, operands.mine.view());
  co_await transfers.wait();
  const std::vector<MPI_Count> counts = equal_counts(what.count, context.size());
  co_await reduce_parts(transfers, what, counts, operands);
  const OwnView own{{}, true};
  Views parts = parts_of(operands.mine, counts);
  const auto most_bytes = static_cast<std::size_t>(counts.front() * what.type->size_bytes());
  co_await allgather(transfers, own, std::move(parts), most_bytes);
  transfers.copy(operands.mine.view(), out);
  co_await transfers.wait();
}

runtime::Task<> reduce(CollectiveContext context, int root, Reduction what, DataView in, DataView out) {
  Transfers transfers(std::move(context));
  co_await reduce(transfers, root, std::move(what), std::move(in), std::move(out));
  transfers.throw_if_failed();
}

runtime::Task<> allreduce(CollectiveContext context, Reduction what, DataView in, DataView out) {
  Transfers transfers(std::move(context));
  co_await allreduce(transfers, std::move(what), std::move(in), std::move(out));
  transfers.throw_if_failed();
}

runtime::Task<> reduce_and_scatter(CollectiveContext context, Reduction what, std::vector<MPI_Count> counts,
                                   DataView in, DataView out) {
  Transfers transfers(context);
  if (!context.group()->serves(Kind::kReduceScatter, packed_bytes(what)) && is_cut(context, what)) {
    Operands operands(what, transfers);
    transfers.copy(in, operands.mine.view());
    co_await transfers.wait();
    co_await reduce_parts(transfers, what, counts, operands);
    transfers.copy(parts_of(operands.mine, counts)[static_cast<std::size_t>(context.rank())], out);
    co_await transfers.wait();
  } else {
    co_await reduce_scatter_blocks(transfers, what, std::move(counts), in, out);
  }
  transfers.throw_if_failed();
}

runtime::Task<> scan(CollectiveContext context, Reduction what, bool exclusive, DataView in, DataView out) {
  Transfers transfers(std::move(context));
  co_await scan_blocks(transfers, what, exclusive, in, out);
  transfers.throw_if_failed();
}

runtime::Task<> reduce_to_other(ContextPair contexts, int root, Reduction what, DataView in, DataView out) {
  if (root == MPI_PROC_NULL) co_return;
  Transfers remote(contexts.remote);
  if (root == MPI_ROOT) {
    remote.receive(0, out);
  } else {
    Transfers local(contexts.local);
    Operands operands(what, local);
    local.copy(in, operands.mine.view());
    co_await local.wait();
    co_await reduce_up(local, 0, what, operands);
    remote.fail_with(local);
    if (contexts.local.rank() == 0) remote.send(root, operands.mine.view());
    co_await remote.wait();  // here: the operands end
  }
  co_await remote.wait();
  remote.throw_if_failed();
}

namespace {

// The first process of each group gets the combination of the other group's data in `operands.theirs`.
runtime::Task<> swap_combinations(const ContextPair& contexts, Transfers& local, const Reduction& what,
                                  DataView in, Operands& operands) {
  local.copy(in, operands.mine.view());
  co_await local.wait();
  co_await reduce_up(local, 0, what, operands);
  if (contexts.local.rank() != 0) co_return;
  Transfers remote(contexts.remote);
  remote.fail_with(local);
  remote.receive(0, operands.theirs.view());
  remote.send(0, operands.mine.view());
  co_await remote.wait();
  local.fail_with(remote);
}

}  // namespace

runtime::Task<> allreduce_of_other(ContextPair contexts, Reduction what, DataView in, DataView out) {
  Transfers local(contexts.local);
  Operands operands(what, local);
  co_await swap_combinations(contexts, local, what, std::move(in), operands);
  co_await broadcast(local, 0, operands.theirs.view(), packed_bytes(what));
  local.copy(operands.theirs.view(), out);
  co_await local.wait();
  local.throw_if_failed();
}

runtime::Task<> reduce_and_scatter_of_other(ContextPair contexts, Reduction what,
                                            std::vector<MPI_Count> counts, DataView in, DataView out) {
  Transfers local(contexts.local);
  Operands operands(what, local);
  co_await swap_combinations(contexts, local, what, std::move(in), operands);
  Views parts;
  if (contexts.local.rank() == 0) parts = parts_of(operands.theirs, counts);
  const OwnView own{out, false};
  co_await scatter(local, 0, std::move(parts), own);
  local.throw_if_failed();
}

}  // namespace weft::mpi
