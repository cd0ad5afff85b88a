// The decider of a collection's load balancing: it collects the loads of all elements, runs the strategy, and ends the step
// when all PEs have carried out their plans. sync.cpp has the protocol.
#include <cstdio>
#include <exception>
#include <utility>

#include "weft/base/error.h"
#include "weft/chare/chares.h"

#include "balance/load_file.h"
#include "base/format.h"
#include "models/chare/elements/parts.h"
#include "models/chare/sync/local_sync.h"
#include "models/chare/sync/messages.h"
#include "models/chare/sync/sync_points.h"

namespace weft::chare {

base::Status SyncPoints::on_loads(Collection& collection, std::uint64_t step, int from_pe, Pup& p) {
  LocalSync& here = local(collection);
  if (decider(collection) != runtime().pe()) return misfit("another PE decides");
  if (step != here.decided_step) return misfit("loads of step {}, not {}", step, here.decided_step);
  double background_s = 0;
  std::uint64_t has_set_loads = 0;
  Pace pace;
  std::vector<ReportedLoad> loads;
  std::vector<ReportedMessages> messages;
  p | background_s | has_set_loads | pace | loads | messages;
  if (here.deciding == nullptr) {
    here.deciding =
        std::make_unique<SyncStep>(collection.id(), collection.shape().size(), runtime().num_pes());
  } else if (here.deciding->is_complete()) {
    return misfit("all loads of the step are known");
  }
  if (base::Status status = here.deciding->add(from_pe, loads); !status.ok()) return status;
  if (base::Status status = here.deciding->add_messages(loads, messages); !status.ok()) return status;
  if (base::Status status = here.deciding->add_pace(from_pe, pace); !status.ok()) return status;
  if (has_set_loads > 1) return misfit("loads with a flag of {}", has_set_loads);
  if (has_set_loads == 1) here.deciding->ignore_background();
  if (base::Status status = know_background(collection, from_pe, background_s); !status.ok()) return status;
  here.empty_reports.erase(from_pe);
  return here.deciding->is_complete() ? decide(collection) : base::Status();
}

base::Status SyncPoints::decide(Collection& collection) {
  LocalSync& here = local(collection);
  const std::string what = base::format("the load-balancing strategy '{}' in step {} of {}",
                                        options_.strategy, here.decided_step + 1, collection.name());
  use_empty_reports(here);
  if (!here.background_of_pe_s.empty()) here.deciding->set_background(here.background_of_pe_s);
  std::vector<PlanOfPe> plans;
  try {
    if (here.strategy == nullptr) here.strategy = options_.make_strategy();
    auto decided = here.deciding->decide(*here.strategy);
    if (!decided.ok()) {
      runtime().fail(
          base::format("PE {}: {} is wrong: {}", runtime().pe(), what, decided.status().message()));
      return {};
    }
    plans = std::move(decided).value();
  } catch (...) {
    runtime().fail_unawaited(std::current_exception(), what);
    return {};
  }
  record(here.deciding->snapshot());
  for (std::size_t pe = 0; pe < plans.size(); ++pe) {
    const PlanOfPe& plan = plans[pe];
    if (plan.is_empty()) continue;
    runtime().send(static_cast<int>(pe),
                   make(collection, here.decided_step, SyncKind::kPlan, plan.num_arrivals, plan.moves));
  }
  if (here.deciding->is_done()) end_step(collection);
  return {};
}

void SyncPoints::record(const balance::Snapshot& snapshot) {
  if (options_.record_path.empty() || records_no_more_) return;
  const std::string name = record_file_name(options_.record_path, runtime().pe(), ++num_recorded_);
  const base::Status status = balance::write_load_file(name, snapshot);
  if (!status.failed()) return;
  std::fputs(
      base::format("weft: PE {}: the loads are not recorded any more: {}\n", runtime().pe(), status.message())
          .c_str(),
      stderr);
  records_no_more_ = true;
}

base::Status SyncPoints::on_done(Collection& collection, std::uint64_t step, int from_pe, Pup& p) {
  LocalSync& here = local(collection);
  if (here.deciding == nullptr || !here.deciding->is_complete() || step != here.decided_step) {
    return misfit("no moves of step {} are under way", step);
  }
  if (base::Status status = here.deciding->done(from_pe, p); !status.ok()) return status;
  if (here.deciding->is_done()) end_step(collection);
  return {};
}

void SyncPoints::end_step(Collection& collection) {
  LocalSync& here = local(collection);
  const std::uint64_t step = here.decided_step++;
  const std::unique_ptr<SyncStep> ended = std::move(here.deciding);
  const std::unique_ptr<DistributedStep> counted = std::move(here.counting);
  chares_.parts_->send_to_all(make(collection, step, SyncKind::kResume));
  if (!options_.is_verbose) return;
  const StepReport report = counted == nullptr
                                ? ended->report(collection.name(), step + 1, here.strategy->name())
                                : counted->report(collection.name(), step + 1, options_.strategy);
  std::fputs(report.text().c_str(), stderr);
}

}  // namespace weft::chare
