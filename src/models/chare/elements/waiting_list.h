// The calls of one chare that wait for their conditions.
//
// The first in order of arrival whose condition holds is to run. To find it the list need not ask all calls each time. Those of one entry
// method are a group, and calls of a group can tell two things (waiting_call.h): whether anything has changed that their condition
// reads, and, if the condition compares a value of the call with one of the chare, hashes of both. So the time does not grow with the
// number of calls that wait for something else.
//
// Threads: the PE's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "weft/chare/waiting_call.h"

namespace weft::chare {

class WaitingCalls {
 public:
  static constexpr int kCallsPerTurn = 64;

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  // In order of arrival.
  std::vector<WaitingCall*> all() const;
  // `was_asked`: the condition does not hold as the chare is now.
  void add(ChareBase& chare, std::unique_ptr<WaitingCall> call, bool was_asked);
  // Begins the first call whose condition holds, and removes it. Returns false if there is none.
  bool begin_first(ChareBase& chare);

  bool is_asking = false;     // run_ready_calls() is under way
  bool is_postponed = false;  // it goes on in a later turn

 private:
  using Calls = std::map<std::uint64_t, std::unique_ptr<WaitingCall>>;  // by number of arrival
  struct Group {
    const void* id = nullptr;
    std::unordered_map<std::uint64_t, Calls> keyed;  // by WaitingCall::key()
    Calls others;
    // No call of the group could begin when the chare was as `seen` tells.
    bool is_settled = false;
    std::shared_ptr<void> seen;

    bool empty() const { return others.empty() && keyed.empty(); }
    // Any of its calls, which tells what is the same for all. REQUIRES: not empty.
    const WaitingCall& one() const {
      return others.empty() ? *keyed.begin()->second.begin()->second : *others.begin()->second;
    }
  };
  struct Cursor;

  // Adds the calls of the group that may be ready.
  static void add_cursors(Group& group, ChareBase& chare, std::vector<Cursor>& cursors);
  void erase(const Cursor& cursor);

  std::deque<Group> groups_;  // a reference to one stays valid when another is added
  std::size_t size_ = 0;
  std::uint64_t next_number_ = 0;
};

}  // namespace weft::chare
