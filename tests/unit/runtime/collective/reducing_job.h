// Jobs in one process that reduce without chares.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/collective/reductions.h"
#include "runtime/message/handlers.h"
#include "tests/support/in_process_job.h"

namespace weft::runtime {

inline constexpr ScopeId kScope{0, kFirstModelScope};
inline constexpr HandlerId kResultHandler = kNumHandlers - 1;

inline RuntimeOptions options_of(const std::vector<int>& host_of_pe) {
  RuntimeOptions options;
  options.host_of_pe = host_of_pe;
  return options;
}

// A job whose PEs note the results of reductions.
struct ReducingJob {
  explicit ReducingJob(int num_pes, std::uint64_t more = 0, const char* machine = "loopback",
                       Route route = Route::kExchange, const std::vector<int>& host_of_pe = {})
      : job(num_pes, machine, options_of(host_of_pe)), results(static_cast<std::size_t>(num_pes)) {
    for (int pe = 0; pe < num_pes; ++pe) {
      job.runtime(pe).set_handler(
          kResultHandler,
          [](void* context, MessagePtr message) {
            std::int64_t sum = 0;
            message->unpacker() | sum;
            static_cast<std::vector<std::int64_t>*>(context)->push_back(sum);
          },
          &results[static_cast<std::size_t>(pe)]);
      job.runtime(pe).reductions().open(kScope, static_cast<std::uint64_t>(num_pes) + more, 1, false, route);
    }
  }
  void contribute(int pe, std::uint64_t sequence, std::int64_t value, std::uint8_t flags = kBroadcastFlag) {
    Target target;
    target.handler = kResultHandler;
    target.flags = flags;
    job.runtime(pe).reductions().contribute(kScope, sequence, static_cast<std::uint64_t>(pe), Reducer::kSum,
                                            value_combiner<std::int64_t>(Reducer::kSum), base::pack(value),
                                            target);
  }
  // The contributor moves, having contributed to the reductions before `next`.
  void move(int from_pe, int to_pe, std::uint64_t next) {
    job.runtime(to_pe).reductions().contributor_arrived(kScope, next);
    job.runtime(from_pe).reductions().contributor_left(kScope, 0);
  }
  // Runs until nothing can happen any more.
  void settle() {
    int turns = 0;
    EXPECT_EQ(job.run_until([&] { return ++turns > 100; }), "");
  }
  std::size_t least_results() const {
    std::size_t least = results[0].size();
    for (const auto& one : results) least = std::min(least, one.size());
    return least;
  }

  testing::InProcessJob job;
  std::vector<std::vector<std::int64_t>> results;
};

}  // namespace weft::runtime
