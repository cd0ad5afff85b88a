// Streams of two PEs that order copies between them by signals.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/busy_stream.h"
#include "tests/unit/rma/pgas_job.h"

namespace weft::rma {
namespace {

using base::Status;
using base::StatusCode;
using testing::PgasJob;
using testing::PgasWay;
using Word = std::uint32_t;

constexpr memory::Place kDeviceOfPe{memory::Kind::kEmulated, 0};

// Each PE has a segment of two words, the flag of the other's signals and the data, and a stream.
struct Signalled {
  explicit Signalled(PgasJob& job_in) : job(job_in) {
    for (int pe = 0; pe < 2; ++pe) {
      segments.push_back(job.pgas(pe).make_segment<Word>(2, kDeviceOfPe));
      streams.push_back(kind(pe).create_stream(0).value());
    }
    for (int pe = 0; pe < 2; ++pe) {
      const GlobalAddress theirs = segments[1 - static_cast<std::size_t>(pe)].address();
      job.run_on(pe, [theirs](Pgas& pgas) -> Task<> { co_await pgas.learn(theirs); });
    }
  }

  memory::EmulatedBackend& kind(int pe) { return testing::emulated(job.memory(pe)); }
  const Segment& segment(int pe) const { return segments[static_cast<std::size_t>(pe)]; }
  memory::StreamHandle stream(int pe) const { return streams[static_cast<std::size_t>(pe)]; }
  GlobalPtr<Word> flag(int pe) const { return segment(pe).pointer<Word>(); }
  GlobalPtr<Word> data(int pe) const { return segment(pe).pointer<Word>(1); }
  Word& word(int pe, std::size_t index) {
    return *(reinterpret_cast<Word*>(job.bytes(pe, segment(pe)).data()) + index);
  }

  // A kernel of one turn.
  void launch(int pe, std::function<void()> kernel) {
    const Status status = kind(pe).launch(stream(pe), 0, [kernel] {
      kernel();
      return Status();
    });
    ASSERT_TRUE(status.ok()) << status.to_string();
  }
  void signal(int pe, Word value) {
    done.push_back(job.pgas(pe).signal_on_stream(flag(1 - pe), value, kDeviceOfPe, stream(pe)));
  }
  void wait(int pe, Word value) {
    done.push_back(job.pgas(pe).wait_on_stream(flag(pe), value, kDeviceOfPe, stream(pe)));
  }
  bool all_done() const {
    return std::ranges::all_of(done, [](const Done& one) { return one.is_done(); });
  }
  void take_turns(int count) {
    for (int turn = 0; turn < count; ++turn) {
      for (int pe = 0; pe < 2; ++pe) job.runtime(pe).step();
    }
  }
  // What a call at the edge of the API throws.
  std::string error(const std::function<Done()>& start) {
    return test_support::thrown_by([&] { start().detach(); });
  }

