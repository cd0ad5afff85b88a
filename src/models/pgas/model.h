// The PGAS model of one PE. Threads: the PE's.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "weft/runtime/runtime.h"

#include "models/pgas/rpc/calls.h"
#include "models/pgas/team/team_table.h"

namespace weft::pgas {

class Pgas final : public runtime::Model {
 public:
  static constexpr runtime::ModelNeeds kNeeds{
      .name = "pgas", .num_handlers = TeamTable::kNumHandlers + Calls::kNumHandlers, .uses_tags = false};

  Pgas(runtime::Runtime& runtime, const runtime::ModelRange& range);

  World& world() { return teams_.world(); }

  // --- runtime::Model
  std::vector<std::pair<std::string, std::string>> fingerprint() const override;
  std::vector<std::string> report() const override;

 private:
  TeamTable teams_;
  Calls calls_;
};

}  // namespace weft::pgas
