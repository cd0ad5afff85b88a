#include "memory/kinds/software/software_streams.h"

#include <chrono>
#include <vector>

#include "gtest/gtest.h"

#include "tests/support/thread_time.h"

namespace weft::memory {
namespace {

using base::Status;
using base::StatusCode;

class SoftwareStreamsTest : public ::testing::Test {
 protected:
  // Done at the `polls`th poll.
  SoftwareStreams::Work note(int number, int polls = 1) {
    return [this, number, left = polls]() mutable {
      if (--left > 0) return Status::pending();
      order.push_back(number);
      return Status();
    };
  }
  static SoftwareStreams::Work failing(const char* why) {
    return [why] { return Status(StatusCode::kInternal, why); };
  }
  // Takes that much processor time.
  static SoftwareStreams::Work busy(std::chrono::microseconds time) {
    return [time] {
      const auto end = testing::thread_time() + time;
      while (testing::thread_time() < end) {
      }
      return Status();
    };
  }
  EventHandle record_timed(StreamHandle stream) { return streams.record_timed(stream, 0).value(); }
  StreamHandle make(int device = 0) { return streams.create(device).value(); }
  EventHandle record(StreamHandle stream, int device = 0) { return streams.record(stream, device).value(); }
  Status finish(EventHandle event) {
    Status status = Status::pending();
    for (int i = 0; i < 1000 && status.is_pending(); ++i) status = streams.query(event);
    streams.release(event);
    return status;
  }

