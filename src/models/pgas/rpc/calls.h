// The calls that arrive at one PE. Threads: the PE's.
#pragma once

#include <cstdint>

#include "weft/pgas/rpc.h"
#include "weft/runtime/runtime.h"

#include "models/pgas/team/team_table.h"

namespace weft::pgas {

// The wire format in front of the packed arguments.
struct CallHeader {
  TeamId team;
  std::uint64_t reply = 0;  // the number of the caller's future; 0: nothing goes back
  std::uint32_t function = 0;
  std::uint32_t caller_pe = 0;
};

class Calls {
 public:
  static constexpr runtime::HandlerId kNumHandlers = 1;

  // `handler`: of the calls, also of those that this PE sends.
  Calls(runtime::Runtime& runtime, TeamTable& teams, runtime::HandlerId handler);

 private:
  void on_call(runtime::MessagePtr message);
  // The function of a call. Throws Error(kCorrupt) if the header cannot be of this job.
  const RpcInfo& check(const CallHeader& header) const;

  runtime::Runtime& runtime_;
  TeamTable& teams_;
};

}  // namespace weft::pgas
