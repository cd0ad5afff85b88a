// Lanes over a kind that does nothing but keep count: which streams are made and used, what waits for what,
// and how often the driver is asked. That the bytes arrive is the affair of the tests of Memory.
#include "memory/copy/copy_lanes.h"

#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace weft::memory {
namespace {

using base::Result;
using base::Status;
using base::StatusCode;

constexpr Place kDevice0{Kind::kCuda, 0};
constexpr Place kDevice1{Kind::kCuda, 1};
constexpr Place kOtherKind{Kind::kEmulated, 0};

// Streams and events are numbered from 1. An event is pending until the test says what became of it.
class CountingKind final : public KindBackend {
 public:
  explicit CountingKind(Kind kind) : kind_(kind) {}

  Kind kind() const override { return kind_; }
  int num_devices() const override { return 2; }
  std::string device_name(int) const override { return "no device"; }
  bool cpu_accessible() const override { return false; }
  Result<void*> allocate(std::size_t, int) override { return unused(); }
  Status deallocate(void*) override { return unused(); }
  std::optional<Allocation> find_allocation(const void*) override { return {}; }
  bool is_current(const Allocation&, const void*) override { return false; }
  Result<void*> allocate_host(std::size_t, int) override { return unused(); }
  void deallocate_host(void*) override {}
  bool host_copy_is_async(const void*, std::size_t) override { return true; }

  Result<StreamHandle> create_stream(int) override {
    if (create_failure.failed()) return create_failure;
    open_streams.insert(++num_streams);
    return handle(num_streams);
  }
  Status destroy_stream(StreamHandle stream) override {
    EXPECT_EQ(open_streams.erase(number(stream)), 1u);
    return {};
  }
  Status copy_async(void*, Place, const void*, Place, std::size_t, StreamHandle stream) override {
    copies_by_stream.push_back(number(stream));
    return copy_failure;
  }
  Result<EventHandle> record(StreamHandle, int) override {
    if (record_failure.failed()) return record_failure;
    outcomes.push_back(Status::pending());
    live_events.insert(outcomes.size());
    return handle(outcomes.size());
  }
  Status query(EventHandle event) override {
    EXPECT_TRUE(live_events.contains(number(event)));
    ++num_queries;
    return outcomes[number(event) - 1];
  }
  Status stream_wait(StreamHandle stream, int, EventHandle event) override {
    waits.push_back({number(stream), number(event)});
    return {};
  }
  void release_event(EventHandle event) override { EXPECT_EQ(live_events.erase(number(event)), 1u); }

  // The n-th event that was recorded is over.
  void end(std::size_t event, Status outcome = {}) { outcomes[event - 1] = std::move(outcome); }

  struct Wait {
    std::size_t stream;
    std::size_t event;
    friend bool operator==(const Wait&, const Wait&) = default;
  };
  Status create_failure;
  Status copy_failure;
  Status record_failure;
  std::size_t num_streams = 0;
  std::set<std::size_t> open_streams;
  std::vector<std::size_t> copies_by_stream;  // each copy's stream
  std::vector<Status> outcomes;               // by event
  std::set<std::size_t> live_events;
  std::vector<Wait> waits;
  int num_queries = 0;

 private:
  static void* handle(std::size_t number) { return reinterpret_cast<void*>(number); }
  static std::size_t number(void* handle) { return reinterpret_cast<std::size_t>(handle); }
  static Status unused() { return Status(StatusCode::kUnsupported, "lanes make no memory"); }

