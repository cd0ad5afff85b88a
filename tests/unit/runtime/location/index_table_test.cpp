#include "runtime/location/index_table.h"

#include <gtest/gtest.h>

#include <random>
#include <unordered_map>

namespace weft::runtime {
namespace {

TEST(IndexTable, EmptyFindsNothing) {
  IndexTable<int> table;
  EXPECT_EQ(table.find(0), nullptr);
  EXPECT_EQ(table.erase(0), nullptr);
}

TEST(IndexTable, AgreesWithAReferenceUnderRandomUse) {
  constexpr std::uint64_t kSeed = 7;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937_64 random(kSeed);
  IndexTable<int> table;
  std::unordered_map<std::uint64_t, int*> reference;
  std::vector<int> objects(512);
  for (int step = 0; step < 50000; ++step) {
    std::uint64_t index = random() % 300;
    if (random() % 3 != 0) {
      if (reference.contains(index)) continue;
      int* object = &objects[random() % objects.size()];
      table.insert(index, object);
      reference[index] = object;
    } else {
      int* expected = reference.contains(index) ? reference[index] : nullptr;
      reference.erase(index);
      ASSERT_EQ(table.erase(index), expected);
    }
    ASSERT_EQ(table.size(), reference.size());
    std::uint64_t probe = random() % 300;
    ASSERT_EQ(table.find(probe), reference.contains(probe) ? reference[probe] : nullptr);
  }
  std::size_t seen = 0;
  table.for_each([&](std::uint64_t index, int& object) {
    ++seen;
    EXPECT_EQ(reference.at(index), &object);
  });
  EXPECT_EQ(seen, reference.size());
}

}  // namespace
}  // namespace weft::runtime
