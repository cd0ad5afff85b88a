#include "machine/bootstrap/hosts/host_meeting.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "machine/bootstrap/hosts/keyed_hash.h"

namespace weft::machine {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view kMagic = "WFTLINK2";
// In a handshake message, behind magic number and nonce.
constexpr std::size_t kNumbersAt = 24;
constexpr std::size_t kProofAt = 32;

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

void put_proof(std::byte* out, std::uint64_t proof) {
  for (int i = 0; i < 8; ++i) out[i] = static_cast<std::byte>(proof >> (8 * i));
}

std::uint64_t take_proof(const std::byte* in) {
  std::uint64_t proof = 0;
  for (int i = 0; i < 8; ++i) proof |= std::to_integer<std::uint64_t>(in[i]) << (8 * i);
  return proof;
}

bool draw(std::span<std::byte> bytes) {
  return getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size());
}

}  // namespace

HostMeeting::HostMeeting(const HostTable& table, int pe, int listener)
    : table_(table),
      pe_(pe),
      listener_(listener),
      partner_(table.partner(pe)),
      expected_(table.partners_of(pe)) {}

HostMeeting::~HostMeeting() {
  for (const PendingConnection& connection : pending_) ::close(connection.fd);
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
    for (const PendingConnection& connection : pending_) {
      const short events = connection.state == ConnectionState::kConnecting ? POLLOUT : POLLIN;
      fds.push_back({connection.fd, events, 0});
    }
    if (left <= 0 || (poll(fds.data(), fds.size(), static_cast<int>(left)) < 0 && errno != EINTR)) return;
    for (std::size_t i = pending_.size(); i-- > 0;) {
      if (fds[i + 1].revents == 0 || advance(pending_[i])) continue;
      pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (fds[0].revents != 0) accept_connections();
  }
}

void HostMeeting::connect_to_partner() {
  const HostEntry& entry = table_.entry(partner_);
  if (entry.port == 0) return;
  for (const std::string& address : entry.addresses) {
    const int fd = start_connecting(address, entry.port);
    if (fd >= 0) pending_.push_back({.fd = fd, .state = ConnectionState::kConnecting});
  }
}

void HostMeeting::accept_connections() {
  const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) return;
  if (pending_.size() >= kMostStrangers + (1 + expected_.size()) * HostEntry::kMaxAddresses) {
    // The one that has been silent for longest.
    const auto oldest = std::ranges::find_if(pending_, [](const PendingConnection& connection) {
      return connection.state == ConnectionState::kExpectsHello ||
             connection.state == ConnectionState::kExpectsProof;
    });
    ::close(oldest->fd);
    pending_.erase(oldest);
  }
  pending_.push_back({.fd = fd, .state = ConnectionState::kExpectsHello});
}

bool HostMeeting::advance(PendingConnection& connection) {
  const auto end = [&connection] {
    ::close(connection.fd);
    return false;
  };
  if (connection.state == ConnectionState::kConnecting) {
    int error = 0;
    socklen_t size = sizeof error;
    connection.pe = partner_;
    if (getsockopt(connection.fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0 ||
        !draw(connection.own_nonce) || !send_handshake(connection, 0))
      return end();
    connection.state = ConnectionState::kExpectsReply;
    return true;
  }
  if (!read_handshake(connection)) return end();
  if (connection.size < connection.handshake.size()) return true;
  connection.size = 0;
  if (connection.state == ConnectionState::kExpectsHello) return handle_hello(connection) || end();
  const bool is_proved = connection.state == ConnectionState::kExpectsReply ? handle_reply(connection)
                                                                            : handle_proof(connection);
  if (!is_proved) return end();
  links_.push_back({.fd = connection.fd,
                    .pe = connection.pe,
                    .was_accepted = connection.state == ConnectionState::kExpectsProof});
  return false;  // no longer pending
}

bool HostMeeting::handle_hello(PendingConnection& connection) {
  connection.pe = sender_of(connection.handshake);
  if (std::ranges::find(expected_, connection.pe) == expected_.end() || has_met(connection.pe)) return false;
  std::copy_n(connection.handshake.begin() + kMagic.size(), kNonceBytes, connection.peer_nonce.begin());
  if (!draw(connection.own_nonce) || !send_handshake(connection, proof(connection, false))) return false;
  connection.state = ConnectionState::kExpectsProof;
  return true;
}

bool HostMeeting::handle_reply(PendingConnection& connection) {
  if (reached_partner_ || sender_of(connection.handshake) != partner_) return false;
  std::copy_n(connection.handshake.begin() + kMagic.size(), kNonceBytes, connection.peer_nonce.begin());
  if (take_proof(connection.handshake.data() + kProofAt) != proof(connection, false)) return false;
  reached_partner_ = send_handshake(connection, proof(connection, true));
  return reached_partner_;
}

bool HostMeeting::handle_proof(PendingConnection& connection) {
  if (has_met(connection.pe) || sender_of(connection.handshake) != connection.pe) return false;
  if (take_proof(connection.handshake.data() + kProofAt) != proof(connection, true)) return false;
  met_.push_back(connection.pe);
  return true;
}

bool HostMeeting::read_handshake(PendingConnection& connection) {
  const ssize_t got = ::recv(connection.fd, connection.handshake.data() + connection.size,
                             connection.handshake.size() - connection.size, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (got <= 0) return false;
  connection.size += static_cast<std::size_t>(got);
  return true;
}

bool HostMeeting::send_handshake(const PendingConnection& connection, std::uint64_t proof) const {
  Handshake handshake{};
  std::memcpy(handshake.data(), kMagic.data(), kMagic.size());
  std::ranges::copy(connection.own_nonce, handshake.begin() + kMagic.size());
  put_number(handshake.data() + kNumbersAt, pe_);
  put_number(handshake.data() + kNumbersAt + 4, connection.pe);
  put_proof(handshake.data() + kProofAt, proof);
  return ::send(connection.fd, handshake.data(), handshake.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(handshake.size());
}

std::uint64_t HostMeeting::proof(const PendingConnection& connection, bool of_connecting_end) const {
  const bool connects = connection.state == ConnectionState::kExpectsReply;
  std::array<std::byte, 2 * kNonceBytes + 9> message{};
  std::ranges::copy(connects ? connection.own_nonce : connection.peer_nonce, message.begin());
  std::ranges::copy(connects ? connection.peer_nonce : connection.own_nonce, message.begin() + kNonceBytes);
  put_number(message.data() + 2 * kNonceBytes, connects ? pe_ : connection.pe);
  put_number(message.data() + 2 * kNonceBytes + 4, connects ? connection.pe : pe_);
  message.back() = static_cast<std::byte>(of_connecting_end ? 1 : 2);
  return keyed_hash(table_.entry(0).secret, message);
}

int HostMeeting::sender_of(const Handshake& handshake) const {
  const int sender = take_number(handshake.data() + kNumbersAt);
  const bool is_meant = std::memcmp(handshake.data(), kMagic.data(), kMagic.size()) == 0 &&
                        take_number(handshake.data() + kNumbersAt + 4) == pe_;
  return is_meant && sender >= 0 && sender < table_.num_pes() ? sender : -1;
}

}  // namespace weft::machine
