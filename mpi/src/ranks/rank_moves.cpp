#include "ranks/rank_moves.h"

#include <cstddef>
#include <cstring>
#include <exception>
#include <span>
#include <utility>

#include "weft/base/error.h"

#include "base/format.h"
#include "ranks/protected_ranks.h"

namespace weft::mpi {

namespace {

// The context of messages of moves. No communicator has it: their contexts are above 3.
constexpr std::uint64_t kMoveContext = 1;

DataView view_of_range(const weft_mpi_host_range& range) {
  return DataView::of_bytes(range.begin, range.size_bytes);
}

template <class T>
DataView view_of_value(T& value) {
  return DataView::of_bytes(&value, sizeof value);
}

void expect_success(const Outcome& outcome) {
  if (outcome.error == MPI_SUCCESS) return;
  throw base::Error(base::StatusCode::kInternal,
                    base::format("the memory of an MPI rank could not be moved (error {})", outcome.error));
}

}  // namespace

void RankMoves::begin(HostedRanks& ranks, runtime::Runtime& runtime, RankEngines& engines) {
  of_this_pe_ = new RankMoves(ranks, runtime, engines);
}

RankMoves::RankMoves(HostedRanks& ranks, runtime::Runtime& runtime, RankEngines& engines)
    : ranks_(ranks), runtime_(runtime), engines_(engines) {
  engines_.set_move_function(
      [](void* self, int from_pe, std::span<const std::uint64_t> numbers) {
        static_cast<RankMoves*>(self)->on_numbers(from_pe, numbers);
      },
      this);
}

void RankMoves::plan(const RankMap& map) {
  if (!next_) next_ = map;
}

void RankMoves::plan_protection() {
  plan(engines_.map());
  protects_ = true;
}

// Nothing that refers to this process lives on the stack while the rank waits.
void RankMoves::take_part() {
  of_this_pe().join();
  do HostedRanks::running()->wait();
  while (of_this_pe().is_planned());
}

void RankMoves::join() {
  ++num_waiting_;
  if (num_waiting_ == static_cast<int>(ranks_.ranks().size())) runtime_.spawn(move(), "a move of MPI ranks");
}

// A message may have woken a rank that waits. Its entry in the scheduler's queue must go first.
bool RankMoves::has_queued_ranks() const {
  for (const HostedRank* const rank : ranks_.ranks()) {
    if (rank->is_queued()) return true;
  }
  return false;
}

runtime::Future<std::uint64_t> RankMoves::sum_over_pes(std::span<const std::uint64_t> for_pes) {
  runtime::Future<std::uint64_t> sum = runtime_.make_future<std::uint64_t>();
  sum_ = sum;
  engines_.tell_mover(0, for_pes);
  return sum;
}

void RankMoves::on_numbers(int from_pe, std::span<const std::uint64_t> numbers) {
  if (runtime_.pe() == 0) return on_numbers_for_sum(from_pe, numbers);
  if (from_pe != 0 || numbers.size() != 1 || !sum_) {
    throw base::Error(
        base::StatusCode::kCorrupt,
        base::format("PE {} sends {} numbers about a move of ranks that this PE does not wait for", from_pe,
                     numbers.size()));
  }
  std::exchange(sum_, std::nullopt)->set(numbers[0]);
}

// On PE 0, which may have ranks that have not come to the move.
void RankMoves::on_numbers_for_sum(int from_pe, std::span<const std::uint64_t> numbers) {
  const auto num_pes = static_cast<std::size_t>(runtime_.num_pes());
  const auto from = static_cast<std::size_t>(from_pe);
  sums_.resize(num_pes);
  has_given_.resize(num_pes);
  if (numbers.size() != num_pes || has_given_[from]) {
    throw base::Error(
        base::StatusCode::kCorrupt,
        base::format("PE {} sends {} numbers about a move of ranks of {} PEs, or sends them twice", from_pe,
                     numbers.size(), num_pes));
  }
  has_given_[from] = true;
  for (std::size_t pe = 0; pe < num_pes; ++pe) sums_[pe] += numbers[pe];
  if (static_cast<std::size_t>(++num_given_) < num_pes) return;
  num_given_ = 0;
  has_given_.clear();
  const std::vector<std::uint64_t> sums = std::exchange(sums_, {});
  for (std::size_t pe = 1; pe < num_pes; ++pe)
    engines_.tell_mover(static_cast<int>(pe), std::span(sums).subspan(pe, 1));
  std::exchange(sum_, std::nullopt)->set(sums[0]);
}

// Until all messages have come that ranks have sent to those of this PE.
runtime::Task<> RankMoves::wait_for_messages() {
  const std::vector<std::uint64_t> sent = engines_.num_sent_to_pes();
  const auto num_expected = static_cast<std::uint32_t>(co_await sum_over_pes(sent));
  while (engines_.num_arrived() != num_expected) co_await runtime::yield_now(runtime_);
  // No leader sends before all PEs have what was sent to them: its messages would be counted.
  co_await wait_for_pes();
}

runtime::Task<> RankMoves::wait_for_pes() {
  const std::vector<std::uint64_t> none(static_cast<std::size_t>(runtime_.num_pes()));
  co_await sum_over_pes(none);
  VirtualRank::set_current(nullptr);
}

runtime::Task<> RankMoves::move() {
  VirtualRank::set_current(nullptr);
  failure_.clear();
  // Messages of the leaders must not wake their ranks. Each rank sets its engine again when it continues.
  for (const auto& engine : engines_.engines()) engine->set_virtual_rank(nullptr);
  // The rank that came last has not suspended yet, if the coroutine begins on its stack.
  do co_await runtime::yield_now(runtime_);
  while (has_queued_ranks());
  co_await wait_for_messages();
  const CollectiveContext context = leaders_context();
  co_await check_messages(context);
  if (failure_.empty()) {
    if (protects_) {
      co_await protect();
    } else {
      co_await exchange(context);
    }
  }
  if (failure_.empty()) {
    engines_.replace(*next_);
    ranks_.replace_map(*next_);
  }
  co_await wait_for_pes();
  finish();
}

CollectiveContext RankMoves::leaders_context() const {
  const RankMap& map = engines_.map();
  auto leaders = std::make_shared<Members>();
  for (int pe = 0; pe < map.num_pes(); ++pe) leaders->push_back(map.ranks_on(pe).front());
  return {*engines_.engines().front(), kMoveContext, 0, leaders, ranks_.pe()};
}

runtime::Task<> RankMoves::check_messages(CollectiveContext context) {
  struct Left {
    std::int32_t rank = -1;
    std::uint32_t count = 0;
  };
  Left mine;
  for (const auto& engine : engines_.engines()) {
    std::size_t count = engine->num_unexpected();
    // Other leaders may have come here before.
    for (int peer = 0; peer < context.size(); ++peer) {
      if (engine->probe({kMoveContext, peer, context.tag()}) != nullptr) --count;
    }
    if (count != 0) mine = {.rank = engine->rank(), .count = static_cast<std::uint32_t>(count)};
  }
  const std::vector<std::byte> all = co_await allgather_bytes(context, std::as_bytes(std::span(&mine, 1)));
  for (std::size_t offset = 0; offset + sizeof(Left) <= all.size(); offset += sizeof(Left)) {
    Left left;
    std::memcpy(&left, all.data() + offset, sizeof left);
    if (left.count == 0) continue;
    failure_ = base::format("rank {} cannot {}: {} messages for it have not been received", left.rank,
                            protects_ ? "be protected" : "move", left.count);
  }
}

runtime::Task<> RankMoves::exchange(CollectiveContext context) {
  const RankMap& map = engines_.map();
  const int pe = ranks_.pe();
  std::vector<std::unique_ptr<Announcement>> announcements;
  std::vector<int> left;
  Sends sends;
  for (int rank = 0; rank < map.num_ranks(); ++rank) {
    if (map.pe_of(rank) != pe || next_->pe_of(rank) == pe) continue;
    announcements.push_back(std::make_unique<Announcement>());
    left.push_back(rank);
    send_rank(context, rank, *announcements.back(), sends);
  }
  for (int rank = 0; rank < map.num_ranks(); ++rank) {
    if (map.pe_of(rank) != pe && next_->pe_of(rank) == pe) co_await receive_rank(context, rank);
  }
  for (const Ref<SendRequest>& send : sends) expect_success(co_await context.completed(*send));
  for (const int rank : left) ranks_.program().moves->rank_left(ranks_.program().context, rank);
  co_await barrier(context);
}

void RankMoves::send_rank(const CollectiveContext& context, int rank, Announcement& announcement,
                          Sends& sends) {
  const weft_mpi_host_program& program = ranks_.program();
  HostedRank* const leaving = ranks_.place_of(rank);
  leaving->depart();
  announcement.rank = rank;
  announcement.num_ranges =
      program.moves->ranges_of_rank(program.context, rank, leaving->lowest_in_use(),
                                    static_cast<weft_mpi_host_range*>(announcement.ranges));
  const int to = next_->pe_of(rank);
  sends.push_back(context.send(to, view_of_value(announcement)));
  for (int i = 0; i < announcement.num_ranges; ++i)
    sends.push_back(context.send(to, view_of_range(announcement.ranges[i])));
}

runtime::Task<> RankMoves::receive_rank(CollectiveContext context, int rank) {
  const weft_mpi_host_program& program = ranks_.program();
  const int from = engines_.map().pe_of(rank);
  Announcement announcement;
  const auto announced = context.receive(from, view_of_value(announcement));
  expect_success(co_await context.completed(*announced));
  const bool is_expected = announcement.rank == rank && announcement.num_ranges >= 0 &&
                           announcement.num_ranges <= WEFT_MPI_HOST_MOST_RANGES;
  const char* const wrong =
      !is_expected ? "the announcement is wrong"
                   : program.moves->receive_rank(program.context, rank,
                                                 static_cast<const weft_mpi_host_range*>(announcement.ranges),
                                                 announcement.num_ranges);
  if (wrong != nullptr) {
    throw base::Error(base::StatusCode::kCorrupt,
                      base::format("MPI rank {} of PE {} cannot come to this PE: {}", rank, from, wrong));
  }
  for (int i = 0; i < announcement.num_ranges; ++i) {
    const auto range = context.receive(from, view_of_range(announcement.ranges[i]));
    expect_success(co_await context.completed(*range));
  }
  program.moves->rank_arrived(program.context, rank);
  ranks_.place_of(rank)->arrive(runtime_);
}

// No memory of a rank refers to this process meanwhile.
runtime::Task<> RankMoves::protect() {
  for (HostedRank* const rank : ranks_.ranks()) rank->depart();
  co_await wait_for_pes();
  std::uint64_t has_failed = 0;
  if (runtime_.pe() == 0) {
    failure_ = co_await protect_ranks(runtime_, engines_.map());
    if (!failure_.empty()) has_failed = 1;
  }
  const std::vector<std::uint64_t> told(static_cast<std::size_t>(runtime_.num_pes()), has_failed);
  const std::uint64_t sum = co_await sum_over_pes(told);
  if (sum != 0 && failure_.empty()) failure_ = "the state could not be protected; rank 0 has the reason";
  for (HostedRank* const rank : ranks_.ranks()) rank->arrive(runtime_);
}

bool RankMoves::restore() {
  runtime_.spawn(restore_ranks(), "restoring MPI ranks");
  return runtime_.run_until([](void* self) { return static_cast<RankMoves*>(self)->has_restored_; }, this);
}

runtime::Task<> RankMoves::restore_ranks() {
  std::uint64_t has_state = 0;
  if (runtime_.pe() == 0) {
    std::string failure;
    try {
      const bool has_recovered = co_await recover_ranks(runtime_);
      if (has_recovered) has_state = 1;
    } catch (const std::exception& error) {
      failure = base::format("the MPI ranks cannot be recovered: {}", error.what());
    }
    if (!failure.empty()) {
      runtime_.fail(failure);
      co_return;
    }
  }
  const std::vector<std::uint64_t> told(static_cast<std::size_t>(runtime_.num_pes()), has_state);
  const std::uint64_t sum = co_await sum_over_pes(told);
  if (sum != 0) {
    const RankMap* const map = ranks_.restored_map();
    if (map == nullptr) throw base::Error(base::StatusCode::kInternal, "no MPI rank has come to this PE");
    engines_.replace(*map);
    ranks_.take_restored();
  }
  co_await wait_for_pes();  // no rank sends before all PEs have their ranks
  has_restored_ = true;
}

void RankMoves::finish() {
  next_.reset();
  protects_ = false;
  num_waiting_ = 0;
  for (HostedRank* const rank : ranks_.ranks()) rank->wake();
}

}  // namespace weft::mpi
