#include "machine/bootstrap/hosts/host_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "tests/support/bytes_of.h"

namespace weft::machine {
namespace {

using testing::bytes_of;

// One entry for each number, which is that of its host.
HostTable table_of(const std::vector<std::uint64_t>& hosts) {
  std::vector<HostEntry> entries;
  for (const std::uint64_t host : hosts) {
    HostEntry entry;
    entry.host = host;
    entry.name = "node" + std::to_string(host);
    entries.push_back(entry);
  }
  return HostTable(entries);
}

TEST(HostTableTest, AnEntryArrivesAsItWasSent) {
  HostEntry sent = HostEntry::of_this_process();
  EXPECT_NE(sent.host, 0U);
  sent.name = "a name=with\nodd characters";
  sent.port = 65535;
  sent.addresses = {"10.0.0.1", "fd77::1"};
  sent.secret.back() = std::byte{0xab};
  HostEntry cleaned = sent;
  std::ranges::replace(cleaned.name, '\n', ' ');
  auto got = HostEntry::unpack(cleaned.pack(), 0);
  ASSERT_TRUE(got.ok()) << got.status().to_string();
  EXPECT_EQ(got->host, sent.host);
  EXPECT_EQ(got->port, sent.port);
  EXPECT_EQ(got->name, cleaned.name);
  EXPECT_EQ(got->addresses, sent.addresses);
  EXPECT_EQ(got->secret, sent.secret);
}

TEST(HostTableTest, BytesThatAreNoEntryAreRefused) {
  std::string too_many;
  for (std::size_t i = 0; i <= HostEntry::kMaxAddresses; ++i) too_many += "address=10.0.0.1\n";
  for (const std::string& text :
       {std::string("nothing"), std::string("what=1"), std::string("port=65536"), std::string("port=-1"),
        std::string("host=1x"), std::string("secret=00"), std::string("secret=zz") + std::string(30, '0'),
        std::string("address=example.org"), std::string("address=10.0.0.1; rm"), too_many}) {
    auto got = HostEntry::unpack(bytes_of(text), 7);
    ASSERT_FALSE(got.ok()) << text;
    EXPECT_EQ(got.status().code(), base::StatusCode::kCorrupt);
    EXPECT_NE(got.status().message().find("PE 7"), std::string_view::npos);
  }
}

TEST(HostTableTest, ANameIsShortAndPrintable) {
  auto got = HostEntry::unpack(bytes_of("name=\x1b[31m" + std::string(1000, 'x')), 0);
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got->name.size(), HostEntry::kMaxNameBytes);
  EXPECT_EQ(got->name.front(), '?');
}

TEST(HostTableTest, PesAreGroupedByHost) {
  const HostTable table = table_of({7, 7, 3, 7, 3});
  EXPECT_EQ(table.num_pes(), 5);
  EXPECT_EQ(table.num_hosts(), 2);
  EXPECT_EQ(table.host_of(3), 0);
  EXPECT_EQ(table.pes_of(1), (std::vector<int>{2, 4}));
  EXPECT_EQ(table.pe_text(2), "PE 2 on node3");
  EXPECT_EQ(table.host_text(2), "the host node3 with PEs 2, 4");
}

TEST(HostTableTest, ALongListOfPesIsCutShort) {
  const HostTable table = table_of(std::vector<std::uint64_t>(20, 1));
  EXPECT_NE(table.host_text(0).find(", 15 and 4 others"), std::string::npos) << table.host_text(0);
}

TEST(HostTableTest, PartnersFormARingOfHosts) {
  // Three hosts with 3, 1 and 2 PEs.
  const HostTable table = table_of({1, 1, 1, 2, 3, 3});
  const std::vector<int> partners = {3, 3, 3, 4, 1, 2};
  for (int pe = 0; pe < table.num_pes(); ++pe)
    EXPECT_EQ(table.partner(pe), partners[static_cast<std::size_t>(pe)]);
  EXPECT_EQ(table.partners_of(3), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(table.partners_of(5), std::vector<int>{});
  EXPECT_EQ(table.partners_of(1), std::vector<int>{4});
}

TEST(HostTableTest, LinksLeadFromEachPeToAllOthers) {
  const std::vector<std::vector<std::uint64_t>> jobs = {{1, 1, 2, 2},
                                                        {1, 2, 1, 2, 3, 3},
                                                        {1, 2, 2, 2, 3, 4, 4, 4},
                                                        {1, 1, 1, 1, 2, 2},
                                                        {1, 1, 2, 2, 2, 2, 2, 3, 3}};
  for (const auto& hosts : jobs) {
    const HostTable table = table_of(hosts);
    std::vector<int> group(hosts.size());
    std::iota(group.begin(), group.end(), 0);
    for (int pe = 0; pe < table.num_pes(); ++pe) {
      const int joined = group[static_cast<std::size_t>(pe)];
      const int other = group[static_cast<std::size_t>(table.partner(pe))];
      std::ranges::replace(group, joined, other);
    }
    EXPECT_EQ(std::ranges::count(group, group[0]), static_cast<std::ptrdiff_t>(group.size())) << hosts.size();
  }
}

TEST(HostTableTest, TheDevicesOfUcxAreKnown) {
  EXPECT_TRUE(names_device("eth1", "eth1"));
  EXPECT_TRUE(names_device("eth0,eth1", "eth1"));
  EXPECT_TRUE(names_device("mlx5_0:1,eth1", "eth1"));
  EXPECT_TRUE(names_device("all", "eth1"));
  EXPECT_TRUE(names_device("^eth0", "eth1"));
  EXPECT_FALSE(names_device("eth0,eth11", "eth1"));
  EXPECT_FALSE(names_device("mlx5_0:1", "eth1"));
  EXPECT_FALSE(names_device("^eth0,eth1", "eth1"));
  EXPECT_FALSE(names_device("", "eth1"));
}

}  // namespace
}  // namespace weft::machine
