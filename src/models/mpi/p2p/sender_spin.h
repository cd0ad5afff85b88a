// Whether a sender spins, for a few microseconds at most, until an offer of its receiver comes, see ReceiveOffers.
//
// In a ping-pong of blocking calls, and between ranks that send at the same time, an offer comes just after the message that could
// have accepted it. A sender to which that has happened waits, if something shows that the offer may come. What waits in vain
// waits less and less often.
//
// One object for each peer of a rank. Threads: the PE's.
#pragma once

#include <algorithm>
#include <cstdint>

namespace weft::mpi {

// How often what was in vain is left out: 1, 3, 7, ... times. An offer in vain costs the ranks 0.1 us, and one that is accepted saves
// 0.5 us (benchmarks/results/2026-11-26-offers).
constexpr int times_to_skip(int skipped_before) {
  constexpr int kMostTimes = 63;
  return std::min(2 * skipped_before + 1, kMostTimes);
}

class SenderSpin {
 public:
  // Tells that the peer has made an offer. `is_late`: the last message could have accepted it, and was sent without it.
  void told(bool is_late);

  // A message to the peer is next, and so many of the peer's have come. Returns whether it waits for its offer, unless that is here.
  [[nodiscard]] bool may_wait(std::uint32_t num_heard);
  // After may_wait(): the message has been sent. `has_waited`: until its offer came, or for as long as senders wait.
  void sent(bool has_waited, bool has_offer);

 private:
  // A wait pays only if something has come from the peer since the last message to it, or that one has waited in vain and so asked
  // for offers, or it went into an offered receive, whose peer then posts the next one at once: this message follows it.
  bool expects_offer_ = false;
  bool was_accepted_ = false;
  std::uint32_t num_heard_ = 0;
  bool follows_ = false;
  int follows_in_vain_ = 0;   // grows when the peer has not posted at once
  int follows_left_ = 0;      // so many messages that follow do not wait
  int waits_left_ = 0;        // so many messages wait, if all of them do so in vain
  int waits_in_vain_ = 0;     // grows each time that those have waited in vain
  int late_offers_left_ = 0;  // so many late offers make no message wait
};

}  // namespace weft::mpi
