// Groups of device arrays whose members are elements of a collection.
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weft/chare/device_work.h"
#include "weft/weft.h"

#include "tests/support/device_memory.h"
#include "tests/unit/rma/pgas_job.h"

namespace weft::chare {
namespace {

using testing::PgasJob;

constexpr memory::Place kGroupDevice{memory::Kind::kEmulated, 0};

struct GroupElement : Chare<GroupElement> {
  // The sum over all elements of (rank + 1), as the device has combined it.
  Task<std::int64_t> sum() {
    const DeviceGroup group = co_await device_group(*this, kGroupDevice);
    memory::Memory& memory = runtime().memory();
    const memory::Buffer value = memory.allocate(sizeof(std::int64_t), kGroupDevice).value();
    auto& kind = testing::emulated(memory);
    auto* const view = static_cast<std::int64_t*>(kind.device_view(value.data, sizeof(std::int64_t)).value());
    *view = group.rank() + 1;
    const memory::StreamHandle stream = kind.create_stream(0).value();
    group.all_reduce(value.data, value.data, 1, memory::ElementType::kInt64, Reducer::kSum, stream);
    co_await group.over();
    const std::int64_t result = *view;
    co_await group.close();
    EXPECT_TRUE(memory.deallocate(value).ok());
    EXPECT_TRUE(kind.destroy_stream(stream).ok());
    co_return result;
  }
  // Why it cannot move while the group is made.
  std::string begin() {
    made.emplace(device_group(*this, kGroupDevice));
    try {
      migrate((pe() + 1) % num_pes());
    } catch (const base::Error& error) {
      return error.what();
    }
    return "";
  }
  Task<int> end() {
    const DeviceGroup group = co_await *made;
    co_return group.size();
  }
  void pup(Pup&) {}

  std::optional<Future<DeviceGroup>> made;
};

TEST(ChareGroup, HasTheElementsOfAGroupOrAnArray) {
  PgasJob job(3);
  job.run_on(0, [&](rma::Pgas&) -> Task<> {
    auto group = Group<GroupElement>::create(job.runtime(0));
    EXPECT_EQ(co_await group.call<&GroupElement::sum>(), std::vector<std::int64_t>(3, 6));
    auto array = Array<GroupElement>::create(job.runtime(0), {7});
    EXPECT_EQ(co_await array.call<&GroupElement::sum>(), std::vector<std::int64_t>(7, 28));
    auto many = Array<GroupElement>::create(job.runtime(0), {17});
    std::string error;
    try {
      co_await many.call<&GroupElement::sum>();
    } catch (const base::Error& thrown) {
      error = thrown.what();
    }
    EXPECT_NE(error.find("at most 16 members, and this one has 17"), std::string::npos) << error;
  });
}

TEST(ChareGroup, AnElementStaysWhileItIsMade) {
  PgasJob job(2);
  job.run_on(0, [&](rma::Pgas&) -> Task<> {
    auto array = Array<GroupElement>::create(job.runtime(0), {2});
    for (const std::string& why : co_await array.call<&GroupElement::begin>())
      EXPECT_NE(why.find("has 1 coroutine that waits"), std::string::npos) << why;
    EXPECT_EQ(co_await array.call<&GroupElement::end>(), std::vector<int>(2, 2));
  });
}

// The job ends, and the program has not closed the group.
TEST(ChareGroup, MayBeThereWhenTheJobEnds) {
  DeviceGroup kept;
  {
    PgasJob job(1);
    struct Keeper : Chare<Keeper> {
      explicit Keeper(std::uint64_t to) : kept(reinterpret_cast<DeviceGroup*>(to)) {}
      Task<int> keep() {
        *kept = co_await device_group(*this, kGroupDevice);
        co_return 0;
      }
      DeviceGroup* kept;
    };
    job.run_on(0, [&](rma::Pgas&) -> Task<> {
      auto group = Group<Keeper>::create(job.runtime(0), reinterpret_cast<std::uint64_t>(&kept));
      co_await group.call<&Keeper::keep>();
    });
  }
  EXPECT_TRUE(static_cast<bool>(kept));
}

}  // namespace
}  // namespace weft::chare
