#include "models/mpi/threads/call_lock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace weft::mpi {
namespace {

CallLock& lock_of_test() { return CallLock::of_process(); }

TEST(CallLock, IsHeldAsOftenAsItIsEntered) {
  CallLock& lock = lock_of_test();
  EXPECT_FALSE(lock.is_mine());
  lock.enter();
  lock.enter();
  lock.leave();
  EXPECT_TRUE(lock.is_mine());
  lock.leave();
  EXPECT_FALSE(lock.is_mine());
  lock.leave();  // no effect
  EXPECT_EQ(lock.release(), 0);
}

TEST(CallLock, IsGivenUpWithAllHolds) {
  CallLock& lock = lock_of_test();
  lock.enter();
  lock.enter();
  const int holds = lock.release();
  EXPECT_EQ(holds, 2);
  bool was_free = false;
  std::thread([&] {
    lock.enter();
    was_free = true;
    lock.leave();
  }).join();
  EXPECT_TRUE(was_free);
  lock.take_back(holds);
  lock.leave();
  EXPECT_TRUE(lock.is_mine());
  lock.leave();
  EXPECT_FALSE(lock.is_mine());
}

// One variable without protection of its own, changed by all threads. `polls`: as with processors of their own.
void count_in_threads(bool polls) {
  constexpr int kThreads = 6;
  constexpr int kRounds = 20'000;
  CallLock& lock = lock_of_test();
  lock.set_polls(polls);
  long count = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < kRounds; ++round) {
        lock.enter();
        ++count;
        if (round % 64 == 0) lock.pass_on();
        lock.leave();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, long{kThreads} * kRounds);
  EXPECT_FALSE(lock.is_wanted());
  lock.set_polls(false);
}

TEST(CallLock, LetsOneThreadInAtATime) { count_in_threads(false); }
TEST(CallLock, LetsOneThreadInAtATimeIfThreadsPoll) { count_in_threads(true); }

// A thread that takes the lock again and again ends when the other one has had it.
void take_until_another_has_had_it(bool polls, bool offers) {
  CallLock& lock = lock_of_test();
  lock.set_polls(polls);
  lock.enter();
  bool has_had_it = false;
  std::thread other([&] {
    lock.enter();
    has_had_it = true;
    lock.leave();
  });
  while (!has_had_it) {
    if (offers) lock.offer();
    lock.leave();
    lock.enter();
  }
  lock.leave();
  other.join();
  EXPECT_FALSE(lock.is_wanted());
  lock.set_polls(false);
}

TEST(CallLock, IsFair) { take_until_another_has_had_it(false, false); }
TEST(CallLock, IsFairIfThreadsPoll) { take_until_another_has_had_it(true, false); }
TEST(CallLock, IsFairIfItIsOffered) { take_until_another_has_had_it(true, true); }

TEST(CallLock, IsPassedOnToAThreadThatWantsIt) {
  CallLock& lock = lock_of_test();
  lock.enter();
  bool has_had_it = false;
  std::thread other([&] {
    lock.enter();
    has_had_it = true;
    lock.leave();
  });
  while (!has_had_it) lock.pass_on();
  EXPECT_TRUE(lock.is_mine());
  lock.leave();
  other.join();
}

}  // namespace
}  // namespace weft::mpi
