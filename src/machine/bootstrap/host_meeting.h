// How a PE makes its links: it connects to its partner at all of its addresses at once, and accepts those whose partner
// it is. A connection counts if both ends have shown the job's secret and their PE numbers; all others are closed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "machine/bootstrap/host_link.h"
#include "machine/bootstrap/host_table.h"

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
  static constexpr std::size_t kWordBytes = 8 + kLinkSecretBytes + 8;
  using Word = std::array<std::byte, kWordBytes>;

  enum class State { kConnecting, kExpectsReply, kExpectsHello };
  struct Guest {
    int fd;
    State state;
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
  Word word_for(int pe) const;
  // The PE that sent the word, if it is one of this job for this PE; else -1.
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
