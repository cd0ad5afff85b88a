// Groups of device arrays: misuse, their life, and the end of the job.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/busy_stream.h"
#include "tests/support/errors.h"
#include "tests/unit/pgas/team_job.h"
#include "tests/unit/queued/group_cases.h"

namespace weft::testing {
namespace {

using memory::ElementType;
using pgas::DeviceGroup;
using pgas::World;
using test_support::says;

constexpr ElementType kFloat = ElementType::kFloat32;

Future<DeviceGroup> small_group(World& world) {
  return world.device_group(emulated_device(world.runtime()), {1024});
}

std::string refused(const std::function<void()>& call) { return test_support::thrown_by(call); }

Task<> misuse(World& world) {
  const DeviceGroup group = co_await small_group(world);
  const DeviceBits in(world.runtime(), Bits(64));
  const DeviceBits out(world.runtime(), Bits(128));
  const memory::Place device = emulated_device(world.runtime());
  const DeviceArray<float> elsewhere(world.runtime(), 16,
                                     {memory::Kind::kEmulated, static_cast<std::int16_t>(1 - device.device)});
  std::vector<float> host(16);
  const auto reduce = [&](const void* from, void* to, std::size_t count = 16) {
    return refused([&] { group.all_reduce(from, to, count, kFloat, Reducer::kSum, nullptr); });
  };
  EXPECT_TRUE(says(reduce(host.data(), out.data()), "the input is memory of host"));
  EXPECT_TRUE(says(reduce(in.data(), host.data()), "the output is memory of host"));
  EXPECT_TRUE(says(reduce(in.data(), elsewhere.buffer().data), "and the group is one of emulated:"));
  EXPECT_TRUE(says(reduce(in.data(), nullptr), "the output is memory of host"));
  EXPECT_TRUE(says(reduce(in.data(), out.data(), 1000), "leaves its allocation"));
  EXPECT_TRUE(says(reduce(in.data(), out.data(), std::size_t{1} << 62), "more than an address space has"));
  EXPECT_TRUE(says(reduce(in.data() + 2, out.data(), 4), "the address of the input is no multiple of 4"));
  EXPECT_TRUE(says(reduce(out.data(), out.data() + 4, 8), "input and output overlap"));
  EXPECT_TRUE(says(refused([&] {
                     group.all_gather(out.data() + (1 - world.rank()) * 32, out.data(), 8, kFloat, nullptr);
                   }),
                   "input and output overlap"));
  EXPECT_TRUE(says(refused([&] {
                     group.reduce_scatter(out.data(), out.data() + (1 - world.rank()) * 32 + 4, 16, kFloat,
                                          Reducer::kSum, nullptr);
                   }),
                   "input and output overlap"));
  for (const Reducer other : {Reducer::kLogicalAnd, Reducer::kGather, Reducer::kCustom}) {
    EXPECT_TRUE(says(refused([&] { group.all_reduce(in.data(), out.data(), 16, kFloat, other, nullptr); }),
                     "sum, product, min and max"));
  }
  EXPECT_TRUE(
      says(refused([&] { group.reduce_scatter(in.data(), out.data(), 15, kFloat, Reducer::kSum, nullptr); }),
           "15 elements have no equal parts for 2 members"));
  EXPECT_TRUE(
      says(refused([&] { group.all_to_all(in.data(), out.data(), 15, kFloat, nullptr); }), "no equal parts"));
  for (const int root : {-1, 2}) {
    EXPECT_TRUE(says(refused([&] { group.broadcast(in.data(), 16, kFloat, root, nullptr); }),
                     "the group has ranks 0 to 1"));
    EXPECT_TRUE(
        says(refused([&] { group.reduce(in.data(), out.data(), 16, kFloat, Reducer::kSum, root, nullptr); }),
             "the group has ranks 0 to 1"));
  }
  EXPECT_TRUE(says(refused([&] {
                     group.all_reduce(in.data(), out.data(), 16, ElementType::kByte, Reducer::kSum, nullptr);
                   }),
                   "bytes are moved and not combined"));
  const auto no_stream = reinterpret_cast<memory::StreamHandle>(7);
  EXPECT_TRUE(
      says(refused([&] { group.all_reduce(in.data(), out.data(), 16, kFloat, Reducer::kSum, no_stream); }),
           "no stream"));
  EXPECT_NE(refused([&] { base::pack(group); }), "");
  // Nothing has been queued: the group works.
  const GroupCase one{GroupOperation::kAllReduce, 16, kFloat, Reducer::kSum, 0, false, 1};
  const QueuedCase queued(world, group, one, nullptr);
  co_await group.over();
  queued.check();
}

TEST(DeviceGroupUse, Misuse) {
  TeamJob job(2);
  EXPECT_EQ(job.run_on_all(&misuse), "");
}

TEST(DeviceGroupUse, NoElementsQueueNothing) {
  TeamJob job(2);
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> {
    const DeviceGroup group = co_await small_group(world);
    if (world.rank() == 0) {
      group.all_reduce(nullptr, nullptr, 0, kFloat, Reducer::kSum, nullptr);
      group.broadcast(nullptr, 0, kFloat, 1, nullptr);
    }
    co_await group.over();
  }),
            "");
}

