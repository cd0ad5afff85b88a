#include "models/mpi/collective/reductions.h"

#include <cstddef>
#include <utility>

#include "weft/mpi/mpi.h"

namespace weft::mpi {
namespace {

// Two sets of elements: what this process has combined, and what arrives.
struct Operands {
  explicit Operands(const Reduction& what) : mine(what.type, what.count), theirs(what.type, what.count) {}
  ScratchElements mine;
  ScratchElements theirs;

  // mine = theirs op mine
  void combine_from_left(const Reduction& what) { what.combine(theirs, mine); }
  // mine = mine op theirs
  void combine_from_right(const Reduction& what) {
    what.combine(mine, theirs);
    std::swap(mine, theirs);
  }
};

// Up a binomial tree whose subtrees are ranges of ranks. The result is in `operands.mine` of `top`.
runtime::Task<> reduce_up(Circle circle, int top, const Reduction& what, Operands& operands) {
  const int size = circle.size();
  const int place = (circle.rank() - top + size) % size;
  for (int distance = 1; distance < size; distance *= 2) {
    if ((place & distance) != 0) {
      co_await send_one(circle, (place - distance + top) % size, operands.mine.view());
      co_return;
    }
    if (place + distance >= size) continue;
    co_await receive_one(circle, (place + distance + top) % size, operands.theirs.view());
    operands.combine_from_right(what);
  }
}

// The first 2 * `extra` processes work in pairs, so that a power of two of them takes part in the rounds.
struct Rounds {
  explicit Rounds(int size) {
    while (participants * 2 <= size) participants *= 2;
    extra = size - participants;
  }
  int participants = 1;
  int extra;

