// The barriers of a team on one PE: dissemination. In round r a rank hears of all ranks up to 2^(r+1) - 1 places below it.
//
// The messages are urgent: they are handled inside progress(), so a PE that waits in a call, or computes and calls
// Runtime::progress(), takes part. No coroutine runs for a barrier. Threads: the PE's.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/pgas/team_id.h"
#include "weft/runtime/future.h"
#include "weft/runtime/messenger.h"

#include "models/pgas/team/members.h"

namespace weft::pgas {

// The wire format.
struct BarrierNote {
  TeamId team;
  std::uint64_t barrier = 0;  // its number in the team
  std::uint64_t round = 0;
};

class Barrier {
 public:
  Barrier(runtime::Messenger& messenger, runtime::HandlerId handler, const Members& members);

  // This rank has reached its next barrier.
  runtime::Future<> enter();
  // From the handler. REQUIRES: `from` is a rank. Throws Error(kCorrupt) for a note that no rank sends.
  void arrive(int from, const BarrierNote& note);

 private:
  struct State {
    std::uint64_t number = 0;
    std::uint32_t arrived = 0;  // a bit for each round whose note is here
    int round = 0;              // of this rank, when it has entered
    bool is_entered = false;
    runtime::Future<> done;
  };

  State& state_of(std::uint64_t number);
  void send(const State& state);
  // Goes through the rounds whose notes are here. May end the state.
  void advance(State& state);

  runtime::Messenger& messenger_;
  runtime::HandlerId handler_;
  const Members& members_;
  int num_rounds_ = 0;
  std::uint64_t next_ = 0;
  // A few: a rank can be one barrier behind the fastest, and may have entered several without waiting.
  std::vector<State> states_;
};

}  // namespace weft::pgas
