// Quiescence detection: Mattern's four counters over the spanning tree of PE 0.
//
// A wave sums, over all PEs, the counted things sent and processed; each PE answers when its queue is empty.
// When two waves in a row give the same sums and as many were processed as sent, nothing was under way
// between them.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/runtime/future.h"
#include "weft/runtime/message.h"

namespace weft::runtime {

class Reductions;

class Quiescence {
 public:
  Quiescence(Messenger& messenger, Reductions& reductions);

  Future<> detect();

 private:
  void start(Future<> waiter);
  void begin_wave();
  void on_probe(Pup p);
  void answer(std::uint64_t wave);
  void on_result(Pup p);

  Messenger& messenger_;
  Reductions& reductions_;
  // On PE 0 only.
  std::vector<Future<>> waiters_;
  bool active_ = false;
  bool have_previous_ = false;
  std::uint64_t wave_ = 0;
  std::uint64_t previous_sent_ = 0;
  std::uint64_t previous_processed_ = 0;
  double pause_seconds_ = 0;
};

}  // namespace weft::runtime
