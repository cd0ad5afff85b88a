#include "job/resizing.h"

#include <string>
#include <utility>

#include "weft/chare/chares.h"

#include "models/chare/checkpoint/checkpoints.h"

namespace weft::job {

void let_resize(machine::Bootstrap& bootstrap, runtime::Runtime& runtime,
                checkpoint_files::ProtectedState& state) {
  machine::Resizing* const resizing = bootstrap.resizing();
  state.resize_plan = [resizing] {
    return checkpoint_files::ProtectedState::ResizePlan{resizing->plan, resizing->num_pes, resizing->leaving};
  };
  state.refuse_resize = [&bootstrap](std::uint32_t plan, const std::string& why) {
    bootstrap.refuse_resize(plan, why);
  };
  state.ask_for_resize = [&bootstrap](std::uint32_t num_pes) { return bootstrap.ask_for_resize(num_pes); };
  chare::Checkpoints& checkpoints = runtime.model<chare::Chares>().checkpoints();
  resizing->on_change = [resizing, &checkpoints] {
    while (!resizing->answers.empty()) {
      const std::string refusal = std::move(resizing->answers.front());
      resizing->answers.pop_front();
      checkpoints.resize_answered(refusal);
    }
    checkpoints.resize_plan_changed();
  };
}

}  // namespace weft::job
