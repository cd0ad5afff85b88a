#include "moves_agreement.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "communication.h"
#include "entry.h"
#include "environment.h"
#include "models/mpi/collective/circle.h"
#include "models/mpi/process.h"
#include "rank_moves.h"

namespace weft::mpi {

namespace {

struct NamedKind {
  ObjectKind kind;
  std::string_view name;
  int num_own = 0;  // those that every rank has
};
constexpr std::array kKinds = {
    NamedKind{ObjectKind::kRequest, "requests"},
    NamedKind{ObjectKind::kMessage, "messages of a matched probe"},
    NamedKind{ObjectKind::kCommunicator, "communicators", 2},
    NamedKind{ObjectKind::kDatatype, "datatypes"},
    NamedKind{ObjectKind::kGroup, "groups"},
    NamedKind{ObjectKind::kOperation, "operators"},
    NamedKind{ObjectKind::kErrorHandler, "error handlers"},
    NamedKind{ObjectKind::kInfo, "info objects"},
    NamedKind{ObjectKind::kSession, "sessions"},
    NamedKind{ObjectKind::kWindow, "windows"},
    NamedKind{ObjectKind::kFile, "files"},
};

// Objects of MPI lie in the memory of the process.
std::string objects_of(const VirtualRank& rank) {
  for (const NamedKind& named : kKinds) {
    const int count = rank.num_objects(named.kind) - named.num_own;
    if (count > 0) return base::format("it has {} of MPI ({}); free them before", named.name, count);
  }
  return {};
}

bool has_attributes(ErrorScope& scope) { return scope.has_attributes() && !scope.attributes().is_empty(); }

bool has_hints(const Communicator& communicator) {
  return !communicator.info.empty() || communicator.stream != nullptr;
}

std::string other_state_of(Rank& rank) {
  Process& process = *rank.process;
  if (process.buffer_space.is_attached() || process.world()->buffer_space.is_attached() ||
      process.self()->buffer_space.is_attached())
    return "a buffer for MPI_Bsend is attached; detach it before";
  if (!rank.device_memory.empty()) return "it has device memory of MPI_Alloc_mem; free it before";
  if (!rank.attribute_keys.is_empty() || has_attributes(*process.world()) || has_attributes(*process.self()))
    return "it has attribute keys or attributes; free them before";
  if (!rank.error_codes.is_empty()) return "it has added error codes; remove them before";
  if (has_hints(*process.world())) return "MPI_COMM_WORLD has hints";
  if (has_hints(*process.self())) return "MPI_COMM_SELF has hints";
  if (rank.types.have_names_or_attributes())
    return "it has given names or attributes to predefined datatypes; MPI would lose them";
  if (rank.fortran.info.get() != nullptr || !rank.fortran.true_value.empty())
    return "it has settings of MPI_Abi_set_fortran_info or MPI_Abi_set_fortran_booleans";
  return {};
}

std::string obstacle_of_this_rank(int pe) {
  HostedRanks* const all = HostedRanks::current();
  if (all == nullptr) {
    if (pe < 0 || pe == job_runtime().pe()) return {};
    return "each PE has one rank; start the program with `weft run --ranks` or `weft ranks`";
  }
  const weft_mpi_host_moves* const moves = all->program().moves;
  if (moves == nullptr) return "this program that hosts ranks cannot move them";
  if (moves->obstacle != nullptr) return moves->obstacle;
  if (all->is_in_parallel_region()) return "it is inside an OpenMP region; call the function outside of it";
  if (const char* const obstacle =
          moves->obstacle_of_rank(all->program().context, HostedRanks::running()->number()))
    return obstacle;
  if (this_process().had_sessions) return "it has had sessions";
  if (std::string objects = objects_of(*HostedRanks::running()); !objects.empty()) return objects;
  return other_state_of(this_rank());
}

}  // namespace

MoveWish wish_of_this_rank(int pe) {
  MoveWish wish;
  wish.pe = pe;
  copy_string(obstacle_of_this_rank(pe), sizeof wish.obstacle, static_cast<char*>(wish.obstacle));
  const HostedRanks* const all = HostedRanks::current();
  if (all != nullptr && all->program().moves != nullptr) wish.fingerprint = all->program().moves->fingerprint;
  if (all != nullptr) wish.load_s = HostedRanks::running()->take_load_s();
  return wish;
}

std::vector<MoveWish> wishes_of_all(const MoveWish& mine) {
  Process& process = this_process();
  const Circle circle = process.world()->next_circles().local;
  const std::vector<std::byte> bytes = process.run(collect(circle, std::as_bytes(std::span(&mine, 1))));
  std::vector<MoveWish> wishes(bytes.size() / sizeof(MoveWish));
  std::memcpy(wishes.data(), bytes.data(), bytes.size());
  for (MoveWish& wish : wishes) wish.obstacle[sizeof wish.obstacle - 1] = '\0';
  return wishes;
}

Error obstacle_to_moves(const std::vector<MoveWish>& wishes, const std::vector<int>& pe_of_rank) {
  const int num_pes = job_runtime().num_pes();
  std::vector<int> num_ranks(static_cast<std::size_t>(num_pes));
  for (std::size_t rank = 0; rank < wishes.size(); ++rank) {
    const MoveWish& wish = wishes[rank];
    if (wish.obstacle[0] != '\0')
      return {MPI_ERR_OTHER,
              base::format("rank {} cannot move: {}", rank, static_cast<const char*>(wish.obstacle))};
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
[[gnu::noinline]] void tell_program(int event) { HostedRanks::running()->call_move_functions(event); }

}  // namespace

Error move_as_planned() {
  if (!is_move_planned()) return {};
  const bool leaves = does_this_rank_leave();
  if (leaves) tell_program(WEFT_MPI_LEAVES);
  const KeptState kept = pause_mpi();
  RankMoves::take_part();
  continue_mpi(kept);
  if (leaves) tell_program(WEFT_MPI_ARRIVED);
  return outcome_of_move();
}

}  // namespace weft::mpi
