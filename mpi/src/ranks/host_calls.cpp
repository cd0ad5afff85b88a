// The functions that weft-mpi-host calls, see host_interface.h.
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "weft/base/error.h"

#include "base/format.h"
#include "ranks/environment.h"
#include "ranks/fiber.h"
#include "ranks/host_interface.h"
#include "ranks/hosted_ranks.h"
#include "ranks/rank_placement.h"

namespace weft::mpi {

namespace {

constexpr int kRefused = 2;  // as that of weft run

int refuse_program(const std::string& why) {
  std::fputs(base::format("weft: {}\n", why).c_str(), stderr);
  return 1;
}

// Another process, or the launcher, has printed the reason of kCancelled.
int end_without_launch(const base::Error& error) {
  begin_again_if_told();
  return error.code() == base::StatusCode::kCancelled ? 1 : refuse_program(error.what());
}

}  // namespace

}  // namespace weft::mpi

using namespace weft::mpi;  // NOLINT(google-build-using-namespace): the functions are C functions

extern "C" {

int weft_mpi_host_join(weft_mpi_host_place* place) {
  try {
    join_launch();
  } catch (const weft::base::Error& error) {
    return end_without_launch(error);
  }
  *place = {.pe = launch().pe(), .num_pes = launch().num_pes()};
  return 0;
}

int weft_mpi_host_agree(const char* refusal) {
  const std::string mine = refusal == nullptr ? "" : refusal;
  try {
    const std::vector<std::string> refusals = launch().exchange(mine);
    const auto first = std::ranges::find_if(refusals, [](const std::string& why) { return !why.empty(); });
    if (first == refusals.end()) return 0;
    if (first - refusals.begin() == launch().pe()) refuse_program(mine);
    leave_launch(kRefused);
    return kRefused;
  } catch (const weft::base::Error& error) {
    return end_without_launch(error);
  }
}

int weft_mpi_host_run(const weft_mpi_host_program* program) {
  if (program->revision != WEFT_MPI_HOST_REVISION) {
    return refuse_program(
        "weft-mpi-host and libmpi_abi.so.1 are of different versions of Weft; install Weft again");
  }
  if (!Fiber::are_available()) {
    return refuse_program(
        "this build of Weft has no virtual ranks, because Boost.Context was not found; install it and build "
        "Weft "
        "again, or start the program without --ranks");
  }
  try {
    read_balance_settings();
    // Never destroyed: what the program has left may refer to the state of its ranks. The first one, which is the only one outside of tests,
    // has a fixed place in the library: frames of ranks refer to it, also in the process to which they move.
    alignas(HostedRanks) static std::byte place[sizeof(HostedRanks)];
    static bool is_first = true;
    auto* const ranks = std::exchange(is_first, false) ? new (place)
                                                             HostedRanks(*program, hosted_rank_hooks())
                                                       : new HostedRanks(*program, hosted_rank_hooks());
    if (const Error error = resume_job(); !error.ok()) return refuse_program(error.text);
    const int code = ranks->run();
    // A failure is a death for the launcher, which ends the job with that code. Others may compute for long before they start MPI.
    if (code == 0) leave_launch(code);
    return code;
  } catch (const weft::base::Error& error) {
    return end_without_launch(error);
  }
}

int weft_mpi_host_current_rank(void) {
  const HostedRank* const rank = HostedRanks::running();
  return rank == nullptr ? -1 : rank->number();
}

int weft_mpi_host_program_rank(void) {
  const HostedRank* const rank = HostedRanks::running_program();
  return rank == nullptr ? -1 : rank->number();
}

void weft_mpi_host_exit_rank(int code) { HostedRanks::running()->end(code); }

}  // extern "C"
