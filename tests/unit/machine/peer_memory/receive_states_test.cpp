// Every pair of a state and an event, for each part of a posted receive.
#include "machine/peer_memory/receive_states.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <utility>

namespace weft::machine {
namespace {

// Expects `allowed`, and no next state for all other pairs.
template <class State, class Event>
void expect_table(State last_state, Event last_event,
                  const std::map<std::pair<State, Event>, State>& allowed) {
  for (int state = 0; state <= static_cast<int>(last_state); ++state) {
    for (int event = 0; event <= static_cast<int>(last_event); ++event) {
      const std::pair pair{static_cast<State>(state), static_cast<Event>(event)};
      const auto found = allowed.find(pair);
      const auto expected = found == allowed.end() ? std::nullopt : std::optional(found->second);
      EXPECT_EQ(next_state(pair.first, pair.second), expected) << state << ", " << event;
      if (!expected) continue;
      State moved = pair.first;
      advance(moved, pair.second);
      EXPECT_EQ(moved, *expected);
    }
  }
}

TEST(ReceiveStates, APostingIsMadeOnceAndWithdrawn) {
  using enum PostedHalf;
  using enum PostedEvent;
  expect_table<PostedHalf, PostedEvent>(kUnreadable, kUnpost,
                                        {{{kNone, kDefer}, kAfterStream},
                                         {{kNone, kPost}, kPosted},
                                         {{kNone, kUnpost}, kNone},
                                         {{kAfterStream, kPost}, kPosted},
                                         {{kAfterStream, kUnpost}, kAfterStream},
                                         {{kPosted, kReadFails}, kUnreadable},
                                         {{kPosted, kUnpost}, kNone},
                                         {{kUnreadable, kUnpost}, kNone}});
}

TEST(ReceiveStates, ATaggedHalfStartsAndEndsOnce) {
  using enum TaggedHalf;
  using enum TaggedEvent;
  expect_table<TaggedHalf, TaggedEvent>(TaggedHalf::kEnded, TaggedEvent::kEnd,
                                        {{{kLate, kStart}, kPending},
                                         {{kPending, kArrive}, kArrived},
                                         {{kPending, kFail}, kFailed},
                                         {{kPending, kEnd}, kEnded}});
}

TEST(ReceiveStates, ASendMayAskUntilTheStreamIsDone) {
  using enum StreamWait;
  using enum StreamEvent;
  expect_table<StreamWait, StreamEvent>(kAnswerDue, kDone,
                                        {{{kNone, kWait}, kPending},
                                         {{kNone, kAsk}, kNone},
                                         {{kPending, kAsk}, kAnswerDue},
                                         {{kPending, kDone}, kNone},
                                         {{kAnswerDue, kAsk}, kAnswerDue},
                                         {{kAnswerDue, kDone}, kNone}});
}

#ifndef NDEBUG
TEST(ReceiveStatesDeathTest, AnEventThatCannotHappenIsABug) {
  StreamWait state = StreamWait::kNone;
  EXPECT_DEATH(advance(state, StreamEvent::kDone), "has_value");
}
#endif

}  // namespace
}  // namespace weft::machine
