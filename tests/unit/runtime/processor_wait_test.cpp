#include "runtime/processor_wait.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

namespace weft::runtime {
namespace {

// Two threads of one processor: each of them waits while the other one runs.
TEST(ProcessorWait, IsTheTimeInWhichOtherThreadsRun) {
  cpu_set_t processors;
  ASSERT_EQ(sched_getaffinity(0, sizeof processors, &processors), 0);
  int one = 0;
  while (!CPU_ISSET(one, &processors)) ++one;
  cpu_set_t only_one;
  CPU_ZERO(&only_one);
  CPU_SET(one, &only_one);

  std::atomic<bool> is_over = false;
  std::chrono::nanoseconds waited{};
  bool is_known = false;
  std::thread measured([&] {
    sched_setaffinity(0, sizeof only_one, &only_one);
    const auto wait = ProcessorWait::open();
    is_known = wait != nullptr;
    if (!is_known) return;
    const auto before = wait->waited();
    std::thread other([&] {
      sched_setaffinity(0, sizeof only_one, &only_one);
      while (!is_over) {
      }
    });
    // Ends when the other thread has run: it shares the processor fairly.
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (waited < std::chrono::milliseconds(5) && std::chrono::steady_clock::now() < limit) {
      waited = wait->waited() - before;
    }
    is_over = true;
    other.join();
  });
  measured.join();
  if (!is_known) GTEST_SKIP() << "this kernel does not count waits for a processor";
  EXPECT_GE(waited, std::chrono::milliseconds(5));
}

TEST(ProcessorWait, DoesNotContainSleep) {
  const auto wait = ProcessorWait::open();
  if (wait == nullptr) GTEST_SKIP() << "this kernel does not count waits for a processor";
  // A busy host delays wake-ups, so the best of several sleeps counts.
  std::chrono::nanoseconds least = std::chrono::hours(1);
  for (int i = 0; i < 2000 && least >= std::chrono::milliseconds(5); ++i) {
    const auto before = wait->waited();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    least = std::min(least, wait->waited() - before);
  }
  EXPECT_LT(least, std::chrono::milliseconds(5));
}

}  // namespace
}  // namespace weft::runtime
