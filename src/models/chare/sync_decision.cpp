// The decider of a collection's load balancing: it collects the loads of all elements, runs the strategy, and ends the step
// when all PEs have carried out their plans. sync.cpp has the protocol.
#include <cstdio>
#include <utility>

#include "weft/chare/chares.h"

#include "balance/load_file.h"
#include "base/format.h"
#include "models/chare/parts.h"
#include "models/chare/sync_messages.h"

namespace weft::chare {

std::string SyncPoints::on_loads(Collection& collection, std::uint64_t step, int from_pe, Pup& p) {
  LocalSync& here = local(collection);
  if (decider(collection) != runtime().pe()) return "another PE decides";
  if (step != here.decided_step) return base::format("loads of step {}, not {}", step, here.decided_step);
  std::vector<ReportedLoad> loads;
  p | loads;
  if (here.deciding == nullptr) {
    here.deciding =
        std::make_unique<SyncStep>(collection.id(), collection.shape().size(), runtime().num_pes());
  } else if (here.deciding->is_complete()) {
    return "all loads of the step are known";
  }
  if (const base::Status status = here.deciding->add(from_pe, loads); !status.ok()) {
    return std::string(status.message());
  }
  return here.deciding->is_complete() ? decide(collection) : std::string();
}

std::string SyncPoints::decide(Collection& collection) {
  LocalSync& here = local(collection);
  if (here.strategy == nullptr) {
    auto made = balance::make_strategy(options_.strategy);
    if (!made.ok()) return std::string(made.status().message());
    here.strategy = std::move(made).value();
  }
  const auto plans = here.deciding->decide(*here.strategy);
  if (!plans.ok()) return std::string(plans.status().message());
  if (!options_.record_path.empty()) record(collection);
  for (std::size_t pe = 0; pe < plans.value().size(); ++pe) {
    const PlanOfPe& plan = plans.value()[pe];
    if (plan.is_empty()) continue;
    runtime().send(static_cast<int>(pe),
                   make(collection, here.decided_step, SyncKind::kPlan, plan.num_arrivals, plan.moves));
  }
  if (here.deciding->is_done()) end_step(collection);
  return {};
}

void SyncPoints::record(const Collection& collection) {
  const std::string name = record_file_name(options_.record_path, runtime().pe(), ++num_recorded_);
  const base::Status status =
      balance::write_load_file(name, local(const_cast<Collection&>(collection)).deciding->snapshot());
  if (!status.failed()) return;
  std::fputs(
      base::format("weft: PE {}: the loads are not recorded any more: {}\n", runtime().pe(), status.message())
          .c_str(),
      stderr);
  options_.record_path.clear();
}

std::string SyncPoints::on_done(Collection& collection, std::uint64_t step, int from_pe, Pup& p) {
  LocalSync& here = local(collection);
  std::uint64_t moves = 0;
  std::uint64_t bytes_moved = 0;
  p | moves | bytes_moved;
  if (here.deciding == nullptr || !here.deciding->is_complete() || step != here.decided_step) {
    return base::format("no moves of step {} are under way", step);
  }
  if (const base::Status status = here.deciding->done(from_pe, moves, bytes_moved); !status.ok()) {
    return std::string(status.message());
  }
  if (here.deciding->is_done()) end_step(collection);
  return {};
}

void SyncPoints::end_step(Collection& collection) {
  LocalSync& here = local(collection);
  const std::uint64_t step = here.decided_step++;
  const std::unique_ptr<SyncStep> ended = std::move(here.deciding);
  chares_.send_to_all(make(collection, step, SyncKind::kResume));
  if (!options_.is_verbose) return;
  const StepReport report{.collection = collection.name(),
                          .step = step + 1,
                          .strategy = std::string(here.strategy->name()),
                          .planned = ended->summary(),
                          .moves = ended->moves(),
                          .bytes_moved = ended->bytes_moved(),
                          .decision_s = ended->decision_s(),
                          .whole_s = ended->elapsed_s()};
  std::fputs(report.text().c_str(), stderr);
}

}  // namespace weft::chare
