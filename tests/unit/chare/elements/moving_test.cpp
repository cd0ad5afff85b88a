#include "models/chare/elements/moving.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace weft::chare {
namespace {

constexpr std::uint64_t kIndex = 7;
constexpr std::uint32_t kMove = 2;

SeenBroadcasts first_broadcasts(std::uint64_t count) {
  SeenBroadcasts seen;
  for (std::uint64_t number = 1; number <= count; ++number) EXPECT_TRUE(seen.add({0, number}));
  return seen;
}

Arrival arrival_of(std::uint32_t move, const SeenBroadcasts& handled) { return {0, kIndex, move, handled}; }

// The PEs to which the broadcast is sent after elements that have left.
std::vector<int> handle(Departures& departures, BroadcastId id, const SeenBroadcasts& handled_here) {
  std::vector<int> pes;
  departures.handled(id, handled_here, [&](const Departure& departure) { pes.push_back(departure.to_pe); });
  return pes;
}

TEST(Departures, AnElementThatArrivesWithNothingToCatchUpIsForgotten) {
  Departures departures;
  departures.add(kIndex, kMove, 3, 0);
  EXPECT_FALSE(departures.empty());
  EXPECT_TRUE(departures.arrived(arrival_of(kMove, first_broadcasts(2)), first_broadcasts(2)));
  EXPECT_TRUE(departures.empty());
}

TEST(Departures, BroadcastsBeforeTheArrivalAreSentAfterTheElement) {
  Departures departures;
  departures.add(kIndex, kMove, 3, 0);
  EXPECT_EQ(handle(departures, {0, 1}, first_broadcasts(1)), std::vector<int>{3});
  EXPECT_FALSE(departures.empty());
}

TEST(Departures, AnArrivedElementGetsWhatItsNewPeHadHandledBefore) {
  Departures departures;
  departures.add(kIndex, kMove, 3, 0);
  EXPECT_TRUE(departures.arrived(arrival_of(kMove, first_broadcasts(2)), first_broadcasts(0)));
  SeenBroadcasts handled = first_broadcasts(1);
  EXPECT_EQ(handle(departures, {0, 1}, handled), std::vector<int>{3});
  EXPECT_TRUE(handled.add({1, 1}));
  EXPECT_EQ(handle(departures, {1, 1}, handled), std::vector<int>());  // it gets that one on its new PE
  EXPECT_FALSE(departures.empty());
  EXPECT_TRUE(handled.add({0, 2}));
  EXPECT_EQ(handle(departures, {0, 2}, handled), std::vector<int>{3});
  EXPECT_TRUE(departures.empty());
}

TEST(Departures, ArrivalsThatWereNotExpectedAreRefused) {
  Departures departures;
  EXPECT_FALSE(departures.arrived(arrival_of(kMove, {}), {}));
  departures.add(kIndex, kMove, 3, 0);
  EXPECT_FALSE(departures.arrived(arrival_of(kMove + 1, {}), {}));
  EXPECT_TRUE(departures.arrived(arrival_of(kMove, first_broadcasts(1)), {}));
  EXPECT_FALSE(departures.arrived(arrival_of(kMove, first_broadcasts(1)), {}));  // a second time
}

}  // namespace
}  // namespace weft::chare
