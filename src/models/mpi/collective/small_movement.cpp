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

// The first error counts.
void keep_error(int error, int& failed) {
  if (failed == MPI_SUCCESS) failed = error;
}

// A message without bytes tells that this process has failed.
std::span<const std::byte> unless_failed(std::span<const std::byte> bytes, int failed) {
  return failed == MPI_SUCCESS ? bytes : std::span<const std::byte>();
}

int error_of_receive(const Outcome& outcome, std::size_t expected_bytes) {
  if (outcome.error != MPI_SUCCESS) return outcome.error;
  return outcome.size_bytes == static_cast<std::int64_t>(expected_bytes) ? MPI_SUCCESS : MPI_ERR_TRUNCATE;
}

// Sends and receives at the same time. Returns the error class of the receive.
runtime::Task<int> swap_blocks(Circle circle, int to, std::span<const std::byte> out, int from,
                               std::span<std::byte> in) {
  const auto receive = circle.receive(from, view_of(in));
  const auto send = circle.send(to, view_of(out));
  const Outcome received = co_await circle.completed(*receive);
  const Outcome sent = co_await circle.completed(*send);
  const int error = error_of_receive(received, in.size());
  co_return error != MPI_SUCCESS ? error : sent.error;
}

// From the memory of the program to packed bytes, or back. A part of another size is an error.
runtime::Task<int> copy_block(Circle circle, DataView from, DataView to) {
  if (from.size_bytes != to.size_bytes) co_return MPI_ERR_TRUNCATE;
  co_return co_await error_of_transfer(copy_data(circle, from, to));
}

void throw_if(int failed) {
  if (failed != MPI_SUCCESS) throw TransferFailed(failed);
}

