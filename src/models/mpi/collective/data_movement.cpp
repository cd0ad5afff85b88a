#include "models/mpi/collective/data_movement.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "weft/mpi/mpi.h"

#include "models/mpi/collective/block_collectives.h"

namespace weft::mpi {

using collective::Kind;

namespace {

const DataView& of_rank(const Views& views, int rank) { return views[static_cast<std::size_t>(rank)]; }

}  // namespace

// Down a binomial tree.
runtime::Task<> broadcast(Transfers& transfers, int root, DataView data, std::size_t size_bytes) {
  if (transfers.context().group()->serves(Kind::kBroadcast, size_bytes)) {
    co_await broadcast_blocks(transfers, root, data, size_bytes);
    co_return;
  }
  const int size = transfers.context().size();
  const int place = (transfers.context().rank() - root + size) % size;
  int reach = 1;  // the lowest set bit of the place, or the first power of two that is not below the size
  while (reach < size && (place & reach) == 0) reach *= 2;
  if (place != 0) {
    transfers.receive((place - reach + root) % size, data);
    co_await transfers.wait();
  }
  for (int distance = reach / 2; distance > 0; distance /= 2)
    if (place + distance < size) transfers.send((place + distance + root) % size, data);
  co_await transfers.wait();
}

runtime::Task<> broadcast(CollectiveContext context, int root, DataView data) {
  Transfers transfers(std::move(context));
  const std::size_t size_bytes = data.size_bytes;
  co_await broadcast(transfers, root, std::move(data), size_bytes);
  transfers.throw_if_failed();
}

runtime::Task<> gather(CollectiveContext context, int root, OwnView mine, Views parts) {
  Transfers transfers(context);
  if (context.rank() != root) {
    transfers.send(root, mine.view);
  } else {
    for (int from = 0; from < context.size(); ++from)
      if (from != root) transfers.receive(from, of_rank(parts, from));
    if (!mine.in_place) transfers.copy(mine.view, of_rank(parts, root));
  }
  co_await transfers.wait();
  transfers.throw_if_failed();
}

runtime::Task<> scatter(Transfers& transfers, int root, Views parts, OwnView mine) {
  const CollectiveContext& context = transfers.context();
  if (context.rank() != root) {
    transfers.receive(root, mine.view);
  } else {
    for (int to = 0; to < context.size(); ++to)
      if (to != root) transfers.send(to, of_rank(parts, to));
    if (!mine.in_place) transfers.copy(of_rank(parts, root), mine.view);
  }
  co_await transfers.wait();
}

runtime::Task<> scatter(CollectiveContext context, int root, Views parts, OwnView mine) {
  Transfers transfers(std::move(context));
  co_await scatter(transfers, root, std::move(parts), std::move(mine));
  transfers.throw_if_failed();
}

// Many bytes go around a ring: in each step a process passes on the part that it got last.
runtime::Task<> allgather(Transfers& transfers, OwnView mine, Views parts, std::size_t most_bytes) {
  const CollectiveContext& context = transfers.context();
  if (context.group()->serves(Kind::kAllgather, most_bytes)) {
    co_await allgather_blocks(transfers, mine, parts, most_bytes);
    co_return;
  }
  if (!mine.in_place) transfers.copy(mine.view, of_rank(parts, context.rank()));
  co_await transfers.wait();
  const int size = context.size();
  int have = context.rank();
  for (int step = 1; step < size; ++step) {
    const int next = (have + size - 1) % size;
    transfers.receive(context.left(), of_rank(parts, next));
    transfers.send(context.right(), of_rank(parts, have));
    co_await transfers.wait();
    have = next;
  }
}

runtime::Task<> allgather(CollectiveContext context, OwnView mine, Views parts) {
  std::size_t most_bytes = 0;
  for (const DataView& part : parts) most_bytes = std::max(most_bytes, part.size_bytes);
  Transfers transfers(std::move(context));
  co_await allgather(transfers, std::move(mine), std::move(parts), most_bytes);
  transfers.throw_if_failed();
}

namespace {

// All at once, beginning with the nearest process, so that the processes do not all send to the same one first.
void start_exchange(Transfers& transfers, const Views& out, const Views& in) {
  const CollectiveContext& context = transfers.context();
  const int size = context.size();
  for (int distance = 0; distance < size; ++distance) {
    const int from = (context.rank() + distance) % size;
    transfers.receive(from, of_rank(in, from));
  }
  for (int distance = 0; distance < size; ++distance) {
    const int to = ((context.rank() - distance) % size + size) % size;
    transfers.send(to, of_rank(out, to));
  }
}

}  // namespace

runtime::Task<> alltoall(CollectiveContext context, Views out, Views in) {
  Transfers transfers(std::move(context));
  start_exchange(transfers, out, in);
  co_await transfers.wait();
  transfers.throw_if_failed();
}

// A message to a process may be in its memory before this process has sent from there, so a copy is sent.
runtime::Task<> alltoall_in_place(CollectiveContext context, Views parts) {
  Transfers transfers(std::move(context));
  std::vector<std::vector<std::byte>> copies(parts.size());
  Views out(parts.size());
  transfers.compute([&] {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      copies[i].resize(parts[i].size_bytes);
      out[i] = DataView::of_bytes(copies[i].data(), copies[i].size());
    }
  });
  for (std::size_t i = 0; i < parts.size(); ++i) transfers.copy(parts[i], out[i]);
  co_await transfers.wait();
  start_exchange(transfers, out, parts);
  co_await transfers.wait();
  transfers.throw_if_failed();
}

