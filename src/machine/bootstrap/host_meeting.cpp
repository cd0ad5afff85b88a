#include "machine/bootstrap/host_meeting.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>
#include <utility>

namespace weft::machine {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view kMagic = "WFTLINK1";

// A socket that is connecting, or -1.
int start_connecting(const std::string& address, std::uint16_t port) {
  sockaddr_in6 v6{};
  sockaddr_in v4{};
  const bool is_v4 = inet_pton(AF_INET, address.c_str(), &v4.sin_addr) == 1;
  if (!is_v4 && inet_pton(AF_INET6, address.c_str(), &v6.sin6_addr) != 1) return -1;
  v4.sin_family = AF_INET;
  v6.sin6_family = AF_INET6;
  v4.sin_port = v6.sin6_port = htons(port);
  const int fd = ::socket(is_v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  const int code = is_v4 ? ::connect(fd, reinterpret_cast<const sockaddr*>(&v4), sizeof v4)
                         : ::connect(fd, reinterpret_cast<const sockaddr*>(&v6), sizeof v6);
  if (code == 0 || errno == EINPROGRESS) return fd;
  ::close(fd);
  return -1;
}

void put_number(std::byte* out, int value) {
  for (int i = 0; i < 4; ++i) out[i] = static_cast<std::byte>(static_cast<std::uint32_t>(value) >> (8 * i));
}

int take_number(const std::byte* in) {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value |= std::to_integer<std::uint32_t>(in[i]) << (8 * i);
  return static_cast<int>(value);
}

}  // namespace

HostMeeting::HostMeeting(const HostTable& table, int pe, int listener)
    : table_(table),
      pe_(pe),
      listener_(listener),
      partner_(table.partner(pe)),
      expected_(table.partners_of(pe)) {}

HostMeeting::~HostMeeting() {
  for (const Guest& guest : guests_) ::close(guest.fd);
  for (const HostLink& link : links_) ::close(link.fd);
  if (listener_ >= 0) ::close(listener_);
}

std::vector<HostLink> HostMeeting::take_links() { return std::exchange(links_, {}); }

bool HostMeeting::has_met(int pe) const { return std::ranges::find(met_, pe) != met_.end(); }

std::vector<int> HostMeeting::missing() const {
  std::vector<int> pes;
  if (!reached_partner_) pes.push_back(partner_);
  for (const int pe : expected_) {
    if (!has_met(pe) && (pe != partner_ || reached_partner_)) pes.push_back(pe);
  }
  return pes;
}

// A PE that has found no port cannot be reached.
bool HostMeeting::is_done() const {
  return (reached_partner_ || table_.entry(partner_).port == 0) &&
         (met_.size() == expected_.size() || table_.entry(pe_).port == 0);
}

void HostMeeting::run(int limit_ms) {
  connect_to_partner();
  const auto deadline = Clock::now() + std::chrono::milliseconds(limit_ms);
  while (!is_done()) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    std::vector<pollfd> fds = {{listener_, POLLIN, 0}};
    for (const Guest& guest : guests_) {
      const short events = guest.state == State::kConnecting ? POLLOUT : POLLIN;
      fds.push_back({guest.fd, events, 0});
    }
    if (left <= 0 || (poll(fds.data(), fds.size(), static_cast<int>(left)) < 0 && errno != EINTR)) return;
    for (std::size_t i = guests_.size(); i-- > 0;) {
      if (fds[i + 1].revents == 0 || advance(guests_[i])) continue;
      guests_.erase(guests_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (fds[0].revents != 0) accept_guests();
  }
}

void HostMeeting::connect_to_partner() {
  const HostEntry& entry = table_.entry(partner_);
  if (entry.port == 0) return;
  for (const std::string& address : entry.addresses) {
    const int fd = start_connecting(address, entry.port);
    if (fd >= 0) guests_.push_back({.fd = fd, .state = State::kConnecting});
  }
}

void HostMeeting::accept_guests() {
  const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) return;
  if (guests_.size() >= kMostStrangers + (1 + expected_.size()) * HostEntry::kMaxAddresses) {
    // The one that has been silent for longest.
    const auto oldest = std::ranges::find(guests_, State::kExpectsHello, &Guest::state);
    ::close(oldest->fd);
    guests_.erase(oldest);
  }
  guests_.push_back({.fd = fd, .state = State::kExpectsHello});
}

bool HostMeeting::advance(Guest& guest) {
  const auto end = [&guest] {
    ::close(guest.fd);
    return false;
  };
  const auto say = [&](int pe) {
    const Word word = word_for(pe);
    return ::send(guest.fd, word.data(), word.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(word.size());
  };
  if (guest.state == State::kConnecting) {
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(guest.fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0 || !say(partner_))
      return end();
    guest.state = State::kExpectsReply;
    return true;
  }
  if (!read_word(guest)) return end();
  if (guest.size < guest.word.size()) return true;
  const int sender = sender_of(guest.word);
  if (guest.state == State::kExpectsReply) {
    if (sender != partner_ || reached_partner_) return end();
    reached_partner_ = true;
  } else {
    if (std::ranges::find(expected_, sender) == expected_.end() || has_met(sender) || !say(sender))
      return end();
    met_.push_back(sender);
  }
  links_.push_back({.fd = guest.fd, .pe = sender, .was_accepted = guest.state == State::kExpectsHello});
  return false;  // no guest any more
}

bool HostMeeting::read_word(Guest& guest) {
  const ssize_t got = ::recv(guest.fd, guest.word.data() + guest.size, guest.word.size() - guest.size, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (got <= 0) return false;
  guest.size += static_cast<std::size_t>(got);
  return true;
}

HostMeeting::Word HostMeeting::word_for(int pe) const {
  Word word{};
  std::memcpy(word.data(), kMagic.data(), kMagic.size());
  const LinkSecret& secret = table_.entry(0).secret;
  std::ranges::copy(secret, word.begin() + kMagic.size());
  put_number(word.data() + kMagic.size() + secret.size(), pe_);
  put_number(word.data() + kMagic.size() + secret.size() + 4, pe);
  return word;
}

int HostMeeting::sender_of(const Word& word) const {
  const std::byte* const numbers = word.data() + kMagic.size() + kLinkSecretBytes;
  const int sender = take_number(numbers);
  if (sender < 0 || sender >= table_.num_pes() || take_number(numbers + 4) != pe_) return -1;
  const Word expected = word_for(pe_);
  auto difference = std::byte{0};  // takes the same time for each wrong secret
  for (std::size_t i = 0; i < kMagic.size() + kLinkSecretBytes; ++i) difference |= word[i] ^ expected[i];
  return difference == std::byte{0} ? sender : -1;
}

}  // namespace weft::machine
