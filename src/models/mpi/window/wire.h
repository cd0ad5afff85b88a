// What ranks send each other for one-sided accesses that go through messages: a request to the target, and its reply.
//
// A request is an AccessHeader, then the runs of the target memory, then the data, if they fit into one eager message. Runs and
// data that do not fit follow as messages of their own, in this order. A reply is a ReplyHeader, then the data that the origin
// gets, if the origin has allowed that; else the data follows as a message. All that arrives is a claim: parse_access() checks it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "weft/mpi/mpi.h"

#include "models/mpi/p2p/point_to_point.h"

namespace weft::mpi {

enum class AccessKind : std::uint8_t { kPut, kGet, kAccumulate, kGetAccumulate, kCompareAndSwap };
inline constexpr int kNumAccessKinds = 5;
inline bool is_accumulate(AccessKind kind) { return kind >= AccessKind::kAccumulate; }
inline bool has_result(AccessKind kind) {
  return kind != AccessKind::kPut && kind != AccessKind::kAccumulate;
}

// `count` times `size_bytes`, `stride` bytes apart. The offset is from the base of the window; in a dynamic window it is an address.
struct WindowRun {
  std::int64_t offset = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t count = 0;
  std::int64_t stride = 0;
};

enum AccessFlag : std::uint8_t {
  kRunsInside = 1,
  kDataInside = 2,
  kReplyInside = 4,  // the reply may have its data inside
};
inline constexpr std::uint8_t kKnownAccessFlags = kRunsInside | kDataInside | kReplyInside;

struct AccessHeader {
  std::uint64_t size_bytes = 0;  // of the target memory, packed
  std::uint64_t num_runs = 0;
  std::uint32_t number = 0;  // of the access at its origin: the tags of the messages that belong to it
  // Of accumulates: the numbers in the ABI of the predefined datatype that is combined, and of the operator.
  std::uint16_t unit = 0;
  std::uint16_t operation = 0;
  AccessKind kind = AccessKind::kPut;
  std::uint8_t flags = 0;
  std::uint8_t unused[2] = {};
  std::uint32_t whole_bytes = 0;  // of accumulates: Accumulation::whole_bytes

  bool is_accumulate() const { return mpi::is_accumulate(kind); }
  // The bytes that the origin sends and gets.
  std::uint64_t sent_bytes() const;
  std::uint64_t received_bytes() const { return has_result(kind) ? size_bytes : 0; }
};
static_assert(sizeof(AccessHeader) == 32 && sizeof(WindowRun) == 32);  // so that data is aligned to 16 bytes

struct ReplyHeader {
  std::int32_t error = MPI_SUCCESS;  // an error class of mpi.h
  std::uint32_t has_data = 0;        // 1: the data is behind it
  std::uint64_t unused = 0;
};
static_assert(sizeof(ReplyHeader) == 16);

// The largest request, and the largest reply with its data inside.
inline constexpr std::size_t kMostMessageBytes = PointToPoint::kEagerBytes;
// More runs than that are not accepted: 2 MiB of descriptions. The origin cuts an access that has more (access_parts.h).
inline constexpr std::uint64_t kMostRuns = std::uint64_t{1} << 16;
// A get may read bytes more than once, so it may have more bytes than the window. It has no more than those of the window, or these.
inline constexpr std::uint64_t kMostRepeatedBytes = std::uint64_t{256} << 20;

// --- Tags of the messages of a window, which has a context of its own
inline constexpr int kRequestTag = 0;
inline constexpr int kPostTag = 1;
inline constexpr int kCompleteTag = 2;
inline constexpr int kLocalCopyTag = 3;
// Numbers recur after 2^29 accesses.
inline int data_tag(std::uint32_t number) { return 16 + static_cast<int>((number & 0x1fffffffU) * 2); }
inline int reply_tag(std::uint32_t number) { return data_tag(number) + 1; }

// A request that has arrived.
struct ArrivedAccess {
  AccessHeader header;
  std::vector<WindowRun> runs;  // empty if they follow
  std::vector<std::byte> data;  // empty if it follows, or there is none

  bool awaits_runs() const { return (header.flags & kRunsInside) == 0; }
  bool awaits_data() const { return (header.flags & kDataInside) == 0 && header.sent_bytes() > 0; }
};
// Throws Error(kCorrupt) for bytes that no origin sends.
ArrivedAccess parse_access(int source, std::span<const std::byte> message);
// Throws Error(kCorrupt) if the runs do not have the packed size of the access. The place of the memory is checked by the caller.
void check_runs(int source, const AccessHeader& header, std::span<const WindowRun> runs);

// Whether all bytes of the run lie in [first, first + size_bytes).
bool is_inside(const WindowRun& run, std::uint64_t first, std::uint64_t size_bytes);

}  // namespace weft::mpi