namespace {

// Runs `step(transfers)`, and throws its error.
template <class Step>
runtime::Task<> as_whole(CollectiveContext context, Step step) {
  Transfers transfers(std::move(context));
  co_await step(transfers);
  transfers.throw_if_failed();
}

// The size of the parts of this process. REQUIRES: all have the same.
std::size_t part_bytes_of(const OwnView& mine, const Views& parts) {
  return parts.empty() ? mine.view.size_bytes : parts[0].size_bytes;
}

}  // namespace

runtime::Task<> gather_equal(CollectiveContext context, int root, OwnView mine, Views parts) {
  const std::size_t part_bytes = part_bytes_of(mine, parts);
  if (!context.group()->serves(Kind::kGather, part_bytes))
    return gather(std::move(context), root, std::move(mine), std::move(parts));
  return as_whole(std::move(context), [=](Transfers& transfers) {
    return gather_blocks(transfers, root, mine, parts, part_bytes);
  });
}

runtime::Task<> scatter_equal(CollectiveContext context, int root, Views parts, OwnView mine) {
  const std::size_t part_bytes = part_bytes_of(mine, parts);
  if (!context.group()->serves(Kind::kScatter, part_bytes))
    return scatter(std::move(context), root, std::move(parts), std::move(mine));
  return as_whole(std::move(context), [=](Transfers& transfers) {
    return scatter_blocks(transfers, root, parts, mine, part_bytes);
  });
}

runtime::Task<> alltoall_equal(CollectiveContext context, Views out, Views in) {
  if (!context.group()->serves(Kind::kAlltoall, out[0].size_bytes))
    return alltoall(std::move(context), std::move(out), std::move(in));
  return as_whole(std::move(context),
                  [=](Transfers& transfers) { return alltoall_blocks(transfers, out, in); });
}

runtime::Task<> alltoall_equal_in_place(CollectiveContext context, Views parts) {
  if (!context.group()->serves(Kind::kAlltoall, parts[0].size_bytes))
    return alltoall_in_place(std::move(context), std::move(parts));
  return as_whole(std::move(context),
                  [=](Transfers& transfers) { return alltoall_blocks(transfers, parts, parts); });
}

// Both groups have arrived when both first processes know of theirs.
runtime::Task<> barrier_of_two(ContextPair contexts) {
  Transfers transfers(contexts.remote);
  co_await transfers.take(barrier(contexts.local));
  if (contexts.local.rank() == 0) {
    transfers.receive(0, {});
    transfers.send(0, {});
    co_await transfers.wait();
  }
  co_await transfers.take(barrier(contexts.local));
  transfers.throw_if_failed();
}

runtime::Task<> broadcast_to_other(ContextPair contexts, int root, DataView data) {
  if (root == MPI_PROC_NULL) co_return;
  Transfers remote(contexts.remote);
  Transfers local(contexts.local);
  if (root == MPI_ROOT) {
    remote.send(0, data);
  } else if (contexts.local.rank() == 0) {
    remote.receive(root, data);
  }
  co_await remote.wait();
  local.fail_with(remote);
  if (root != MPI_ROOT) co_await broadcast(local, 0, data, data.size_bytes);
  local.throw_if_failed();
}

runtime::Task<> gather_from_other(ContextPair contexts, int root, DataView mine, Views parts) {
  Transfers transfers(contexts.remote);
  if (root == MPI_ROOT) {
    for (int from = 0; from < contexts.remote.size(); ++from) transfers.receive(from, of_rank(parts, from));
  } else if (root != MPI_PROC_NULL) {
    transfers.send(root, mine);
  }
  co_await transfers.wait();
  transfers.throw_if_failed();
}

runtime::Task<> scatter_to_other(ContextPair contexts, int root, Views parts, DataView mine) {
  Transfers transfers(contexts.remote);
  if (root == MPI_ROOT) {
    for (int to = 0; to < contexts.remote.size(); ++to) transfers.send(to, of_rank(parts, to));
  } else if (root != MPI_PROC_NULL) {
    transfers.receive(root, mine);
  }
  co_await transfers.wait();
  transfers.throw_if_failed();
}

runtime::Task<> exchange_with_neighbours(CollectiveContext context, NeighbourTransfers neighbours) {
  Transfers transfers(context);
  for (const auto& [from, view] : neighbours.in) transfers.receive(from, view);
  for (const auto& [to, view] : neighbours.out) transfers.send(to, view);
  co_await transfers.wait();
  transfers.throw_if_failed();
}

}  // namespace weft::mpi
