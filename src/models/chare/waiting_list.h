// The calls of one chare that wait for their conditions. The functions are in waiting_calls.cpp. Threads: the PE's.
#pragma once

#include <deque>
#include <memory>

#include "weft/chare/waiting_call.h"

namespace weft::chare {

class WaitingCalls {
 public:
  static constexpr int kCallsPerTurn = 64;

  std::deque<std::unique_ptr<WaitingCall>> calls;  // in order of arrival
  bool is_asking = false;                          // run_ready_calls() is under way
  bool is_postponed = false;                       // it goes on in a later turn
};

}  // namespace weft::chare
