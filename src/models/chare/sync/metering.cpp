// Settings of the runtime's meter that the options of load balancing turn on: messages are counted, and times leave out waits
// for a processor. Both cost time, so a job has them only if a step needs them.
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "models/chare/elements/parts.h"
#include "models/chare/sync/sync_points.h"
#include "runtime/processor_wait.h"

namespace weft::chare {

std::vector<runtime::ModelOption> SyncPoints::variables() {
  std::vector<runtime::ModelOption> variables = options_.variables();
  for (runtime::ModelOption& variable : variables) {
    variable.set = [this, set = std::move(variable.set)](std::string_view value) {
      const bool is_known = set(value);
      runtime().meter().set_counts_messages(options_.reads_communication());
      return is_known;
    };
  }
  return variables;
}

void SyncPoints::leave_out_waits() {
  if (options_.counts_waits || std::exchange(leaves_out_waits_, true)) return;
  if (std::shared_ptr<runtime::ProcessorWait> wait = runtime::ProcessorWait::open()) {
    runtime().meter().leave_out_waits([wait = std::move(wait)] { return wait->waited(); });
  }
}

}  // namespace weft::chare
