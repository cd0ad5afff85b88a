#include "models/mpi/collective/small_movement.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "weft/mpi/mpi.h"

namespace weft::mpi {

namespace {

constexpr std::size_t kMostGatheredBytes = 81920;
constexpr std::size_t kMostExchangedBytes = 256;
constexpr int kLeastExchanging = 8;
constexpr std::size_t kMostForwardedBytes = 1024;
// Two processes need one round in any form.
constexpr int kLeastGathering = 3;

using Bytes = std::vector<std::byte>;

DataView view_of(std::span<const std::byte> bytes) { return DataView::of_bytes(bytes.data(), bytes.size()); }

// The place of a process in a binomial tree with the root at place 0: its subtree are the `reach` places from its own on, as far as
// there are processes.
struct TreePlace {
  TreePlace(const CollectiveContext& context, int root_in) : size(context.size()), root(root_in) {
    place = (context.rank() - root + size) % size;
    while (reach < size && (place & reach) == 0) reach *= 2;
  }
  int rank_at(int other_place) const { return (other_place + root) % size; }
  int parent() const { return rank_at(place - reach); }
  std::size_t num_below() const { return static_cast<std::size_t>(std::min(reach, size - place)); }
  std::size_t num_below_child(int distance) const {
    return static_cast<std::size_t>(std::min(distance, size - place - distance));
  }