// Any number of them, small and large.
TEST(DeviceGroupUse, BytesAreMoved) {
  TeamJob job(3);
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> {
    const DeviceGroup group = co_await small_group(world);
    std::vector<std::unique_ptr<QueuedCase>> queued;
    for (const std::size_t bytes : {1, 5, 341, 1023, 3001}) {
      for (const GroupOperation operation :
           {GroupOperation::kBroadcast, GroupOperation::kAllGather, GroupOperation::kAllToAll}) {
        const auto seed = static_cast<unsigned>(queued.size());
        const GroupCase one{operation, bytes, ElementType::kByte, Reducer::kSum, 1, seed % 2 == 0, seed};
        queued.push_back(std::make_unique<QueuedCase>(world, group, one, nullptr));
      }
    }
    co_await group.over();
    for (const std::unique_ptr<QueuedCase>& one : queued) one->check();
  }),
            "");
}

// Work behind it waits for the streams of all.
TEST(DeviceGroupUse, ABarrier) {
  TeamJob job(3);
  int num_arrived = 0;
  EXPECT_EQ(job.run_on_all([&](World& world) -> Task<> {
    const DeviceGroup group = co_await small_group(world);
    for (int round = 1; round <= 3; ++round) {
      for (int turn = 0; turn < world.rank(); ++turn) co_await runtime::yield_now(world.runtime());
      ++num_arrived;
      group.barrier(nullptr);
      co_await group.over();
      EXPECT_GE(num_arrived, 3 * round);
    }
    co_await group.close();
  }),
            "");
}

TEST(DeviceGroupUse, AClosedGroup) {
  TeamJob job(2);
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> {
    const DeviceGroup group = co_await small_group(world);
    const DeviceBits bits(world.runtime(), Bits(64));
    group.all_reduce(bits.data(), bits.data(), 16, kFloat, Reducer::kSum, nullptr);
    const Future<> closed = group.close();
    const auto is_closed = [](const std::function<void()>& call) {
      return says(refused(call), "has been closed");
    };
    EXPECT_TRUE(is_closed([&] { group.broadcast(bits.data(), 16, kFloat, 0, nullptr); }));
    EXPECT_TRUE(is_closed([&] { static_cast<void>(group.over()); }));
    EXPECT_TRUE(is_closed([&] { static_cast<void>(group.close()); }));
    EXPECT_TRUE(is_closed([&] { group.keep(nullptr, nullptr); }));
    EXPECT_TRUE(is_closed([&] { group.barrier(nullptr); }));
    co_await closed;
    EXPECT_EQ(group.size(), 2);
  }),
            "");
  for (int pe = 0; pe < 2; ++pe) EXPECT_EQ(job.runtime(pe).model<pgas::Pgas>().num_segments(), 0U);
}

