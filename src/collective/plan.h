// Plan: what one member of a group does in a collective, as a list of steps. A plan sends nothing: Run does what it says.
//
// The data of a member is a row of blocks. What the blocks mean, before and after, is said by each Kind. Plans of one call on all members
// fit one another: every message that one sends, another one awaits, with the same round and as many blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "collective/form.h"
#include "runtime/tree/host_groups.h"

namespace weft::collective {

struct Step {
  enum class Action : std::uint8_t {
    kSend,
    kSendInput,         // the blocks as they are at first, see Call::input
    kTakeInput,         // the blocks become what they are at first; no message
    kReceive,           // into the blocks
    kCombineFromLeft,   // block = arrival op block
    kCombineFromRight,  // block = block op arrival
    kFail,              // the group has ended: no message
  };
  Action action;
  // Whether the blocks are those in [first, size) whose number has the bit `first`, and not those in [first, first + count).
  bool is_marked = false;
  std::uint16_t round;  // tells the messages of two members within one call apart
  std::int32_t peer;    // a place
  std::uint32_t first;
  std::uint32_t count;
};

struct Member {
  int place;
  int size;
};

// How many blocks pass through a member in a gather or a scatter with that root: at the root all.
std::size_t blocks_below(Member member, int root);

// The place whose block has that number in kAllgather. `hosts`: of the members, for kLeaders.
int place_of_block(Form form, Member member, const runtime::HostGroups* hosts, int block);

struct PlanChoice {
  Kind kind = Kind::kBarrier;
  Form form = Form::kFewMessages;
  int root = 0;
  bool waits_first =
      false;  // the members wait for one another before they begin, so that none runs ahead of another one
  bool in_order = false;  // kDirect and kLeaders: the operator is not commutative
  bool operator==(const PlanChoice&) const = default;
};
// The plan of every call of a group that has ended.
inline std::vector<Step> plan_of_ended() {
  return {{.action = Step::Action::kFail, .round = 0, .peer = -1, .first = 0, .count = 0}};
}
// `hosts`: of the members, for kLeaders.
// REQUIRES: 0 <= place < size, and so the root. kSeparate: kAlltoall. kDirect, kLeaders: see there.
std::vector<Step> make_plan(const PlanChoice& choice, Member member,
                            const runtime::HostGroups* hosts = nullptr);

}  // namespace weft::collective
