// Jobs in one process that reduce large values without chares.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "weft/runtime/observer.h"
#include "weft/weft.h"

#include "runtime/collective/deferred_value.h"
#include "runtime/collective/large_merges.h"
#include "runtime/collective/reductions.h"
#include "runtime/message/handlers.h"
#include "tests/support/in_process_job.h"
#include "tests/unit/runtime/collective/reducing_job.h"

namespace weft::runtime {

using Doubles = std::vector<double>;

inline constexpr std::size_t kLargeCount = kLeastCutBytes / sizeof(double);

// The bytes of parts of large values that a PE sends.
struct PartCounter final : Observer {
  void message_sent(const MessageEvent& event) override {
    if (event.handler == kReductionCutHandler) ++parts;
    if (event.handler == kReductionRepeatHandler) ++repeats;
  }
  int parts = 0;
  int repeats = 0;
};

// The merges of another object, counted.
struct CountedMerges final : LargeMerges {
  explicit CountedMerges(LargeMerges& inner_in) : inner(inner_in) {}
  std::size_t least_bytes() const override { return inner.least_bytes(); }
  bool takes(ScopeId scope, std::uint64_t sequence, std::size_t size_bytes) const override {
    return inner.takes(scope, sequence, size_bytes);
  }
  void start(const LargeMerge& merge) override {
    ++started;
    inner.start(merge);
  }
  void close(ScopeId scope, bool others_may_send) override { inner.close(scope, others_may_send); }

  LargeMerges& inner;
  int started = 0;
};

// A job whose PEs note the packed results.
struct LargeJob {
  explicit LargeJob(const std::vector<std::uint64_t>& contributors, Route route = Route::kExchange,
                    const std::vector<int>& host_of_pe = {}, const char* machine = "loopback")
      : job(static_cast<int>(contributors.size()), machine, options_of(host_of_pe)),
        results(contributors.size()),
        counters(contributors.size()) {
    std::uint64_t total = 0;
    for (const std::uint64_t one : contributors) total += one;
    for (std::size_t pe = 0; pe < contributors.size(); ++pe) {
      Runtime& runtime = job.runtime(static_cast<int>(pe));
      runtime.set_observer(&counters[pe]);
      merges.push_back(std::make_unique<CountedMerges>(*runtime.reductions().large_merges()));
      runtime.reductions().set_large_merges(merges.back().get());
      runtime.set_handler(
          kResultHandler,
          [](void* context, MessagePtr message) {
            const auto bytes = message->payload_span();
            static_cast<std::vector<std::vector<std::byte>>*>(context)->emplace_back(bytes.begin(),
                                                                                     bytes.end());
          },
          &results[pe]);
      runtime.reductions().open(kScope, total, contributors[pe], false, route);
    }
  }
  ~LargeJob() {
    for (int pe = 0; pe < job.num_pes(); ++pe) {
      job.runtime(pe).set_observer(nullptr);
      job.runtime(pe).reductions().set_large_merges(&merges[static_cast<std::size_t>(pe)]->inner);
    }
  }
  LargeJob(const LargeJob&) = delete;
  LargeJob& operator=(const LargeJob&) = delete;

  void contribute(int pe, std::uint64_t sequence, const Combiner* combiner, std::span<const std::byte> value,
                  Reducer reducer = Reducer::kSum) {
    Target target;
    target.handler = kResultHandler;
    target.flags = static_cast<std::uint8_t>(target_pe < 0 ? kBroadcastFlag : 0);
    target.pe = static_cast<std::uint32_t>(std::max(target_pe, 0));
    job.runtime(pe).reductions().contribute(kScope, sequence, 0, reducer, combiner, value, target);
  }
  template <class T>
  void contribute(int pe, std::uint64_t sequence, const std::vector<T>& value,
                  Reducer reducer = Reducer::kSum) {
    contribute(pe, sequence, value_combiner<std::vector<T>>(reducer), base::pack(value), reducer);
  }
  std::string run(std::size_t num_results) {
    return job.run_until([&] {
      return std::ranges::all_of(results, [&](const auto& one) { return one.size() >= num_results; });
    });
  }
  // Runs until nothing can happen any more.
  void settle() {
    int turns = 0;
    EXPECT_EQ(job.run_until([&] { return ++turns > 300; }), "");
  }
  int num_merges() const {
    int sum = 0;
    for (const auto& one : merges) sum += one->started;
    return sum;
  }
  int num_parts() const {
    int sum = 0;
    for (const PartCounter& one : counters) sum += one.parts;
    return sum;
  }
  int num_repeats() const {
    int sum = 0;
    for (const PartCounter& one : counters) sum += one.repeats;
    return sum;
  }

  testing::InProcessJob job;
  std::vector<std::vector<std::vector<std::byte>>> results;
  std::vector<PartCounter> counters;
  std::vector<std::unique_ptr<CountedMerges>> merges;
  int target_pe = -1;  // of contributions; negative: all
};

// Without LargeMerges, as on several hosts.
struct CutJob : LargeJob {
  explicit CutJob(const std::vector<std::uint64_t>& contributors, Route route = Route::kExchange,
                  const std::vector<int>& host_of_pe = {}, const char* machine = "loopback")
      : LargeJob(contributors, route, host_of_pe, machine) {
    for (int pe = 0; pe < job.num_pes(); ++pe) job.runtime(pe).reductions().set_large_merges(nullptr);
  }
};

inline std::vector<std::uint64_t> one_on_each(int num_pes) {
  return std::vector<std::uint64_t>(static_cast<std::size_t>(num_pes), 1);
}

}  // namespace weft::runtime
