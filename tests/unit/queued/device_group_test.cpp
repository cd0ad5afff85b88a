// Collectives of device arrays: what they give, for all operations, types and sizes.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "queued/collective/group_state.h"
#include "tests/unit/pgas/team_job.h"
#include "tests/unit/queued/group_cases.h"

namespace weft::testing {
namespace {

using memory::ElementType;
using pgas::DeviceGroup;
using pgas::World;

constexpr std::size_t kPlaceBytes = 512;
constexpr Reducer kReducers[] = {Reducer::kSum, Reducer::kProduct, Reducer::kMin, Reducer::kMax};

// Sizes around those of a place, and of several, also for parts of `size` members.
std::vector<std::size_t> sizes_to_try(ElementType type, int size) {
  const std::size_t place = kPlaceBytes / size_of(type);
  const std::size_t part = place / static_cast<std::size_t>(size);
  std::vector<std::size_t> sizes = {0, 1, 7, place - 1, place, place + 1, 2 * place, 3 * place + 5};
  for (const std::size_t one : {part - 1, part, part + 1}) sizes.push_back(one);
  std::ranges::sort(sizes);
  const auto repeated = std::ranges::unique(sizes);
  sizes.erase(repeated.begin(), repeated.end());
  return sizes;
}

std::vector<GroupCase> all_cases(ElementType type, int size) {
  std::vector<GroupCase> cases;
  for (const std::size_t elements : sizes_to_try(type, size)) {
    for (int operation = 0; operation < kNumGroupOperations; ++operation) {
      for (const bool is_in_place : {false, true}) {
        const auto number = static_cast<unsigned>(cases.size());
        cases.push_back({static_cast<GroupOperation>(operation), elements, type, kReducers[number / 7 % 4],
                         static_cast<int>(number / 5) % size, is_in_place, number});
      }
    }
  }
  return cases;
}

// What is queued on `to` runs behind what has been queued on `from`.
void order_streams(World& world, memory::StreamHandle from, memory::StreamHandle to) {
  memory::EmulatedBackend& kind = emulated(world.runtime().memory());
  const auto event = kind.record(from, 0);
  ASSERT_TRUE(event.ok() && kind.stream_wait(to, 0, event.value()).ok());
  kind.release_event(event.value());
}

class DeviceGroups : public ::testing::TestWithParam<std::tuple<int, ElementType>> {
 protected:
  int size() const { return std::get<0>(GetParam()); }
  ElementType type() const { return std::get<1>(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Forms, DeviceGroups,
                         ::testing::Combine(::testing::Values(1, 2, 3, 4),
                                            ::testing::ValuesIn(kElementTypes)));

// All operations are in flight at once. Each seventh goes to the other stream.
TEST_P(DeviceGroups, AllOperations) {
  TeamJob job(size());
  const std::vector<GroupCase> cases = all_cases(type(), size());
  EXPECT_EQ(job.run_on_all([&](World& world) -> Task<> {
    const memory::Place device = emulated_device(world.runtime());
    const DeviceGroup group = co_await world.device_group(device, {kPlaceBytes});
    EXPECT_EQ(group.rank(), world.rank());
    EXPECT_EQ(group.size(), world.size());
    EXPECT_EQ(group.device(), device);
    memory::EmulatedBackend& kind = emulated(world.runtime().memory());
    memory::StreamHandle stream = kind.create_stream(0).value();
    memory::StreamHandle other = kind.create_stream(0).value();
    std::vector<std::unique_ptr<QueuedCase>> queued;
    for (const GroupCase& one : cases) {
      queued.push_back(std::make_unique<QueuedCase>(world, group, one, stream));
      if (one.seed % 7 != 0) continue;
      order_streams(world, stream, other);
      std::swap(stream, other);
    }
    co_await group.over();
    for (const std::unique_ptr<QueuedCase>& one : queued) one->check();
    co_await group.close();
  }),
            "");
  for (int pe = 0; pe < size(); ++pe) EXPECT_EQ(job.runtime(pe).model<pgas::Pgas>().num_segments(), 0U);
}

// One member queues all and lets its stream run; the others come later, one operation a turn.
TEST_P(DeviceGroups, AMemberThatIsAheadWaits) {
  TeamJob job(size());
  const std::vector<GroupCase> cases = all_cases(type(), size());
  EXPECT_EQ(job.run_on_all([&](World& world) -> Task<> {
    const DeviceGroup group = co_await world.device_group(emulated_device(world.runtime()), {kPlaceBytes});
    const memory::StreamHandle stream = emulated(world.runtime().memory()).create_stream(0).value();
    std::vector<std::unique_ptr<QueuedCase>> queued;
    for (const GroupCase& one : cases) {
      queued.push_back(std::make_unique<QueuedCase>(world, group, one, stream));
      for (int turn = 0; turn < world.rank(); ++turn) co_await runtime::yield_now(world.runtime());
    }
    co_await group.over();
    for (const std::unique_ptr<QueuedCase>& one : queued) one->check();
  }),
            "");
}

// Work of other lengths lies between the operations of each member's stream, so that each is ahead now and then.
TEST(DeviceGroupDelays, RandomOperationsBetweenRandomDelays) {
  constexpr int kSize = 3;
  constexpr unsigned kOperations = 300;
  TeamJob job(kSize);
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> {
    const DeviceGroup group = co_await world.device_group(emulated_device(world.runtime()), {kPlaceBytes});
    memory::EmulatedBackend& kind = emulated(world.runtime().memory());
    const memory::StreamHandle stream = kind.create_stream(0).value();
    std::mt19937 common(7);
    std::mt19937 own(static_cast<unsigned>(world.rank()));
    std::vector<std::unique_ptr<QueuedCase>> queued;
    for (unsigned seed = 0; seed < kOperations; ++seed) {
      const auto operation = static_cast<GroupOperation>(common() % kNumGroupOperations);
      const std::size_t elements = 1 + common() % (common() % 2 == 0 ? 40 : 500);
      const ElementType type = common() % 3 == 0 ? ElementType::kBfloat16 : ElementType::kFloat32;
      const GroupCase one{operation, elements, type, Reducer::kSum, static_cast<int>(common() % kSize),
                          false,     seed};
      const unsigned delay = own() % 3 == 0 ? own() % 100 : 0;
      const base::Status launched = kind.launch(stream, 0, [left = delay]() mutable {
        return left-- > 0 ? base::Status::pending() : base::Status();
      });
      EXPECT_TRUE(launched.ok());
      queued.push_back(std::make_unique<QueuedCase>(world, group, one, stream));
    }
    co_await group.over();
    for (const std::unique_ptr<QueuedCase>& one : queued) one->check();
  }),
            "");
}

// Copy engines copy these sizes, and those of one member are faster than those of the others.
TEST(DeviceGroupDelays, AFastMemberOverwritesNothingThatSlowOnesRead) {
  constexpr int kSize = 3;
  constexpr std::size_t kLargePlaceBytes = std::size_t{512} << 10;
  for (const int fast : {0, 2}) {
    TeamJob job(kSize);
    EXPECT_EQ(job.run_on_all([&](World& world) -> Task<> {
      const DeviceGroup group =
          co_await world.device_group(emulated_device(world.runtime()), {kLargePlaceBytes});
      memory::EmulatedFaults speed;
      speed.polls_per_copy = world.rank() == fast ? 1 : 20;
      emulated(world.runtime().memory()).set_faults(speed);
      std::vector<std::unique_ptr<QueuedCase>> queued;
      for (unsigned seed = 0; seed < 30; ++seed) {
        // Each is followed by itself, and by the others, with one piece and with three.
        const auto operation = static_cast<GroupOperation>((seed / 2 + seed / 12) % kNumGroupOperations);
        const std::size_t bytes = seed % 5 == 0 ? 1'300'000 : 400'000;
        const GroupCase one{
            operation, bytes / sizeof(float), ElementType::kFloat32, Reducer::kSum, fast, false, seed};
        queued.push_back(std::make_unique<QueuedCase>(world, group, one, nullptr));
      }
      co_await group.over();
      for (const std::unique_ptr<QueuedCase>& one : queued) one->check();
    }),
              "");
  }
}

// The words of all members are those of a group that has done 2^32 - 3 operations of each lane.
TEST(DeviceGroupWords, MayPass2To32) {
  constexpr int kSize = 3;
  constexpr std::uint32_t kFirst = 0xfffffffd;
  TeamJob job(kSize);
  EXPECT_EQ(job.run_on_all([&](World& world) -> Task<> {
    rma::GlobalMemory& global = world.runtime().offered<rma::GlobalMemory>();
    const DeviceGroup group = co_await world.device_group(emulated_device(world.runtime()), {kPlaceBytes});
    const std::vector<std::uint32_t> words(queued::GroupLayout::kNumWords, kFirst);
    co_await global.put(std::span(words), rma::GlobalPtr<std::uint32_t>(group.state()->own_words()));
    co_await world.barrier();
    std::vector<std::unique_ptr<QueuedCase>> queued;
    for (unsigned seed = 0; seed < 60; ++seed) {
      const GroupCase one{static_cast<GroupOperation>(seed % kNumGroupOperations),
                          seed % 4 == 0 ? 300U : 20U,
                          ElementType::kInt32,
                          Reducer::kSum,
                          static_cast<int>(seed) % kSize,
                          false,
                          seed};
      queued.push_back(std::make_unique<QueuedCase>(world, group, one, nullptr));
    }
    co_await group.over();
    for (const std::unique_ptr<QueuedCase>& one : queued) one->check();
  }),
            "");
}

// Groups of one team, and of teams that share members, are apart.
class DeviceGroupTeams : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Machines, DeviceGroupTeams, ::testing::Values("loopback", "ucx"));

TEST_P(DeviceGroupTeams, SeveralAtOnce) {
  TeamJob job(4, GetParam());
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> {
    const memory::Place device = emulated_device(world.runtime());
    const pgas::Team pair = co_await world.split(world.rank() / 2, -world.rank());
    Future<DeviceGroup> first_made = world.device_group(device);
    Future<DeviceGroup> pair_made = pair.device_group(device, {kPlaceBytes});
    const double sum = co_await world.allreduce(1.0, Reducer::kSum);
    EXPECT_EQ(sum, 4.0);
    const DeviceGroup first = co_await first_made;
    const DeviceGroup of_pair = co_await pair_made;
    std::vector<std::unique_ptr<QueuedCase>> queued;
    for (unsigned seed = 0; seed < 20; ++seed) {
      const GroupCase one{static_cast<GroupOperation>(seed % kNumGroupOperations),
                          50 + seed,
                          ElementType::kFloat32,
                          Reducer::kSum,
                          static_cast<int>(seed) % 2,
                          false,
                          seed};
      queued.push_back(std::make_unique<QueuedCase>(world, first, one, nullptr));
      queued.push_back(std::make_unique<QueuedCase>(world, of_pair, one, nullptr));
    }
    co_await first.over();
    co_await of_pair.over();
    for (const std::unique_ptr<QueuedCase>& one : queued) one->check();
  }),
            "");
}

}  // namespace
}  // namespace weft::testing
