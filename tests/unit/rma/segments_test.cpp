#include "rma/segment/segments.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "tests/unit/rma/pgas_job.h"

namespace weft::rma {
namespace {

using test_support::says;
using testing::pgas_error;
using testing::PgasJob;
using testing::PgasWay;

constexpr memory::Place kDevice{memory::Kind::kEmulated, 0};

TEST(Segments, HostMemoryIsMappedByOtherPes) {
  PgasJob job(2);
  Segment segment = job.pgas(0).make_segment<double>(100);
  const auto pointer = segment.pointer<double>();
  EXPECT_EQ(segment.elements<double>()[99], 0.0);
  EXPECT_EQ(job.pgas(0).local(pointer + 3), segment.elements<double>().data() + 3);
  EXPECT_EQ(job.pgas(1).local(pointer), nullptr);
  EXPECT_EQ(job.pgas(1).mapped(pointer), nullptr) << "PE 1 has not learned of the segment";
  job.run_on(1, [&](Pgas& pgas) -> Task<> {
    co_await pgas.learn(pointer.address());
    // From here on PE 0 need not make progress: each operation is over at once.
    for (int i = 0; i < 100; ++i) {
      EXPECT_TRUE(pgas.put(i * 0.5, pointer + i).is_done());
      Value<double> value = pgas.get(pointer + i);
      EXPECT_TRUE(value.is_done());
      EXPECT_EQ(value.get(), i * 0.5);
    }
    EXPECT_NE(pgas.mapped(pointer), nullptr);
  });
  EXPECT_EQ(segment.elements<double>()[99], 49.5);
}

TEST(Segments, TheFirstUseAsksTheOwner) {
  PgasJob job(2);
  Segment segment = job.pgas(0).make_segment<int>(4);
  const auto pointer = segment.pointer<int>(2);
  job.run_on(1, [&](Pgas& pgas) -> Task<> {
    Done put = pgas.put(7, pointer);
    EXPECT_FALSE(put.is_done());
    co_await put;
    EXPECT_EQ(co_await pgas.get(pointer), 7);
  });
  EXPECT_EQ(segment.elements<int>()[2], 7);
}

TEST(Segments, PublishedSegmentsNeedNoQuestion) {
  PgasJob job(3);
  Segment segment = job.pgas(0).make_segment<int>(4);
  segment.publish();
  job.settle();
  for (int pe = 1; pe < 3; ++pe) {
    EXPECT_NE(job.pgas(pe).mapped(segment.pointer<int>()), nullptr);
    EXPECT_TRUE(job.pgas(pe).put(pe, segment.pointer<int>(pe)).is_done());
  }
  EXPECT_EQ(segment.elements<int>()[2], 2);
}

// Without mapping, and with mapping if the owner has PEs on other hosts, of which PE 1 is one. Transfers to device memory need
// the owner's turns here; the next test covers them.
TEST(Segments, PublishedSegmentsNeedNoQuestionForTheirKey) {
  for (const bool owner_maps : {false, true}) {
    for (const bool is_put : {false, true}) {
      PgasJob job(2, PgasWay{"loopback", owner_maps});
      job.pgas(0).set_has_other_hosts(owner_maps);
      job.pgas(1).set_mapping(false);
      Segment segment = job.pgas(0).make_segment<double>(4);
      segment.publish();
      job.settle();
      const auto pointer = segment.pointer<double>(2);
      std::vector<double> got(1);
      Done done = is_put ? job.pgas(1).put(2.5, pointer) : job.pgas(1).get(pointer, std::span(got));
      // PE 0 takes no turn, so it answers no question.
      for (int turn = 0; turn < 1000 && !done.is_done(); ++turn) job.runtime(1).step();
      EXPECT_TRUE(done.is_done()) << "a put: " << is_put << ", the owner maps: " << owner_maps;
      std::move(done).detach();
      job.settle();
    }
  }
}

// As a GlobalArray of Python does it: all ranks know of the segment before one uses it.
TEST(Segments, OperationsOnAPublishedSegmentEndWellIfTheyBeginBeforeItsEnd) {
  for (const memory::Place place : {memory::Place{}, kDevice}) {
    PgasJob job(2, PgasWay{"loopback", false});
    std::optional<Segment> segment = job.pgas(0).make_segment<double>(1000, place);
    segment->publish();
    job.settle();
    std::vector<double> got(1000);
    job.run_on(1, [&](Pgas& pgas) -> Task<> {
      Done get = pgas.get(segment->pointer<double>(), std::span(got));
      segment.reset();
      co_await get;
    });
    job.settle();
    EXPECT_EQ(job.pgas(0).num_segments(), 0U);
  }
}

TEST(Segments, FreedSegmentsAreRefusedEverywhere) {
  for (const memory::Place place : {memory::Place{}, kDevice}) {
    PgasJob job(2);
    std::optional<Segment> segment = job.pgas(0).make_segment<int>(4, place);
    const auto pointer = segment->pointer<int>();
    job.run_on(1, [&](Pgas& pgas) -> Task<> { co_await pgas.put(1, pointer); });
    segment.reset();
    // PE 1 knows at once, without a turn of the owner.
    EXPECT_TRUE(says(test_support::thrown_by([&] { job.pgas(1).put(2, pointer).detach(); }),
                     "byte 0 of segment 1 of PE 0"));
    EXPECT_TRUE(
        says(test_support::thrown_by([&] { job.pgas(1).put(2, pointer).detach(); }), "has been freed"));
    EXPECT_TRUE(
        says(test_support::thrown_by([&] { job.pgas(0).put(2, pointer).detach(); }), "has been freed"));
    job.settle();
    EXPECT_EQ(job.pgas(0).num_segments(), 0U);
    EXPECT_EQ(job.pgas(1).num_segments(), 0U);
    job.run_on(1, [&](Pgas& pgas) -> Task<> {
      EXPECT_TRUE(says(co_await pgas_error([&] { return pgas.put(1, pointer); }), "has been freed"));
      EXPECT_TRUE(
          says(co_await pgas_error([&] { return pgas.put(1, pointer.cast<int>()); }), "segment 1 of PE 0"));
    });
    EXPECT_EQ(job.pgas(1).num_segments(), 0U) << "a question about a freed segment leaves nothing";
  }
}

TEST(Segments, AFreedNumberIsNotUsedAgain) {
  PgasJob job(1);
  const GlobalAddress first = job.pgas(0).make_segment<int>(1).address();
  Segment second = job.pgas(0).make_segment<int>(1);
  EXPECT_NE(first.segment(), second.address().segment());
}

TEST(Segments, AnOwnerThatWaitsInACallAnswersThoseThatUseASegmentFirst) {
  for (const bool maps : {true, false}) {
    PgasJob job(2, PgasWay{"loopback", maps});
    const Segment segment = job.pgas(0).make_segment<int>(1);
    const auto pointer = segment.pointer<int>();
    bool is_learned = false;
    const auto learn = [](Pgas& pgas, GlobalAddress address, bool& over) -> Task<> {
      co_await pgas.learn(address);
      over = true;
    };
    job.runtime(1).spawn(learn(job.pgas(1), pointer.address(), is_learned), "the first use");
    job.run_on(0, [&](Pgas& pgas) -> Task<> {
      co_await runtime::yield_now(pgas.runtime());  // the rest runs in a turn
      for (int turn = 0; turn < 100 && !is_learned; ++turn) {
        job.runtime(1).step();
        pgas.runtime().progress();  // no turn: messages that are not urgent wait
      }
      EXPECT_TRUE(is_learned);
    });
  }
}

TEST(Segments, ReleaseIsReadyWhenNoPeUsesTheMemory) {
  PgasJob job(2);
  std::vector<double> memory(1000, 1.0);
  Segment segment = job.pgas(0).make_segment_at(memory.data(), memory.size() * sizeof(double));
  const auto pointer = segment.pointer<double>();
  std::vector<double> got(1000);
  job.run_on(1, [&](Pgas& pgas) -> Task<> { co_await pgas.get(pointer, std::span(got)); });
  EXPECT_EQ(got, memory);
  Future<> released = std::move(segment).release();
  EXPECT_FALSE(released.is_ready()) << "PE 1 has not answered";
  EXPECT_FALSE(segment);
  job.settle();
  EXPECT_TRUE(released.is_ready());
}

TEST(Segments, AnOperationThatHasBegunEndsWell) {
  for (const bool maps : {true, false}) {
    PgasJob job(2, PgasWay{"loopback", maps});
    std::optional<Segment> segment = job.pgas(0).make_segment<double>(1000, kDevice);
    const auto pointer = segment->pointer<double>();
    job.run_on(1, [&](Pgas& pgas) -> Task<> { co_await pgas.put(1.0, pointer); });
    std::vector<double> got(1000);
    job.run_on(1, [&](Pgas& pgas) -> Task<> {
      Done get = pgas.get(pointer, std::span(got));
      segment.reset();
      co_await get;
    });
    EXPECT_EQ(got[0], 1.0);
    job.settle();
    EXPECT_EQ(job.pgas(0).num_segments(), 0U);
  }
}

TEST(Segments, MemoryOfTheCallerIsReachedThroughTheMachine) {
  for (const char* machine : {"loopback", "ucx"}) {
    PgasJob job(2, PgasWay{machine, true});
    std::vector<int> memory(100, 5);
    Segment segment = job.pgas(0).make_segment_at(memory.data(), memory.size() * sizeof(int));
    const auto pointer = segment.pointer<int>();
    EXPECT_TRUE(job.pgas(0).put(6, pointer).is_done()) << "the owner reaches it itself";
    job.run_on(1, [&](Pgas& pgas) -> Task<> {
      EXPECT_EQ(co_await pgas.get(pointer), 6);
      EXPECT_EQ(pgas.mapped(pointer), nullptr);
      co_await pgas.put(9, pointer + 99);
      EXPECT_EQ(co_await pgas.fetch_add(pointer + 99, 2), 9);
    });
    EXPECT_EQ(memory[99], 11);
  }
}

TEST(Segments, DeviceMemoryIsMappedByOtherDevices) {
  PgasJob job(2);
  Segment segment = job.pgas(0).make_segment<double>(10, kDevice);
  job.run_on(1, [&](Pgas& pgas) -> Task<> {
    co_await pgas.put(2.5, segment.pointer<double>(3));
    EXPECT_NE(pgas.mapped(segment.pointer<double>()), nullptr);
    EXPECT_EQ(co_await pgas.get(segment.pointer<double>(3)), 2.5);
  });
  EXPECT_EQ(reinterpret_cast<double*>(job.bytes(0, segment).data())[3], 2.5);
}

TEST(Segments, APeWithoutDevicesTakesPart) {
  PgasJob job(2, PgasWay{}, /*pe_without_devices=*/1);
  Segment segment = job.pgas(0).make_segment<double>(10, kDevice);
  job.run_on(1, [&](Pgas& pgas) -> Task<> {
    co_await pgas.put(2.5, segment.pointer<double>(3));
    EXPECT_EQ(pgas.mapped(segment.pointer<double>()), nullptr);
    EXPECT_EQ(co_await pgas.get(segment.pointer<double>(3)), 2.5);
    EXPECT_EQ(co_await pgas.fetch_add(segment.pointer<double>(3), 1.0), 2.5);
  });
  EXPECT_EQ(reinterpret_cast<double*>(job.bytes(0, segment).data())[3], 3.5);
  EXPECT_TRUE(
      says(test_support::thrown_by([&] { (void)job.pgas(1).make_segment<int>(1, kDevice); }), "emulated"));
}

TEST(Segments, ASegmentInsideOfAnAllocationIsBounded) {
  PgasJob job(2);
  testing::TestMemory memory(job.memory(0), kDevice, 1000);
  auto* const inside = static_cast<std::byte*>(memory.buffer().data) + 100;
  Segment segment = job.pgas(0).make_segment_at(inside, 50);
  job.run_on(1, [&](Pgas& pgas) -> Task<> {
    EXPECT_EQ(co_await pgas.get(segment.pointer<std::uint8_t>(7)), memory.filled()[107]);
    EXPECT_TRUE(says(
        co_await pgas_error([&] { return pgas.put(std::uint8_t{1}, segment.pointer<std::uint8_t>(50)); }),
        "byte 50"));
  });
  EXPECT_EQ(memory.now(), memory.filled());
  EXPECT_TRUE(says(test_support::thrown_by([&] { (void)job.pgas(0).make_segment_at(inside, 901); }),
                   "leaves its allocation"));
  Future<> released = std::move(segment).release();
  job.settle();
  EXPECT_TRUE(released.is_ready());
}

TEST(Segments, SizesAreChecked) {
  PgasJob job(1);
  EXPECT_TRUE(says(test_support::thrown_by([&] { (void)job.pgas(0).make_segment<int>(0); }), "0 bytes"));
  EXPECT_TRUE(
      says(test_support::thrown_by([&] { (void)job.pgas(0).make_segment<int>(std::size_t{1} << 62); }),
           "address space"));
  EXPECT_TRUE(
      says(test_support::thrown_by([&] { (void)job.pgas(0).make_segment<int>(std::size_t{1} << 50); }),
           "cannot be made"));
  EXPECT_TRUE(
      says(test_support::thrown_by([&] { (void)job.pgas(0).make_segment_at(nullptr, 8); }), "give memory"));
}

TEST(Segments, OutliveTheJob) {
  Segment segment;
  {
    PgasJob job(2);
    segment = job.pgas(0).make_segment<int>(10);
    job.run_on(1, [&](Pgas& pgas) -> Task<> { co_await pgas.put(1, segment.pointer<int>()); });
  }
  EXPECT_TRUE(segment);
  EXPECT_TRUE(says(test_support::thrown_by([&] { (void)std::move(segment).release(); }), "has ended"));
}

TEST(Segments, ManySegmentsShareTheCache) {
  PgasJob job(2);
  std::vector<Segment> segments;
  for (int i = 0; i < 600; ++i) segments.push_back(job.pgas(i % 2).make_segment<int>(1));
  job.run_on(0, [&](Pgas& pgas) -> Task<> {
    for (int round = 0; round < 2; ++round) {
      for (int i = 0; i < 600; ++i) {
        const auto pointer = segments[static_cast<std::size_t>(i)].pointer<int>();
        EXPECT_EQ(co_await pgas.fetch_add(pointer, i), round * i);
      }
    }
  });
  for (int i = 0; i < 600; ++i) EXPECT_EQ(segments[static_cast<std::size_t>(i)].elements<int>()[0], 2 * i);
}

TEST(Segments, EndInFlightAtTheEndOfTheJob) {
  Segment segment;
  std::string error;
  {
    PgasJob job(2);
    segment = job.pgas(0).make_segment<int>(10);
    // No PE takes a turn, so the question is never answered.
    job.pgas(1).put(1, segment.pointer<int>()).then([&](const Status& status) {
      error = status.to_string();
    });
    (void)job.pgas(1).get(segment.pointer<int>()).as_future();
    (void)job.pgas(1).fetch_add(segment.pointer<int>(), 1).as_future();
  }
  EXPECT_EQ(error, "") << "callbacks of a job that has ended do not run";
}

}  // namespace
}  // namespace weft::rma
