#include "models/pgas/teams.h"

#include <cstddef>

#include "weft/runtime/registry.h"

#include "base/format.h"

namespace weft::pgas {

namespace {

runtime::HandlerId call_handler(runtime::HandlerId first_handler) {
  return static_cast<runtime::HandlerId>(first_handler + TeamTable::kNumHandlers);
}

}  // namespace

Teams::Teams(runtime::Runtime& runtime, runtime::HandlerId first_handler)
    : table_(runtime, first_handler, call_handler(first_handler)),
      calls_(runtime, table_, call_handler(first_handler)) {}

std::vector<std::pair<std::string, std::string>> Teams::fingerprint() const {
  return {runtime::registry_fact<RpcInfo>("functions that PEs call")};
}

std::vector<std::string> Teams::report() const {
  std::vector<std::string> lines;
  const std::size_t for_teams = table_.num_waiting();
  if (for_teams > 0)
    lines.push_back(base::format("{} messages are for teams that this PE has never made", for_teams));
  const std::size_t for_objects = table_.num_waiting_for_objects();
  if (for_objects > 0)
    lines.push_back(
        base::format("{} calls are for distributed objects that this PE has never made", for_objects));
  return lines;
}

}  // namespace weft::pgas