  Kind kind_;
};

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
  static CopyLanes::Piece piece(std::size_t name) {
    CopyLanes::Piece piece;
    piece.offset_bytes = name;
    return piece;
  }
  Status queue(const CopyLanes::Side& side, std::size_t name) {
    return lanes.queue(side, buffer(side.place), buffer(Place()), piece(name));
  }
  Status queue(Place place, std::size_t name) {
    return queue(CopyLanes::Side{place, nullptr, nullptr}, name);
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

  using Names = std::vector<std::size_t>;
  CountingKind cuda{Kind::kCuda};
  CountingKind emulated{Kind::kEmulated};
  CopyLanes lanes{{nullptr, &cuda, &emulated}};
  Status last_status;
};

TEST_F(CopyLanesTest, AnIdleLaneIsUsedAgain) {
  EXPECT_EQ(poll(), Names());
  for (std::size_t i = 1; i <= 10; ++i) {
    ASSERT_TRUE(queue(kDevice0, i).ok());
    EXPECT_EQ(poll(), Names());
    cuda.end(i);
    EXPECT_EQ(poll(), Names{i});
    EXPECT_TRUE(last_status.ok());
  }
  EXPECT_EQ(cuda.num_streams, 1u);
  EXPECT_TRUE(cuda.live_events.empty());
}

TEST_F(CopyLanesTest, FourSharedLanesPerDeviceTakePiecesInTurn) {
  for (std::size_t i = 1; i <= 8; ++i) ASSERT_TRUE(queue(kDevice0, i).ok());
  EXPECT_EQ(cuda.copies_by_stream, (Names{1, 2, 3, 4, 1, 2, 3, 4}));
  ASSERT_TRUE(queue(kDevice1, 9).ok());
  ASSERT_TRUE(queue(kOtherKind, 10).ok());
  EXPECT_EQ(cuda.copies_by_stream.back(), 5u) << "a lane of its device";
  EXPECT_EQ(emulated.num_streams, 1u) << "a lane of its kind";
}

TEST_F(CopyLanesTest, APollAsksAboutTheFirstPieceOfEachLaneOnly) {
  for (std::size_t i = 1; i <= 40; ++i) ASSERT_TRUE(queue(kDevice0, i).ok());
  EXPECT_EQ(cuda.outcomes.size(), 40u) << "events";
  EXPECT_EQ(poll(), Names());
  EXPECT_EQ(cuda.num_queries, 4);
  cuda.end(5);  // second in its lane
  EXPECT_EQ(poll(), Names()) << "a lane's pieces are done in order";
  EXPECT_EQ(cuda.num_queries, 8);
  cuda.end(1);
  EXPECT_EQ(poll(), (Names{1, 5}));
  EXPECT_EQ(cuda.num_queries, 8 + 4 + 2);
}

TEST_F(CopyLanesTest, APieceThatIsDoneMayQueueOthers) {
  ASSERT_TRUE(queue(kDevice0, 1).ok());
  ASSERT_TRUE(queue(kDevice0, 2).ok());
  for (std::size_t event : {1, 2}) cuda.end(event);
  Names names;
  EXPECT_TRUE(lanes.poll([&](const CopyLanes::Piece& done, const Status&) {
    names.push_back(done.offset_bytes);
    for (int i = 0; i < 8; ++i) EXPECT_TRUE(queue(kDevice1, 3).ok());
  }));
  EXPECT_EQ(names, (Names{1, 2}));
  EXPECT_EQ(cuda.num_streams, 2u + 4u);
  EXPECT_EQ(cuda.live_events.size(), 16u);
}

TEST_F(CopyLanesTest, ARefusedCopyIsNotQueued) {
  cuda.copy_failure = Status(StatusCode::kInvalidArgument, "no such memory");
  EXPECT_EQ(queue(kDevice0, 1).message(), "no such memory");
  cuda.copy_failure = Status();
  cuda.create_failure = Status(StatusCode::kOutOfMemory, "no stream");
  EXPECT_EQ(queue(kDevice1, 2).message(), "no stream");
  EXPECT_TRUE(cuda.live_events.empty());
  EXPECT_EQ(poll(), Names());
  EXPECT_EQ(cuda.num_queries, 0);
}

TEST_F(CopyLanesTest, APieceWithoutAnEventGetsOneLater) {
  cuda.record_failure = Status(StatusCode::kOutOfMemory, "no event");
  ASSERT_TRUE(queue(kDevice0, 1).ok()) << "its copy is on its way";
  EXPECT_EQ(poll(), Names());
  cuda.record_failure = Status();
  EXPECT_EQ(poll(), Names());
  cuda.end(1);
  EXPECT_EQ(poll(), Names{1});
  EXPECT_TRUE(last_status.ok());
  EXPECT_EQ(cuda.outcomes.size(), 1u) << "events";

  cuda.record_failure = Status(StatusCode::kInternal, "broken device");
  ASSERT_TRUE(queue(kDevice0, 2).ok());
  EXPECT_EQ(poll(), Names{2});
  EXPECT_EQ(last_status.message(), "broken device");
}

TEST_F(CopyLanesTest, APieceFailsAlone) {
  for (std::size_t i = 1; i <= 5; ++i) ASSERT_TRUE(queue(kDevice0, i).ok());
  cuda.end(1, Status(StatusCode::kInternal, "copy went wrong"));
  EXPECT_EQ(poll(), Names{1});
  EXPECT_EQ(last_status.message(), "copy went wrong");
  cuda.end(5);
  EXPECT_EQ(poll(), Names{5}) << "the next one in its lane";
  EXPECT_TRUE(last_status.ok());
}

TEST_F(CopyLanesTest, AGateWithoutStreamsIsOpen) {
  CopyLanes::Gate gate = gate_of(buffer(kDevice0), buffer(kDevice1));
  EXPECT_FALSE(gate.is_shut());
  EXPECT_EQ(cuda.outcomes.size(), 0u) << "events";
  ASSERT_TRUE(queue(gate.source, 1).ok());
  ASSERT_TRUE(queue(kDevice1, 2).ok());
  lanes.leave(gate);
  EXPECT_EQ(cuda.num_streams, 2u);
  EXPECT_TRUE(cuda.waits.empty());
}

TEST_F(CopyLanesTest, ADirectCopyWaitsForBothStreamsInOneLaneOfItsOwn) {
  CopyLanes::Gate gate = gate_of(buffer(kDevice1, true), buffer(kDevice0, true));
  EXPECT_TRUE(gate.is_shut());
  ASSERT_TRUE(lanes.enter(gate, /*is_staged=*/false).ok());
  EXPECT_FALSE(gate.is_shut());
  EXPECT_EQ(cuda.waits, (std::vector<CountingKind::Wait>{{1, 1}, {1, 2}}));
  EXPECT_TRUE(cuda.live_events.empty()) << "the lane waits, nobody else";
  ASSERT_TRUE(queue(gate.source, 1).ok());
  ASSERT_TRUE(queue(kDevice0, 2).ok());
  EXPECT_EQ(cuda.copies_by_stream, (Names{1, 2})) << "it held up another copy";
}

TEST_F(CopyLanesTest, AStagedCopyHasALaneForEachSide) {
  CopyLanes::Gate gate = gate_of(buffer(kOtherKind, true), buffer(kDevice0, true));
  ASSERT_TRUE(lanes.enter(gate, /*is_staged=*/true).ok());
  EXPECT_EQ(cuda.waits, (std::vector<CountingKind::Wait>{{1, 1}}));
  EXPECT_EQ(emulated.waits, (std::vector<CountingKind::Wait>{{1, 1}}));
  ASSERT_TRUE(queue(gate.source, 1).ok());
  ASSERT_TRUE(queue(gate.destination, 2).ok());
  EXPECT_EQ(cuda.copies_by_stream, Names{1});
  EXPECT_EQ(emulated.copies_by_stream, Names{1});
}

TEST_F(CopyLanesTest, LanesThatWereLeftAreTakenAgainAndNoOthers) {
  ASSERT_TRUE(queue(kDevice0, 1).ok());
  CopyLanes::Gate elsewhere = entered(kDevice1);
  CopyLanes::Gate first = entered(kDevice0);
  CopyLanes::Gate second = entered(kDevice0);
  EXPECT_EQ(cuda.num_streams, 4u);
  lanes.leave(elsewhere);
  lanes.leave(second);
  CopyLanes::Gate third = entered(kDevice0);
  ASSERT_TRUE(queue(third.destination, 2).ok());
  EXPECT_EQ(cuda.copies_by_stream, (Names{1, 4}));
  lanes.leave(first);
  ASSERT_TRUE(queue(kDevice0, 3).ok());
  EXPECT_EQ(cuda.copies_by_stream.back(), 5u) << "a lane that is free for gated copies was shared";
}

TEST_F(CopyLanesTest, ThereIsRoomForFewGatedCopies) {
  std::vector<CopyLanes::Gate> gates;
  while (lanes.has_room()) gates.push_back(entered(gates.size() % 2 == 0 ? kDevice0 : kOtherKind));
  EXPECT_EQ(gates.size(), static_cast<std::size_t>(CopyLanes::kMaxGated));
  lanes.leave(gates.back());
  EXPECT_TRUE(lanes.has_room());
  lanes.leave(gates.back());
  gates.back() = entered(kDevice0);
  EXPECT_FALSE(lanes.has_room()) << "a gate that was left twice counted twice";
}

TEST_F(CopyLanesTest, AGateOpensWhenItsStreamsAreSeenToBeDone) {
  CopyLanes::Gate gate = gate_of(buffer(kOtherKind, true), buffer(kDevice0, true));
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
  EXPECT_EQ(cuda.num_streams + emulated.num_streams, 0u);

  gate = gate_of(buffer(kDevice0, true), buffer(Place()));
  cuda.end(2, Status(StatusCode::kInternal, "another"));
  EXPECT_TRUE(lanes.is_over(gate, failure));
  EXPECT_EQ(failure.message(), "kernel went wrong") << "the first failure counts";
}

TEST_F(CopyLanesTest, AGateThatCouldNotBeSetOrEnteredIsLeft) {
  CopyLanes::Gate gate;
  emulated.record_failure = Status(StatusCode::kInvalidArgument, "no such stream");
  EXPECT_EQ(lanes.set_gate(buffer(kOtherKind, true), buffer(kDevice0, true), gate).message(),
            "no such stream");
  lanes.leave(gate);
  EXPECT_TRUE(cuda.live_events.empty());

  emulated.record_failure = Status();
  emulated.create_failure = Status(StatusCode::kOutOfMemory, "no stream");
  for (int i = 0; i < 2 * CopyLanes::kMaxGated; ++i) {
    gate = gate_of(buffer(kOtherKind, true), buffer(kDevice0, true));
    ASSERT_TRUE(lanes.has_room());
    EXPECT_EQ(lanes.enter(gate, /*is_staged=*/true).message(), "no stream");
    lanes.leave(gate);
  }
  EXPECT_TRUE(cuda.live_events.empty() && emulated.live_events.empty());
  EXPECT_EQ(cuda.num_streams, 1u) << "the lane of the other side was not taken again";
}

TEST_F(CopyLanesTest, CloseWaitsForEachPiece) {
  for (std::size_t i = 1; i <= 6; ++i) ASSERT_TRUE(queue(kDevice0, i).ok());
  CopyLanes::Gate gate = entered(kDevice1);
  int waits = 0;
  const Names passed = close([&](const std::function<bool()>& is_over) {
    EXPECT_FALSE(is_over());
    for (std::size_t event : cuda.live_events) cuda.end(event);
    EXPECT_TRUE(is_over());
    // The next piece has to be waited for again.
    for (std::size_t event : cuda.live_events) cuda.end(event, Status::pending());
    ++waits;
    return true;
  });
  EXPECT_EQ(passed, (Names{1, 5, 2, 6, 3, 4}));
  EXPECT_EQ(waits, 6);
  EXPECT_TRUE(cuda.open_streams.empty());
  EXPECT_TRUE(cuda.live_events.empty());
  lanes.leave(gate);
}

TEST_F(CopyLanesTest, CloseLeavesADeviceThatHangsItsStreams) {
  for (std::size_t i = 1; i <= 5; ++i) ASSERT_TRUE(queue(kDevice0, i).ok());
  for (std::size_t event : {1, 2, 3}) cuda.end(event);
  const Names passed = close([](const std::function<bool()>& is_over) { return is_over(); });
  EXPECT_EQ(passed, (Names{1, 2, 3}));
  EXPECT_EQ(cuda.open_streams, (std::set<std::size_t>{1, 4})) << "those of pieces 5 and 4";
  EXPECT_TRUE(cuda.live_events.empty());
  EXPECT_EQ(poll(), Names());
}

}  // namespace
}  // namespace weft::memory
