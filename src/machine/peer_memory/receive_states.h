// The states of a posted receive (posted_receive.h), and the transition table of each of its three parts.
//
// The README of this folder explains them. A pair of state and event that has no next state is a bug of this folder.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace weft::machine {

// Whether senders may copy into the buffer: from kPosted on.
enum class PostedHalf : std::uint8_t {
  kNone,         // not posted; answer() may post it
  kAfterStream,  // posted when its stream is done
  kPosted,       // a sender may take the posting, or has taken it
  kUnreadable,   // posted; this process cannot read the sender's memory, so the sender alone copies
};
enum class PostedEvent : std::uint8_t { kDefer, kPost, kReadFails, kUnpost };

// How the message comes if no sender copies it.
enum class TaggedHalf : std::uint8_t {
  kNone,     // not at all: the receive is offered
  kPull,     // this PE's device copies it
  kLate,     // with its tag; the transport does not know the receive yet
  kPending,  // with its tag
  kArrived,  // it came with its tag while copies are under way, after which the receive ends
  kFailed,   // the tagged receive failed, and a sender has taken the posting
  kEnded,
};
enum class TaggedEvent : std::uint8_t { kStart, kArrive, kFail, kEnd };

// The work on the buffer's stream, before which the receive is not posted.
enum class StreamWait : std::uint8_t {
  kNone,
  kPending,
  kAnswerDue,  // and the send waits for an answer, which it gets when the stream is done
};
enum class StreamEvent : std::uint8_t { kWait, kAsk, kDone };

// The next state; nothing if the event cannot happen in that state.
inline std::optional<PostedHalf> next_state(PostedHalf state, PostedEvent event) {
  using enum PostedHalf;
  static constexpr std::array<std::array<std::optional<PostedHalf>, 4>, 4> kTable{{
      //                    kDefer        kPost    kReadFails   kUnpost
      /* kNone        */ {{kAfterStream, kPosted, {}, kNone}},
      /* kAfterStream */ {{{}, kPosted, {}, kAfterStream}},
      /* kPosted      */ {{{}, {}, kUnreadable, kNone}},
      /* kUnreadable  */ {{{}, {}, {}, kNone}},
  }};
  return kTable[static_cast<std::size_t>(state)][static_cast<std::size_t>(event)];
}

inline std::optional<TaggedHalf> next_state(TaggedHalf state, TaggedEvent event) {
  using enum TaggedHalf;
  static constexpr std::array<std::array<std::optional<TaggedHalf>, 4>, 7> kTable{{
      //                kStart    kArrive   kFail    kEnd
      /* kNone    */ {{{}, {}, {}, {}}},
      /* kPull    */ {{{}, {}, {}, {}}},
      /* kLate    */ {{kPending, {}, {}, {}}},
      /* kPending */ {{{}, kArrived, kFailed, kEnded}},
      /* kArrived */ {{{}, {}, {}, {}}},
      /* kFailed  */ {{{}, {}, {}, {}}},
      /* kEnded   */ {{{}, {}, {}, {}}},
  }};
  return kTable[static_cast<std::size_t>(state)][static_cast<std::size_t>(event)];
}

inline std::optional<StreamWait> next_state(StreamWait state, StreamEvent event) {
  using enum StreamWait;
  static constexpr std::array<std::array<std::optional<StreamWait>, 3>, 3> kTable{{
      //                  kWait     kAsk        kDone
      /* kNone      */ {{kPending, kNone, {}}},
      /* kPending   */ {{{}, kAnswerDue, kNone}},
      /* kAnswerDue */ {{{}, kAnswerDue, kNone}},
  }};
  return kTable[static_cast<std::size_t>(state)][static_cast<std::size_t>(event)];
}

// Moves `state` on. REQUIRES: the event can happen in it.
template <class State, class Event>
void advance(State& state, Event event) {
  const std::optional<State> next = next_state(state, event);
  assert(next.has_value());
  if (next.has_value()) state = *next;
}

}  // namespace weft::machine
