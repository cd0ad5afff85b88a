// Bundles that a peer makes up, and bundles that overtake one another.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "models/chare/bundles/bundle_format.h"
#include "tests/support/errors.h"
#include "tests/support/in_process_job.h"
#include "tests/unit/chare/bundles/bundled_log.h"
#include "tests/unit/chare/chare_handler.h"

namespace weft::chare::bundle_testing {
namespace {

using test_support::says;

RunHeader notes_of(const Logs& logs, std::uint16_t num_calls) {
  return {logs.collection().id(), EntryMethod<BundledLog, &BundledLog::note>::info().id, 0,
          sizeof(std::uint64_t), num_calls};
}

// Sends a made-up message to PE 1.
std::string failure_of(const std::function<runtime::MessagePtr(Runtime&, const Logs&)>& make) {
  testing::InProcessJob job(2, "loopback");
  return job.run([&](Runtime& runtime) -> Task<> {
    const auto logs = Logs::create(runtime, {6});
    co_await logs.created();
    runtime.send(1, make(runtime, logs));
    co_await runtime.quiescence();
    co_await runtime.sleep(0);
  });
}

constexpr std::uint64_t kElement = 5;  // on PE 1

TEST(BundleClaims, EndTheJobInWords) {
  struct Case {
    const char* sentence;
    std::function<runtime::MessagePtr(Runtime&, const Logs&)> make;
  };
  const auto pack = [](Runtime& runtime, const auto&... values) {
    return runtime::Message::pack(runtime, bundle_handler(runtime), values...);
  };
  const std::vector<Case> cases = {
      {"a bundle of calls of 4 bytes",
       [&](Runtime& runtime, const Logs&) { return pack(runtime, std::uint32_t{0}); }},
      {"a bundle of calls of 8016 bytes",
       [&](Runtime& runtime, const Logs&) {
         return pack(runtime, BundleHeader{}, std::vector<char>(kBundleBytes));
       }},
      {"from PE 7 of 2",
       [&](Runtime& runtime, const Logs&) {
         auto message = pack(runtime, BundleHeader{});
         message->envelope().source_pe = 7;
         return message;
       }},
      {"bundle 1048577 of calls arrived from PE 0, where bundle 0 is the next",
       [&](Runtime& runtime, const Logs&) { return pack(runtime, BundleHeader{1'048'577}); }},
      {"in its last 10 bytes",
       [&](Runtime& runtime, const Logs&) {
         return pack(runtime, BundleHeader{}, std::uint64_t{1}, std::uint16_t{2});
       }},
      {"has 2 calls of 16 bytes in its last 40 bytes",
       [&](Runtime& runtime, const Logs& logs) {
         return pack(runtime, BundleHeader{}, notes_of(logs, 2), kElement, std::uint64_t{1});
       }},
      {"has 65535 calls of 4294967303 bytes",
       [&](Runtime& runtime, const Logs& logs) {
         RunHeader run = notes_of(logs, 0xffff);
         run.argument_bytes = ~std::uint32_t{0};
         return pack(runtime, BundleHeader{}, run, kElement, std::uint64_t{1});
       }},
      {"has 1 calls of 20 bytes in its last 40 bytes",  // they name an unknown PE
       [&](Runtime& runtime, const Logs& logs) {
         RunHeader run = notes_of(logs, 1);
         run.named = NamedPe{3};
         return pack(runtime, BundleHeader{}, run, kElement, std::uint64_t{1});
       }},
      {"a bundle from PE 0 names the PEs of its calls, and this PE has no grid",
       [&](Runtime& runtime, const Logs& logs) {
         RunHeader run = notes_of(logs, 1);
         run.named = NamedPe::kSource;
         return pack(runtime, BundleHeader{}, run, kElement, PeNumber{0}, std::uint64_t{1});
       }},
      {"a bundle from PE 0 is to be passed on, and this PE has no grid",
       [&](Runtime& runtime, const Logs& logs) {
         auto message =
             runtime::Message::pack(runtime, static_cast<runtime::HandlerId>(bundle_handler(runtime) + 1),
                                    BundleHeader{}, notes_of(logs, 1), kElement, std::uint64_t{1});
         message->envelope().flags |= runtime::kUrgentFlag;
         return message;
       }},
      {"does not fit that collection",
       [&](Runtime& runtime, const Logs& logs) {
         RunHeader run = notes_of(logs, 1);
         run.entry = 1'000'000;
         return pack(runtime, BundleHeader{}, run, kElement, std::uint64_t{1});
       }},
      {"is for element 6 of a collection of shape",
       [&](Runtime& runtime, const Logs& logs) {
         return pack(runtime, BundleHeader{}, notes_of(logs, 1), std::uint64_t{6}, std::uint64_t{1});
       }},
      {"ends too early",
       [&](Runtime& runtime, const Logs& logs) {
         RunHeader run = notes_of(logs, 1);
         run.argument_bytes = 4;
         return pack(runtime, BundleHeader{}, run, kElement, std::uint32_t{1});
       }},
  };
  for (const Case& one : cases) EXPECT_TRUE(says(failure_of(one.make), one.sentence));
}

TEST(BundleClaims, ABundleThatComesTwiceEndsTheJob) {
  EXPECT_TRUE(says(failure_of([](Runtime& runtime, const Logs&) {
                     runtime.send(1,
                                  runtime::Message::pack(runtime, bundle_handler(runtime), BundleHeader{1}));
                     return runtime::Message::pack(runtime, bundle_handler(runtime), BundleHeader{1});
                   }),
                   "bundle 1 of calls arrived"));
}

TEST(BundleClaims, BundlesThatWaitTakeABoundedMemory) {
  constexpr std::size_t kBytes = kBundleBytes - 2 * sizeof(std::uint64_t);
  constexpr std::uint64_t kFitting = (std::size_t{64} << 20) / kBundleBytes;
  EXPECT_TRUE(says(failure_of([&](Runtime& runtime, const Logs&) {
                     const auto make = [&](std::uint64_t number) {
                       return runtime::Message::pack(runtime, bundle_handler(runtime), BundleHeader{number},
                                                     std::vector<char>(kBytes));
                     };
                     for (std::uint64_t i = 1; i <= kFitting; ++i) runtime.send(1, make(i));
                     return make(kFitting + 1);
                   }),
                   "bundle 8389 of calls arrived from PE 0, where bundle 0 is the next and 67104000 bytes"));
}

TEST(BundleClaims, ABundleThatHasOvertakenAnotherWaitsForIt) {
  testing::InProcessJob job(2, "loopback");
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    const auto logs = Logs::create(runtime, {6});
    co_await logs.created();
    for (const std::uint64_t number : {3, 1, 2, 0, 4}) {
      runtime.send(1, runtime::Message::pack(runtime, bundle_handler(runtime), BundleHeader{number},
                                             notes_of(logs, 1), kElement, number));
      for (int i = 0; i < 10; ++i) co_await yield_now(runtime);
    }
    co_await runtime.quiescence();
    EXPECT_EQ(co_await logs[5].call<&BundledLog::all_numbers>(), numbers_below(5));
  }),
            "");
}

// What it waits for never arrives. It counts as under way until then.
TEST(BundleClaims, ABundleThatWaitsIsDroppedWhenItsPeIsLost) {
  auto job = testing::InProcessJob::outliving_losses(2);
  Runtime& lost = job.runtime(1);
  const Runtime& runtime = job.runtime(0);
  for (int i = 0; i < 100; ++i) {
    for (int pe = 0; pe < 2; ++pe) job.runtime(pe).step();
  }
  const std::uint64_t processed = runtime.processed();
  lost.send(0, runtime::Message::pack(lost, bundle_handler(lost), BundleHeader{1}));
  ASSERT_EQ(job.run_until([&] { return runtime.processed() > processed; }), "");
  EXPECT_EQ(runtime.processed(), processed + 1);
  job.lose(1);
  ASSERT_EQ(job.run_until([&] { return runtime.losses().is_lost(1); }), "");
  EXPECT_EQ(runtime.processed(), processed + 2);
}

}  // namespace
}  // namespace weft::chare::bundle_testing
