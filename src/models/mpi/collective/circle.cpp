#include "models/mpi/collective/circle.h"

#include <algorithm>
#include <cstring>

#include "weft/base/error.h"
#include "weft/mpi/mpi.h"

#include "base/format.h"

namespace weft::mpi {

namespace {

DataView view_of_span(std::span<const std::byte> bytes) {
  return DataView::of_bytes(bytes.data(), bytes.size());
}

void expect_success(const Outcome& outcome) {
  if (outcome.error == MPI_SUCCESS) return;
  throw base::Error(base::StatusCode::kInternal,
                    base::format("a message between the processes of a communicator failed with error class "
                                 "{}; do all processes make the same collective calls in the same order?",
                                 outcome.error));
}

}  // namespace

runtime::Task<> swap_bytes(Circle circle, int peer, std::span<const std::byte> mine,
                           std::span<std::byte> theirs) {
  const auto receive = circle.receive(peer, view_of_span(theirs));
  const auto send = circle.send(peer, view_of_span(mine));
  expect_success(co_await circle.completed(*receive));
  expect_success(co_await circle.completed(*send));
}

// In round r each process hears of all within a distance of 2^r.
runtime::Task<> wait_for_all(Circle circle) {
  for (int distance = 1; distance < circle.size(); distance *= 2) {
    const auto receive = circle.receive((circle.rank() + circle.size() - distance) % circle.size(), {});
    const auto send = circle.send((circle.rank() + distance) % circle.size(), {});
    expect_success(co_await circle.completed(*receive));
    expect_success(co_await circle.completed(*send));
  }
}

// Down a binomial tree.
runtime::Task<> spread(Circle circle, int root, std::span<std::byte> bytes) {
  const int size = circle.size();
  const int place = (circle.rank() - root + size) % size;
  int reach = 1;  // the lowest set bit of the place, or the first power of two that is not below the size
  while (reach < size && (place & reach) == 0) reach *= 2;
  if (place != 0) {
    const auto receive = circle.receive((place - reach + root) % size, view_of_span(bytes));
    expect_success(co_await circle.completed(*receive));
  }
  std::vector<Ref<SendRequest>> sends;
  for (int distance = reach / 2; distance > 0; distance /= 2) {
    if (place + distance < size)
      sends.push_back(circle.send((place + distance + root) % size, view_of_span(bytes)));
  }
  for (const auto& send : sends) expect_success(co_await circle.completed(*send));
}

// Each round doubles what a process has: it gets the blocks of its right neighbours.
runtime::Task<std::vector<std::byte>> collect(Circle circle, std::span<const std::byte> mine) {
  const auto size = static_cast<std::size_t>(circle.size());
  std::vector<std::byte> blocks(size * mine.size());  // block i: of the process i places to the right
  std::copy(mine.begin(), mine.end(), blocks.begin());
  for (std::size_t have = 1; have < size; have *= 2) {
    const std::size_t count = std::min(have, size - have);
    const int distance = static_cast<int>(have);
    const std::span<std::byte> all(blocks);
    const auto receive = circle.receive((circle.rank() + distance) % circle.size(),
                                        view_of_span(all.subspan(have * mine.size(), count * mine.size())));
    const auto send = circle.send((circle.rank() + circle.size() - distance) % circle.size(),
                                  view_of_span(all.first(count * mine.size())));
    expect_success(co_await circle.completed(*receive));
    expect_success(co_await circle.completed(*send));
  }
  const std::size_t first = (size - static_cast<std::size_t>(circle.rank())) % size;
  std::rotate(blocks.begin(), blocks.begin() + static_cast<std::ptrdiff_t>(first * mine.size()),
              blocks.end());
  co_return blocks;
}

}  // namespace weft::mpi
