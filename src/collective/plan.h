// Plan: what one member of a group does in a collective, as a list of steps. A plan sends nothing: Run does what it says.
//
// The data of a member is a row of blocks. What the blocks mean, before and after, is said by each Kind. Plans of one call on all members
// fit one another: every message that one sends, another one awaits, with the same round and as many blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::collective {

// "Place" is the number of a member in its group. Block i of the kinds with more than one block belongs to the member i places to the right, if nothing else is said.
enum class Kind : std::uint8_t {
  kBarrier,        // no block
  kBroadcast,      // 1 block: the root's, afterwards at all
  kReduce,         // 1 block: afterwards the combination of all, at the root; the others' is overwritten
  kReduceInOrder,  // the same for operators that are not commutative
  kAllreduce,      // 1 block: afterwards the combination of all, in the order of places
  kScan,  // 2 blocks, alike: afterwards the second one is the combination of the places up to this one
  kExclusiveScan,  // 2 blocks: the second one becomes the combination of the places before this one; at place 0 it stays
  kReduceScatter,  // a block for each member, block i for place i: afterwards the own one is the combination of all. REQUIRES: a power of two
                   // of members, and a commutative operator
  kAllgather,      // a block for each member: at first the own one (0), afterwards all
  kAlltoall,  // a block for each member: at first for the member i to the right, afterwards from the member i to the left
  kGather,   // blocks_below() blocks: at first the own one (0); afterwards at the root all, counted from it
  kScatter,  // blocks_below() blocks: at first at the root all, counted from it; afterwards the own one (0)
};

struct Step {
  enum class Action : std::uint8_t {
    kSend,
    kReceive,           // into the blocks
    kCombineFromLeft,   // block = arrival op block
    kCombineFromRight,  // block = block op arrival
    kScanFromLeft,      // for each of both blocks: block = arrival op block
    kScanStart,         // the second block = arrival; the first one = arrival op first
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

// All sizes with one number have the same plan.
int size_class_of(std::size_t block_bytes);
// `waits_first`: the members wait for one another before they begin, so that none runs ahead of another one.
// `block_bytes`: chooses between few messages and few bytes; the same at all members.
// REQUIRES: 0 <= place < size, and so the root.
std::vector<Step> make_plan(Kind kind, Member member, int root, std::size_t block_bytes, bool waits_first);

}  // namespace weft::collective
