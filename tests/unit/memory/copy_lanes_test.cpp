// Lanes over a device whose events the test ends: every piece is handed back once, a copy waits for its own
// streams and holds up no other copy, and nothing leaks. How many streams there are, how often events are
// queried and which piece takes which stream is left to the lanes.
#include "memory/copy/copy_lanes.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <random>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

#include "tests/unit/memory/pending_kind.h"
#include "tests/unit/memory/places.h"

namespace weft::memory {
namespace {

using base::Result;
using base::Status;
using base::StatusCode;

constexpr Place kOtherKind{Kind::kEmulated, 0};
constexpr std::size_t kLargeBytes = std::size_t{64} << 20;
constexpr std::size_t kSmallBytes = 8;

class CopyLanesTest : public ::testing::Test {
 protected:
  static Buffer buffer(Place place, bool names_stream = false) {
    return {nullptr, 64, place, names_stream ? reinterpret_cast<StreamHandle>(0x100) : nullptr};
  }
  CopyLanes::Gate gate_of(const Buffer& destination, const ConstBuffer& source) {
    CopyLanes::Gate gate;
    EXPECT_TRUE(lanes.set_gate(destination, source, gate).ok());
    return gate;
  }
  // A gated copy to `place` that has lanes.
  CopyLanes::Gate entered(Place place) {
    CopyLanes::Gate gate = gate_of(buffer(place, true), buffer(Place()));
    EXPECT_TRUE(lanes.enter(gate, false).ok());
    return gate;
  }
  // Pieces are told apart by their offset.
  static CopyLanes::Piece piece(std::size_t name, std::size_t size_bytes) {
    CopyLanes::Piece piece;
    piece.offset_bytes = name;
    piece.size_bytes = size_bytes;
    return piece;
  }
  // Large pieces, which have an event each, unless a size is given.
  Status queue(const CopyLanes::Side& side, std::size_t name, std::size_t size_bytes = kLargeBytes) {
    return lanes.queue(side, buffer(side.place), buffer(Place()), piece(name, size_bytes));
  }
  Status queue(Place place, std::size_t name, std::size_t size_bytes = kLargeBytes) {
    return queue(CopyLanes::Side{place, nullptr, nullptr}, name, size_bytes);
  }
  // The pieces that their lanes are past.
  std::vector<std::size_t> poll() {
    std::vector<std::size_t> names;
    const bool any = lanes.poll([&](const CopyLanes::Piece& done, Status status) {
      names.push_back(done.offset_bytes);
      last_status = std::move(status);
    });
    EXPECT_EQ(any, !names.empty());
    return names;
  }
  std::vector<std::size_t> close(const CopyLanes::Wait& wait) {
    std::vector<std::size_t> names;
    lanes.close(wait, [&](const CopyLanes::Piece& passed) { names.push_back(passed.offset_bytes); });
    return names;
  }

  static std::vector<std::size_t> sorted(std::vector<std::size_t> names) {
    std::ranges::sort(names);
    return names;
  }

