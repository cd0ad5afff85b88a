// Another number of PEs: the program asks the launcher, whose plan the next protected state carries out.
#include <algorithm>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include "weft/base/error.h"
#include "weft/chare/chare.h"

#include "base/format.h"
#include "checkpoint/protected_state.h"
#include "models/chare/checkpoint/checkpoints.h"

namespace weft::chare {

using checkpoint_files::Manifest;
using checkpoint_files::ProtectedState;
using runtime::Future;

Future<> Checkpoints::resize(int num_pes) {
  if (protected_state_ == nullptr || !protected_state_->ask_for_resize) {
    throw base::Error(base::StatusCode::kUnsupported,
                      "resize needs a job that `weft run --on-loss restart` or `--on-loss shrink` has "
                      "started, on one host. The "
                      "launchers of PMIx, PMI and Slurm do not begin a job again: end it and start it from a "
                      "checkpoint, which any "
                      "number of PEs can restore");
  }
  if (num_pes < 1) {
    throw base::Error(base::StatusCode::kInvalidArgument,
                      base::format("resize({}): a job has at least one PE", num_pes));
  }
  base::check(protected_state_->ask_for_resize(static_cast<std::uint32_t>(num_pes)));
  Future<> answered(chares_.runtime());
  chares_.runtime().note_uncounted(answered);
  resizes_.push_back(answered);
  return answered;
}

void Checkpoints::resize_answered(const std::string& refusal) {
  if (resizes_.empty()) return;  // that of a PE that drains
  const Future<> answered = std::move(resizes_.front());
  resizes_.pop_front();
  if (refusal.empty()) {
    answered.set();
  } else {
    answered.set_error(std::make_exception_ptr(base::Error(base::StatusCode::kUnsupported, refusal)));
  }
}

void Checkpoints::resize_plan_changed() {
  // A state that was protected for a plan counts also if the launcher has made another one since.
  const bool waits = withdrawn_.state() != nullptr && !withdrawn_.is_ready();
  if (waits && protected_state_->resize_plan().number == 0) withdrawn_.set();
}

ProtectedState::ResizePlan Checkpoints::suitable_plan(const Manifest& manifest) {
  if (!protected_state_->resize_plan) return {};
  ProtectedState::ResizePlan plan = protected_state_->resize_plan();
  if (plan.number == 0 || plan.number == refused_plan_) return {};
  const auto refuse = [&](std::string_view why) {
    refused_plan_ = plan.number;  // which the launcher withdraws
    protected_state_->refuse_resize(plan.number, std::string(why));
    return ProtectedState::ResizePlan();
  };
  const auto num_pes = static_cast<std::size_t>(chares_.runtime().num_pes());
  const bool is_known =
      std::ranges::all_of(plan.leaving, [num_pes](std::uint32_t pe) { return pe < num_pes; });
  if (plan.num_pes == 0 || plan.leaving.size() >= num_pes || !is_known)
    return refuse("the plan names PEs that the job does not have");
  try {
    for (const auto& entry : manifest.collections) {
      static_cast<void>(shape_of(entry, num_pes, static_cast<int>(plan.num_pes)));
    }
  } catch (const std::exception& error) {  // a map of the program may throw what it likes
    return refuse(error.what());
  }
  return plan;
}

}  // namespace weft::chare
