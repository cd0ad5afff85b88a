// Which threads of a process may make its program go on.
#include "runtime/waits/program_threads.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <memory>
#include <thread>

namespace weft::runtime {
namespace {

// A thread takes a moment to get where it waits.
bool comes_true(bool expected) {
  for (int i = 0; i < 1'000'000; ++i) {
    if (program_threads_may_act() == expected) return true;
    std::this_thread::yield();
  }
  return false;
}

// It waits for a byte that end() writes.
class ReadingThread {
 public:
  ReadingThread() {
    EXPECT_EQ(pipe(ends_.data()), 0);
    thread_ = std::thread([this] {
      char byte = 0;
      EXPECT_EQ(read(ends_[0], &byte, 1), 1);
    });
  }
  ~ReadingThread() {
    EXPECT_EQ(write(ends_[1], "x", 1), 1);
    thread_.join();
    for (const int end : ends_) close(end);
  }
  ReadingThread(const ReadingThread&) = delete;
  ReadingThread& operator=(const ReadingThread&) = delete;

 private:
  std::array<int, 2> ends_{};
  std::thread thread_;
};

TEST(ProgramThreads, AThreadThatWaitsForAnotherOneDoesNotAct) {
  std::atomic<int> is_over = 0;
  std::thread thread([&] { is_over.wait(0); });
  EXPECT_TRUE(comes_true(false));
  is_over.store(1);
  is_over.notify_one();
  thread.join();
}

TEST(ProgramThreads, AThreadThatReadsMayAct) {
  EXPECT_TRUE(comes_true(false));
  {
    const ReadingThread thread;
    EXPECT_TRUE(comes_true(true));
    EXPECT_TRUE(program_threads_may_act());
  }
  EXPECT_TRUE(comes_true(false));
}

TEST(ProgramThreads, AThreadThatComputesMayAct) {
  std::atomic<bool> is_over = false;
  std::thread thread([&] {
    while (!is_over.load()) {
    }
  });
  EXPECT_TRUE(comes_true(true));
  is_over.store(true);
  thread.join();
}

TEST(ProgramThreads, WeftsOwnThreadsDoNotCount) {
  std::unique_ptr<ReadingThread> thread;
  {
    const OwnThreadsBegin scope;
    thread = std::make_unique<ReadingThread>();
  }
  EXPECT_TRUE(comes_true(false)) << "a thread that was joined may end a moment later";
}

}  // namespace
}  // namespace weft::runtime
