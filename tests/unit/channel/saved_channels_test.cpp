// Channels of elements in checkpoints.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/support/errors.h"
#include "tests/unit/channel/walker.h"
#include "tests/unit/checkpoint/files.h"

namespace weft::channel {

// With a channel to an element of another class.
struct Guest : Chare<Guest> {
  void pup(Pup& p) { p | host; }
  void know(chare::ElementProxy<Walker> walker) { host = Channel(*this, walker, 7); }
  Task<int> ask() {
    int answer = 0;
    co_await host.recv(std::span(&answer, 1));
    co_return answer;
  }
  Channel host;
};

namespace {

using test_support::error_of;
using test_support::says;
using testing::InProcessJob;
using testing::TemporaryFolder;

constexpr int kNumWalkers = 4;

// Messages in both directions of a ring, of two ids, and from each walker to itself.
Task<> exchange(Runtime& runtime, Array<Walker> walkers, int count) {
  for (int i = 0; i < kNumWalkers; ++i) {
    const int next = (i + 1) % kNumWalkers;
    walkers[i].send<&Walker::send>(next, 0, count);
    walkers[next].send<&Walker::send>(i, 1, count);
    walkers[i].send<&Walker::send>(i, 0, count);
  }
  for (int i = 0; i < kNumWalkers; ++i) {
    const int next = (i + 1) % kNumWalkers;
    EXPECT_EQ(co_await walkers[next].call<&Walker::receive>(i, 0, count), "");
    EXPECT_EQ(co_await walkers[i].call<&Walker::receive>(next, 1, count), "");
    EXPECT_EQ(co_await walkers[i].call<&Walker::receive>(i, 0, count), "");
  }
  co_await runtime.quiescence();
}

TEST(SavedChannels, GoOnAfterTheLastMessageOnAnyNumberOfPes) {
  for (const auto& [machine, saved_on] :
       {std::pair("loopback", 1), std::pair("loopback", 3), std::pair("ucx", 2)}) {
    const TemporaryFolder folder;
    {
      InProcessJob job(saved_on, machine);
      EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
        auto walkers = Array<Walker>::create(runtime, {kNumWalkers});
        for (int i = 0; i < kNumWalkers; ++i) walkers[i].send<&Walker::keep>((i + 1) % kNumWalkers, 0);
        walkers[0].send<&Walker::open>(2, 5);  // the peer never makes its end
        co_await exchange(runtime, walkers, 13);
        walkers[1].send<&Walker::go>(runtime.num_pes() - 1);
        co_await arrive(runtime, walkers, 1, runtime.num_pes() - 1);
        co_await exchange(runtime, walkers, 10);
        co_await checkpoint(runtime, folder.path(), walkers);
        co_await exchange(runtime, walkers, 3);  // the job goes on
      }),
                "");
    }
    for (const int num_pes : {1, 2, 4}) {
      SCOPED_TRACE(std::to_string(saved_on) + " to " + std::to_string(num_pes) + ", " + machine);
      InProcessJob job(num_pes, machine);
      EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
        Array<Walker> walkers;
        co_await chare::restore(runtime, folder.path(), walkers);
        for (int i = 0; i < kNumWalkers; ++i) {
          const std::string name = co_await walkers[i].call<&Walker::kept_name>();
          EXPECT_TRUE(says(name, "[" + std::to_string(i) + "]"));
          EXPECT_TRUE(says(name, "[" + std::to_string((i + 1) % kNumWalkers) + "]"));
        }
        co_await exchange(runtime, walkers, 12);
        walkers[2].send<&Walker::go>(0);
        walkers[3].send<&Walker::go>(num_pes - 1);
        co_await arrive(runtime, walkers, 2, 0);
        co_await arrive(runtime, walkers, 3, num_pes - 1);
        co_await exchange(runtime, walkers, 12);
      }),
                "");
    }
  }
}

TEST(SavedChannels, OperationsThatAreNotOverAreRefused) {
  const TemporaryFolder folder;
  InProcessJob job(2);
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto walkers = Array<Walker>::create(runtime, {kNumWalkers});
    co_await exchange(runtime, walkers, 2);
    co_await walkers[1].call<&Walker::begin_receive>(2, 0);
    const std::string error = co_await error_of(chare::checkpoint(runtime, folder.path(), walkers));
    EXPECT_TRUE(says(error, "has 1 sends or receives that are not over; await them before"));
    co_await walkers[2].call<&Walker::send>(1, 0, 1);
    co_await chare::checkpoint(runtime, folder.path(), walkers);
  }),
            "");
}

// The checkpoint is one of the moment when they have been received.
TEST(SavedChannels, ACheckpointWaitsForMessagesToBeReceived) {
  const TemporaryFolder folder;
  for (const int num_pes : {3, 2}) {
    InProcessJob job(num_pes);
    EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
      Array<Walker> walkers;
      if (num_pes == 2) {
        co_await chare::restore(runtime, folder.path(), walkers);
      } else {
        walkers = Array<Walker>::create(runtime, {kNumWalkers});
        co_await exchange(runtime, walkers, 2);
        co_await walkers[0].call<&Walker::send>(3, 0, 9);
        walkers[3].send<&Walker::go>(1);  // takes what has come along
        co_await arrive(runtime, walkers, 3, 1);
        auto saved = chare::checkpoint(runtime, folder.path(), walkers);
        co_await walkers[3].call<&Walker::receive>(0, 0, 4);
        co_await walkers[3].call<&Walker::receive>(0, 0, 5);
        co_await saved;
      }
      co_await exchange(runtime, walkers, 11);
    }),
              "");
  }
}

TEST(SavedChannels, BothCollectionsAreSaved) {
  const TemporaryFolder folder;
  for (const int num_pes : {3, 2}) {
    InProcessJob job(num_pes);
    EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
      Array<Walker> walkers;
      Array<Guest> guests;
      if (num_pes == 2) {
        co_await chare::restore(runtime, folder.path(), guests, walkers);
      } else {
        walkers = Array<Walker>::create(runtime, {2});
        guests = Array<Guest>::create(runtime, {2});
        for (const int i : {0, 1}) co_await guests[i].call<&Guest::know>(walkers[1 - i]);
        const std::string error = co_await error_of(chare::checkpoint(runtime, folder.path(), guests));
        EXPECT_TRUE(says(error, "its state has a proxy of the collection weft::channel::Walker"));
        // Walkers have no handles of these channels in their states.
        co_await chare::checkpoint(runtime, folder.path(), walkers);
        co_await chare::checkpoint(runtime, folder.path(), guests, walkers);
      }
      for (const int i : {0, 1}) {
        const auto asked = guests[i].call<&Guest::ask>();
        co_await walkers[1 - i].call<&Walker::answer<Guest>>(guests[i], 7, 40 + i);
        EXPECT_EQ(co_await asked, 40 + i);
      }
    }),
              "");
  }
}

}  // namespace
}  // namespace weft::channel
