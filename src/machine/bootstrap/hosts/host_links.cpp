#include "machine/bootstrap/hosts/host_links.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/format.h"
#include "machine/bootstrap/hosts/host_meeting.h"

namespace weft::machine {
namespace {

using base::Result;

constexpr int kBacklog = 128;

using PartingClock = std::chrono::steady_clock;

// There is room: nothing else travels on a link.
void say(const std::vector<HostLink>& links, const std::string& words) {
  for (const HostLink& link : links) {
    if (link.fd < 0) continue;
    [[maybe_unused]] const ssize_t sent =
        ::send(link.fd, words.data(), words.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
}

void set_option(int fd, int level, int name, int value) { setsockopt(fd, level, name, &value, sizeof value); }

// "40000-40999" in UCX_TCP_PORT_RANGE: a firewall lets these through. Else the system picks a port.
std::pair<int, int> port_range() {
  const char* const text = std::getenv("UCX_TCP_PORT_RANGE");
  char* rest = nullptr;
  const long first = text == nullptr ? 0 : std::strtol(text, &rest, 10);
  const long last = rest != nullptr && *rest == '-' ? std::strtol(rest + 1, nullptr, 10) : first;
  if (first < 1 || last < first || last > UINT16_MAX) return {0, 0};
  return {static_cast<int>(first), static_cast<int>(last)};
}

bool bind_to(int fd, int family, int port) {
  if (family == AF_INET6) {
    sockaddr_in6 any{};
    any.sin6_family = AF_INET6;
    any.sin6_port = htons(static_cast<std::uint16_t>(port));
    return ::bind(fd, reinterpret_cast<const sockaddr*>(&any), sizeof any) == 0;
  }
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_port = htons(static_cast<std::uint16_t>(port));
  return ::bind(fd, reinterpret_cast<const sockaddr*>(&any), sizeof any) == 0;
}

int listen_with(int family) {
  const auto [first, last] = port_range();
  for (int port = first; port <= last; ++port) {
    const int fd = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -1;
    if (family == AF_INET6) set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
    // A port whose connections ended less than a minute ago will do.
    set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    if (bind_to(fd, family, port) && ::listen(fd, kBacklog) == 0) return fd;
    ::close(fd);
  }
  return -1;
}

// For IPv6 and IPv4 at once where the system has IPv6. -1 if there is no socket or port left.
int open_listener() {
  const int fd = listen_with(AF_INET6);
  return fd >= 0 ? fd : listen_with(AF_INET);
}

std::uint16_t port_of(int listener) {
  sockaddr_in6 address{};  // the port of an IPv4 address is at the same place
  socklen_t size = sizeof address;
  if (listener < 0 || getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.sin6_port);
}

void probe_when_idle(int fd) {
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, HostLinks::kIdleS);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, HostLinks::kIntervalS);
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, HostLinks::kProbes);
}

}  // namespace

Result<HostLinks> HostLinks::make(Bootstrap& bootstrap) {
  const int listener = open_listener();
  HostEntry mine = HostEntry::of_this_process();
  mine.port = port_of(listener);
  auto all = bootstrap.exchange(mine.pack());
  auto table = all.ok() ? HostTable::unpack(*all) : Result<HostTable>(all.status());
  if (!table.ok()) {
    if (listener >= 0) ::close(listener);
    return table.status();
  }
  return meet(std::move(table).value(), bootstrap.pe(), listener, kMeetingMs);
}

HostLinks HostLinks::meet(HostTable table, int pe, int listener, int limit_ms) {
  HostLinks self;
  self.table_ = std::move(table);
  if (self.table_.num_hosts() < 2) {
    if (listener >= 0) ::close(listener);
    return self;
  }
  HostMeeting meeting(self.table_, pe, listener);
  meeting.run(limit_ms);
  self.links_ = meeting.take_links();
  for (const HostLink& link : self.links_) probe_when_idle(link.fd);
  for (const int missing : meeting.missing()) {
    if (self.table_.entry(missing).port == 0 || self.table_.entry(pe).port == 0) {
      const int without = self.table_.entry(pe).port == 0 ? pe : missing;
      self.obstacles_.push_back(base::format(
          "no TCP connection with {}: {} has found no free port. If that host is lost, the job may not "
          "notice. UCX_TCP_PORT_RANGE must have two ports for each PE of a host",
          self.table_.pe_text(missing), self.table_.pe_text(without)));
      continue;
    }
    self.obstacles_.push_back(base::format(
        "no TCP connection with {} within {} ms. If that host is lost, the job may not notice. "
        "Let TCP connections "
        "between the hosts pass the firewall (UCX_TCP_PORT_RANGE names ports, UCX_NET_DEVICES the devices)",
        self.table_.pe_text(missing), limit_ms));
  }
  return self;
}

HostLinks::~HostLinks() {
  for (std::size_t i = 0; i < links_.size(); ++i) close_link(i);
}

HostLinks::HostLinks(HostLinks&& other) noexcept
    : table_(std::move(other.table_)),
      links_(std::exchange(other.links_, {})),
      obstacles_(std::move(other.obstacles_)) {}

HostLinks& HostLinks::operator=(HostLinks&& other) noexcept {
  std::swap(table_, other.table_);
  std::swap(links_, other.links_);
  std::swap(obstacles_, other.obstacles_);
  return *this;
}

void HostLinks::close_link(std::size_t which) {
  const int fd = std::exchange(links_[which].fd, -1);
  if (fd >= 0) ::close(fd);
}

void HostLinks::close_done_link(std::size_t which) {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  if (links_[which].fd >= 0) setsockopt(links_[which].fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  close_link(which);
}

void HostLinks::say_goodbye(int limit_ms) {
  say(links_, std::string(1, kGoodbye));
  // The end that closes first keeps its port in use for a minute. The port of a PE that has connected is none of UCX_TCP_PORT_RANGE.
  const auto deadline = PartingClock::now() + std::chrono::milliseconds(limit_ms);
  for (std::size_t i = 0; i < links_.size(); ++i) {
    if (links_[i].fd < 0 || !links_[i].was_accepted) continue;
    pollfd peer{links_[i].fd, POLLIN, 0};
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - PartingClock::now()).count();
    if (poll(&peer, 1, std::max(0, static_cast<int>(left))) > 0) close_done_link(i);
  }
  for (std::size_t i = 0; i < links_.size(); ++i) close_link(i);
}

void HostLinks::say_loss(const std::string& reason) {
  say(links_, kLoss + reason.substr(0, kMaxReasonBytes));
}

}  // namespace weft::machine
