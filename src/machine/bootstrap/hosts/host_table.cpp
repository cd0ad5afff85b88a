#include "machine/bootstrap/hosts/host_table.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "base/host_number.h"

namespace weft::machine {
namespace {

using base::Result;
using base::Status;
using base::StatusCode;

// An error message names at most this many PEs of a host.
constexpr std::size_t kMostPesNamed = 16;

// The numeric form; empty for families other than IPv4 and IPv6, and for addresses of one device only (fe80::).
std::string numeric_address(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address->sa_family == AF_INET) {
    const auto& v4 = *reinterpret_cast<const sockaddr_in*>(address);
    inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
  } else if (address->sa_family == AF_INET6) {
    const auto& v6 = *reinterpret_cast<const sockaddr_in6*>(address);
    if (IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr)) return {};
    inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
  }
  return text.data();
}

// The addresses of the devices that UCX uses, so that the links fail with the job's messages and not with another network.
// If UCX_NET_DEVICES names no network devices (mlx5_0:1), the addresses of all devices.
std::vector<std::string> own_addresses() {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(all, freeifaddrs);
  const char* const devices = std::getenv("UCX_NET_DEVICES");
  std::vector<std::string> addresses;
  std::vector<std::string> of_ucx;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0 || (one->ifa_flags & IFF_LOOPBACK) != 0)
      continue;
    const std::string text = numeric_address(one->ifa_addr);
    if (text.empty()) continue;
    addresses.push_back(text);
    if (devices != nullptr && names_device(devices, one->ifa_name)) of_ucx.push_back(text);
  }
  std::vector<std::string>& chosen = of_ucx.empty() ? addresses : of_ucx;
  chosen.resize(std::min(chosen.size(), HostEntry::kMaxAddresses));
  return chosen;
}

bool is_address(const std::string& text) {
  in6_addr room{};
  return inet_pton(AF_INET, text.c_str(), &room) == 1 || inet_pton(AF_INET6, text.c_str(), &room) == 1;
}

template <class Integer>
bool read_number(std::string_view text, Integer& value) {
  const auto [stopped, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && stopped == text.data() + text.size();
}

bool read_secret(std::string_view text, LinkSecret& secret) {
  if (text.size() != 2 * secret.size()) return false;
  for (std::size_t i = 0; i < secret.size(); ++i) {
    unsigned value = 0;
    const auto [stopped, error] = std::from_chars(&text[2 * i], &text[2 * i] + 2, value, 16);
    if (error != std::errc() || stopped != &text[2 * i] + 2) return false;
    secret[i] = static_cast<std::byte>(value);
  }
  return true;
}

bool read_line(std::string_view name, std::string_view value, HostEntry& entry) {
  if (name == "host") return read_number(value, entry.host);
  if (name == "port") return read_number(value, entry.port);
  if (name == "secret") return read_secret(value, entry.secret);
  if (name == "name") {
    entry.name = value.substr(0, HostEntry::kMaxNameBytes);
    std::ranges::replace_if(entry.name, [](char c) { return c < ' ' || c > '~'; }, '?');
    return true;
  }
  if (name != "address" || entry.addresses.size() >= HostEntry::kMaxAddresses) return false;
  entry.addresses.emplace_back(value);
  return is_address(entry.addresses.back());
}

}  // namespace

bool names_device(std::string_view devices, std::string_view device) {
  const bool excludes = devices.starts_with('^');
  if (excludes) devices.remove_prefix(1);
  bool is_listed = devices == "all";
  while (!devices.empty()) {
    const std::string_view one = devices.substr(0, devices.find(','));
    devices.remove_prefix(std::min(one.size() + 1, devices.size()));
    is_listed = is_listed || one == device;
  }
  return is_listed != excludes;
}

HostEntry HostEntry::of_this_process() {
  HostEntry entry;
  entry.host = base::host_number();
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) == 0) entry.name = name.data();
  entry.addresses = own_addresses();
  [[maybe_unused]] const ssize_t drawn = getrandom(entry.secret.data(), entry.secret.size(), 0);
  return entry;
}

std::vector<std::byte> HostEntry::pack() const {
  std::string text =
      base::format("host={}\nport={}\nname={}\nsecret=", host, port, name.substr(0, kMaxNameBytes));
  for (const std::byte byte : secret) text += base::format("{:02x}", std::to_integer<unsigned>(byte));
  for (const std::string& address : addresses) text += base::format("\naddress={}", address);
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  return {bytes, bytes + text.size()};
}

Result<HostEntry> HostEntry::unpack(std::span<const std::byte> bytes, int pe) {
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  HostEntry entry;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos ||
        !read_line(line.substr(0, equals), line.substr(equals + 1), entry)) {
      return Status(
          StatusCode::kCorrupt,
          base::format("PE {} described its host with {} bytes that mean nothing here; do all PEs run the "
                       "same version of Weft?",
                       pe, bytes.size()));
    }
  }
  return entry;
}

HostTable::HostTable(std::vector<HostEntry> entries) : entries_(std::move(entries)) {
  std::map<std::uint64_t, int> numbers;
  for (int pe = 0; pe < num_pes(); ++pe) {
    const auto [found, is_new] = numbers.emplace(entry(pe).host, num_hosts());
    if (is_new) pes_.emplace_back();
    hosts_.push_back(found->second);
    pes_[static_cast<std::size_t>(found->second)].push_back(pe);
  }
}

Result<HostTable> HostTable::unpack(const std::vector<std::vector<std::byte>>& packed) {
  std::vector<HostEntry> entries;
  for (const auto& bytes : packed) {
    auto entry = HostEntry::unpack(bytes, static_cast<int>(entries.size()));
    if (!entry.ok()) return entry.status();
    entries.push_back(std::move(entry).value());
  }
  return HostTable(std::move(entries));
}

int HostTable::partner(int pe) const {
  const auto& here = pes_of(host_of(pe));
  const auto& next = pes_of((host_of(pe) + 1) % num_hosts());
  // One rank on when the ring closes: so the PEs of a host, which have no links among themselves, are in one ring too.
  const std::size_t shift = host_of(pe) + 1 == num_hosts() ? 1 : 0;
  const auto rank = static_cast<std::size_t>(std::ranges::find(here, pe) - here.begin());
  return next[(rank + shift) % next.size()];
}

std::vector<int> HostTable::partners_of(int pe) const {
  std::vector<int> found;
  for (const int other : pes_of((host_of(pe) + num_hosts() - 1) % num_hosts())) {
    if (partner(other) == pe) found.push_back(other);
  }
  return found;
}

std::string HostTable::pe_text(int pe) const { return base::format("PE {} on {}", pe, entry(pe).name); }

std::string HostTable::host_text(int pe) const {
  const auto& pes = pes_of(host_of(pe));
  std::string text = base::format("the host {} with PE{} ", entry(pe).name, pes.size() == 1 ? "" : "s");
  for (std::size_t i = 0; i < std::min(pes.size(), kMostPesNamed); ++i) {
    text += base::format("{}{}", i == 0 ? "" : ", ", pes[i]);
  }
  if (pes.size() > kMostPesNamed) text += base::format(" and {} others", pes.size() - kMostPesNamed);
  return text;
}

}  // namespace weft::machine
