#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "tests/support/device_memory.h"
#include "tests/unit/pgas/team_job.h"

namespace weft::testing {
namespace {

using pgas::World;

double larger_magnitude(double a, double b) { return a * a > b * b ? a : b; }

// Elements in memory of a kind, which the test reads and writes.
template <class T>
class Elements {
 public:
  Elements(World& world, std::string_view kind, std::size_t count)
      : memory_(world.runtime().memory()),
        array_(world.runtime(), count,
               kind == "host" ? memory::Place() : weft::device_of(world.runtime(), memory::Kind::kEmulated)) {
  }
  std::span<T> span() const { return array_.span(); }
  void set(const std::vector<T>& values) {
    std::memcpy(view(memory_, array_.buffer()), values.data(), values.size() * sizeof(T));
  }
  std::vector<T> get() const {
    std::vector<T> values(array_.size());
    std::memcpy(values.data(), view(memory_, array_.buffer()), values.size() * sizeof(T));
    return values;
  }

 private:
  memory::Memory& memory_;
  DeviceArray<T> array_;
};

class BufferCollectives : public ::testing::TestWithParam<std::tuple<int, std::string, std::size_t>> {
 protected:
  int size() const { return std::get<0>(GetParam()); }
  std::string kind() const { return std::get<1>(GetParam()); }
  std::size_t count() const { return std::get<2>(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Forms, BufferCollectives,
                         ::testing::Combine(::testing::Values(1, 2, 3, 5),
                                            ::testing::Values("host", "emulated"),
                                            ::testing::Values(1U, 100U, 40'000U)));

std::vector<double> ramp(std::size_t count, double first) {
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = first + static_cast<double>(i % 97);
  return values;
}

TEST_P(BufferCollectives, Broadcast) {
  TeamJob job(size());
  EXPECT_EQ(job.run_on_all([this](World& world) -> Task<> {
    Elements<double> values(world, kind(), count());
    for (int root = 0; root < world.size(); ++root) {
      values.set(ramp(count(), world.rank()));
      co_await world.broadcast_in_place(values.span(), root);
      EXPECT_EQ(values.get(), ramp(count(), root));
    }
  }),
            "");
}

TEST_P(BufferCollectives, Reduce) {
  TeamJob job(size());
  EXPECT_EQ(job.run_on_all([this](World& world) -> Task<> {
    Elements<int> values(world, kind(), count());
    for (int root = 0; root < world.size(); ++root) {
      const std::vector<int> mine(count(), world.rank() + 1);
      values.set(mine);
      co_await world.reduce_in_place(values.span(), Reducer::kSum, root);
      const int sum = world.size() * (world.size() + 1) / 2;
      EXPECT_EQ(values.get(), world.rank() == root ? std::vector<int>(count(), sum) : mine);
    }
  }),
            "");
}

TEST_P(BufferCollectives, AllReduce) {
  TeamJob job(size());
  EXPECT_EQ(job.run_on_all([this](World& world) -> Task<> {
    Elements<double> values(world, kind(), count());
    values.set(ramp(count(), world.rank()));
    co_await world.allreduce_in_place(values.span(), Reducer::kMax);
    EXPECT_EQ(values.get(), ramp(count(), world.size() - 1));
    values.set(std::vector<double>(count(), world.rank() % 2 == 0 ? world.rank() : -world.rank()));
    co_await world.allreduce_in_place<&larger_magnitude>(values.span());
    const int most = world.size() - 1;
    EXPECT_EQ(values.get(), std::vector<double>(count(), most % 2 == 0 ? most : -most));
    values.set(std::vector<double>(count(), 6));
    co_await world.allreduce_in_place(values.span(), Reducer::kLogicalAnd);
    EXPECT_EQ(values.get(), std::vector<double>(count(), 1));
  }),
            "");
}

// The ranks have memory of different kinds, and the root of the broadcast is late.
TEST(BufferCollective, MixesKinds) {
  TeamJob job(3);
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> {
    Elements<float> values(world, world.rank() == 1 ? "host" : "emulated", 5000);
    values.set(std::vector<float>(5000, static_cast<float>(world.rank())));
    if (world.rank() == 1) {
      for (int i = 0; i < 50; ++i) co_await runtime::yield_now(world.runtime());
    }
    co_await world.broadcast_in_place(values.span(), 1);
    EXPECT_EQ(values.get(), std::vector<float>(5000, 1));
    co_await world.allreduce_in_place(values.span(), Reducer::kSum);
    EXPECT_EQ(values.get(), std::vector<float>(5000, 3));
  }),
            "");
}

// The work that a stream has queued comes first.
TEST(BufferCollective, FollowsTheStream) {
  TeamJob job(2);
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> {
    const memory::Place place = weft::device_of(world.runtime(), memory::Kind::kEmulated);
    DeviceArray<int> values(world.runtime(), 1000, place);
    Stream stream(world.runtime(), place);
    stream.launch([span = values.span(), rank = world.rank()](const DeviceView& view) {
      for (int& value : view(span)) value = rank + 1;
    });
    co_await world.allreduce_in_place(values.span(), Reducer::kSum, stream.handle());
    std::vector<int> sums(1000);
    stream.copy({sums.data(), sums.size() * sizeof(int), {}, nullptr}, values.buffer());
    co_await stream.done();
    EXPECT_EQ(sums, std::vector<int>(1000, 3));
  }),
            "");
}

TEST(BufferCollective, SizesThatDifferAreAnError) {
  TeamJob job(3);
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> {
    std::vector<int> values(world.rank() == 2 ? 10 : 20, 1);
    const std::string spread = co_await failure_of(world.broadcast_in_place(std::span(values), 0));
    if (world.rank() == 2) {
      EXPECT_NE(spread.find("rank 0 gave 80 bytes to broadcast_in_place and rank 2 40"), std::string::npos)
          << spread;
    } else {
      EXPECT_EQ(spread, "nothing");
    }
    const std::string all = co_await failure_of(world.allreduce_in_place(std::span(values), Reducer::kSum));
    EXPECT_NE(all.find("to allreduce_in_place and rank "), std::string::npos) << all;
    const int sum = co_await world.allreduce(1, Reducer::kSum);
    EXPECT_EQ(sum, 3);
  }),
            "");
}

}  // namespace
}  // namespace weft::testing
