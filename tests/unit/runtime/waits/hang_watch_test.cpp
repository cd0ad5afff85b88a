// What C++ chares wait for, as the report of all PEs names it.
#include "runtime/waits/hang_watch.h"

#include <gtest/gtest.h>

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "weft/weft.h"

#include "tests/support/in_process_job.h"

// Not in a namespace, which would be a part of its name.
struct WaitingCell : weft::Chare<WaitingCell> {
  double value = 0;

  weft::Task<> receive() {
    weft::Channel channel(*this, proxy()[1 - index()]);
    co_await channel.recv(std::span(&value, 1));
  }
  weft::Task<> reduce(int missing) {
    if (index() != missing) co_await allreduce(1, weft::Reducer::kSum);
  }
};

namespace weft::runtime {
namespace {

using testing::InProcessJob;

// Asks until the coroutines wait: each question gives the job turns.
Task<> expect_in_report(Runtime& runtime, std::vector<std::string> texts) {
  std::string report;
  for (int i = 0; i < 1000; ++i) {
    Future<std::string> answer(runtime);
    runtime.report_waits(true, [answer](const std::string& text) { answer.set(text); });
    report = co_await answer;
    bool has_all = true;
    for (const std::string& text : texts) has_all = has_all && report.find(text) != std::string::npos;
    if (has_all) co_return;
  }
  ADD_FAILURE() << report;
}

TEST(HangWatch, NamesTheReceivesOfACycle) {
  InProcessJob job(2);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto cells = Array<WaitingCell>::create(runtime, {2});
    cells.send<&WaitingCell::receive>();
    const std::vector<std::string> texts = {
        "cause: WaitingCell[0] waits for WaitingCell[1], and WaitingCell[1] for WaitingCell[0]",
        "WaitingCell[0].receive: a recv from WaitingCell[1], channel id 0"};
    co_await expect_in_report(runtime, texts);
  }),
            "");
}

TEST(HangWatch, NamesTheElementThatAReductionLacks) {
  InProcessJob job(2);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto cells = Array<WaitingCell>::create(runtime, {4});
    cells.send<&WaitingCell::reduce>(2);
    const std::vector<std::string> texts = {"reduction 0 of WaitingCell lacks WaitingCell[2]\n"};
    co_await expect_in_report(runtime, texts);
  }),
            "");
}

TEST(HangWatch, APeThatWaitsForItsCoreIsInTheReportOfAHang) {
  InProcessJob job(2);
  std::string report;
  job.runtime(0).report_waits(true, [&report](const std::string& text) { report = text; });
  // Longer than a PE has for its answer to a user.
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(1200);
  while (std::chrono::steady_clock::now() < end) job.runtime(0).step();
  EXPECT_EQ(report, "");
  EXPECT_EQ(job.run_until([&report] { return !report.empty(); }), "");
  EXPECT_EQ(report.find("no answer from PE"), std::string::npos) << report;
}

TEST(HangWatch, OnlyPe0Reports) {
  InProcessJob job(2);
  EXPECT_THROW(job.runtime(1).report_waits(true, [](const std::string&) {}), Error);
  EXPECT_THROW(job.runtime(1).watch_for_hangs({}), Error);
}

}  // namespace
}  // namespace weft::runtime
