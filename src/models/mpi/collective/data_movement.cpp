#include "models/mpi/collective/data_movement.h"

#include <cstddef>
#include <vector>

#include "weft/mpi/mpi.h"

#include "models/mpi/collective/small_movement.h"

namespace weft::mpi {
namespace {

const DataView& of_rank(const Views& views, int rank) { return views[static_cast<std::size_t>(rank)]; }

}  // namespace

// Down a binomial tree. A process whose memory is too small still passes on what it got, so that the others return.
runtime::Task<> broadcast(Circle circle, int root, DataView data) {
  const int size = circle.size();
  const int place = (circle.rank() - root + size) % size;
  int reach = 1;  // the lowest set bit of the place, or the first power of two that is not below the size
  while (reach < size && (place & reach) == 0) reach *= 2;
  int failed = MPI_SUCCESS;
  if (place != 0)
    failed = co_await error_of_transfer(receive_one(circle, (place - reach + root) % size, data));
  // A message without bytes tells that this process has failed.
  const DataView passed_on = failed == MPI_SUCCESS ? data : DataView();
  Transfers sends(circle);
  for (int distance = reach / 2; distance > 0; distance /= 2)
    if (place + distance < size) sends.send((place + distance + root) % size, passed_on);
  co_await sends.wait();
  if (failed != MPI_SUCCESS) throw TransferFailed(failed);
}

runtime::Task<> gather(Circle circle, int root, OwnView mine, Views parts) {
  if (circle.rank() != root) {
    co_await send_one(circle, root, mine.view);
    co_return;
  }
  Transfers receives(circle);
  for (int from = 0; from < circle.size(); ++from)
    if (from != root) receives.receive(from, of_rank(parts, from));
  if (!mine.in_place) receives.copy(mine.view, of_rank(parts, root));
  co_await receives.wait();
}

runtime::Task<> scatter(Circle circle, int root, Views parts, OwnView mine) {
  if (circle.rank() != root) {
    co_await receive_one(circle, root, mine.view);
    co_return;
  }
  Transfers sends(circle);
  for (int to = 0; to < circle.size(); ++to)
    if (to != root) sends.send(to, of_rank(parts, to));
  if (!mine.in_place) sends.copy(of_rank(parts, root), mine.view);
  co_await sends.wait();
}

// Many bytes go around a ring: in each step a process passes on the part that it got last, also if it did not fit.
runtime::Task<> gather_all(Circle circle, OwnView mine, Views parts) {
  if (is_small_gather_all(circle.size(), parts)) {
    co_await gather_all_small(circle, mine, parts);
    co_return;
  }
  int failed = MPI_SUCCESS;
  if (!mine.in_place)
    failed = co_await error_of_transfer(copy_data(circle, mine.view, of_rank(parts, circle.rank())));
  const int size = circle.size();
  int have = circle.rank();
  for (int step = 1; step < size; ++step) {
    const int next = (have + size - 1) % size;
    const int error = co_await error_of_transfer(
        swap_data(circle, circle.right(), of_rank(parts, have), circle.left(), of_rank(parts, next)));
    if (failed == MPI_SUCCESS) failed = error;
    have = next;
  }
  if (failed != MPI_SUCCESS) throw TransferFailed(failed);
}

// All at once, beginning with the nearest process, so that the processes do not all send to the same one first.
runtime::Task<> exchange_all(Circle circle, Views out, Views in) {
  Transfers transfers(circle);
  const int size = circle.size();
  for (int distance = 0; distance < size; ++distance) {
    const int from = (circle.rank() + distance) % size;
    transfers.receive(from, of_rank(in, from));
  }
  for (int distance = 0; distance < size; ++distance) {
    const int to = ((circle.rank() - distance) % size + size) % size;
    transfers.send(to, of_rank(out, to));
  }
  co_await transfers.wait();
}

// A message to a process may be in its memory before this process has sent from there, so a copy is sent.
runtime::Task<> exchange_all_in_place(Circle circle, Views parts) {
  std::vector<std::vector<std::byte>> copies(parts.size());
  Views out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    copies[i].resize(parts[i].size_bytes);
    out.push_back(DataView::of_bytes(copies[i].data(), copies[i].size()));
    co_await copy_data(circle, parts[i], out.back());
  }
  co_await exchange_all(circle, out, parts);
}