  // The number of a process in the rounds; -1 for the even ones of the pairs, which wait.
  int number_of(int rank) const {
    if (rank >= 2 * extra) return rank - extra;
    return rank % 2 == 0 ? -1 : rank / 2;
  }
  int rank_of(int number) const { return number < extra ? 2 * number + 1 : number + extra; }
};

// Recursive doubling: in each round two processes combine what they have. Numbers of a group of rounds are a range of ranks.
runtime::Task<> combine_in_rounds(Circle circle, const Rounds& rounds, const Reduction& what,
                                  Operands& operands) {
  const int number = rounds.number_of(circle.rank());
  for (int distance = 1; distance < rounds.participants; distance *= 2) {
    const int partner = rounds.rank_of(number ^ distance);
    co_await swap_data(circle, partner, operands.mine.view(), partner, operands.theirs.view());
    if ((number & distance) != 0) {
      operands.combine_from_left(what);
    } else {
      operands.combine_from_right(what);
    }
  }
}

// From this size on, an all-reduce cuts the data into a part for each process. It then sends 2 (p - 1) / p times the data, and not
// log2 p times, but in 2 (p - 1) messages. Not measured yet.
constexpr MPI_Count kCutBytes = 32768;

bool is_cut(const Circle& circle, const Reduction& what) {
  return what.operation->is_commutative() && circle.size() > 1 && what.count >= circle.size() &&
         what.count * what.type->size_bytes() >= kCutBytes;
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

// Equal counts, as far as possible.
std::vector<MPI_Count> equal_counts(MPI_Count count, int size) {
  std::vector<MPI_Count> counts(static_cast<std::size_t>(size), count / size);
  for (MPI_Count i = 0; i < count % size; ++i) ++counts[static_cast<std::size_t>(i)];
  return counts;
}

// Around a ring: each part collects the contributions of all, and ends at its process. REQUIRES: a commutative operator.
runtime::Task<> reduce_parts(Circle circle, const Reduction& what, const std::vector<MPI_Count>& counts,
                             Operands& operands) {
  const int size = circle.size();
  std::vector<MPI_Count> firsts(1, 0);
  for (const MPI_Count count : counts) firsts.push_back(firsts.back() + count);
  const auto part_of = [&](const ScratchElements& elements, std::size_t i) {
    return elements.part(firsts[i], counts[i]);
  };
  for (int step = 1; step < size; ++step) {
    const auto out = static_cast<std::size_t>((circle.rank() - step + size) % size);
    const auto in = static_cast<std::size_t>((circle.rank() - step - 1 + 2 * size) % size);
    co_await swap_data(circle, circle.right(), part_of(operands.mine, out), circle.left(),
                       part_of(operands.theirs, in));
    const MPI_Count distance = firsts[in] * what.type->extent();
    what.operation->reduce(operands.theirs.buffer() + distance, operands.mine.buffer() + distance, counts[in],
                           *what.type);
  }
}

}  // namespace

runtime::Task<> reduce(Circle circle, int root, Reduction what, DataView in, DataView out) {
  if (what.count == 0) co_return;
  Operands operands(what);
  co_await copy_data(circle, in, operands.mine.view());
  const int top = what.operation->is_commutative() ? root : 0;
  co_await reduce_up(circle, top, what, operands);
  if (circle.rank() == root && root == top) {
    co_await copy_data(circle, operands.mine.view(), out);
  } else if (circle.rank() == top && root != top) {
    co_await send_one(circle, root, operands.mine.view());
  } else if (circle.rank() == root) {
    co_await receive_one(circle, top, out);
  }
}

runtime::Task<> reduce_all(Circle circle, Reduction what, DataView in, DataView out) {
  if (what.count == 0) co_return;
  Operands operands(what);
  co_await copy_data(circle, in, operands.mine.view());
  if (is_cut(circle, what)) {
    const std::vector<MPI_Count> counts = equal_counts(what.count, circle.size());
    co_await reduce_parts(circle, what, counts, operands);
    const OwnView own{{}, true};
    co_await gather_all(circle, own, parts_of(operands.mine, counts));
    co_await copy_data(circle, operands.mine.view(), out);
    co_return;
  }
  const Rounds rounds(circle.size());
  const int rank = circle.rank();
  if (rounds.number_of(rank) < 0) {
    co_await send_one(circle, rank + 1, operands.mine.view());
    co_await receive_one(circle, rank + 1, out);
    co_return;
  }
  const bool has_partner = rank < 2 * rounds.extra;
  if (has_partner) {
    co_await receive_one(circle, rank - 1, operands.theirs.view());
    operands.combine_from_left(what);
  }
  co_await combine_in_rounds(circle, rounds, what, operands);
  if (has_partner) co_await send_one(circle, rank - 1, operands.mine.view());
  co_await copy_data(circle, operands.mine.view(), out);
}

runtime::Task<> reduce_and_scatter(Circle circle, Reduction what, std::vector<MPI_Count> counts, DataView in,
                                   DataView out) {
  if (what.count == 0) co_return;
  Operands operands(what);
  co_await copy_data(circle, in, operands.mine.view());
  Views parts;
  if (is_cut(circle, what)) {
    co_await reduce_parts(circle, what, counts, operands);
    parts = parts_of(operands.mine, counts);
    co_await copy_data(circle, parts[static_cast<std::size_t>(circle.rank())], out);
    co_return;
  }
  co_await reduce_up(circle, 0, what, operands);
  if (circle.rank() == 0) parts = parts_of(operands.mine, counts);
  const OwnView own{out, false};
  co_await scatter(circle, 0, std::move(parts), own);
}

runtime::Task<> scan(Circle circle, Reduction what, bool exclusive, DataView in, DataView out) {
  if (what.count == 0) co_return;
  Operands operands(what);  // of the processes that have exchanged with this one so far
  ScratchElements result(what.type, what.count);
  co_await copy_data(circle, in, operands.mine.view());
  bool has_result = !exclusive;
  if (has_result) co_await copy_data(circle, operands.mine.view(), result.view());
  const int rank = circle.rank();
  for (int distance = 1; distance < circle.size(); distance *= 2) {
    const int partner = rank ^ distance;
    if (partner >= circle.size()) continue;
    co_await swap_data(circle, partner, operands.mine.view(), partner, operands.theirs.view());
    if (partner > rank) {
      operands.combine_from_right(what);
      continue;
    }
    if (has_result) {
      what.combine(operands.theirs, result);
    } else {
      co_await copy_data(circle, operands.theirs.view(), result.view());
      has_result = true;
    }
    operands.combine_from_left(what);
  }
  if (has_result) co_await copy_data(circle, result.view(), out);
}

runtime::Task<> reduce_to_other(CirclePair circles, int root, Reduction what, DataView in, DataView out) {
  if (what.count == 0 || root == MPI_PROC_NULL) co_return;
  if (root == MPI_ROOT) {
    co_await receive_one(circles.remote, 0, out);
    co_return;
  }
  Operands operands(what);
  co_await copy_data(circles.local, in, operands.mine.view());
  co_await reduce_up(circles.local, 0, what, operands);
  if (circles.local.rank() == 0) co_await send_one(circles.remote, root, operands.mine.view());
}

runtime::Task<> reduce_all_of_other(CirclePair circles, Reduction what, DataView in, DataView out) {
  if (what.count == 0) co_return;
  Operands operands(what);
  co_await copy_data(circles.local, in, operands.mine.view());
  co_await reduce_up(circles.local, 0, what, operands);
  if (circles.local.rank() == 0)
    co_await swap_data(circles.remote, 0, operands.mine.view(), 0, operands.theirs.view());
  co_await broadcast(circles.local, 0, operands.theirs.view());
  co_await copy_data(circles.local, operands.theirs.view(), out);
}

runtime::Task<> reduce_and_scatter_of_other(CirclePair circles, Reduction what, std::vector<MPI_Count> counts,
                                            DataView in, DataView out) {
  if (what.count == 0) co_return;
  Operands operands(what);
  co_await copy_data(circles.local, in, operands.mine.view());
  co_await reduce_up(circles.local, 0, what, operands);
  Views parts;
  if (circles.local.rank() == 0) {
    co_await swap_data(circles.remote, 0, operands.mine.view(), 0, operands.theirs.view());
    parts = parts_of(operands.theirs, counts);
  }
  const OwnView own{out, false};
  co_await scatter(circles.local, 0, std::move(parts), own);
}

}  // namespace weft::mpi
