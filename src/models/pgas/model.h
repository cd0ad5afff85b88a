// The PGAS model of one PE. Threads: the PE's.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "weft/runtime/runtime.h"

#include "models/pgas/teams.h"

namespace weft::pgas {

class Pgas final : public runtime::Model {
 public:
  static constexpr runtime::ModelNeeds kNeeds{
      .name = "pgas", .num_handlers = Teams::kNumHandlers, .uses_tags = false};

  Pgas(runtime::Runtime& runtime, const runtime::ModelRange& range);

  World& world() { return teams_.world(); }

  // --- runtime::Model
  std::vector<std::pair<std::string, std::string>> fingerprint() const override {
    return teams_.fingerprint();
  }
  std::vector<std::string> report() const override { return teams_.report(); }

 private:
  Teams teams_;
};

}  // namespace weft::pgas
