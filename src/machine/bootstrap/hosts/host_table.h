// Which PEs of a job are on which host, and where each can be reached for a link between hosts.
//
// An entry travels as text, lines "name=value". It is a claim of the peer: each value is checked.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/status.h"

namespace weft::machine {

inline constexpr std::size_t kLinkSecretBytes = 16;
using LinkSecret = std::array<std::byte, kLinkSecretBytes>;

// Whether UCX_NET_DEVICES=`devices` names the network device: "eth0,eth1", "^eth0", "all".
bool names_device(std::string_view devices, std::string_view device);

struct HostEntry {
  std::uint64_t host = 0;  // base::host_number()
  std::string name;        // of the host, for people
  std::uint16_t port = 0;
  std::vector<std::string> addresses;  // numeric, IPv4 or IPv6
  LinkSecret secret{};                 // the job uses that of PE 0

  // This process's entry, without a port: host number, name, addresses of its network devices, random secret.
  // The devices are those in UCX_NET_DEVICES, if they are network devices.
  static HostEntry of_this_process();
  std::vector<std::byte> pack() const;
  static base::Result<HostEntry> unpack(std::span<const std::byte> bytes, int pe);

  static constexpr std::size_t kMaxAddresses = 16;
  static constexpr std::size_t kMaxNameBytes = 64;
};

class HostTable {
 public:
  HostTable() = default;
  // `entries`: those of all PEs, indexed by PE. Hosts are numbered in the order of their first PEs.
  explicit HostTable(std::vector<HostEntry> entries);
  static base::Result<HostTable> unpack(const std::vector<std::vector<std::byte>>& packed);

  int num_pes() const { return static_cast<int>(entries_.size()); }
  int num_hosts() const { return static_cast<int>(pes_.size()); }
  int host_of(int pe) const { return hosts_[static_cast<std::size_t>(pe)]; }
  const std::vector<int>& pes_of(int host) const { return pes_[static_cast<std::size_t>(host)]; }
  const HostEntry& entry(int pe) const { return entries_[static_cast<std::size_t>(pe)]; }
  // The PE on the next host that this one connects to. The hosts form a ring, and links connect all PEs. REQUIRES: num_hosts() > 1.
  int partner(int pe) const;
  // The PEs that connect to this one.
  std::vector<int> partners_of(int pe) const;
  // "PE 2 on nodeB", and "the host nodeB with PEs 2, 3".
  std::string pe_text(int pe) const;
  std::string host_text(int pe) const;

 private:
  std::vector<HostEntry> entries_;
  std::vector<int> hosts_;             // by PE
  std::vector<std::vector<int>> pes_;  // by host
};

}  // namespace weft::machine
