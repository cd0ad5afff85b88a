#include "weft/base/pup.h"

#include <gtest/gtest.h>

#include <random>

#include "weft/base/error.h"

namespace weft::base {
namespace {

struct Particle {
  std::string name;
  std::vector<double> position;
  void pup(Pup& p) { p | name | position; }
  friend bool operator==(const Particle&, const Particle&) = default;
};

struct Foreign {
  std::unique_ptr<int> value;
};
void pup(Pup& p, Foreign& foreign) { p | foreign.value; }

template <class T>
T round_trip(const T& value) {
  return unpack<T>(pack(value));
}

TEST(Pup, PlainTypesTravelAsTheyAre) {
  struct Point {
    int x;
    double y;
  };
  Point point = round_trip(Point{3, 0.5});
  EXPECT_EQ(point.x, 3);
  EXPECT_EQ(point.y, 0.5);
  EXPECT_EQ(packed_size(std::uint64_t{1}), 8u);
}

TEST(Pup, StandardContainers) {
  using Nested = std::map<std::string, std::vector<std::pair<int, std::string>>>;
  Nested nested{{"a", {{1, "one"}, {2, ""}}}, {"", {}}};
  EXPECT_EQ(round_trip(nested), nested);
  std::unordered_map<int, double> table{{1, 0.1}, {-5, 2}};
  EXPECT_EQ(round_trip(table), table);
  std::set<std::string> names{"x", "y"};
  EXPECT_EQ(round_trip(names), names);
  std::vector<bool> bits{true, false, true, true};
  EXPECT_EQ(round_trip(bits), bits);
  std::array<std::string, 2> two{"left", "right"};
  EXPECT_EQ(round_trip(two), two);
  std::tuple<int, std::string, std::vector<std::string>> mixed{1, "b", {"c", "d"}};
  EXPECT_EQ(round_trip(mixed), mixed);
}

TEST(Pup, OptionalUniquePointerAndVariant) {
  EXPECT_EQ(round_trip(std::optional<std::string>("x")), "x");
  EXPECT_EQ(round_trip(std::optional<std::string>()), std::nullopt);
  auto pointer = unpack<std::unique_ptr<int>>(pack(std::make_unique<int>(4)));
  ASSERT_NE(pointer, nullptr);
  EXPECT_EQ(*pointer, 4);
  EXPECT_EQ(unpack<std::unique_ptr<int>>(pack(std::unique_ptr<int>())), nullptr);
  std::variant<int, std::string> either = "text";
  EXPECT_EQ(round_trip(either), either);
}

TEST(Pup, MemberAndFreeFunctions) {
  Particle particle{"electron", {1, 2, 3}};
  EXPECT_EQ(round_trip(particle), particle);
  EXPECT_EQ(round_trip(std::vector<Particle>{particle, {}}).at(0), particle);
  Foreign foreign;
  foreign.value = std::make_unique<int>(9);
  EXPECT_EQ(*unpack<Foreign>(pack(foreign)).value, 9);
}

TEST(Pup, SizingAndPackingAgree) {
  Particle particle{"muon", std::vector<double>(100)};
  EXPECT_EQ(packed_size(particle), pack(particle).size());
}

TEST(Pup, AMessageThatEndsTooEarlyIsAnError) {
  std::vector<std::byte> bytes = pack(Particle{"tau", {1, 2, 3}});
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THROW(unpack<Particle>({bytes.data(), size}), Error) << size << " of " << bytes.size() << " bytes";
  }
}

TEST(Pup, ACorruptCountDoesNotAllocate) {
  std::vector<std::byte> bytes = pack(~std::uint64_t{0});
  EXPECT_THROW(unpack<std::vector<double>>(bytes), Error);
  EXPECT_THROW(unpack<std::string>(bytes), Error);
  EXPECT_THROW(unpack<std::vector<Particle>>(bytes), Error);
  using Table = std::map<std::string, int>;
  EXPECT_THROW(unpack<Table>(bytes), Error);
}

// Counts that a multiplication or an addition would wrap round to a small size.
TEST(Pup, CountsNearTheLimitDoNotWrap) {
  constexpr std::uint64_t kMost = ~std::uint64_t{0};
  for (const std::uint64_t count :
       {kMost, kMost - 7, kMost - 8, kMost / 8 + 1, kMost / 8 + 2, kMost / 2 + 1}) {
    std::vector<std::byte> bytes = pack(count);
    bytes.resize(bytes.size() + 64);
    EXPECT_THROW(unpack<std::vector<double>>(bytes), Error) << count;
    EXPECT_THROW(unpack<std::vector<std::byte>>(bytes), Error) << count;
    EXPECT_THROW(unpack<std::vector<bool>>(bytes), Error) << count;
    EXPECT_THROW(unpack<std::vector<std::string>>(bytes), Error) << count;
    EXPECT_THROW(unpack<std::set<std::uint64_t>>(bytes), Error) << count;
    Pup p = Pup::unpacker(bytes.data(), bytes.size());
    p.skip(8);
    EXPECT_THROW(p.skip(count), Error) << count;
    EXPECT_THROW(p.bytes(bytes.data(), count), Error) << count;
    EXPECT_EQ(p.offset_bytes(), 8u);
  }
}

TEST(Pup, AValueThatTheTypeDoesNotHaveIsNamed) {
  const auto message_of = [](auto unpack_it) {
    try {
      unpack_it();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), StatusCode::kCorrupt);
      return std::string(error.what());
    }
    return std::string("nothing thrown");
  };
  const std::vector<std::byte> bytes(16, std::byte{9});
  EXPECT_NE(message_of([&] { static_cast<void>(unpack<bool>(bytes)); }).find("neither 0 nor 1"),
            std::string::npos);
  using Either = std::variant<int, double>;
  EXPECT_NE(message_of([&] { static_cast<void>(unpack<Either>(bytes)); }).find("alternative"),
            std::string::npos);
}

TEST(Pup, RandomBytesNeverCrash) {
  using Anything = std::tuple<std::vector<Particle>, std::map<int, std::string>,
                              std::variant<int, std::string>, std::optional<std::vector<bool>>>;
  constexpr std::uint64_t kSeed = 20261120;
  std::mt19937_64 random(kSeed);
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::byte> bytes(random() % 64);
    for (auto& byte : bytes) byte = static_cast<std::byte>(random() % 4 == 0 ? random() : 0);
    try {
      static_cast<void>(unpack<Anything>(bytes));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), StatusCode::kCorrupt);
      ++refused;
    }
  }
  EXPECT_GT(refused, 0);
}

TEST(Pup, APupFunctionThatPacksMoreThanItSizedIsNamed) {
  struct Liar {
    void pup(Pup& p) {
      int x = 1;
      p | x;
      if (p.is_packing()) p | x;
    }
  };
  EXPECT_THROW(pack(Liar{}), Error);
}

}  // namespace
}  // namespace weft::base
