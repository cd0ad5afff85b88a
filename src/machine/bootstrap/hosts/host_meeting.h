// How a PE makes its links: it connects to its partner at all of its addresses at once, and accepts those whose partner
// it is. A connection counts if both ends have proved that they know the job's secret; all others are closed. Three words of
// one size travel: the hello of the end that connects, the reply, and the proof of the end that connects. A proof is a keyed
// hash over random numbers of both ends, their PE numbers and the role, so that no word is of use on another connection.
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
  static constexpr std::size_t kWordBytes = 8 + kNonceBytes + 4 + 4 + 8;
  using Word = std::array<std::byte, kWordBytes>;

  enum class State { kConnecting, kExpectsReply, kExpectsHello, kExpectsProof };
  struct Guest {
    int fd;
    State state;
    int pe = -1;  // what it says; -1 before its first word
    Nonce own_nonce{};
    Nonce peer_nonce{};
    std::size_t size = 0;  // of what has arrived of `word`
    Word word{};
  };

  void connect_to_partner();
  void accept_guests();
  // False if the connection is over.
  bool advance(Guest& guest);
  bool read_word(Guest& guest);
  bool has_met(int pe) const;
  bool is_done() const;
  // What to do with a whole word. False if the connection is over.
  bool handle_hello(Guest& guest);
  bool handle_reply(Guest& guest);
  bool handle_proof(Guest& guest);
  bool say(const Guest& guest, std::uint64_t proof) const;
  // Of the end that connects, or of the other one.
  std::uint64_t proof(const Guest& guest, bool of_connecting_end) const;
  // The PE that the word says it is from, if that exists and the word is for this PE; else -1. Nothing is proved.
  int sender_of(const Word& word) const;

  const HostTable& table_;
  int pe_;
  int listener_;
  int partner_;
  std::vector<int> expected_;  // those that connect to this PE
  std::vector<Guest> guests_;
  std::vector<HostLink> links_;
  bool reached_partner_ = false;
  std::vector<int> met_;  // of `expected_`
};

}  // namespace weft::machine
