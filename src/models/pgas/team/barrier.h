// The barriers of a team on one PE: dissemination. In round r a rank hears of all ranks up to 2^(r+1) - 1 places below it.
//
// The messages are urgent: they are handled inside progress(), so a PE that waits in a call, or computes and calls
// Runtime::progress(), takes part. No coroutine runs for a barrier.
//
// All ranks have begun equally many other collectives when they enter a barrier, because they call the same ones in the same
// order. A note says how many its sender has begun, and the job fails if this rank has another number. If ranks wait in a
// barrier and others in another collective, one of the first sends the note of round 0 to one of the second, which sees the
// difference. Threads: the PE's.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>

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
  std::uint64_t collectives = 0;  // other ones of the team that the sender has begun before the barrier
};

class Barrier {
 public:
  Barrier(runtime::Messenger& messenger, runtime::HandlerId handler, const Members& members);

  // This rank has reached its next barrier.
  runtime::Future<> enter();
  // How many this rank has entered.
  std::uint64_t num_entered() const { return next_; }
  // This rank begins another collective, of that name, which lasts as long as the program.
  void begin_other(std::string_view name);
  // From the handler. REQUIRES: `from` is a rank. Throws Error(kCorrupt) for a note that no rank sends: of a round that the
  // sender has not with this rank, one that came before, or of a barrier that is over.
  void arrive(int from, const BarrierNote& note);

 private:
  // A rank that has entered a barrier; none: -1.
  struct Entered {
    int rank = -1;
    std::uint64_t collectives = 0;  // other ones that it has begun before
  };
  struct BarrierState {
    std::uint32_t arrived = 0;  // a bit for each round whose note is here
    int round = 0;              // of this rank, when it has entered
    bool is_entered = false;
    Entered first;  // this rank when it has entered; before, the rank whose note came first
    runtime::Future<> done;
  };

  void send(std::uint64_t number, const BarrierState& state);
  // Goes through the rounds whose notes are here. May end the state.
  void advance(std::uint64_t number, BarrierState& state);
  void fail_different(std::uint64_t number, const Entered& one, const Entered& other);

  runtime::Messenger& messenger_;
  runtime::HandlerId handler_;
  const Members& members_;
  int num_rounds_ = 0;
  std::uint64_t next_ = 0;
  std::uint64_t collectives_ = 0;  // other ones that this rank has begun
  std::string_view last_;          // of those
  // By number: barriers that this rank has entered and that are not over, and those of which notes have come ahead.
  std::unordered_map<std::uint64_t, BarrierState> states_;
};

}  // namespace weft::pgas
