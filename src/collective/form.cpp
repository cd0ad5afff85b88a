#include "collective/form.h"

#include <algorithm>

namespace weft::collective {

std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::kBarrier:
      return "barrier";
    case Kind::kBroadcast:
      return "broadcast";
    case Kind::kReduce:
    case Kind::kReduceInOrder:
      return "reduce";
    case Kind::kAllreduce:
      return "all-reduce";
    case Kind::kScan:
    case Kind::kExclusiveScan:
      return "scan";
    case Kind::kReduceScatter:
      return "reduce-scatter";
    case Kind::kAllgather:
      return "all-gather";
    case Kind::kAlltoall:
      return "all-to-all";
    case Kind::kGather:
      return "gather";
    case Kind::kScatter:
      return "scatter";
  }
  return "collective";
}

namespace {

// All-to-all with larger blocks, or between fewer members, sends each block by itself. The limits are MPICH's.
constexpr std::size_t kMostForwardedBytes = 256;
constexpr int kLeastForwarding = 8;
// What goes through the engine in few messages. Not measured yet on machines with more than 16 cores.
constexpr std::size_t kMostBroadcastBytes = 8192;
constexpr std::size_t kMostReducedBytes = 32767;
constexpr std::size_t kMostGatheredBytes = 81920;  // of all blocks
constexpr std::size_t kMostSwappedBytes = 4096;    // of both blocks of two members: one round in any form
constexpr std::size_t kMostSeparateBytes = 2048;
constexpr std::size_t kMostRelayedBytes = 1024;
constexpr std::size_t kMostRootedBytes = 65536;  // of all blocks: a root may run ahead
// What goes directly.
constexpr std::size_t kLeastDirectBytes = 1025;  // of any kind
constexpr std::size_t kLeastPartBytes = 2048;
constexpr int kMostDirectMembers = 64;

// From the least size on messages between all members are faster than few messages. For reductions this depends on how large the parts
// are: on 16 cores of a virtual Xeon an all-reduce of 4 KiB takes 1.5 times Open MPI's time with parts of 256 bytes, and one of 32 KiB
// 0.7 times with parts of 2 KiB.
DirectSizes direct_sizes_on_one_host(Kind kind, int num_members) {
  switch (kind) {
    case Kind::kBarrier:
    case Kind::kGather:
    case Kind::kScatter:
      return {1, 0};  // none
    case Kind::kBroadcast:
      return {2049, kMostMovedBytes};
    case Kind::kAllgather:
      return {kLeastDirectBytes, kMostMovedBytes};
    case Kind::kAlltoall:
      return {kLeastDirectBytes,
              std::min(kMostMovedBytes, kMostDirectBytes / static_cast<std::size_t>(num_members))};
    default:
      return {std::clamp<std::size_t>(kLeastPartBytes * static_cast<std::size_t>(num_members), 8192,
                                      kMostReducedBytes + 1),
              kMostDirectBytes};
  }
}

bool is_direct(Kind kind, int num_members, std::size_t size_bytes, Spread spread) {
  if (size_bytes < kLeastDirectBytes) return false;
  const DirectSizes sizes = direct_sizes(kind, num_members, spread);
  return size_bytes >= sizes.least && size_bytes <= sizes.most;
}

// Whether there is Form::kLeaders.
bool has_leaders(Kind kind) {
  switch (kind) {
    case Kind::kBarrier:
    case Kind::kBroadcast:
    case Kind::kReduce:
    case Kind::kReduceInOrder:
    case Kind::kAllreduce:
    case Kind::kAllgather:
      return true;
    default:
      return false;
  }
}

}  // namespace

DirectSizes direct_sizes(Kind kind, int num_members, Spread spread) {
  if (spread != Spread::kOneHost || num_members < 2 || num_members > kMostDirectMembers) return {1, 0};
  return direct_sizes_on_one_host(kind, num_members);
}

Form form_of(Kind kind, int num_members, std::size_t size_bytes, Spread spread) {
  if (is_direct(kind, num_members, size_bytes, spread)) return Form::kDirect;
  if (spread == Spread::kSharedHosts && has_leaders(kind)) return Form::kLeaders;
  const bool is_separate =
      kind == Kind::kAlltoall && (num_members < kLeastForwarding || size_bytes > kMostForwardedBytes);
  return is_separate ? Form::kSeparate : Form::kFewMessages;
}

bool is_small(Kind kind, int num_members, std::size_t size_bytes, Spread spread) {
  const auto size = static_cast<std::size_t>(num_members);
  if (is_direct(kind, num_members, size_bytes, spread)) return true;
  switch (kind) {
    case Kind::kBarrier:
    case Kind::kScan:
    case Kind::kExclusiveScan:
      return true;
    case Kind::kBroadcast:
      return size_bytes <= kMostBroadcastBytes;
    case Kind::kReduce:
    case Kind::kReduceInOrder:
    case Kind::kAllreduce:
    case Kind::kReduceScatter:
      return size_bytes <= kMostReducedBytes;
    case Kind::kAllgather:
      return size_bytes * size <= (size > 2 ? kMostGatheredBytes : kMostSwappedBytes);
    case Kind::kAlltoall:
      return size_bytes <= kMostForwardedBytes ||
             (size_bytes <= kMostSeparateBytes && num_members <= kMostDirectMembers);
    case Kind::kGather:
    case Kind::kScatter:
      return size_bytes <= kMostRelayedBytes && size * size_bytes <= kMostRootedBytes;
  }
  return false;
}

}  // namespace weft::collective
