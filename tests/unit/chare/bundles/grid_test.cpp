// The ways through the grid: from each PE to each other one, for all numbers of PEs and for hosts of all sizes.
#include "models/chare/bundles/grid.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "runtime/tree/host_groups.h"

namespace weft::chare {
namespace {

using runtime::HostGroups;

// Checks each way. Returns the largest number of PEs to which a PE sends.
int peers_in(const Grid& grid, int num_pes) {
  std::size_t most = 0;
  for (int from = 0; from < num_pes; ++from) {
    std::set<int> peers;
    for (int to = 0; to < num_pes; ++to) {
      const int next = grid.next(from, to);
      EXPECT_TRUE(next >= 0 && next < num_pes);
      EXPECT_EQ(grid.next(next, to), to) << "from PE " << from;
      // A PE that passes a call on to another one is not its source.
      EXPECT_TRUE(next != from || to == from);
      if (to != from) peers.insert(next);
    }
    most = std::max(most, peers.size());
  }
  return static_cast<int>(most);
}

TEST(Grid, HasAWayBetweenAllPes) {
  for (int num_pes = 1; num_pes <= 70; ++num_pes) {
    SCOPED_TRACE(num_pes);
    int length = 1;
    while (length * length < num_pes) ++length;
    EXPECT_LE(peers_in(Grid(num_pes, nullptr), num_pes), num_pes <= 3 ? 2 : 2 * (length - 1));
  }
}

TEST(Grid, IsNoneByDefault) {
  EXPECT_TRUE(Grid().is_direct());
  EXPECT_EQ(Grid().next(3, 100), 100);
}

std::vector<int> hosts_of_sizes(const std::vector<int>& sizes) {
  std::vector<int> hosts;
  for (std::size_t host = 0; host < sizes.size(); ++host)
    hosts.insert(hosts.end(), static_cast<std::size_t>(sizes[host]), static_cast<int>(host));
  return hosts;
}

// The first step crosses to the destination's host, if that host has a PE in the row.
TEST(Grid, CrossesTheNetworkOnce) {
  for (const std::vector<int>& sizes :
       std::vector<std::vector<int>>{{4, 4}, {8, 8, 8}, {5, 2, 4}, {1, 6, 3}}) {
    const std::vector<int> host_of = hosts_of_sizes(sizes);
    const auto num_pes = static_cast<int>(host_of.size());
    const auto hosts = HostGroups::make(host_of);
    const Grid grid(num_pes, hosts.get());
    peers_in(grid, num_pes);
    for (int from = 0; from < num_pes; ++from) {
      for (int to = 0; to < num_pes; ++to) {
        const int next = grid.next(from, to);
        const int crossings = (hosts->host_of(from) != hosts->host_of(next) ? 1 : 0) +
                              (hosts->host_of(next) != hosts->host_of(to) ? 1 : 0);
        EXPECT_EQ(crossings, hosts->host_of(from) != hosts->host_of(to) ? 1 : 0);
      }
    }
  }
}

// As many bundles as hosts would be too many.
TEST(Grid, DoesNotFollowManySmallHosts) {
  const std::vector<int> host_of = hosts_of_sizes(std::vector<int>(100, 2));
  const auto hosts = HostGroups::make(host_of);
  EXPECT_LE(peers_in(Grid(200, hosts.get()), 200), 28);
}

TEST(Grid, TakesHostsWhosePesAreNotInARow) {
  std::vector<int> host_of;
  for (int pe = 0; pe < 23; ++pe) host_of.push_back(pe * 7 % 5);
  const auto hosts = HostGroups::make(host_of);
  peers_in(Grid(23, hosts.get()), 23);
}

}  // namespace
}  // namespace weft::chare
