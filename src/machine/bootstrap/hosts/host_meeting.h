// How a PE makes its links: it connects to its partner at all of its addresses at once, and accepts those whose partner
// it is. A connection counts if both ends have proved that they know the job's secret; all others are closed. Three messages of
// one size travel: the hello of the end that connects, the reply, and the proof of the end that connects. A proof is a keyed
// hash over random numbers of both ends, their PE numbers and the role, so that no message is of use on another connection.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "machine/bootstrap/hosts/host_link.h"
#include "machine/bootstrap/hosts/host_table.h"

namespace weft::machine {

class HostMeeting {
 public:
  // Owns `listener`, or -1. `table` must outlive it.
  HostMeeting(const HostTable& table, int pe, int listener);
  ~HostMeeting();
  HostMeeting(const HostMeeting&) = delete;
  HostMeeting& operator=(const HostMeeting&) = delete;

  // Until all links are there, or for that long.
  void run(int limit_ms);
  std::vector<HostLink> take_links();
  // The PEs with which there is no link.
  std::vector<int> missing() const;

 private:
  // Strangers may connect: so many connections more than peers can make may wait for their first bytes.
  static constexpr std::size_t kMostStrangers = 64;
  static constexpr std::size_t kNonceBytes = 16;
  using Nonce = std::array<std::byte, kNonceBytes>;
  // Magic number, nonce, sender, receiver, proof.
  static constexpr std::size_t kHandshakeBytes = 8 + kNonceBytes + 4 + 4 + 8;
  using Handshake = std::array<std::byte, kHandshakeBytes>;

  enum class ConnectionState { kConnecting, kExpectsReply, kExpectsHello, kExpectsProof };
  struct PendingConnection {
    int fd;
    ConnectionState state;
    int pe = -1;  // the peer, by its own account; -1 before its first handshake message
    Nonce own_nonce{};
    Nonce peer_nonce{};
    std::size_t size = 0;  // of what has arrived of `handshake`
    Handshake handshake{};
  };

  void connect_to_partner();
  void accept_connections();
  // False if the connection is over.
  bool advance(PendingConnection& connection);
  bool read_handshake(PendingConnection& connection);
  bool has_met(int pe) const;
  bool is_done() const;
  // Handles a whole handshake message. Returns false if the connection is over.
  bool handle_hello(PendingConnection& connection);
  bool handle_reply(PendingConnection& connection);
  bool handle_proof(PendingConnection& connection);
  bool send_handshake(const PendingConnection& connection, std::uint64_t proof) const;
  // The proof of the end that connects, or of the end that accepts.
  std::uint64_t proof(const PendingConnection& connection, bool of_connecting_end) const;
  // The PE that the message names as its sender, if that exists and the message is for this PE; else -1. Nothing is proved.
  int sender_of(const Handshake& handshake) const;

  const HostTable& table_;
  int pe_;
  int listener_;
  int partner_;
  std::vector<int> expected_;  // those that connect to this PE
  std::vector<PendingConnection> pending_;
  std::vector<HostLink> links_;
  bool reached_partner_ = false;
  std::vector<int> met_;  // of `expected_`
};

}  // namespace weft::machine