// Its memory stays until the streams of all members are done, and goes then.
TEST(DeviceGroupUse, HandlesMayGoWhileStreamsWork) {
  TeamJob job(2);
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> {
    std::vector<std::unique_ptr<QueuedCase>> queued;
    {
      const DeviceGroup group = co_await small_group(world);
      for (unsigned seed = 0; seed < 12; ++seed) {
        const GroupCase one{static_cast<GroupOperation>(seed % kNumGroupOperations),
                            600,
                            kFloat,
                            Reducer::kSum,
                            1,
                            true,
                            seed};
        queued.push_back(std::make_unique<QueuedCase>(world, group, one, nullptr));
        if (world.rank() == 1) co_await runtime::yield_now(world.runtime());
      }
    }
    co_await world.barrier();
    co_await world.runtime().quiescence();
    for (const std::unique_ptr<QueuedCase>& one : queued) one->check();
  }),
            "");
  for (int pe = 0; pe < 2; ++pe) EXPECT_EQ(job.runtime(pe).model<pgas::Pgas>().num_segments(), 0U);
}

TEST(DeviceGroupUse, AKeeperStaysUntilTheStreamIsDone) {
  TeamJob job(1);
  bool may_end = false;
  const auto keeper = std::make_shared<int>(0);
  EXPECT_EQ(job.run_on_all([&](World& world) -> Task<> {
    const DeviceGroup group = co_await small_group(world);
    const memory::StreamHandle stream = stream_with(emulated(world.runtime().memory()), 0, until(may_end));
    group.keep(keeper, stream);
    co_await runtime::yield_now(world.runtime());
    EXPECT_EQ(keeper.use_count(), 2);
    may_end = true;
    co_await group.over();
    EXPECT_EQ(keeper.use_count(), 1);
  }),
            "");
}

// A failure of a stream is that of over().
TEST(DeviceGroupUse, AFailureOfAStream) {
  TeamJob job(1);
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> {
    const DeviceGroup group = co_await small_group(world);
    const DeviceBits in(world.runtime(), Bits(64));
    const memory::StreamHandle stream = stream_with(emulated(world.runtime().memory()), 0, [] {
      return base::Status(base::StatusCode::kInternal, "a fault of the test");
    });
    group.broadcast(in.data(), 16, kFloat, 0, stream);
    group.keep(nullptr, stream);
    EXPECT_TRUE(says(co_await test_support::error_of(group.over()), "a fault of the test"));
    co_await group.close();
  }),
            "");
}

// One member leaves an operation out.
TEST(DeviceGroupUse, AJobWhoseStreamsWaitEnds) {
  InProcessJob job(2, "loopback", {}, machine::StagingMode::kDevice, -1, std::chrono::milliseconds(1));
  for (int pe = 0; pe < 2; ++pe) job.runtime(pe).install<pgas::Pgas>();
  const DeviceBits bits(job.runtime(0), Bits(64));
  DeviceGroup groups[2];
  Future<> over;
  const auto make = [&](World& world) -> Task<> { groups[world.rank()] = co_await small_group(world); };
  for (int pe = 0; pe < 2; ++pe) job.runtime(pe).spawn(make(pgas::world_of(job.runtime(pe))), "the test");
  ASSERT_EQ(job.run_until([&] { return groups[0] && groups[1]; }), "");
  groups[0].all_reduce(bits.data(), bits.data(), 16, kFloat, Reducer::kSum, nullptr);
  over = groups[0].over();
  ASSERT_EQ(job.run([](Runtime&) -> Task<> { co_return; }), "");
  EXPECT_FALSE(over.is_ready());
  for (int pe = 0; pe < 2; ++pe) job.runtime(pe).close();
  EXPECT_FALSE(job.memory(0).hang().ok());
  EXPECT_TRUE(job.memory(1).hang().ok());
}

TEST(DeviceGroupUse, AHandleMayOutliveTheJob) {
  DeviceGroup groups[2];
  {
    TeamJob job(2);
    EXPECT_EQ(job.run_on_all([&](World& world) -> Task<> {
      groups[world.rank()] = co_await small_group(world);
      const GroupCase one{GroupOperation::kAllReduce, 16, kFloat, Reducer::kSum, 0, true, 1};
      const QueuedCase queued(world, groups[world.rank()], one, nullptr);
      co_await groups[world.rank()].over();
    }),
              "");
    for (int pe = 0; pe < 2; ++pe) job.runtime(pe).close();
    EXPECT_TRUE(
        says(refused([&] { groups[0].broadcast(nullptr, 0, kFloat, 0, nullptr); }), "its job has ended"));
  }
  EXPECT_EQ(groups[1].rank(), 1);
}

}  // namespace
}  // namespace weft::testing
