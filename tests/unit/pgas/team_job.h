// A whole job in one process whose PEs have the PGAS model, and one coroutine for each PE.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/pgas/pgas.h"
#include "weft/pgas/teams.h"

#include "models/pgas/teams.h"
#include "tests/support/in_process_job.h"

namespace weft::testing {

class TeamJob : public InProcessJob {
 public:
  // `host_of_pe`: see RuntimeOptions.
  explicit TeamJob(int num_pes, std::string_view machine = "loopback", std::vector<int> host_of_pe = {})
      : InProcessJob(num_pes, machine, options_of(std::move(host_of_pe))) {
    for (int pe = 0; pe < num_pes; ++pe) {
      runtime(pe).install<pgas::Pgas>();
    }
  }

  pgas::World& world(int pe) { return pgas::world_of(runtime(pe)); }

  // Runs `main` on every PE until all have returned. Returns what failed first, empty if nothing did.
  std::string run_on_all(const std::function<Task<>(pgas::World&)>& main) {
    num_done_ = 0;
    for (int pe = 0; pe < num_pes(); ++pe)
      runtime(pe).spawn(counted(world(pe), main), "main on PE " + std::to_string(pe));
    return run_until([this] { return num_done_ == num_pes(); });
  }

 private:
  static runtime::RuntimeOptions options_of(std::vector<int> host_of_pe) {
    runtime::RuntimeOptions options;
    options.host_of_pe = std::move(host_of_pe);
    return options;
  }
  Task<> counted(pgas::World& world, const std::function<Task<>(pgas::World&)>& main) {
    co_await runtime::yield_now(world.runtime());
    co_await main(world);
    ++num_done_;
  }

  int num_done_ = 0;
};

// The first of the handlers of teams, in the order of Teams.
inline runtime::HandlerId first_team_handler(const pgas::World& world) {
  return static_cast<runtime::HandlerId>(world.state()->call_handler - pgas::TeamTable::kNumHandlers);
}

// Why that failed; "nothing" if it did not.
template <class T>
Task<std::string> failure_of(Future<T> future) {
  try {
    co_await future;
  } catch (const base::RemoteError& error) {
    co_return error.remote_message();
  } catch (const std::exception& error) {
    co_return error.what();
  }
  co_return "nothing";
}

}  // namespace weft::testing
