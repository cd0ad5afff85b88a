// The MPI model of one PE: the ranks on it.
//
// Threads: the PE's.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "weft/runtime/runtime.h"

#include "models/mpi/p2p/rank_engines.h"
#include "models/mpi/survival/survival.h"

namespace weft::mpi {

class Mpi final : public runtime::Model {
 public:
  static constexpr runtime::ModelNeeds kNeeds{
      .name = "mpi", .num_handlers = PointToPoint::kNumHandlers + Survival::kNumHandlers, .uses_tags = true};

  Mpi(runtime::Runtime& runtime, const runtime::ModelRange& range);

  // Places the ranks; without it, each PE has one. REQUIRES: called on all PEs with the same map, before the job starts.
  void place_ranks(RankMap map) { engines_.place(std::move(map)); }
  RankEngines& engines() { return engines_; }
  Survival& survival() { return survival_; }
  // WEFT_CHECK, the same on all PEs: check mode, see collective/reduction_check.h.
  bool checks_calls() const { return checks_calls_; }
  // The first rank of this PE.
  PointToPoint& point_to_point() { return *engines_.engines().front(); }

  // --- runtime::Model
  void close() override;
  std::vector<runtime::ModelOption> options() override;
  std::vector<std::pair<std::string, std::string>> fingerprint() const override;
  std::vector<std::string> report() const override;
  void list_waits(runtime::WaitList& waits) const override;

 private:
  std::string call_of(const PointToPoint& engine) const;

  runtime::Runtime& runtime_;
  RankEngines engines_;
  Survival survival_;
  bool checks_calls_ = false;
};

}  // namespace weft::mpi