  PgasJob& job;
  std::vector<Segment> segments;
  std::vector<memory::StreamHandle> streams;
  std::vector<Done> done;
};

// The CPU queues all rounds ahead. The counters pass 2^32 in between.
TEST(StreamSignals, PingPongThatNothingButStreamsOrders) {
  for (const char* const machine : {"loopback", "ucx"}) {
    constexpr Word kRounds = 40;
    constexpr Word kFirst = Word{0} - kRounds / 2;
    PgasJob job(2, PgasWay{machine, true});
    Signalled pair(job);
    for (int pe = 0; pe < 2; ++pe) pair.word(pe, 0) = kFirst - 1;
    std::vector<Word> seen;
    for (Word i = 0; i < kRounds; ++i) {
      const Word round = kFirst + i;
      pair.launch(0, [&pair, i] { pair.word(0, 1) = 100 + i; });
      pair.done.push_back(
          job.pgas(0).copy_on_stream(pair.data(0), pair.data(1), 1, kDeviceOfPe, pair.stream(0)));
      pair.signal(0, round);
      pair.wait(0, round);  // the credit
      pair.wait(1, round);
      pair.launch(1, [&pair, &seen] { seen.push_back(pair.word(1, 1)); });
      pair.signal(1, round);
    }
    EXPECT_TRUE(seen.empty());
    ASSERT_EQ(job.run_until([&] { return pair.all_done(); }), "") << machine;
    ASSERT_EQ(seen.size(), kRounds);
    for (Word i = 0; i < kRounds; ++i) EXPECT_EQ(seen[i], 100 + i);
    EXPECT_EQ(pair.word(0, 0), kFirst + kRounds - 1);
  }
}

TEST(StreamSignals, AWaitHoldsWhatIsQueuedBehindIt) {
  PgasJob job(2);
  Signalled pair(job);
  bool has_run = false;
  pair.wait(1, 5);
  pair.launch(1, [&] { has_run = true; });
  pair.signal(1, 1);  // its end is polled
  pair.signal(0, 4);
  pair.take_turns(200);
  EXPECT_FALSE(has_run);
  EXPECT_FALSE(pair.done[0].is_done());
  EXPECT_FALSE(pair.done[1].is_done());
  EXPECT_TRUE(pair.done[2].is_done());
  pair.signal(0, 6);
  ASSERT_EQ(job.run_until([&] { return has_run && pair.all_done(); }), "");
}

TEST(StreamSignals, OfOwnWords) {
  PgasJob job(1);
  Segment segment = job.pgas(0).make_segment<Word>(1, kDeviceOfPe);
  const memory::StreamHandle waits = testing::emulated(job.memory(0)).create_stream(0).value();
  Done wait = job.pgas(0).wait_on_stream(segment.pointer<Word>(), 1, kDeviceOfPe, waits);
  Done signal = job.pgas(0).signal_on_stream(segment.pointer<Word>(), 1, kDeviceOfPe, nullptr);
  EXPECT_FALSE(signal.is_done()) << "the device's own stream has not been polled";
  ASSERT_EQ(job.run_until([&] { return wait.is_done() && signal.is_done(); }), "");
}

// Its memory stays until the stream has gone on, and later uses are refused.
TEST(StreamSignals, AFreedSegment) {
  PgasJob job(2);
  Signalled pair(job);
  bool may_go = false;
  const GlobalPtr<Word> flag = pair.flag(1);
  ASSERT_TRUE(pair.kind(0).launch(pair.stream(0), 0, testing::until(may_go)).ok());
  pair.wait(1, 1);
  pair.signal(0, 1);
  pair.segments[1] = {};
  pair.take_turns(200);
  EXPECT_FALSE(pair.done[0].is_done());
  const auto signal = [&] { return job.pgas(0).signal_on_stream(flag, 2, kDeviceOfPe, pair.stream(0)); };
  const auto wait = [&] { return job.pgas(1).wait_on_stream(flag, 2, kDeviceOfPe, pair.stream(1)); };
  EXPECT_TRUE(test_support::says(pair.error(signal), "has been freed"));
  EXPECT_TRUE(test_support::says(pair.error(wait), "has been freed"));
  may_go = true;
  ASSERT_EQ(job.run_until([&] { return pair.all_done(); }), "");
}

TEST(StreamSignals, Misuse) {
  PgasJob job(2);
  Segment not_learned = job.pgas(1).make_segment<Word>(2, kDeviceOfPe);
  Signalled pair(job);
  Segment host = job.pgas(0).make_segment<Word>(2);
  const auto refused = [&](GlobalPtr<Word> at, bool is_wait, const std::string& why,
                           memory::Place device = kDeviceOfPe) {
    const std::string error = pair.error([&] {
      return is_wait ? job.pgas(0).wait_on_stream(at, 1, device, pair.stream(0))
                     : job.pgas(0).signal_on_stream(at, 1, device, pair.stream(0));
    });
    EXPECT_TRUE(test_support::says(error, why));
  };
  for (const bool is_wait : {true, false}) {
    refused(nullptr, is_wait, "the null pointer");
    refused(pair.flag(0) + 2, is_wait, "does not have 4 bytes behind it");
    refused(GlobalPtr<Word>(pair.flag(0).address().moved_by(2)), is_wait, "a multiple of 4");
    refused(host.pointer<Word>(), is_wait, "a segment of device memory");
    refused(pair.flag(0), is_wait, "use a stream of that device", {memory::Kind::kEmulated, 1});
    refused(pair.flag(0), is_wait, "does not reach the segment", {memory::Kind::kCuda, 0});
  }
  refused(pair.flag(1), true, "keep the word in a segment of the PE that waits");
  refused(not_learned.pointer<Word>(), false, "learn()");
  const std::string error = pair.error([&] {
    return job.pgas(0).signal_on_stream(pair.flag(0), 1, kDeviceOfPe,
                                        reinterpret_cast<memory::StreamHandle>(7));
  });
  EXPECT_TRUE(test_support::says(error, "no stream"));
  EXPECT_EQ(pair.word(0, 0), 0U);
}

TEST(StreamSignals, WithoutMappingThereIsNone) {
  PgasJob job(2, PgasWay{"loopback", false});
  Signalled pair(job);
  EXPECT_TRUE(test_support::says(
      pair.error([&] { return job.pgas(0).signal_on_stream(pair.flag(1), 1, kDeviceOfPe, pair.stream(0)); }),
      "does not reach the segment"));
}

TEST(StreamSignals, AJobWithAWaitThatGetsNoSignalEnds) {
  PgasJob job(2, {}, -1, std::chrono::milliseconds(1));
  Signalled pair(job);
  runtime::OperationState* const wait =
      job.pgas(1).wait_on_stream(pair.flag(1), 1, kDeviceOfPe, pair.stream(1)).release();
  ASSERT_EQ(job.run([](Runtime&) -> Task<> { co_return; }), "");
  EXPECT_FALSE(wait->is_done());
  for (int pe = 0; pe < 2; ++pe) job.runtime(pe).close();
  EXPECT_TRUE(job.memory(0).hang().ok());
  EXPECT_TRUE(test_support::says(std::string(job.memory(1).hang().message()), "a signal that no PE sends"));
  ASSERT_TRUE(wait->is_done());
  EXPECT_EQ(wait->status().code(), StatusCode::kClosed);
  EXPECT_TRUE(test_support::says(std::string(wait->status().message()), "the job has ended"));
  wait->observe();
  wait->drop_handle();
}

// Work that the end of the job waits for, because the memory of the segments is freed afterwards.
TEST(StreamSignals, TheEndOfAJobWaitsForSignalsOfThisProcess) {
  PgasJob job(1);
  Segment segment = job.pgas(0).make_segment<Word>(1, kDeviceOfPe);
  memory::EmulatedBackend& kind = testing::emulated(job.memory(0));
  int polls = 0;
  const memory::StreamHandle late =
      testing::stream_with(kind, 0, [&] { return ++polls < 2000 ? Status::pending() : Status(); });
  const memory::StreamHandle waits = kind.create_stream(0).value();
  job.pgas(0).wait_on_stream(segment.pointer<Word>(), 1, kDeviceOfPe, waits).detach();
  job.pgas(0).signal_on_stream(segment.pointer<Word>(), 1, kDeviceOfPe, late).detach();
  ASSERT_EQ(job.run([](Runtime&) -> Task<> { co_return; }), "");
  job.runtime(0).close();
  EXPECT_EQ(polls, 2000);
  EXPECT_TRUE(job.memory(0).hang().ok());
}

}  // namespace
}  // namespace weft::rma
