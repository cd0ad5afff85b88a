#include "runtime/location/directory.h"

#include <gtest/gtest.h>

namespace weft::runtime {
namespace {

TEST(Directory, UnknownObjectsAreAtHome) {
  Directory<int> directory(1);
  EXPECT_EQ(directory.find(5), nullptr);
  EXPECT_EQ(directory.whereabouts(5, 3).pe, 3);
}

TEST(Directory, RemembersWhereAnObjectWent) {
  Directory<int> directory(1);
  int object = 0;
  directory.insert(5, &object);
  EXPECT_EQ(directory.find(5), &object);
  EXPECT_EQ(directory.leave(5, 2, 1), &object);
  EXPECT_EQ(directory.find(5), nullptr);
  EXPECT_EQ(directory.whereabouts(5, 1).pe, 2);
  EXPECT_EQ(directory.whereabouts(5, 1).move, 1u);
}

TEST(Directory, OldNewsDoNotOverwriteNewer) {
  Directory<int> directory(1);
  EXPECT_TRUE(directory.learn(5, 3, 7));
  EXPECT_FALSE(directory.learn(5, 2, 6));
  EXPECT_FALSE(directory.learn(5, 2, 7));
  EXPECT_EQ(directory.whereabouts(5, 0).pe, 3);
  EXPECT_TRUE(directory.learn(5, 0, 8));
  EXPECT_EQ(directory.whereabouts(5, 2).pe, 0);
}

TEST(Directory, NewsAboutLocalObjectsAreIgnored) {
  Directory<int> directory(1);
  int object = 0;
  directory.insert(5, &object);
  EXPECT_FALSE(directory.learn(5, 3, 9));
  EXPECT_FALSE(directory.learn(6, 1, 9)) << "an object that is said to be here is still on its way";
  EXPECT_EQ(directory.find(5), &object);
}

TEST(Directory, AnArrivalEndsForwarding) {
  Directory<int> directory(1);
  int object = 0;
  directory.learn(5, 3, 1);
  directory.insert(5, &object);
  EXPECT_EQ(directory.find(5), &object);
  EXPECT_EQ(directory.num_local(), 1u);
}

TEST(Directory, MovesOfObjectsThatAreLostStillCount) {
  Directory<int> directory(1);
  directory.learn(5, 3, 7);
  directory.learn(6, 2, 4);
  directory.lose(3, [](std::uint64_t index, std::uint32_t move) {
    EXPECT_EQ(index, 5U);
    EXPECT_EQ(move, 7U);
    return 0;
  });
  EXPECT_EQ(directory.whereabouts(5, 2).pe, 0);
  EXPECT_EQ(directory.whereabouts(5, 2).move, 7U);
  EXPECT_EQ(directory.whereabouts(6, 0).pe, 2);
}

}  // namespace
}  // namespace weft::runtime
