// Coroutines that wait for words, which kernels, streams and puts of other PEs set.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/memory/outcome.h"
#include "tests/unit/rma/pgas_job.h"

namespace weft::rma {
namespace {

using base::Status;
using base::StatusCode;
using testing::PgasJob;
using testing::PgasWay;
using FlagWord = std::uint32_t;

constexpr memory::Place kFlagDevice{memory::Kind::kEmulated, 0};
constexpr memory::Place kFlagPlaces[] = {{}, kFlagDevice};

// PE 0 has a segment of words, which PE 1 has learned.
struct Flags {
  explicit Flags(PgasJob& job_in, memory::Place place, std::size_t count = 4)
      : job(job_in), segment(job.pgas(0).make_segment<FlagWord>(count, place)) {
    for (std::size_t i = 0; i < count; ++i) word(i) = 0;
    const GlobalAddress address = segment.address();
    job.run_on(1, [address](Pgas& pgas) -> Task<> { co_await pgas.learn(address); });
  }

  GlobalPtr<FlagWord> pointer(std::ptrdiff_t index = 0) const { return segment.pointer<FlagWord>(index); }
  FlagWord& word(std::size_t index) {
    return *(reinterpret_cast<FlagWord*>(job.bytes(0, segment).data()) + index);
  }
  void set(std::size_t index, FlagWord value) { std::atomic_ref(word(index)).store(value); }
  Done wait(std::ptrdiff_t index, FlagWord value) { return job.pgas(0).wait_for(pointer(index), value); }
  void take_turns(int count = 300) {
    for (int turn = 0; turn < count; ++turn) {
      for (int pe = 0; pe < 2; ++pe) job.runtime(pe).step();
    }
  }
  // A kernel on the device of PE 1, which stores by the address by which that device reaches the word.
  void raise_by_kernel(std::ptrdiff_t index, FlagWord value) {
    const GlobalMemory::HeldMemory held =
        job.pgas(1).hold_for_kernels(pointer(index).address(), sizeof(FlagWord), kFlagDevice);
    memory::EmulatedBackend& kind = testing::emulated(job.memory(1));
    ASSERT_TRUE(kind.launch(nullptr, 0,
                            [&kind, held, value] {
                              auto view = kind.device_view(held.memory.data, sizeof(FlagWord));
                              if (!view.ok()) return view.status();
                              std::atomic_ref(*static_cast<FlagWord*>(*view)).store(value);
                              return Status();
                            })
                    .ok());
    memory::Outcome over;
    ASSERT_TRUE(job.memory(1).when_queued_done(kFlagDevice, nullptr, &over).is_pending());
    ASSERT_EQ(job.run_until([&] { return over.calls == 1; }), "");
    EXPECT_TRUE(over.status.ok()) << over.status.to_string();
  }

