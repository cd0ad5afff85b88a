#include "models/pgas/model.h"

#include <cstddef>

#include "weft/runtime/registry.h"

#include "base/format.h"

namespace weft::pgas {

Pgas::Pgas(runtime::Runtime& runtime, const runtime::ModelRange& range)
    : teams_(runtime, range.first_handler,
             static_cast<runtime::HandlerId>(range.first_handler + TeamTable::kNumHandlers)),
      calls_(runtime, teams_,
             static_cast<runtime::HandlerId>(range.first_handler + TeamTable::kNumHandlers)) {}

std::vector<std::pair<std::string, std::string>> Pgas::fingerprint() const {
  return {runtime::registry_fact<RpcInfo>("functions that PEs call")};
}

std::vector<std::string> Pgas::report() const {
  std::vector<std::string> lines;
  const std::size_t for_teams = teams_.num_waiting();
  if (for_teams > 0)
    lines.push_back(base::format("{} messages are for teams that this PE has never made", for_teams));
  const std::size_t for_objects = teams_.num_waiting_for_objects();
  if (for_objects > 0)
    lines.push_back(
        base::format("{} calls are for distributed objects that this PE has never made", for_objects));
  return lines;
}

World& world_of(runtime::Runtime& runtime) { return runtime.model<Pgas>().world(); }

}  // namespace weft::pgas