namespace {

// The size of the parts of this process. REQUIRES: all have the same.
std::size_t part_bytes_of(const OwnView& mine, const Views& parts) {
  return parts.empty() ? mine.view.size_bytes : parts[0].size_bytes;
}

}  // namespace

runtime::Task<> gather_equal(Circle circle, int root, OwnView mine, Views parts) {
  const std::size_t part_bytes = part_bytes_of(mine, parts);
  if (is_small_gather(circle.size(), part_bytes)) {
    co_await gather_small(circle, root, mine, parts, part_bytes);
  } else {
    co_await gather(circle, root, mine, parts);
  }
}

runtime::Task<> scatter_equal(Circle circle, int root, Views parts, OwnView mine) {
  const std::size_t part_bytes = part_bytes_of(mine, parts);
  if (is_small_gather(circle.size(), part_bytes)) {
    co_await scatter_small(circle, root, parts, mine, part_bytes);
  } else {
    co_await scatter(circle, root, parts, mine);
  }
}

runtime::Task<> exchange_all_equal(Circle circle, Views out, Views in) {
  if (is_small_exchange(circle.size(), out[0].size_bytes)) {
    co_await exchange_all_small(circle, out, in);
  } else {
    co_await exchange_all(circle, out, in);
  }
}

runtime::Task<> exchange_all_equal_in_place(Circle circle, Views parts) {
  if (is_small_exchange(circle.size(), parts[0].size_bytes)) {
    co_await exchange_all_small(circle, parts, parts);
  } else {
    co_await exchange_all_in_place(circle, parts);
  }
}

// Both groups have arrived when both first processes know of theirs.
runtime::Task<> barrier_of_two(CirclePair circles) {
  co_await wait_for_all(circles.local);
  if (circles.local.rank() == 0) co_await swap_data(circles.remote, 0, {}, 0, {});
  co_await wait_for_all(circles.local);
}

runtime::Task<> broadcast_to_other(CirclePair circles, int root, DataView data) {
  if (root == MPI_PROC_NULL) co_return;
  if (root == MPI_ROOT) {
    co_await send_one(circles.remote, 0, data);
    co_return;
  }
  if (circles.local.rank() == 0) co_await receive_one(circles.remote, root, data);
  co_await broadcast(circles.local, 0, data);
}

runtime::Task<> gather_from_other(CirclePair circles, int root, DataView mine, Views parts) {
  Transfers transfers(circles.remote);
  if (root == MPI_ROOT) {
    for (int from = 0; from < circles.remote.size(); ++from) transfers.receive(from, of_rank(parts, from));
  } else if (root != MPI_PROC_NULL) {
    transfers.send(root, mine);
  }
  co_await transfers.wait();
}

runtime::Task<> scatter_to_other(CirclePair circles, int root, Views parts, DataView mine) {
  Transfers transfers(circles.remote);
  if (root == MPI_ROOT) {
    for (int to = 0; to < circles.remote.size(); ++to) transfers.send(to, of_rank(parts, to));
  } else if (root != MPI_PROC_NULL) {
    transfers.receive(root, mine);
  }
  co_await transfers.wait();
}

runtime::Task<> exchange_with_neighbours(Circle circle, NeighbourTransfers neighbours) {
  Transfers transfers(circle);
  for (const auto& [from, view] : neighbours.in) transfers.receive(from, view);
  for (const auto& [to, view] : neighbours.out) transfers.send(to, view);
  co_await transfers.wait();
}

}  // namespace weft::mpi
