// Ranks that move to other PEs: the functions of weft_mpi.h.
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/chare/checkpoint.h"
#include "weft/mpi/mpi.h"
#include "weft/mpi/weft_mpi.h"

#include "base/format.h"
#include "communication/communication.h"
#include "entry/entry.h"
#include "models/mpi/communicators/collective_context.h"
#include "models/mpi/process.h"
#include "ranks/environment.h"
#include "ranks/moves_agreement.h"
#include "ranks/rank_placement.h"

namespace weft::mpi {

namespace {

Error agree_on_move(int pe) {
  if (Error error = check_running(); !error.ok()) return error;
  MoveWish mine = wish_of_this_rank(pe);
  if (HostedRanks::current() != nullptr) mine.load_s = HostedRanks::running()->take_load_s();
  const std::vector<MoveWish> wishes = wishes_of_all(mine);
  std::vector<int> places;
  for (const MoveWish& wish : wishes) places.push_back(wish.pe);
  if (Error error = obstacle_to_moves(wishes, places); !error.ok()) return error;
  plan_moves(std::move(places));
  return {};
}

// Rank 0 decides. Its error reaches all as an impossible place.
Error agree_on_balance() {
  constexpr int kNoPlace = -1;
  MoveWish mine = wish_of_this_rank(-1);
  mine.load_s = HostedRanks::running()->take_load_s();
  const std::vector<MoveWish> wishes = wishes_of_all(mine);
  if (Error error = obstacle_to_moves(wishes, {}); !error.ok()) return error;
  std::vector<int> places(wishes.size(), kNoPlace);
  std::string failure = "the strategy failed at rank 0";
  Process& process = this_process();
  if (this_rank().number == 0) {
    std::vector<double> loads_s;
    for (const MoveWish& wish : wishes) loads_s.push_back(wish.load_s);
    auto decided = balanced_places(HostedRanks::current()->map(), loads_s);
    if (decided.ok()) {
      places = std::move(decided).value();
    } else {
      failure = decided.status().message();
    }
  }
  const CollectiveContext context = process.world()->next_collective_contexts().local;
  process.run(broadcast_bytes(context, 0, std::as_writable_bytes(std::span(places))));
  if (places.front() == kNoPlace) return {MPI_ERR_OTHER, failure};
  if (Error error = obstacle_to_moves(wishes, places); !error.ok()) return error;
  plan_moves(std::move(places));
  return {};
}

Error agree_on_protection() {
  if (HostedRanks::current() == nullptr) {
    return {
        MPI_ERR_OTHER,
        "each PE has one rank, whose state cannot be protected. Start the program with `weft run --ranks`, "
        "or leave out --on-loss"};
  }
  const std::vector<MoveWish> wishes = wishes_of_all(wish_of_this_rank(-1));
  if (Error error = obstacle_to_moves(wishes, {}, "be protected"); !error.ok()) return error;
  plan_protection();
  return {};
}

// Of a job that loses processes and begins again, whether its ranks can be protected or not.
bool is_job_to_begin_again() {
  if (HostedRanks::current() != nullptr) return job_can_begin_again();
  const char* const variable = std::getenv("WEFT_ON_LOSS");
  const std::string_view on_loss = variable == nullptr ? "" : variable;
  return on_loss == "restart" || on_loss == "shrink";
}

[[gnu::noinline]] void store_recoveries(int* recoveries) {
  if (recoveries != nullptr) *recoveries = chare::recoveries(job_runtime());
}

// A handler that returns the code drops the text, so rank 0 says it, once for each reason since it has come to its PE.
[[gnu::noinline]] Error said(const char* function, Error error) {
  Rank& rank = this_rank();
  if (error.ok() || rank.number != 0 || rank.world == nullptr) return error;
  const ErrorHandler::Action action = rank.world->error_handler()->action();
  if (action == ErrorHandler::Action::kEndJob || action == ErrorHandler::Action::kAbort) return error;
  const std::string line = base::format("weft: {}: {}\n", function, error.text);
  if (rank.is_first_report(line)) std::fputs(line.c_str(), stderr);
  return error;
}

}  // namespace

}  // namespace weft::mpi

using namespace weft::mpi;  // NOLINT(google-build-using-namespace): the entry points are C functions

extern "C" {

int Weft_migrate(int pe) {
  return guarded(__func__, MPI_COMM_WORLD, [pe]() -> Error {
    if (Error error = agree_on_move(pe); !error.ok()) return said("Weft_migrate", std::move(error));
    return said("Weft_migrate", move_as_planned());
  });
}

int Weft_load_balance(void) {
  return guarded(__func__, MPI_COMM_WORLD, []() -> Error {
    if (Error error = check_running(); !error.ok()) return error;
    if (HostedRanks::current() == nullptr || !balances_loads()) return {};
    if (Error error = agree_on_balance(); !error.ok()) return said("Weft_load_balance", std::move(error));
    return said("Weft_load_balance", move_as_planned());
  });
}

int Weft_protect(int* recoveries) {
  return guarded(__func__, MPI_COMM_WORLD, [recoveries]() -> Error {
    if (Error error = check_running(); !error.ok()) return error;
    Error error;
    if (is_job_to_begin_again()) error = said("Weft_protect", agree_on_protection());
    if (error.ok()) error = said("Weft_protect", move_as_planned());
    store_recoveries(recoveries);
    return error;
  });
}

int Weft_pe(void) { return this_rank().process == nullptr ? -1 : job_runtime().pe(); }
int Weft_num_pes(void) { return this_rank().process == nullptr ? -1 : job_runtime().num_pes(); }

int Weft_register_move_function(Weft_move_function function, void* data) {
  return guarded(__func__, MPI_COMM_WORLD, [&]() -> Error {
    if (function == nullptr) return {MPI_ERR_ARG, "the argument function is a null pointer"};
    HostedRank* const rank = HostedRanks::running();
    if (rank != nullptr && !rank->add_move_function(function, data))
      return {MPI_ERR_OTHER, "the rank has registered too many functions"};
    return {};
  });
}

}  // extern "C"
