// The PGAS model of one PE: global memory (weft/rma/global_memory.h) and teams (weft/pgas/teams.h).
//
//   weft::pgas::Pgas& pgas = runtime.model<weft::pgas::Pgas>();
//
// Threads: the PE's.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/pgas/memory.h"
#include "weft/runtime/model.h"
#include "weft/runtime/runtime.h"

namespace weft::pgas {

class Teams;
class World;

class Pgas final : public runtime::Model, public GlobalMemory {
 public:
  static constexpr runtime::HandlerId kNumTeamHandlers = 2;
  static constexpr runtime::ModelNeeds kNeeds{
      .name = "pgas", .num_handlers = GlobalMemory::kNumHandlers + kNumTeamHandlers, .uses_tags = false};

  Pgas(runtime::Runtime& runtime, const runtime::ModelRange& range);
  ~Pgas() override;

  // The team of all PEs, see weft/pgas/world.h.
  World& world();

  // --- runtime::Model
  void close() override;
  std::vector<runtime::ModelOption> options() override;
  std::vector<std::pair<std::string, std::string>> fingerprint() const override;
  std::vector<std::string> report() const override;
  bool describe_operation(const runtime::OperationState& operation, runtime::Wait& wait,
                          runtime::WaitList& waits) const override;

 private:
  std::unique_ptr<Teams> teams_;
};

}  // namespace weft::pgas