  PgasJob& job;
  Segment segment;
};

Task<> wait_and_count(Pgas& pgas, GlobalPtr<FlagWord> flag, FlagWord rounds, std::vector<FlagWord>& seen) {
  for (FlagWord round = 1; round <= rounds; ++round) {
    co_await pgas.wait_for(flag, round);
    seen.push_back(round);
  }
}

TEST(FlagWait, OfAKernelOfAnotherPe) {
  for (const char* const machine : {"loopback", "ucx"}) {
    PgasJob job(2, PgasWay{machine, true});
    Flags flags(job, kFlagDevice);
    std::vector<FlagWord> seen;
    job.runtime(0).spawn(wait_and_count(job.pgas(0), flags.pointer(1), 3, seen), "the test");
    for (FlagWord round = 1; round <= 3; ++round) {
      flags.take_turns();
      EXPECT_EQ(seen.size(), round - 1);
      flags.raise_by_kernel(1, round);
      ASSERT_EQ(job.run_until([&] { return seen.size() == round; }), "");
    }
  }
}

TEST(FlagWait, OfAStreamOfAnotherPe) {
  PgasJob job(2);
  Flags flags(job, kFlagDevice);
  Done wait = flags.wait(0, 7);
  job.pgas(1).signal_on_stream(flags.pointer(), 7, kFlagDevice, nullptr).detach();
  ASSERT_EQ(job.run_until([&] { return wait.is_done(); }), "");
}

TEST(FlagWait, OfAPutOfAnotherPe) {
  for (const bool maps : {true, false}) {
    for (const memory::Place place : kFlagPlaces) {
      PgasJob job(2, PgasWay{"loopback", maps});
      Flags flags(job, place);
      Done wait = flags.wait(2, 1);
      flags.take_turns();
      EXPECT_FALSE(wait.is_done());
      job.run_on(1, [to = flags.pointer(2)](Pgas& pgas) -> Task<> { co_await pgas.put(FlagWord{1}, to); });
      ASSERT_EQ(job.run_until([&] { return wait.is_done(); }), "");
    }
  }
}

TEST(FlagWait, OfAWordThatHasTheValue) {
  PgasJob job(2);
  for (const memory::Place place : kFlagPlaces) {
    Flags flags(job, place);
    flags.set(0, 3);
    flags.set(1, 5);  // past 0xffffffff
    Done first = flags.wait(0, 3);
    Done second = flags.wait(1, 0xffffffff);
    EXPECT_EQ(first.is_done(), place.is_host()) << "a device has to be asked";
    ASSERT_EQ(job.run_until([&] { return first.is_done() && second.is_done(); }), "");
  }
}

TEST(FlagWait, SeveralAtOnce) {
  constexpr std::size_t kCount = 40;
  PgasJob job(2);
  for (const memory::Place place : kFlagPlaces) {
    Flags flags(job, place, kCount);
    std::vector<Done> waits;
    for (std::size_t i = 0; i < kCount; ++i) waits.push_back(flags.wait(static_cast<std::ptrdiff_t>(i), 1));
    waits.push_back(flags.wait(0, 2));  // two for one word
    for (std::size_t i = kCount; i-- > 0;) {
      EXPECT_FALSE(waits[i].is_done());
      flags.set(i, 1);
      ASSERT_EQ(job.run_until([&] { return waits[i].is_done(); }), "");
    }
    EXPECT_FALSE(waits[kCount].is_done());
    flags.set(0, 2);
    ASSERT_EQ(job.run_until([&] { return waits[kCount].is_done(); }), "");
  }
}

// Quiescence does not count it, and the PE serves messages meanwhile.
TEST(FlagWait, LeavesThePeFreeForOtherWork) {
  PgasJob job(2);
  Flags flags(job, kFlagDevice);
  Done wait = flags.wait(0, 1);
  job.run_on(1, [](Pgas& pgas) -> Task<> { co_await pgas.runtime().quiescence(); });
  EXPECT_FALSE(wait.is_done());
  flags.set(0, 1);
  ASSERT_EQ(job.run_until([&] { return wait.is_done(); }), "");
}

TEST(FlagWait, KeepsAFreedSegment) {
  PgasJob job(2);
  for (const memory::Place place : kFlagPlaces) {
    auto flags = std::make_unique<Flags>(job, place);
    FlagWord& word = flags->word(0);
    const GlobalPtr<FlagWord> pointer = flags->pointer();
    Done wait = flags->wait(0, 1);
    runtime::Future<> released = std::move(flags->segment).release();
    flags->take_turns();
    EXPECT_FALSE(released.is_ready());
    EXPECT_TRUE(test_support::says(
        test_support::thrown_by([&] { job.pgas(0).wait_for(pointer, 1).detach(); }), "has been freed"));
    std::atomic_ref(word).store(1);
    ASSERT_EQ(job.run_until([&] { return wait.is_done() && released.is_ready(); }), "");
    EXPECT_EQ(job.pgas(0).num_segments(), 0U);
  }
}

TEST(FlagWait, Misuse) {
  PgasJob job(2);
  for (const memory::Place place : kFlagPlaces) {
    Flags flags(job, place);
    const auto refused = [&](int pe, GlobalPtr<FlagWord> at, const std::string& why) {
      const std::string error = test_support::thrown_by([&] { job.pgas(pe).wait_for(at, 1).detach(); });
      EXPECT_TRUE(test_support::says(error, why));
    };
    refused(0, nullptr, "the null pointer");
    refused(0, flags.pointer(4), "does not have 4 bytes behind it");
    refused(0, GlobalPtr<FlagWord>(flags.pointer().address().moved_by(2)), "a multiple of 4");
    refused(1, flags.pointer(), "keep the word in a segment of the PE that waits");
    const Segment unknown = job.pgas(0).make_segment<FlagWord>(1, place);
    refused(1, unknown.pointer<FlagWord>(), "PE 1 polls words of its own segments alone");
  }
}

TEST(HoldForKernels, SaysWhyADeviceDoesNotReachMemory) {
  PgasJob job(2);
  Flags flags(job, kFlagDevice);
  const Flags host(job, {});
  const Segment unknown = job.pgas(0).make_segment<FlagWord>(1, kFlagDevice);
  const auto refused = [&](const GlobalAddress& address, memory::Place device, const std::string& why) {
    const std::string error = test_support::thrown_by(
        [&] { static_cast<void>(job.pgas(1).hold_for_kernels(address, sizeof(FlagWord), device)); });
    EXPECT_TRUE(test_support::says(error, why));
  };
  const memory::Place other{memory::Kind::kEmulated, 1};
  refused(unknown.address(), kFlagDevice, "await learn() before");
  refused(flags.segment.address(), other, "this PE reaches it on emulated:0");
  refused(flags.segment.address(), {}, "there is no such device");
  refused(flags.pointer(4).address(), kFlagDevice, "does not have 4 bytes behind it");
  refused(host.segment.address(), kFlagDevice, "reach device memory alone");
  PgasJob unmapped(2, PgasWay{"loopback", false});
  Flags far(unmapped, kFlagDevice);
  EXPECT_TRUE(test_support::says(test_support::thrown_by([&] {
                                   static_cast<void>(unmapped.pgas(1).hold_for_kernels(far.segment.address(),
                                                                                       4, kFlagDevice));
                                 }),
                                 "the device does not reach the segment"));
}

TEST(FlagWait, TheEndOfAJobEndsIt) {
  for (const memory::Place place : kFlagPlaces) {
    PgasJob job(2);
    Flags flags(job, place);
    std::vector<FlagWord> seen;
    job.runtime(0).spawn(wait_and_count(job.pgas(0), flags.pointer(1), 3, seen), "the test");
    runtime::OperationState* const wait = flags.wait(0, 9).release();
    flags.take_turns();
    ASSERT_EQ(job.run([](Runtime&) -> Task<> { co_return; }), "");
    EXPECT_FALSE(wait->is_done());
    for (int pe = 0; pe < 2; ++pe) job.runtime(pe).close();
    EXPECT_TRUE(job.memory(0).hang().ok());
    ASSERT_TRUE(wait->is_done());
    EXPECT_EQ(wait->status().code(), StatusCode::kClosed);
    const std::string why(wait->status().message());
    EXPECT_TRUE(test_support::says(why, "of PE 0")) << why;
    EXPECT_TRUE(test_support::says(why, "the job ended before the word had reached 9"));
    wait->observe();
    wait->drop_handle();
    EXPECT_TRUE(seen.empty());
  }
}

TEST(FlagWait, TheEndOfAJobEndsThatOfAFreedSegment) {
  for (const char* const machine : {"loopback", "ucx"}) {
    for (const memory::Place place : kFlagPlaces) {
      PgasJob job(2, PgasWay{machine, true});
      Flags flags(job, place);
      runtime::OperationState* const wait = flags.wait(0, 9).release();
      flags.segment = {};
      flags.take_turns();
      ASSERT_EQ(job.run([](Runtime&) -> Task<> { co_return; }), "");
      for (int pe = 0; pe < 2; ++pe) job.runtime(pe).close();
      EXPECT_EQ(wait->status().code(), StatusCode::kClosed);
      wait->observe();
      wait->drop_handle();
    }
  }
}

}  // namespace
}  // namespace weft::rma
