#include "models/mpi/communicators/collective_context.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>

#include "weft/base/error.h"
#include "weft/mpi/mpi-ext.h"
#include "weft/mpi/mpi.h"

#include "base/format.h"
#include "collective/engine.h"
#include "models/mpi/objects/error_codes.h"

namespace weft::mpi {

namespace {

DataView view_of_span(std::span<const std::byte> bytes) {
  return DataView::of_bytes(bytes.data(), bytes.size());
}

// The first error of a collective.
class FirstError {
 public:
  void add(const Outcome& sent) {
    if (class_ == MPI_SUCCESS) class_ = sent.error;
  }
  void add_receive(const Outcome& received, std::size_t expected_bytes) {
    add(received);
    if (class_ == MPI_SUCCESS && received.size_bytes != static_cast<std::int64_t>(expected_bytes))
      class_ = MPI_ERR_TRUNCATE;
  }
  // A message without bytes tells that this process has failed.
  DataView view_unless_failed(std::span<const std::byte> bytes) const {
    return class_ == MPI_SUCCESS ? view_of_span(bytes) : DataView();
  }
  void throw_if_failed() const {
    if (class_ != MPI_SUCCESS) throw TransferFailed(class_);
  }

 private:
  int class_ = MPI_SUCCESS;
};

}  // namespace

std::shared_ptr<collective::Group> CollectiveContext::find_group(PointToPoint& engine, std::uint64_t id,
                                                                 const Members& members, int rank) {
  std::vector<int> pes;
  for (const int member : members) pes.push_back(engine.shared().member_number(member));
  auto& collectives = engine.messenger().runtime().model<collective::Engine>();
  return collectives.group(collective::group_number(collective::Owner::kMpi, id), pes, rank);
}

TransferFailed::TransferFailed(int error_class, const std::string& text)
    : base::Error(base::StatusCode::kInternal, text), error_class_(error_class) {}

namespace {

std::string text_of_failure(int error_class) {
  if (error_class == MPIX_ERR_PROC_FAILED) return "a process of the communicator is lost";
  if (error_class == MPIX_ERR_REVOKED) return "the communicator is revoked";
  return base::format(
      "a message of a collective operation failed with {}; do all processes make the same collective calls, "
      "with the same number of elements?",
      error_class_name(error_class));
}

}  // namespace

TransferFailed::TransferFailed(int error_class) : TransferFailed(error_class, text_of_failure(error_class)) {}

int CollectiveContext::failure_class(int other) const {
  const int fate = engine_.shared().troubles().fate_of_collectives(base_of_context(id_));
  return fate == MPI_SUCCESS ? other : fate;
}

runtime::Task<> swap_bytes(CollectiveContext context, int peer, std::span<const std::byte> mine,
                           std::span<std::byte> theirs) {
  FirstError error;
  const auto receive = context.receive(peer, view_of_span(theirs));
  const auto send = context.send(peer, view_of_span(mine));
  error.add_receive(co_await context.completed(*receive), theirs.size());
  error.add(co_await context.completed(*send));
  error.throw_if_failed();
}

runtime::Task<> ended(collective::Run& run) {
  VirtualRank* const rank = VirtualRank::current();
  co_await collective::Ended(run);
  while (!run.has_sent()) co_await runtime::yield_now(run.scheduler());
  VirtualRank::set_current(rank);
}

runtime::Task<> barrier(CollectiveContext context) {
  const std::shared_ptr<collective::Group> group = context.group();
  collective::Run run(*group, {.kind = collective::Kind::kBarrier, .number = context.call_number()});
  run.start();
  co_await ended(run);
  if (run.has_failed()) throw TransferFailed(context.failure_class(MPI_ERR_TRUNCATE));
}

// Down a binomial tree.
runtime::Task<> broadcast_bytes(CollectiveContext context, int root, std::span<std::byte> bytes) {
  const int size = context.size();
  const int place = (context.rank() - root + size) % size;
  int reach = 1;  // the lowest set bit of the place, or the first power of two that is not below the size
  while (reach < size && (place & reach) == 0) reach *= 2;
  FirstError error;
  if (place != 0) {
    const auto receive = context.receive((place - reach + root) % size, view_of_span(bytes));
    error.add_receive(co_await context.completed(*receive), bytes.size());
  }
  std::vector<Ref<SendRequest>> sends;
  for (int distance = reach / 2; distance > 0; distance /= 2) {
    if (place + distance < size)
      sends.push_back(context.send((place + distance + root) % size, error.view_unless_failed(bytes)));
  }
  for (const auto& send : sends) error.add(co_await context.completed(*send));
  error.throw_if_failed();
}

runtime::Task<std::vector<std::byte>> allgather_bytes(CollectiveContext context,
                                                      std::span<const std::byte> mine) {
  std::vector<int> all(static_cast<std::size_t>(context.size()));
  std::iota(all.begin(), all.end(), 0);
  const int place = context.rank();
  return allgather_bytes_among(std::move(context), std::move(all), place, mine);
}

// Each round doubles what a process has: it gets the blocks of its right neighbours.
runtime::Task<std::vector<std::byte>> allgather_bytes_among(CollectiveContext context,
                                                            std::vector<int> members, int place,
                                                            std::span<const std::byte> mine) {
  const std::size_t size = members.size();
  const auto own = static_cast<std::size_t>(place);
  std::vector<std::byte> blocks(size * mine.size());  // block i: of the process i places to the right
  std::copy(mine.begin(), mine.end(), blocks.begin());
  FirstError error;
  for (std::size_t have = 1; have < size; have *= 2) {
    const std::size_t count = std::min(have, size - have);
    const std::size_t num_bytes = count * mine.size();
    const std::span<std::byte> all(blocks);
    const auto receive = context.receive(members[(own + have) % size],
                                         view_of_span(all.subspan(have * mine.size(), num_bytes)));
    const auto send =
        context.send(members[(own + size - have) % size], error.view_unless_failed(all.first(num_bytes)));
    error.add_receive(co_await context.completed(*receive), num_bytes);
    error.add(co_await context.completed(*send));
  }
  error.throw_if_failed();
  const std::size_t first = (size - own) % size;
  std::rotate(blocks.begin(), blocks.begin() + static_cast<std::ptrdiff_t>(first * mine.size()),
              blocks.end());
  co_return blocks;
}

}  // namespace weft::mpi
