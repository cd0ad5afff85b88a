// Plan: what one member of a group does in a collective, as a list of steps. A plan sends nothing: Run does what it says.
//
// The data of a member is a row of blocks. What the blocks mean, before and after, is said by each Kind. Plans of one call on all members
// fit one another: every message that one sends, another one awaits, with the same round and as many blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/tree/host_groups.h"

namespace weft::collective {

// "Place" is the number of a member in its group. Block i of the kinds with more than one block belongs to the member i places to the right, if nothing else is said.
// What is said here of blocks is that of Form::kFewMessages.
enum class Kind : std::uint8_t {
  kBarrier,        // no block
  kBroadcast,      // 1 block: the root's, afterwards at all
  kReduce,         // 1 block: afterwards the combination of all, at the root; the others' is overwritten
  kReduceInOrder,  // the same for operators that are not commutative
  kAllreduce,      // 1 block: afterwards the combination of all, in the order of places
  kScan,           // 1 block: afterwards the combination of the places up to this one
  kExclusiveScan,  // 1 block: afterwards the combination of the places before this one; at place 0 it stays
  kReduceScatter,  // a block for each member, block i for place i: afterwards the own one is the combination of all. REQUIRES: a power of two
                   // of members, and a commutative operator
  kAllgather,      // a block for each member: at first the own one (0), afterwards all
  kAlltoall,  // a block for each member: at first for the member i to the right, afterwards from the member i to the left
  kGather,   // blocks_below() blocks: at first the own one (0); afterwards at the root all, counted from it
  kScatter,  // blocks_below() blocks: at first at the root all, counted from it; afterwards the own one (0)
};

// How the messages of a collective are arranged.
enum class Form : std::uint8_t {
  kFewMessages,  // trees and doubling: each member sends few messages
  kSeparate,     // kAlltoall: each block by itself
  // Each member sends to each other one, and no byte twice: for members of one host, which read one another's blocks where they lie.
  // There is a block for each member, in the order of places. Those of the kinds with one block are parts of it, which are combined in an
  // order of their own if the operator is commutative. kReduce overwrites them at all members; kAlltoall sends block i to place i.
  // kBroadcast has one block. There are no kBarrier, kGather and kScatter.
  kDirect,
  // The members of each host send few messages up to a leader and down from it, and the leaders exchange few messages for all, so that a
  // byte crosses the link to a host once in each direction. For kBarrier, kBroadcast, reductions and kAllgather, whose blocks are in the
  // order of place_of_block(). kAllreduce combines in the order of places only if the operator is not commutative.
  kLeaders,
};

// The hosts of the members of a group.
enum class Spread : std::uint8_t {
  kOneHost,      // all are on one host
  kSharedHosts,  // on several hosts, of which some have several members
  kOwnHosts,     // each is on a host of its own
};

struct Step {
  enum class Action : std::uint8_t {
    kSend,
    kSendInput,         // the blocks as they are at first, see Call::input
    kTakeInput,         // the blocks become what they are at first; no message
    kReceive,           // into the blocks
    kCombineFromLeft,   // block = arrival op block
    kCombineFromRight,  // block = block op arrival
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

// The form for so many members and bytes, the same at all members. `size_bytes`: of one member's value, or of the block of one member where
// there is one for each.
Form form_of(Kind kind, int num_members, std::size_t size_bytes, Spread spread);
// Whether the members take longer with that form than with messages of their own, which need not be copied.
bool is_small(Kind kind, int num_members, std::size_t size_bytes, Spread spread);

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
// `hosts`: of the members, for kLeaders.
// REQUIRES: 0 <= place < size, and so the root. kSeparate: kAlltoall. kDirect, kLeaders: see there.
std::vector<Step> make_plan(const PlanChoice& choice, Member member,
                            const runtime::HostGroups* hosts = nullptr);

}  // namespace weft::collective
