#include "ranks/moves_agreement.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "weft/chare/checkpoint.h"

#include "base/format.h"
#include "communication/communication.h"
#include "entry/entry.h"
#include "models/mpi/communicators/collective_context.h"
#include "models/mpi/moving/moving_objects.h"
#include "models/mpi/process.h"
#include "ranks/environment.h"
#include "ranks/rank_moves.h"

namespace weft::mpi {

namespace {

struct NamedKind {
  ObjectKind kind;
  std::string_view name;
  std::string_view remedy;
};
constexpr std::array kKindsThatStay = {
    NamedKind{ObjectKind::kWindow, "windows", "free them before"},  // they have requests
    NamedKind{ObjectKind::kRequest, "requests", "complete and free them before"},
    NamedKind{ObjectKind::kStreamRequest, "requests of streams",
              "complete them with MPIX_Waitall_enqueue before"},
    NamedKind{ObjectKind::kStream, "streams (MPIX_Stream)", "free them and their communicators before"},
    NamedKind{ObjectKind::kMessage, "messages of a matched probe", "receive them before"},
    NamedKind{ObjectKind::kSession, "sessions", "finalize them before"},
    NamedKind{ObjectKind::kFile, "files", "close them before"},
};

base::Status immovable(std::string why) { return {base::StatusCode::kUnsupported, std::move(why)}; }

// Fails if the rank has objects that are bound to the process or to an operation under way, so that it cannot move.
base::Status obstacle_of_all_objects(const VirtualRank& rank) {
  for (const NamedKind& named : kKindsThatStay) {
    const int count = rank.num_objects(named.kind);
    if (count > 0)
      return immovable(base::format("it has {} of MPI ({}); {}", named.name, count, named.remedy));
  }
  return obstacle_of_objects(rank);
}

base::Status obstacle_of_other_state(const Rank& rank) {
  if (rank.process->buffer_space.is_attached())
    return immovable("a buffer for MPI_Bsend is attached; detach it before");
  if (!rank.device_memory.empty()) return immovable("it has device memory of MPI_Alloc_mem; free it before");
  return {};
}

base::Status obstacle_of_this_rank(int pe) {
  HostedRanks* const all = HostedRanks::current();
  if (all == nullptr) {
    if (pe < 0 || pe == job_runtime().pe()) return {};
    return immovable("each PE has one rank; start the program with `weft run --ranks` or `weft ranks`");
  }
  const weft_mpi_host_moves* const moves = all->program().moves;
  if (moves == nullptr) return immovable("this program that hosts ranks cannot move them");
  if (moves->obstacle != nullptr) return immovable(moves->obstacle);
  if (all->is_in_parallel_region())
    return immovable("it is inside an OpenMP region; call the function outside of it");
  if (const char* const obstacle =
          moves->obstacle_of_rank(all->program().context, HostedRanks::running()->number()))
    return immovable(obstacle);
  if (this_process().had_sessions) return immovable("it has had sessions");
  if (base::Status status = obstacle_of_all_objects(*HostedRanks::running()); !status.ok()) return status;
  return obstacle_of_other_state(this_rank());
}

}  // namespace

MoveWish wish_of_this_rank(int pe) {
  MoveWish wish;
  wish.pe = pe;
  copy_string(obstacle_of_this_rank(pe).message(), sizeof wish.obstacle, static_cast<char*>(wish.obstacle));
  const HostedRanks* const all = HostedRanks::current();
  if (all != nullptr && all->program().moves != nullptr) wish.fingerprint = all->program().moves->fingerprint;
  return wish;
}

std::vector<MoveWish> wishes_of_all(const MoveWish& mine) {
  Process& process = this_process();
  const CollectiveContext context = process.world()->next_collective_contexts().local;
  const std::vector<std::byte> bytes =
      process.run(allgather_bytes(context, std::as_bytes(std::span(&mine, 1))));
  std::vector<MoveWish> wishes(bytes.size() / sizeof(MoveWish));
  std::memcpy(wishes.data(), bytes.data(), bytes.size());
  for (MoveWish& wish : wishes) wish.obstacle[sizeof wish.obstacle - 1] = '\0';
  return wishes;
}

Error obstacle_to_moves(const std::vector<MoveWish>& wishes, const std::vector<int>& pe_of_rank,
                        std::string_view what) {
  const int num_pes = job_runtime().num_pes();
  std::vector<int> num_ranks(static_cast<std::size_t>(num_pes));
  for (std::size_t rank = 0; rank < wishes.size(); ++rank) {
    const MoveWish& wish = wishes[rank];
    if (wish.obstacle[0] != '\0')
      return {MPI_ERR_OTHER,
              base::format("rank {} cannot {}: {}", rank, what, static_cast<const char*>(wish.obstacle))};
    if (wish.fingerprint != wishes[0].fingerprint) {
      return {MPI_ERR_OTHER,
              base::format(
                  "the processes of ranks 0 and {} have the libraries or the program at other addresses, "
                  "or in other versions. Ranks move between equal processes: start them with the same "
                  "files, the same LD_LIBRARY_PATH and the same limit on stacks (ulimit -s)",
                  rank)};
    }
  }
  for (std::size_t rank = 0; rank < pe_of_rank.size(); ++rank) {
    const int pe = pe_of_rank[rank];
    if (pe < 0 || pe >= num_pes) {
      return {MPI_ERR_ARG,
              base::format("rank {} cannot go to PE {}; this job has PEs 0 to {}", rank, pe, num_pes - 1)};
    }
    ++num_ranks[static_cast<std::size_t>(pe)];
  }
  for (std::size_t pe = 0; pe < num_ranks.size() && !pe_of_rank.empty(); ++pe) {
    if (num_ranks[pe] == 0)
      return {MPI_ERR_OTHER, base::format("PE {} would have no rank; each PE keeps at least one", pe)};
  }
  return {};
}

void plan_moves(std::vector<int> pe_of_rank) {
  const HostedRanks* const all = HostedRanks::current();
  if (all == nullptr) return;
  bool changes = false;
  for (std::size_t rank = 0; rank < pe_of_rank.size(); ++rank)
    changes = changes || all->map().pe_of(static_cast<int>(rank)) != pe_of_rank[rank];
  if (changes) RankMoves::of_this_pe().plan(RankMap(std::move(pe_of_rank), all->map().num_pes()));
}

void plan_protection() { RankMoves::of_this_pe().plan_protection(); }

namespace {

// Out of line: no address of this process stays in the frame of the caller.
[[gnu::noinline]] bool is_move_planned() {
  return HostedRanks::current() != nullptr && RankMoves::of_this_pe().is_planned();
}
[[gnu::noinline]] bool does_this_rank_leave() {
  const HostedRanks& all = *HostedRanks::current();
  return RankMoves::of_this_pe().next_pe_of(HostedRanks::running()->number()) != all.pe();
}
[[gnu::noinline]] Error outcome_of_move() {
  const std::string& failure = RankMoves::of_this_pe().failure();
  if (failure.empty()) return {};
  return {MPI_ERR_OTHER, failure};
}
[[gnu::noinline]] int num_recoveries() { return chare::recoveries(job_runtime()); }
[[gnu::noinline]] void tell_program(int event) { HostedRanks::running()->call_move_functions(event); }

}  // namespace

Error move_as_planned() {
  if (!is_move_planned()) return {};
  const bool leaves = does_this_rank_leave();
  if (leaves) tell_program(WEFT_MPI_LEAVES);
  const int recovery = num_recoveries();
  const KeptState kept = pause_mpi();
  RankMoves::take_part();
  continue_mpi(kept);
  // A rank that comes from a protected state is in another process, or in a new program of this one.
  if (leaves || num_recoveries() != recovery) tell_program(WEFT_MPI_ARRIVED);
  return outcome_of_move();
}

}  // namespace weft::mpi
