// A whole job in one process whose PEs have the engine of collectives, and one group of members on them.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "collective/engine.h"
#include "collective/run.h"
#include "tests/support/in_process_job.h"

namespace weft::testing {

class CollectiveJob : public InProcessJob {
 public:
  static constexpr std::uint64_t kGroup = collective::group_number(collective::Owner::kTest, 5);

  // `pes`: of the members.
  CollectiveJob(int num_pes, std::vector<int> pes, std::string_view machine = "loopback",
                const runtime::RuntimeOptions& options = {})
      : InProcessJob(num_pes, machine, options), pes_(std::move(pes)) {
    for (int pe = 0; pe < num_pes; ++pe) engines_.push_back(&runtime(pe).model<collective::Engine>());
  }

  int size() const { return static_cast<int>(pes_.size()); }
  int pe_of(int place) const { return pes_[static_cast<std::size_t>(place)]; }
  collective::Engine& engine(int pe) { return *engines_[static_cast<std::size_t>(pe)]; }
  std::shared_ptr<collective::Group> group(int place) {
    return engine(pe_of(place)).group(kGroup, pes_, place);
  }

 private:
  std::vector<int> pes_;
  std::vector<collective::Engine*> engines_;
};

}  // namespace weft::testing
