// Form: how the messages of a collective are arranged, and which arrangement serves which sizes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

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

// "all-reduce", for people.
std::string_view name_of(Kind kind);

// How the messages of a collective are arranged.
enum class Form : std::uint8_t {
  kFewMessages,  // trees and doubling: each member sends few messages
  kSeparate,     // kAlltoall: each block by itself
  // Each member sends to each other one, and no byte twice: for members of one host, which read one another's blocks where they lie.
  // There is a block for each member, in the order of places. Those of the kinds with one block are parts of it, which are combined in an
  // order of their own if the operator is commutative. kReduce overwrites them at all members; kAlltoall sends block i to place i.
  // kBroadcast has one block. There are no kBarrier, kGather and kScatter.
  kDirect,
  // The members of each host send few messages to a leader and get few from it, and the leaders exchange few
  // messages for all. So a value crosses the link to a host once in each step of the leaders, of which two hosts
  // have one. For kBarrier, kBroadcast, kReduce, kReduceInOrder, kAllreduce and kAllgather. Blocks of kAllgather
  // are in the order of place_of_block(). kAllreduce keeps the order of places if the operator is not commutative.
  kLeaders,
};

// The hosts of the members of a group.
enum class Spread : std::uint8_t {
  kOneHost,      // all are on one host
  kSharedHosts,  // on several hosts, of which some have several members
  kOwnHosts,     // each is on a host of its own
};

// The largest blocks of kDirect: what one member sends must leave room on its board (Boards::kBoardBytes).
constexpr std::size_t kMostDirectBytes = std::size_t{1} << 20;
// The largest ones that are only moved, because some members may have them in device memory, from where large ones go faster without the host.
constexpr std::size_t kMostMovedBytes = std::size_t{64} << 10;

// The form for so many members and bytes, the same at all members. `size_bytes`: of one member's value, or of the block of one member where
// there is one for each.
Form form_of(Kind kind, int num_members, std::size_t size_bytes, Spread spread);
// The sizes of one member's value, or block, for which kDirect serves the members; none if `least` is more than `most`.
struct DirectSizes {
  std::size_t least;
  std::size_t most;
};
DirectSizes direct_sizes(Kind kind, int num_members, Spread spread);
// Whether that form serves the members at least as well as messages of their model, whose data need not be copied.
bool is_small(Kind kind, int num_members, std::size_t size_bytes, Spread spread);

}  // namespace weft::collective
