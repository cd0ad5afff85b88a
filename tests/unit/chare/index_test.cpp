#include "weft/chare/index.h"

#include <gtest/gtest.h>

#include "weft/base/error.h"

namespace weft::chare {
namespace {

TEST(Shape, LinearIndexRoundTripsInOneToSixDimensions) {
  for (const Shape& shape : {Shape(5), Shape{2, 3}, Shape{2, 3, 4}, Shape{3, 1, 2, 2}, Shape{2, 2, 2, 1, 3},
                             Shape{1, 2, 1, 3, 2, 2}}) {
    for (std::uint64_t i = 0; i < shape.size(); ++i)
      EXPECT_EQ(shape.linear(shape.index(i)), i) << shape.to_string();
  }
}

TEST(Shape, LastCoordinateVariesFastest) {
  Shape shape{4, 5};
  EXPECT_EQ(shape.linear({1, 2}), 7u);
  EXPECT_EQ(shape.index(7), (Index{1, 2}));
}

TEST(Shape, IndicesOutsideAreNamed) {
  Shape shape{4, 5};
  for (const Index& index : {Index{4, 0}, Index{0, 5}, Index{-1, 0}, Index{3}, Index{0, 0, 0}}) {
    try {
      static_cast<void>(shape.linear(index));
      FAIL() << index.to_string();
    } catch (const base::Error& error) {
      EXPECT_EQ(error.code(), base::StatusCode::kOutOfRange);
      EXPECT_NE(std::string(error.what()).find(index.to_string()), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("(4, 5)"), std::string::npos) << error.what();
    }
  }
}

TEST(Shape, BadShapesAreRefused) {
  EXPECT_THROW(Shape(0), base::Error);
  EXPECT_THROW((Shape{2, -1}), base::Error);
  EXPECT_THROW((Shape{1, 1, 1, 1, 1, 1, 1}), base::Error);
  EXPECT_THROW((Shape{2147483647, 2147483647, 2147483647}), base::Error);
}

TEST(Shape, BlockMapIsContiguousAndEvenToOneElement) {
  for (int num_pes : {1, 2, 3, 7, 16}) {
    for (int size : {1, 2, 5, 16, 100}) {
      Shape shape(size);
      std::vector<int> counts(static_cast<std::size_t>(num_pes));
      int last = 0;
      for (int i = 0; i < size; ++i) {
        int pe = shape.home(static_cast<std::uint64_t>(i), num_pes);
        ASSERT_GE(pe, last);
        ASSERT_LT(pe, num_pes);
        last = pe;
        ++counts[static_cast<std::size_t>(pe)];
      }
      auto [least, most] = std::minmax_element(counts.begin(), counts.end());
      EXPECT_LE(*most - *least, 1) << size << " on " << num_pes;
    }
  }
}

TEST(Shape, BlockMapOfMoreElementsThan64BitsCanScale) {
  const Shape shape{2147483647, 2147483647};
  for (const int num_pes : {2, 3, 1000}) {
    const std::uint64_t part = shape.size() / static_cast<std::uint64_t>(num_pes);
    EXPECT_EQ(shape.home(0, num_pes), 0);
    EXPECT_EQ(shape.home(part - 1, num_pes), 0) << num_pes;
    EXPECT_EQ(shape.home(part + 1, num_pes), 1) << num_pes;
    EXPECT_EQ(shape.home(shape.size() - part, num_pes), num_pes - 1) << num_pes;
    EXPECT_EQ(shape.home(shape.size() - 1, num_pes), num_pes - 1) << num_pes;
  }
}

int diagonal(const Index& index, const Shape&, int num_pes) { return (index[0] + index[1]) % num_pes; }
int nowhere(const Index&, const Shape&, int num_pes) { return num_pes; }

TEST(Shape, OtherMaps) {
  EXPECT_EQ(Shape(10).with_map(Map::kRoundRobin).home(7, 3), 1);
  EXPECT_EQ(Shape(10).on_pe(2).home(7, 3), 2);
  Shape user = Shape({4, 4}).with_map<&diagonal>();
  EXPECT_EQ(user.home(user.linear({3, 2}), 4), 1);
  EXPECT_THROW(static_cast<void>(Shape(10).on_pe(3).home(7, 3)), base::Error);
  EXPECT_THROW(static_cast<void>((Shape{2, 2}.with_map<&nowhere>().home(0, 3))), base::Error);
}

TEST(Shape, TableMap) {
  Shape shape = Shape(3).with_table({2, 0, 1});
  EXPECT_EQ(shape.home(0, 3), 2);
  EXPECT_EQ(base::unpack<Shape>(base::pack(shape)).home(2, 3), 1);
  EXPECT_THROW(static_cast<void>(shape.home(0, 2)), base::Error) << "there is no PE 2";
  EXPECT_THROW(static_cast<void>(Shape(3).with_table({0, 1})), base::Error) << "too short";
  EXPECT_FALSE(shape.without_table().knows_homes());
  EXPECT_FALSE(base::unpack<Shape>(base::pack(shape.without_table())).knows_homes());
}

TEST(Shape, TravelsWithItsMap) {
  Shape shape = base::unpack<Shape>(base::pack(Shape({4, 6}).with_map<&diagonal>()));
  EXPECT_EQ(shape.size(), 24u);
  EXPECT_EQ(shape.home(shape.linear({3, 2}), 4), 1);
  std::vector<std::byte> corrupt = base::pack(99);
  EXPECT_THROW(base::unpack<Shape>(corrupt), base::Error);
}

}  // namespace
}  // namespace weft::chare
