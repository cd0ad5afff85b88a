// Teams and the calls between their members on one PE: the part of the PGAS model behind weft/pgas/teams.h. Threads: the PE's.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "weft/runtime/runtime.h"

#include "models/pgas/rpc/calls.h"
#include "models/pgas/team/team_table.h"

namespace weft::pgas {

class Teams {
 public:
  static constexpr runtime::HandlerId kNumHandlers = TeamTable::kNumHandlers + Calls::kNumHandlers;

  Teams(runtime::Runtime& runtime, runtime::HandlerId first_handler);

  World& world() { return table_.world(); }
  // For the model's functions of these names.
  std::vector<std::pair<std::string, std::string>> fingerprint() const;
  std::vector<std::string> report() const;

 private:
  TeamTable table_;
  Calls calls_;
};

}  // namespace weft::pgas
