#include "weft/chare/argument.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "weft/weft.h"

#include "tests/support/in_process_job.h"

namespace weft::chare {
namespace {

using argument_detail::kOutOfBandBytes;

// Sizes around the one from which a vector travels out of band.
const std::vector<std::size_t> kSizes{
    0, 1, kOutOfBandBytes / 8 - 1, kOutOfBandBytes / 8, kOutOfBandBytes / 8 + 1, 200'000};

std::vector<double> pattern(std::size_t size) {
  std::vector<double> values(size);
  std::iota(values.begin(), values.end(), 1.0);
  return values;
}

struct Keeper : Chare<Keeper> {
  void keep(std::vector<double> values) { kept = std::move(values); }
  bool by_reference(int before, const std::vector<double>& values, const std::string& after) {
    return before == 7 && values == pattern(values.size()) && after == "after";
  }
  double by_view(std::span<const double> values, std::string_view name) {
    return name == "sum" ? std::accumulate(values.begin(), values.end(), 0.0) : -1;
  }
  Task<double> views_outlive_the_wait(std::span<const double> values, std::string_view name) {
    co_await runtime().sleep(0);
    co_return by_view(values, name);
  }
  Task<bool> waits(const std::vector<double>& values) {
    co_await runtime().sleep(0);
    co_return values == pattern(values.size());
  }
  void both(std::vector<double> values, Payload<int> numbers) {
    kept = std::move(values);
    kept.push_back(numbers.span().empty() ? -1 : numbers.span()[0]);
  }
  std::vector<double> get() { return kept; }

  std::vector<double> kept;
};

struct ArgumentTest : ::testing::TestWithParam<int> {
  void run(const std::function<Task<>(Runtime&)>& main) {
    testing::InProcessJob job(GetParam());
    EXPECT_EQ(job.run(main), "");
  }
};

TEST_P(ArgumentTest, AVectorIsAValueOfAnySize) {
  run([](Runtime& runtime) -> Task<> {
    auto keepers = Array<Keeper>::create(runtime, {3});
    for (std::size_t size : kSizes) {
      for (int i = 0; i < 3; ++i) {
        std::vector<double> values = pattern(size);
        Future<> done = keepers[i].call<&Keeper::keep>(values);
        std::ranges::fill(values, -1);
        co_await done;
        std::vector<double> kept = co_await keepers[i].call<&Keeper::get>();
        EXPECT_EQ(kept, pattern(size));
        bool same = co_await keepers[i].call<&Keeper::by_reference>(7, pattern(size), "after");
        EXPECT_TRUE(same) << size;
        std::vector<double> again = pattern(size);
        Future<bool> waited = keepers[i].call<&Keeper::waits>(again);
        std::ranges::fill(again, -1);
        same = co_await waited;
        EXPECT_TRUE(same) << size;
      }
    }
  });
}

TEST_P(ArgumentTest, AVectorMovedIntoACallArrivesWhole) {
  run([](Runtime& runtime) -> Task<> {
    auto keepers = Array<Keeper>::create(runtime, {3});
    for (std::size_t size : kSizes) {
      for (int i = 0; i < 3; ++i) {
        std::vector<double> values = pattern(size);
        co_await keepers[i].call<&Keeper::keep>(std::move(values));
        std::vector<double> kept = co_await keepers[i].call<&Keeper::get>();
        EXPECT_EQ(kept, pattern(size));
      }
    }
  });
}

TEST_P(ArgumentTest, EachElementOfACollectionGetsItsOwn) {
  run([](Runtime& runtime) -> Task<> {
    auto keepers = Array<Keeper>::create(runtime, {5});  // the call may come before the elements do
    for (std::size_t size : kSizes) {
      std::vector<double> values = pattern(size);
      Future<> done = keepers.call<&Keeper::keep>(values);
      std::ranges::fill(values, -1);
      co_await done;
      std::vector<std::vector<double>> kept = co_await keepers.call<&Keeper::get>();
      EXPECT_EQ(kept, std::vector<std::vector<double>>(5, pattern(size)));
    }
  });
}

TEST_P(ArgumentTest, ViewsAreOfTheCallsOwnCopy) {
  run([](Runtime& runtime) -> Task<> {
    auto keepers = Array<Keeper>::create(runtime, {3});
    for (std::size_t size : kSizes) {
      for (int i = 0; i < 3; ++i) {
        std::vector<double> values = pattern(size);
        const double expected = std::accumulate(values.begin(), values.end(), 0.0);
        Future<double> sum = keepers[i].call<&Keeper::by_view>(std::span<const double>(values), "sum");
        Future<double> later = keepers[i].call<&Keeper::views_outlive_the_wait>(values, std::string("sum"));
        std::ranges::fill(values, -1);
        double got = co_await sum;
        EXPECT_EQ(got, expected);
        got = co_await later;
        EXPECT_EQ(got, expected);
      }
      std::vector<double> all = co_await keepers.call<&Keeper::by_view>(pattern(size), "sum");
      EXPECT_EQ(all.size(), 3U);
      EXPECT_EQ(all[0], all[2]);
    }
  });
}

TEST_P(ArgumentTest, TravelsOutOfBandWithPayloads) {
  run([](Runtime& runtime) -> Task<> {
    auto keepers = Array<Keeper>::create(runtime, {3});
    const std::vector<int> numbers(100, 42);
    for (std::size_t size : kSizes) {
      for (int i = 0; i < 3; ++i) {
        co_await keepers[i].call<&Keeper::both>(pattern(size), nocopy(numbers));
        std::vector<double> kept = co_await keepers[i].call<&Keeper::get>();
        std::vector<double> expected = pattern(size);
        expected.push_back(42);
        EXPECT_EQ(kept, expected);
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(NumPes, ArgumentTest, ::testing::Values(1, 2, 3));

TEST(ArgumentStorage, IsUsedAgainForCallsByReference) {
  testing::InProcessJob job(2);
  EXPECT_EQ(job.run([&job](Runtime& runtime) -> Task<> {
    auto keepers = Array<Keeper>::create(runtime, {2});
    for (int round = 0; round < 3; ++round) {
      bool same = co_await keepers[1].call<&Keeper::by_reference>(7, pattern(100'000), "after");
      EXPECT_TRUE(same);
      base::VectorPool& pool = argument_detail::vector_pool(job.runtime(1));
      EXPECT_EQ(pool.kept_bytes(), 100'000 * sizeof(double)) << round;
    }
  }),
            "");
}

TEST(VectorPool, GivesBackStorageThatFits) {
  base::VectorPool pool;
  std::vector<int> large = pool.take<int>(1000);
  EXPECT_EQ(large.size(), 1000U);
  const int* const storage = large.data();
  pool.keep(std::move(large));
  EXPECT_EQ(pool.kept_bytes(), 1000 * sizeof(int));
  std::vector<int> tiny = pool.take<int>(10);  // would waste it
  EXPECT_NE(tiny.data(), storage);
  std::vector<char> other = pool.take<char>(1000);
  EXPECT_EQ(other.size(), 1000U);
  std::vector<int> again = pool.take<int>(600);
  EXPECT_EQ(again.data(), storage);
  EXPECT_EQ(again.size(), 600U);
  EXPECT_EQ(pool.kept_bytes(), 0U);
  pool.keep(std::vector<int>());
  EXPECT_EQ(pool.kept_bytes(), 0U);
}

TEST(VectorPool, GivesBackTheLatestStorageFirst) {
  base::VectorPool pool;
  std::vector<int> first = pool.take<int>(1000);
  std::vector<int> second = pool.take<int>(1000);
  const int* const latest = second.data();
  pool.keep(std::move(first));
  pool.keep(std::move(second));
  EXPECT_EQ(pool.take<int>(1000).data(), latest);
}

TEST(VectorPool, KeepsALimitedAmount) {
  base::VectorPool pool;
  for (int i = 0; i < 20; ++i) pool.keep(std::vector<char>(std::size_t{20} << 20));
  EXPECT_EQ(pool.kept_bytes(), std::size_t{240} << 20);
}

struct DamagedBlock : ::testing::Test {
  // What reading a count of `count` and buffer `which` says, of elements of 8 bytes.
  std::string failure(std::uint64_t count, std::uint32_t which) {
    std::vector<std::byte> bytes = base::pack(count | argument_detail::kOutOfBandFlag);
    std::vector<std::byte> number = base::pack(which);
    bytes.insert(bytes.end(), number.begin(), number.end());
    Pup p = Pup::unpacker(bytes.data(), bytes.size());
    EXPECT_TRUE(argument_detail::is_out_of_band(p));
    try {
      argument_detail::read_block(p, receive_buffers, 8);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), base::StatusCode::kCorrupt);
      return error.what();
    }
    return "";
  }
  DamagedBlock() { receive_buffers[1].size_bytes = 800; }
  std::vector<runtime::ReceiveBuffer> receive_buffers = std::vector<runtime::ReceiveBuffer>(2);
};

TEST_F(DamagedBlock, IsRefused) {
  EXPECT_EQ(failure(100, 1), "");
  EXPECT_NE(failure(101, 1).find("800 bytes"), std::string::npos);
  EXPECT_NE(failure(std::uint64_t{1} << 61, 1).find("do all PEs run"), std::string::npos);
  EXPECT_NE(failure((std::uint64_t{1} << 61) + 100, 1), "");  // 8 times that is 800 again
  EXPECT_NE(failure(100, 2).find("no buffer numbered 2"), std::string::npos);
  receive_buffers[1].into = runtime::Attachment(memory::Buffer{});
  EXPECT_NE(failure(100, 1).find("no buffer numbered 1"), std::string::npos);
}

TEST_F(DamagedBlock, OfAMessageThatEndsEarly) {
  const std::vector<std::byte> bytes(7);
  Pup p = Pup::unpacker(bytes.data(), bytes.size());
  EXPECT_FALSE(argument_detail::is_out_of_band(p));
}

}  // namespace
}  // namespace weft::chare
