#include "weft/balance/snapshot.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>

#include "snapshots.h"

namespace weft::balance {
namespace {

Snapshot valid() {
  Snapshot snapshot = empty_snapshot(2);
  snapshot.pe_speed = {1, 2};
  add_object(snapshot, 0, 1);
  add_object(snapshot, 1, 2, false);
  snapshot.edges.push_back({0, 1, 3, 4});
  return snapshot;
}

struct Damage {
  const char* words;
  std::function<void(Snapshot&)> apply;
};

TEST(Snapshot, AValidOneIsAccepted) {
  EXPECT_TRUE(check(valid()).ok());
  EXPECT_TRUE(check(empty_snapshot(1)).ok());
}

TEST(Snapshot, EveryNumberOutOfItsRangeIsRefused) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr std::uint64_t kHuge = std::numeric_limits<std::uint64_t>::max();
  const std::vector<Damage> damages = {
      {"0 PEs", [](Snapshot& s) { s.num_pes = 0; }},
      {"-1 PEs", [](Snapshot& s) { s.num_pes = -1; }},
      {"PEs; expected 1 to", [](Snapshot& s) { s.num_pes = kMaxPes + 1; }},
      {"3 background loads for 2 PEs", [](Snapshot& s) { s.background_load_s.push_back(0); }},
      {"1 speeds for 2 PEs", [](Snapshot& s) { s.pe_speed.pop_back(); }},
      {"background load of PE 1 is nan", [](Snapshot& s) { s.background_load_s[1] = kNan; }},
      {"background load of PE 0 is -1", [](Snapshot& s) { s.background_load_s[0] = -1; }},
      {"background load of PE 0 is inf", [](Snapshot& s) { s.background_load_s[0] = kInfinity; }},
      {"speed of PE 0 is 0", [](Snapshot& s) { s.pe_speed[0] = 0; }},
      {"speed of PE 1 is nan", [](Snapshot& s) { s.pe_speed[1] = kNan; }},
      {"speed of PE 1 is -2", [](Snapshot& s) { s.pe_speed[1] = -2; }},
      {"speed of PE 1 is inf", [](Snapshot& s) { s.pe_speed[1] = kInfinity; }},
      {"is on PE 2", [](Snapshot& s) { s.objects[0].pe = 2; }},
      {"is on PE -1", [](Snapshot& s) { s.objects[1].pe = -1; }},
      {"load of object 0 of collection 1 is nan", [](Snapshot& s) { s.objects[0].load_s = kNan; }},
      {"load of object 1 of collection 1 is -1", [](Snapshot& s) { s.objects[1].load_s = -1; }},
      {"is inf s", [](Snapshot& s) { s.objects[0].load_s = kInfinity; }},
      {"is 10000000000000 s", [](Snapshot& s) { s.objects[0].load_s = 1e13; }},
      {"add up to more than 2^64 bytes", [](Snapshot& s) { s.objects[0].size_bytes = kHuge; }},
      {"object 0 of collection 1 is in the load snapshot twice", [](Snapshot& s) { s.objects[1].index = 0; }},
      {"goes from object 2", [](Snapshot& s) { s.edges[0].from = 2; }},
      {"to object 4294967295", [](Snapshot& s) { s.edges[0].to = 0xffffffff; }},
      {"expected at most 2^62", [](Snapshot& s) { s.edges[0].bytes = kHuge; }},
      {"edges up to number 1", [](Snapshot& s) { s.edges.push_back({0, 1, kHuge, 0}); }},
  };
  for (const Damage& damage : damages) {
    Snapshot snapshot = valid();
    damage.apply(snapshot);
    const base::Status status = check(snapshot);
    EXPECT_EQ(status.code(), base::StatusCode::kInvalidArgument) << damage.words;
    EXPECT_NE(std::string(status.message()).find(damage.words), std::string::npos)
        << status.message() << "\nlacks: " << damage.words;
  }
}

TEST(Snapshot, ObjectsOfDifferentCollectionsMayHaveTheSameIndex) {
  Snapshot snapshot = valid();
  snapshot.objects[1].collection = 0;
  snapshot.objects[1].index = 0;
  EXPECT_TRUE(check(snapshot).ok());
}

TEST(Placement, MustFitTheSnapshot) {
  const Snapshot snapshot = valid();
  EXPECT_TRUE(check(snapshot, {0, 1}).ok());
  EXPECT_TRUE(check(snapshot, {1, 1}).ok());
  EXPECT_FALSE(check(snapshot, {0}).ok());
  EXPECT_FALSE(check(snapshot, {0, 1, 1}).ok());
  EXPECT_FALSE(check(snapshot, {2, 1}).ok());
  EXPECT_FALSE(check(snapshot, {-1, 1}).ok());
  EXPECT_FALSE(check(snapshot, {0, 0}).ok()) << "object 1 cannot move";
}

}  // namespace
}  // namespace weft::balance