  using Names = std::vector<std::size_t>;
  using Events = PendingKind::Events;
  // `behind` has the last event alone: `before` are done without it.
  void expect_last_apart(const Names& before, const Names& behind) {
    EXPECT_EQ(poll(), Names());
    const std::size_t last = cuda.outcomes.size();
    cuda.end_all();
    cuda.end(last, Status::pending());
    EXPECT_EQ(poll(), before);
    cuda.end(last);
    EXPECT_EQ(poll(), behind);
  }
  PendingKind cuda{Kind::kCuda};
  PendingKind emulated{Kind::kEmulated};
  CopyLanes lanes{{nullptr, &cuda, &emulated}};
  Status last_status;
};

TEST_F(CopyLanesTest, PiecesOneAfterTheOtherShareAStream) {
  EXPECT_EQ(poll(), Names());
  for (std::size_t i = 1; i <= 10; ++i) {
    ASSERT_TRUE(queue(kGpu0, i).ok());
    EXPECT_EQ(poll(), Names());
    cuda.end(i);
    EXPECT_EQ(poll(), Names{i});
    EXPECT_TRUE(last_status.ok());
  }
  EXPECT_EQ(cuda.streams.size(), 1u);
  EXPECT_TRUE(cuda.live_events.empty());
}

TEST_F(CopyLanesTest, ManyPiecesShareFewStreams) {
  for (std::size_t i = 1; i <= 1000; ++i) ASSERT_TRUE(queue(i % 2 == 0 ? kGpu0 : kGpu1, i).ok());
  ASSERT_TRUE(queue(kOtherKind, 1001).ok());
  EXPECT_LT(cuda.streams.size(), 20u);
  EXPECT_EQ(emulated.copies.size(), 1u) << "a piece goes to its own kind";
}

TEST_F(CopyLanesTest, EveryPieceIsHandedBackOnceInWhateverOrderTheDeviceEnds) {
  Names names;
  for (std::size_t i = 1; i <= 40; ++i) {
    ASSERT_TRUE(queue(kGpu0, i).ok());
    names.push_back(i);
  }
  EXPECT_EQ(poll(), Names());
  Names order = names;
  std::ranges::shuffle(order, std::mt19937(7));
  Names done;
  for (const std::size_t event : order) {
    cuda.end(event);
    for (const std::size_t name : poll()) {
      EXPECT_TRUE(cuda.outcomes[name - 1].ok()) << "piece " << name << " is not done";
      done.push_back(name);
    }
  }
  EXPECT_EQ(sorted(done), names);
  EXPECT_TRUE(cuda.live_events.empty());
}

TEST_F(CopyLanesTest, SmallPiecesBetweenTwoPollsShareEvents) {
  Names names;
  for (std::size_t i = 1; i <= 1000; ++i) {
    ASSERT_TRUE(queue(kGpu0, i, kSmallBytes).ok());
    names.push_back(i);
  }
  EXPECT_EQ(poll(), Names());
  const std::size_t num_events = cuda.outcomes.size();
  EXPECT_LE(num_events, 100u);
  // What comes after a poll has an event of its own, and does not hold up what came before.
  ASSERT_TRUE(queue(kGpu0, 1001, kSmallBytes).ok());
  EXPECT_EQ(poll(), Names());
  EXPECT_EQ(cuda.outcomes.size(), num_events + 1);
  for (std::size_t event = 1; event <= num_events; ++event) cuda.end(event);
  EXPECT_EQ(sorted(poll()), names);
  cuda.end_all();
  EXPECT_EQ(poll(), Names{1001});
  EXPECT_TRUE(cuda.live_events.empty());
}

TEST_F(CopyLanesTest, SmallPiecesThatShareAnEventFailTogether) {
  for (std::size_t i = 1; i <= 100; ++i) ASSERT_TRUE(queue(kGpu0, i, kSmallBytes).ok());
  EXPECT_EQ(poll(), Names());
  for (std::size_t event = 1; event <= cuda.outcomes.size(); ++event)
    cuda.end(event, Status(StatusCode::kInternal, "copy went wrong"));
  std::size_t num_failed = 0;
  lanes.poll([&](const CopyLanes::Piece&, const Status& status) {
    EXPECT_EQ(status.message(), "copy went wrong");
    ++num_failed;
  });
  EXPECT_EQ(num_failed, 100u);
}

TEST_F(CopyLanesTest, ManyBytesWaitForNoFurtherPiece) {
  constexpr std::size_t kPieceBytes = 256 << 10;  // so that the bytes end a batch, not the number of pieces
  for (std::size_t i = 1; i <= 1000; ++i) ASSERT_TRUE(queue(kGpu0, i, kPieceBytes).ok());
  EXPECT_GE(cuda.outcomes.size(), 1000 * kPieceBytes >> 22)
      << "an event at least every 4 MiB, without a poll";
  EXPECT_LE(cuda.outcomes.size(), 100u);
}

TEST_F(CopyLanesTest, ALaneThatHasBeenEmptyIsAsANewOne) {
  CopyLanes::Gate gate = entered(kGpu0);
  const CopyLanes::Side& side = gate.destination;
  for (std::size_t i = 1; i <= 8; ++i) ASSERT_TRUE(queue(side, i, std::size_t{1} << 20).ok());
  EXPECT_EQ(poll(), Names());
  cuda.end_all();
  EXPECT_EQ(poll().size(), 8u);
  // The small piece shares no event with the one of 1 MiB.
  ASSERT_TRUE(queue(side, 9, kSmallBytes).ok());
  ASSERT_TRUE(queue(side, 10, kSmallBytes).ok());
  ASSERT_TRUE(queue(side, 11, std::size_t{1} << 20).ok());
  expect_last_apart(Names{9, 10}, Names{11});
  lanes.leave(gate);
}

TEST_F(CopyLanesTest, AFewLargePiecesHaveTheirEventsAtOnce) {
  Names names;
  for (std::size_t i = 1; i <= 8; ++i) {
    ASSERT_TRUE(queue(kGpu0, i, std::size_t{1} << 20).ok());
    names.push_back(i);
  }
  cuda.end_all();
  EXPECT_EQ(sorted(poll()), names) << "a PE that computes sees all of them in its first poll";
}

TEST_F(CopyLanesTest, ASmallPieceOfAShortQueueDoesNotWaitForMediumOnesBehindIt) {
  // In one lane: a piece that makes it busy, a small one, and one of 1 MiB.
  CopyLanes::Gate gate = entered(kGpu0);
  const CopyLanes::Side& side = gate.destination;
  ASSERT_TRUE(queue(side, 1, kSmallBytes).ok());
  ASSERT_TRUE(queue(side, 2, kSmallBytes).ok());
  ASSERT_TRUE(queue(side, 3, std::size_t{1} << 20).ok());
  expect_last_apart(Names{1, 2}, Names{3});
  lanes.leave(gate);
}

TEST_F(CopyLanesTest, ASmallPieceDoesNotWaitForALargeOneBehindIt) {
  // The last small piece and the large one are in the same lane, behind others.
  for (std::size_t i = 1; i <= 8; ++i) ASSERT_TRUE(queue(kGpu0, i, kSmallBytes).ok());
  ASSERT_TRUE(queue(kGpu0, 9, kLargeBytes).ok());
  EXPECT_EQ(poll(), Names());
  // The last event of the large piece's stream is its own.
  const std::size_t stream = cuda.copies.back().stream;
  std::size_t last = 0;
  for (std::size_t event = 1; event <= cuda.outcomes.size(); ++event)
    if (cuda.event_streams[event - 1] == stream) last = event;
  cuda.end_all();
  cuda.end(last, Status::pending());
  EXPECT_EQ(sorted(poll()), (Names{1, 2, 3, 4, 5, 6, 7, 8}));
  cuda.end(last);
  EXPECT_EQ(poll(), Names{9});
}

TEST_F(CopyLanesTest, APieceOfAnIdleLaneHasItsEventAtOnce) {
  ASSERT_TRUE(queue(kGpu0, 1, kSmallBytes).ok());
  EXPECT_EQ(cuda.outcomes.size(), 1u);
  cuda.end(1);
  EXPECT_EQ(poll(), Names{1}) << "the first poll";
}

TEST_F(CopyLanesTest, AChunkIsFreeAsSoonAsItsPieceIsDone) {
  std::byte chunk{};
  for (std::size_t i = 1; i <= 8; ++i) {
    CopyLanes::Piece staged = piece(i, kSmallBytes);
    staged.chunk = &chunk;
    ASSERT_TRUE(lanes.queue({kGpu0, nullptr, nullptr}, buffer(kGpu0), buffer(Place()), staged).ok());
  }
  EXPECT_EQ(cuda.outcomes.size(), 8u) << "others wait for the chunks";
}

TEST_F(CopyLanesTest, ClosingHandsBackSmallPiecesToo) {
  for (std::size_t i = 1; i <= 10; ++i) ASSERT_TRUE(queue(kGpu0, i, kSmallBytes).ok());
  const Names passed = close([&](const std::function<bool()>& is_over) {
    cuda.end_all();
    return is_over() || is_over();  // the first asks for the event of the last batch
  });
  EXPECT_EQ(sorted(passed), (Names{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
  EXPECT_TRUE(cuda.live_events.empty());
  EXPECT_TRUE(cuda.streams.empty());
}

TEST_F(CopyLanesTest, APieceThatIsDoneMayQueueOthers) {
  ASSERT_TRUE(queue(kGpu0, 1).ok());
  ASSERT_TRUE(queue(kGpu0, 2).ok());
  cuda.end_all();
  Names names;
  EXPECT_TRUE(lanes.poll([&](const CopyLanes::Piece& done, const Status&) {
    names.push_back(done.offset_bytes);
    for (int i = 0; i < 8; ++i) EXPECT_TRUE(queue(kGpu1, 3).ok());
  }));
  EXPECT_EQ(sorted(names), (Names{1, 2}));
  cuda.end_all();
  EXPECT_EQ(poll(), Names(16, 3));
}

TEST_F(CopyLanesTest, ARefusedCopyIsNotQueued) {
  cuda.copy_failure = Status(StatusCode::kInvalidArgument, "no such memory");
  EXPECT_EQ(queue(kGpu0, 1).message(), "no such memory");
  cuda.copy_failure = Status();
  cuda.create_failure = Status(StatusCode::kOutOfMemory, "no stream");
  EXPECT_EQ(queue(kGpu1, 2).message(), "no stream");
  EXPECT_TRUE(cuda.live_events.empty());
  EXPECT_EQ(poll(), Names());
}

TEST_F(CopyLanesTest, APieceWithoutAnEventGetsOneLater) {
  cuda.record_failure = Status(StatusCode::kOutOfMemory, "no event");
  ASSERT_TRUE(queue(kGpu0, 1).ok()) << "its copy is on its way";
  EXPECT_EQ(poll(), Names());
  cuda.record_failure = Status();
  EXPECT_EQ(poll(), Names());
  cuda.end(1);
  EXPECT_EQ(poll(), Names{1});
  EXPECT_TRUE(last_status.ok());

  cuda.record_failure = Status(StatusCode::kInternal, "broken device");
  ASSERT_TRUE(queue(kGpu0, 2).ok());
  EXPECT_EQ(poll(), Names{2});
  EXPECT_EQ(last_status.message(), "broken device");
}

TEST_F(CopyLanesTest, APieceFailsAlone) {
  for (std::size_t i = 1; i <= 5; ++i) ASSERT_TRUE(queue(kGpu0, i).ok());
  cuda.end(1, Status(StatusCode::kInternal, "copy went wrong"));
  EXPECT_EQ(poll(), Names{1});
  EXPECT_EQ(last_status.message(), "copy went wrong");
  for (std::size_t event : {2, 3, 4, 5}) cuda.end(event);
  EXPECT_EQ(sorted(poll()), (Names{2, 3, 4, 5}));
  EXPECT_TRUE(last_status.ok());
}

TEST_F(CopyLanesTest, ACopyWithoutStreamsWaitsForNothing) {
  CopyLanes::Gate gate = gate_of(buffer(kGpu0), buffer(kGpu1));
  EXPECT_FALSE(gate.is_shut());
  ASSERT_TRUE(queue(gate.source, 1).ok());
  EXPECT_EQ(cuda.copies.back().waits_for, Events());
  lanes.leave(gate);
  EXPECT_EQ(cuda.live_events.size(), 1u) << "that of the piece";
}

TEST_F(CopyLanesTest, ADirectCopyWaitsForBothStreamsAndHoldsUpNoOther) {
  CopyLanes::Gate gate = gate_of(buffer(kGpu1, true), buffer(kGpu0, true));
  EXPECT_TRUE(gate.is_shut());
  const Events streams_work = cuda.live_events;
  EXPECT_EQ(streams_work.size(), 2u);
  ASSERT_TRUE(lanes.enter(gate, /*is_staged=*/false).ok());
  EXPECT_FALSE(gate.is_shut());
  EXPECT_TRUE(cuda.live_events.empty()) << "only the device waits";
  ASSERT_TRUE(queue(gate.source, 1).ok());
  EXPECT_EQ(cuda.copies.back().waits_for, streams_work);
  ASSERT_TRUE(queue(kGpu0, 2).ok());
  EXPECT_EQ(cuda.copies.back().waits_for, Events());
}

TEST_F(CopyLanesTest, EachSideOfAStagedCopyWaitsForItsStream) {
  CopyLanes::Gate gate = gate_of(buffer(kOtherKind, true), buffer(kGpu0, true));
  const Events source_work = cuda.live_events;
  const Events destination_work = emulated.live_events;
  ASSERT_TRUE(lanes.enter(gate, /*is_staged=*/true).ok());
  ASSERT_TRUE(queue(gate.source, 1).ok());
  ASSERT_TRUE(queue(gate.destination, 2).ok());
  EXPECT_EQ(cuda.copies.back().waits_for, source_work);
  EXPECT_EQ(emulated.copies.back().waits_for, destination_work);
}

TEST_F(CopyLanesTest, GatedCopiesComeAndGoWithoutHoldingUpOthers) {
  CopyLanes::Gate pending = entered(kGpu0);
  for (int round = 0; round < 100; ++round) {
    CopyLanes::Gate gate = entered(round % 2 == 0 ? kGpu0 : kGpu1);
    ASSERT_TRUE(queue(kGpu0, 1).ok());
    EXPECT_EQ(cuda.copies.back().waits_for, Events());
    lanes.leave(gate);
    ASSERT_TRUE(queue(kGpu1, 2).ok());
    EXPECT_EQ(cuda.copies.back().waits_for, Events());
  }
  EXPECT_LT(cuda.streams.size(), 20u) << "streams of gated copies are used again";
  lanes.leave(pending);
}

TEST_F(CopyLanesTest, ThereIsRoomForFewGatedCopies) {
  std::vector<CopyLanes::Gate> gates;
  while (lanes.has_room()) gates.push_back(entered(gates.size() % 2 == 0 ? kGpu0 : kOtherKind));
  EXPECT_EQ(gates.size(), static_cast<std::size_t>(CopyLanes::kMaxGated));
  lanes.leave(gates.back());
  EXPECT_TRUE(lanes.has_room());
  lanes.leave(gates.back());
  gates.back() = entered(kGpu0);
  EXPECT_FALSE(lanes.has_room()) << "a gate that was left twice counted twice";
}

TEST_F(CopyLanesTest, AGateOpensWhenItsStreamsAreSeenToBeDone) {
  CopyLanes::Gate gate = gate_of(buffer(kOtherKind, true), buffer(kGpu0, true));
  Status failure;
  emulated.end(1, Status(StatusCode::kInternal, "kernel went wrong"));
  EXPECT_FALSE(lanes.is_over(gate, failure));
  EXPECT_TRUE(gate.is_shut());
  EXPECT_TRUE(failure.ok());
  cuda.end(1);
  EXPECT_TRUE(lanes.is_over(gate, failure));
  EXPECT_FALSE(gate.is_shut());
  EXPECT_EQ(failure.message(), "kernel went wrong");
  EXPECT_TRUE(cuda.live_events.empty() && emulated.live_events.empty());

  gate = gate_of(buffer(kGpu0, true), buffer(Place()));
  cuda.end(2, Status(StatusCode::kInternal, "another"));
  EXPECT_TRUE(lanes.is_over(gate, failure));
  EXPECT_EQ(failure.message(), "kernel went wrong") << "the first failure counts";
}

TEST_F(CopyLanesTest, AGateThatCouldNotBeSetOrEnteredIsLeft) {
  CopyLanes::Gate gate;
  emulated.record_failure = Status(StatusCode::kInvalidArgument, "no such stream");
  EXPECT_EQ(lanes.set_gate(buffer(kOtherKind, true), buffer(kGpu0, true), gate).message(), "no such stream");
  lanes.leave(gate);
  EXPECT_TRUE(cuda.live_events.empty());

  emulated.record_failure = Status();
  emulated.create_failure = Status(StatusCode::kOutOfMemory, "no stream");
  for (int i = 0; i < 2 * CopyLanes::kMaxGated; ++i) {
    gate = gate_of(buffer(kOtherKind, true), buffer(kGpu0, true));
    ASSERT_TRUE(lanes.has_room());
    EXPECT_EQ(lanes.enter(gate, /*is_staged=*/true).message(), "no stream");
    lanes.leave(gate);
  }
  EXPECT_TRUE(cuda.live_events.empty() && emulated.live_events.empty());
  EXPECT_EQ(cuda.streams.size(), 1u) << "the stream of the other side was not used again";
}

TEST_F(CopyLanesTest, CloseWaitsForEachPiece) {
  for (std::size_t i = 1; i <= 6; ++i) ASSERT_TRUE(queue(kGpu0, i).ok());
  CopyLanes::Gate gate = entered(kGpu1);
  const Names passed = close([&](const std::function<bool()>& is_over) {
    EXPECT_FALSE(is_over());
    for (std::size_t event : cuda.live_events) cuda.end(event);
    EXPECT_TRUE(is_over());
    // The next piece has to be waited for again.
    for (std::size_t event : cuda.live_events) cuda.end(event, Status::pending());
    return true;
  });
  EXPECT_EQ(sorted(passed), (Names{1, 2, 3, 4, 5, 6}));
  EXPECT_TRUE(cuda.streams.empty());
  EXPECT_TRUE(cuda.live_events.empty());
  lanes.leave(gate);
}

TEST_F(CopyLanesTest, CloseLeavesADeviceThatHangsItsStreams) {
  for (std::size_t i = 1; i <= 5; ++i) ASSERT_TRUE(queue(kGpu0, i).ok());
  for (std::size_t event : {1, 2, 3}) cuda.end(event);
  const Names passed = close([](const std::function<bool()>& is_over) { return is_over(); });
  EXPECT_EQ(sorted(passed), (Names{1, 2, 3}));
  EXPECT_TRUE(cuda.streams.contains(cuda.copies[3].stream)) << "piece 4 may still write";
  EXPECT_TRUE(cuda.streams.contains(cuda.copies[4].stream)) << "piece 5 may still write";
  EXPECT_TRUE(cuda.live_events.empty());
  EXPECT_EQ(poll(), Names());
}

}  // namespace
}  // namespace weft::memory