  int size;
  int root;
  int place = 0;
  int reach = 1;  // the lowest set bit of the place, or the first power of two that is not below the size
};

}  // namespace

bool is_small_allgather(int num_processes, std::size_t total_bytes) {
  return num_processes >= kLeastGathering && total_bytes <= kMostGatheredBytes;
}

bool is_small_alltoall(int num_processes, std::size_t part_bytes) {
  return num_processes >= kLeastExchanging && part_bytes <= kMostExchangedBytes;
}

bool is_small_gather(int num_processes, std::size_t part_bytes) {
  return num_processes >= kLeastGathering && part_bytes <= kMostForwardedBytes;
}

// Block i is that of the process i places to the right. Each round doubles their number. Bruck and others, "Efficient Algorithms for
// All-to-All Communications in Multiport Message-Passing Systems" (1997), also for alltoall_small().
runtime::Task<> allgather_small(Transfers& transfers, OwnView mine, Views parts) {
  const CollectiveContext& context = transfers.context();
  const int size = context.size();
  const auto rank_at = [&](int block) { return (context.rank() + block) % size; };
  std::vector<std::size_t> begin(static_cast<std::size_t>(size) + 1);
  for (int i = 0; i < size; ++i) {
    const auto k = static_cast<std::size_t>(i);
    begin[k + 1] = begin[k] + parts[static_cast<std::size_t>(rank_at(i))].size_bytes;
  }
  Bytes blocks(begin.back());
  const std::span<std::byte> all(blocks);
  transfers.copy(mine.in_place ? parts[static_cast<std::size_t>(context.rank())] : mine.view,
                 view_of(all.first(begin[1])));
  co_await transfers.wait();
  for (int have = 1; have < size; have *= 2) {
    const auto first = static_cast<std::size_t>(have);
    const auto count = static_cast<std::size_t>(std::min(have, size - have));
    transfers.receive(rank_at(have), view_of(all.subspan(begin[first], begin[first + count] - begin[first])));
    transfers.send((context.rank() + size - have) % size, view_of(all.first(begin[count])));
    co_await transfers.wait();
  }
  for (int i = mine.in_place ? 1 : 0; i < size; ++i) {
    const auto k = static_cast<std::size_t>(i);
    const DataView& part = parts[static_cast<std::size_t>(rank_at(i))];
    transfers.copy(view_of(all.subspan(begin[k], begin[k + 1] - begin[k])), part);
  }
  co_await transfers.wait();
}

// Block i is for the process i places to the right. In the round of bit b it travels 2^b places if i has that bit.
runtime::Task<> alltoall_small(CollectiveContext context, Views out, Views in) {
  const int size = context.size();
  const std::size_t part_bytes = out[0].size_bytes;
  const auto rank_at = [&](int distance) {
    return static_cast<std::size_t>((context.rank() + size + distance) % size);
  };
  Bytes blocks(static_cast<std::size_t>(size) * part_bytes);
  const auto block = [&](int i) {
    return std::span<std::byte>(blocks).subspan(static_cast<std::size_t>(i) * part_bytes, part_bytes);
  };
  Transfers transfers(context);
  for (int i = 0; i < size; ++i) transfers.copy(out[rank_at(i)], view_of(block(i)));
  co_await transfers.wait();
  for (int bit = 1; bit < size; bit *= 2) {
    Bytes leaving;
    for (int i = bit; i < size; ++i) {
      const std::span<std::byte> one = block(i);
      if ((i & bit) != 0) leaving.insert(leaving.end(), one.begin(), one.end());
    }
    Bytes coming(leaving.size());
    transfers.receive(static_cast<int>(rank_at(-bit)), view_of(coming));
    transfers.send(static_cast<int>(rank_at(bit)), view_of(leaving));
    co_await transfers.wait();
    auto next = coming.begin();
    for (int i = bit; i < size; ++i) {
      if ((i & bit) == 0) continue;
      std::copy_n(next, part_bytes, block(i).begin());
      next += static_cast<std::ptrdiff_t>(part_bytes);
    }
  }
  for (int i = 0; i < size; ++i) transfers.copy(view_of(block(i)), in[rank_at(-i)]);
  co_await transfers.wait();
  transfers.throw_if_failed();
}

runtime::Task<> gather_small(CollectiveContext context, int root, OwnView mine, Views parts,
                             std::size_t part_bytes) {
  const TreePlace tree(context, root);
  Bytes blocks(tree.num_below() * part_bytes);  // of the places of the subtree
  const std::span<std::byte> all(blocks);
  Transfers transfers(context);
  for (int distance = 1; distance < tree.reach && tree.place + distance < tree.size; distance *= 2) {
    const std::size_t child_bytes = tree.num_below_child(distance) * part_bytes;
    const std::span<std::byte> in = all.subspan(static_cast<std::size_t>(distance) * part_bytes, child_bytes);
    transfers.receive(tree.rank_at(tree.place + distance), view_of(in));
  }
  transfers.copy(mine.in_place ? parts[static_cast<std::size_t>(root)] : mine.view,
                 view_of(all.first(part_bytes)));
  co_await transfers.wait();
  if (tree.place != 0) {
    transfers.send(tree.parent(), view_of(all));
  } else {
    for (int i = mine.in_place ? 1 : 0; i < tree.size; ++i) {
      const std::span<std::byte> one = all.subspan(static_cast<std::size_t>(i) * part_bytes, part_bytes);
      transfers.copy(view_of(one), parts[static_cast<std::size_t>(tree.rank_at(i))]);
    }
  }
  co_await transfers.wait();
  transfers.throw_if_failed();
}

runtime::Task<> scatter_small(CollectiveContext context, int root, Views parts, OwnView mine,
                              std::size_t part_bytes) {
  const TreePlace tree(context, root);
  Bytes blocks(tree.num_below() * part_bytes);
  const std::span<std::byte> all(blocks);
  Transfers transfers(context);
  if (tree.place == 0) {
    for (int i = mine.in_place ? 1 : 0; i < tree.size; ++i) {
      const std::span<std::byte> one = all.subspan(static_cast<std::size_t>(i) * part_bytes, part_bytes);
      transfers.copy(parts[static_cast<std::size_t>(tree.rank_at(i))], view_of(one));
    }
  } else {
    transfers.receive(tree.parent(), view_of(all));
  }
  co_await transfers.wait();
  for (int distance = tree.reach / 2; distance > 0; distance /= 2) {
    if (tree.place + distance >= tree.size) continue;
    const std::span<std::byte> below = all.subspan(static_cast<std::size_t>(distance) * part_bytes,
                                                   tree.num_below_child(distance) * part_bytes);
    transfers.send(tree.rank_at(tree.place + distance), view_of(below));
  }
  co_await transfers.wait();
  if (!mine.in_place) transfers.copy(view_of(all.first(part_bytes)), mine.view);
  co_await transfers.wait();
  transfers.throw_if_failed();
}

}  // namespace weft::mpi