// The place of a process in a binomial tree with the root at place 0: its subtree are the `reach` places from its own on, as far as
// there are processes.
struct TreePlace {
  TreePlace(const Circle& circle, int root_in) : size(circle.size()), root(root_in) {
    place = (circle.rank() - root + size) % size;
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

bool is_small_gather_all(int num_processes, const Views& parts) {
  std::size_t total_bytes = 0;
  for (const DataView& part : parts) total_bytes += part.size_bytes;
  return num_processes >= kLeastGathering && total_bytes <= kMostGatheredBytes;
}

bool is_small_exchange(int num_processes, std::size_t part_bytes) {
  return num_processes >= kLeastExchanging && part_bytes <= kMostExchangedBytes;
}

bool is_small_gather(int num_processes, std::size_t part_bytes) {
  return num_processes >= kLeastGathering && part_bytes <= kMostForwardedBytes;
}

// Block i is that of the process i places to the right. Each round doubles their number. Bruck and others, "Efficient Algorithms for
// All-to-All Communications in Multiport Message-Passing Systems" (1997), also for exchange_all_small().
runtime::Task<> gather_all_small(Circle circle, OwnView mine, Views parts) {
  const int size = circle.size();
  const auto rank_at = [&](int block) { return (circle.rank() + block) % size; };
  std::vector<std::size_t> begin(static_cast<std::size_t>(size) + 1);
  for (int i = 0; i < size; ++i) {
    const auto k = static_cast<std::size_t>(i);
    begin[k + 1] = begin[k] + parts[static_cast<std::size_t>(rank_at(i))].size_bytes;
  }
  Bytes blocks(begin.back());
  const std::span<std::byte> all(blocks);
  const DataView own = mine.in_place ? parts[static_cast<std::size_t>(circle.rank())] : mine.view;
  int failed = co_await copy_block(circle, own, view_of(all.first(begin[1])));
  for (int have = 1; have < size; have *= 2) {
    const auto first = static_cast<std::size_t>(have);
    const auto count = static_cast<std::size_t>(std::min(have, size - have));
    const std::span<std::byte> in = all.subspan(begin[first], begin[first + count] - begin[first]);
    const std::span<const std::byte> out = unless_failed(all.first(begin[count]), failed);
    const int left = (circle.rank() + size - have) % size;
    const int error = co_await swap_blocks(circle, left, out, rank_at(have), in);
    keep_error(error, failed);
  }
  throw_if(failed);
  for (int i = mine.in_place ? 1 : 0; i < size; ++i) {
    const auto k = static_cast<std::size_t>(i);
    const DataView& part = parts[static_cast<std::size_t>(rank_at(i))];
    co_await copy_data(circle, view_of(all.subspan(begin[k], begin[k + 1] - begin[k])), part);
  }
}

// Block i is for the process i places to the right. In the round of bit b it travels 2^b places if i has that bit.
runtime::Task<> exchange_all_small(Circle circle, Views out, Views in) {
  const int size = circle.size();
  const std::size_t part_bytes = out[0].size_bytes;
  const auto rank_at = [&](int distance) {
    return static_cast<std::size_t>((circle.rank() + size + distance) % size);
  };
  Bytes blocks(static_cast<std::size_t>(size) * part_bytes);
  const auto block = [&](int i) {
    return std::span<std::byte>(blocks).subspan(static_cast<std::size_t>(i) * part_bytes, part_bytes);
  };
  int failed = MPI_SUCCESS;
  for (int i = 0; i < size; ++i) {
    const int error = co_await copy_block(circle, out[rank_at(i)], view_of(block(i)));
    keep_error(error, failed);
  }
  for (int bit = 1; bit < size; bit *= 2) {
    Bytes leaving;
    for (int i = bit; i < size; ++i) {
      const std::span<std::byte> one = block(i);
      if ((i & bit) != 0) leaving.insert(leaving.end(), one.begin(), one.end());
    }
    Bytes coming(leaving.size());
    const std::span<const std::byte> sent = unless_failed(leaving, failed);
    const int error = co_await swap_blocks(circle, static_cast<int>(rank_at(bit)), sent,
                                           static_cast<int>(rank_at(-bit)), coming);
    keep_error(error, failed);
    auto next = coming.begin();
    for (int i = bit; i < size; ++i) {
      if ((i & bit) == 0) continue;
      std::copy_n(next, part_bytes, block(i).begin());
      next += static_cast<std::ptrdiff_t>(part_bytes);
    }
  }
  throw_if(failed);
  for (int i = 0; i < size; ++i) co_await copy_data(circle, view_of(block(i)), in[rank_at(-i)]);
}

runtime::Task<> gather_small(Circle circle, int root, OwnView mine, Views parts, std::size_t part_bytes) {
  const TreePlace tree(circle, root);
  Bytes blocks(tree.num_below() * part_bytes);  // of the places of the subtree
  const std::span<std::byte> all(blocks);
  const DataView own = mine.in_place ? parts[static_cast<std::size_t>(root)] : mine.view;
  std::vector<std::pair<Ref<ReceiveRequest>, std::size_t>> receives;
  for (int distance = 1; distance < tree.reach && tree.place + distance < tree.size; distance *= 2) {
    const std::size_t child_bytes = tree.num_below_child(distance) * part_bytes;
    const std::span<std::byte> in = all.subspan(static_cast<std::size_t>(distance) * part_bytes, child_bytes);
    receives.emplace_back(circle.receive(tree.rank_at(tree.place + distance), view_of(in)), child_bytes);
  }
  int failed = co_await copy_block(circle, own, view_of(all.first(part_bytes)));
  for (const auto& [receive, child_bytes] : receives) {
    const Outcome outcome = co_await circle.completed(*receive);
    keep_error(error_of_receive(outcome, child_bytes), failed);
  }
  if (tree.place != 0) {
    const DataView up = view_of(unless_failed(all, failed));
    const int error = co_await error_of_transfer(send_one(circle, tree.parent(), up));
    keep_error(error, failed);
  }
  throw_if(failed);
  if (tree.place != 0) co_return;
  for (int i = mine.in_place ? 1 : 0; i < tree.size; ++i) {
    const std::span<std::byte> one = all.subspan(static_cast<std::size_t>(i) * part_bytes, part_bytes);
    co_await copy_data(circle, view_of(one), parts[static_cast<std::size_t>(tree.rank_at(i))]);
  }
}

runtime::Task<> scatter_small(Circle circle, int root, Views parts, OwnView mine, std::size_t part_bytes) {
  const TreePlace tree(circle, root);
  Bytes blocks(tree.num_below() * part_bytes);
  const std::span<std::byte> all(blocks);
  int failed = MPI_SUCCESS;
  if (tree.place == 0) {
    for (int i = mine.in_place ? 1 : 0; i < tree.size; ++i) {
      const std::span<std::byte> one = all.subspan(static_cast<std::size_t>(i) * part_bytes, part_bytes);
      const DataView& part = parts[static_cast<std::size_t>(tree.rank_at(i))];
      const int error = co_await copy_block(circle, part, view_of(one));
      keep_error(error, failed);
    }
  } else {
    const auto receive = circle.receive(tree.parent(), view_of(all));
    const Outcome outcome = co_await circle.completed(*receive);
    failed = error_of_receive(outcome, all.size());
  }
  Transfers sends(circle);
  for (int distance = tree.reach / 2; distance > 0; distance /= 2) {
    if (tree.place + distance >= tree.size) continue;
    const std::span<std::byte> below = all.subspan(static_cast<std::size_t>(distance) * part_bytes,
                                                   tree.num_below_child(distance) * part_bytes);
    sends.send(tree.rank_at(tree.place + distance), view_of(unless_failed(below, failed)));
  }
  const int error = co_await error_of_transfer(sends.wait());
  keep_error(error, failed);
  throw_if(failed);
  if (!mine.in_place) co_await copy_data(circle, view_of(all.first(part_bytes)), mine.view);
}

}  // namespace weft::mpi