  SoftwareStreams streams{Kind::kEmulated, 2};
  std::vector<int> order;
};

TEST_F(SoftwareStreamsTest, NothingRunsBeforeAPoll) {
  const StreamHandle stream = make();
  ASSERT_TRUE(streams.enqueue(stream, 0, note(1)).ok());
  const EventHandle event = record(stream);
  EXPECT_TRUE(order.empty());
  EXPECT_TRUE(streams.query(event).ok());
  EXPECT_EQ(order, (std::vector<int>{1}));
  streams.release(event);
}

TEST_F(SoftwareStreamsTest, OnePieceOfWorkPerStreamAndPoll) {
  const StreamHandle a = make();
  const StreamHandle b = make();
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(streams.enqueue(b, 0, note(20 + i)).ok());
    ASSERT_TRUE(streams.enqueue(a, 0, note(10 + i)).ok());
  }
  const EventHandle event = record(b);
  EXPECT_TRUE(streams.query(event).is_pending());
  EXPECT_EQ(order, (std::vector<int>{10, 20})) << "oldest stream first";
  EXPECT_TRUE(finish(event).ok());
  EXPECT_EQ(order, (std::vector<int>{10, 20, 11, 21, 12, 22}));
}

TEST_F(SoftwareStreamsTest, SlowWorkTakesItsPollsAtTheHeadOfItsStream) {
  const StreamHandle stream = make();
  ASSERT_TRUE(streams.enqueue(stream, 0, note(1, 3)).ok());
  ASSERT_TRUE(streams.enqueue(stream, 0, note(2, 2)).ok());
  const EventHandle event = record(stream);
  std::vector<std::size_t> done;
  Status status = Status::pending();
  while (status.is_pending() && done.size() < 10) {
    status = streams.query(event);
    done.push_back(order.size());
  }
  EXPECT_EQ(done, (std::vector<std::size_t>{0, 0, 1, 1, 2}));
  streams.release(event);
}

TEST_F(SoftwareStreamsTest, PendingWorkIsCalledAgain) {
  int calls = 0;
  ASSERT_TRUE(streams.enqueue(nullptr, 0, [&] { return ++calls < 5 ? Status::pending() : Status(); }).ok());
  EXPECT_TRUE(finish(record(nullptr)).ok());
  EXPECT_EQ(calls, 5);
}

TEST_F(SoftwareStreamsTest, AStreamWaitsForAnotherWithoutHoldingItUp) {
  const StreamHandle consumer = make(0);
  const StreamHandle producer = make(1);
  ASSERT_TRUE(streams.enqueue(producer, 1, note(1, 5)).ok());
  const EventHandle produced = record(producer, 1);
  ASSERT_TRUE(streams.wait(consumer, 0, produced).ok());
  streams.release(produced);  // allowed as soon as the wait is queued
  ASSERT_TRUE(streams.enqueue(consumer, 0, note(2)).ok());
  ASSERT_TRUE(streams.enqueue(producer, 1, note(3)).ok());
  EXPECT_TRUE(finish(record(consumer)).ok());
  EXPECT_TRUE(finish(record(producer, 1)).ok());
  EXPECT_EQ(order.front(), 1);
  EXPECT_EQ(order.size(), 3u);
}

TEST_F(SoftwareStreamsTest, AnEventCoversOnlyWhatWasThere) {
  const StreamHandle stream = make();
  const EventHandle empty = record(stream);
  ASSERT_TRUE(streams.enqueue(stream, 0, note(1, 100)).ok());
  EXPECT_TRUE(streams.query(empty).ok());
  EXPECT_TRUE(order.empty());
  streams.release(empty);
}

TEST_F(SoftwareStreamsTest, AFailureSkipsTheWorkUpToTheNextEventWhichReportsIt) {
  const StreamHandle stream = make();
  ASSERT_TRUE(streams.enqueue(stream, 0, failing("first")).ok());
  ASSERT_TRUE(streams.enqueue(stream, 0, note(1)).ok());
  ASSERT_TRUE(streams.enqueue(stream, 0, failing("second")).ok());
  const EventHandle failed = record(stream);
  ASSERT_TRUE(streams.enqueue(stream, 0, note(2)).ok());
  const EventHandle fine = record(stream);
  EXPECT_EQ(finish(failed).message(), "first");
  EXPECT_TRUE(finish(fine).ok());
  EXPECT_EQ(order, (std::vector<int>{2}));
}

TEST_F(SoftwareStreamsTest, AFailureGoesThroughAWait) {
  const StreamHandle producer = make();
  const StreamHandle consumer = make();
  ASSERT_TRUE(streams.enqueue(producer, 0, failing("broken")).ok());
  const EventHandle produced = record(producer);
  ASSERT_TRUE(streams.wait(consumer, 0, produced).ok());
  ASSERT_TRUE(streams.enqueue(consumer, 0, note(1)).ok());
  EXPECT_EQ(finish(record(consumer)).message(), "broken");
  EXPECT_EQ(finish(produced).message(), "broken");
  EXPECT_TRUE(order.empty());
}

TEST_F(SoftwareStreamsTest, TimedEventsMeasureTheWorkBetweenThem) {
  const StreamHandle stream = make();
  const StreamHandle other = make();
  ASSERT_TRUE(streams.enqueue(stream, 0, busy(std::chrono::microseconds(500))).ok());
  const EventHandle empty = record_timed(stream);
  const EventHandle begin = record_timed(stream);
  ASSERT_TRUE(streams.enqueue(stream, 0, busy(std::chrono::microseconds(200))).ok());
  ASSERT_TRUE(streams.enqueue(stream, 0, note(1, 3)).ok());
  ASSERT_TRUE(streams.enqueue(stream, 0, busy(std::chrono::microseconds(200))).ok());
  for (int i = 0; i < 8; ++i)
    ASSERT_TRUE(streams.enqueue(other, 0, busy(std::chrono::microseconds(50))).ok());
  const EventHandle end = record_timed(stream);
  double seconds = -1;
  EXPECT_TRUE(SoftwareStreams::elapsed(begin, end, seconds).is_pending());
  EXPECT_TRUE(SoftwareStreams::elapsed(begin, end, seconds).is_pending()) << "asking is no poll";
  Status status = Status::pending();
  for (int i = 0; i < 100 && status.is_pending(); ++i) status = streams.query(end);
  EXPECT_TRUE(status.ok());
  EXPECT_TRUE(SoftwareStreams::elapsed(empty, begin, seconds).ok());
  EXPECT_EQ(seconds, 0) << "no work ran between these";
  EXPECT_TRUE(SoftwareStreams::elapsed(begin, end, seconds).ok());
  EXPECT_GE(seconds, 0.0004);
  for (const EventHandle event : {empty, begin, end}) streams.release(event);
}

// The program's own event must get the failure.
TEST_F(SoftwareStreamsTest, TimedEventsLeaveAFailureToTheNextEvent) {
  const StreamHandle stream = make();
  const EventHandle begin = record_timed(stream);
  ASSERT_TRUE(streams.enqueue(stream, 0, failing("broken")).ok());
  const EventHandle end = record_timed(stream);
  const EventHandle plain = record(stream);
  EXPECT_EQ(finish(plain).message(), "broken");
  double seconds = -1;
  EXPECT_EQ(SoftwareStreams::elapsed(begin, end, seconds).message(), "broken");
  EXPECT_EQ(seconds, -1);
  streams.release(begin);
  streams.release(end);
  EXPECT_TRUE(finish(record(stream)).ok());
}

TEST_F(SoftwareStreamsTest, TimedEventsMayBeReleasedBeforeTheyAreDone) {
  const StreamHandle stream = make();
  streams.release(record_timed(stream));
  ASSERT_TRUE(streams.enqueue(stream, 0, note(1)).ok());
  EXPECT_TRUE(finish(record(stream)).ok());
  EXPECT_EQ(streams.record_timed(stream, 1).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(SoftwareStreamsTest, ADestroyedStreamFinishesItsWorkAndTakesNoMore) {
  const StreamHandle stream = make();
  ASSERT_TRUE(streams.enqueue(stream, 0, note(1)).ok());
  const EventHandle event = record(stream);
  ASSERT_TRUE(streams.destroy(stream).ok());
  EXPECT_EQ(streams.enqueue(stream, 0, note(2)).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(streams.destroy(stream).code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(finish(event).ok());
  EXPECT_EQ(order, (std::vector<int>{1}));
  EXPECT_EQ(streams.record(stream, 0).status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(make(), stream) << "handles are not given twice";
}

TEST_F(SoftwareStreamsTest, WrongDevices) {
  EXPECT_EQ(streams.create(2).status().code(), StatusCode::kOutOfRange);
  EXPECT_EQ(streams.record(nullptr, -1).status().code(), StatusCode::kOutOfRange);
  EXPECT_EQ(streams.record(make(1), 0).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(streams.destroy(reinterpret_cast<StreamHandle>(0x77)).code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace weft::memory
