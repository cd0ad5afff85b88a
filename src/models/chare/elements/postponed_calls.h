// The chares of a PE whose waiting calls can run in a later turn. The functions are in waiting_calls.cpp.
//
// A chain of calls that make one another ready could be long, and the PE must receive messages in between. After
// WaitingCalls::kCallsPerTurn calls the chare therefore goes on in a turn of its own. Threads: the PE's.
#pragma once

#include <vector>

#include "weft/chare/chares.h"

#include "runtime/owned_work.h"

namespace weft::chare {

// Chares whose run_ready_calls() goes on in a later turn. They may have moved or have been destroyed by then.
class PostponedCalls {
 public:
  explicit PostponedCalls(Chares& chares) : chares_(chares) {}
  PostponedCalls(const PostponedCalls&) = delete;
  PostponedCalls& operator=(const PostponedCalls&) = delete;

  // Quiescence counts it as a message.
  void add(runtime::ElementId element);

 private:
  void run();

  Chares& chares_;
  std::vector<runtime::ElementId> elements_;
  runtime::OwnedWork<&PostponedCalls::run> work_{*this};
};

}  // namespace weft::chare
