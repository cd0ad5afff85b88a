// The frames between a PE and `weft run`; python/weft/launch/frames.py is the other end.
//
// A frame is a 16-byte header (magic, type, payload size; little-endian) and its payload, over a stream
// socket that never leaves the host. Both sides check what arrives: the last byte of the magic is the version
// of the protocol, a type must be known, a size within kMaxFrameBytes. Raise the version with every change of the frames.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/status.h"

namespace weft::machine::bootstrap {

enum class FrameType : std::uint32_t {
  // PE to launcher
  // u32 pe. A PE that can begin its job again (`weft run --on-loss restart`) adds u32 incarnation.
  kHello = 1,
  kExchange = 2,  // this PE's bytes
  kBarrier = 3,   // empty
  kFinished = 4,  // i32 exit code
  kAbort = 5,     // i32 exit code, message in UTF-8
  // launcher to PE
  // u32 number of PEs. To a PE that can begin again also u64 number of the newest protected state, 0 for none.
  kWelcome = 6,
  kExchanged = 7,    // u64 size per PE, then everybody's bytes
  kBarrierDone = 8,  // empty
  kEnd = 9,          // why the job ends, in UTF-8
  // PE to launcher
  kStartJob = 10,  // texts, each with a zero byte behind it; see python/weft/launch/mpi/spawned.py
  // launcher to PE
  // u32 the next incarnation of the job, u32 the number of this PE in it or kNoPe if the PE leaves, u32 the number of PEs, and why, in
  // UTF-8
  kBeginAgain = 11,
  // PE to launcher
  kProtected =
      12,  // u64 number of the protected state that all PEs have, u32 number of the plan that it carries out or 0
  kResize = 13,  // u32 the number of PEs that the job shall have; 0: one fewer, without this PE
  // launcher to PE
  // u32 number of the plan, 0 for none any more; u32 the number of PEs that it gives; u32 each PE that will leave
  kResizePlan = 14,
  kResizeAnswer = 15,  // to kResize: why it is refused, in UTF-8; empty if it is not
  // PE to launcher
  kCannotResize =
      16,  // u32 number of the plan, and why what is protected cannot be restored on that number of PEs, in UTF-8
  kOutlives = 21,  // u32, not 0 if this PE outlives the loss of PE 0 too (`weft run --on-loss raise`)
  // launcher to PE
  kLost = 22,  // u32 lost PE, and why, in UTF-8
  // PE to launcher: the process has stopped, and will begin its program again for that incarnation
  kStopped = 23,  // u32 incarnation
  // launcher to PE: all PEs have stopped
  kAllStopped = 24,  // u32 incarnation
};

// In kBeginAgain.
inline constexpr std::uint32_t kNoPe = ~std::uint32_t{0};
inline constexpr std::array<char, 4> kFrameMagic = {'W', 'F', 'T', '3'};
inline constexpr std::size_t kFrameHeaderBytes = 16;
// Far above any address exchange; a larger size can only be a frame read out of step.
inline constexpr std::uint64_t kMaxFrameBytes = std::uint64_t{1} << 30;

struct Frame {
  FrameType type{};
  std::vector<std::byte> payload;

  std::string text(std::size_t offset = 0) const;
};

std::string_view frame_type_name(FrameType type);

// Blocks until all of it is written. Gives kClosed when the other side has gone, kInternal for other errors
// of the socket.
base::Status write_frame(int fd, FrameType type, std::span<const std::byte> payload);
// Blocks until a whole frame is there. Gives kClosed at the end of the stream, kCorrupt for what is no frame,
// kInternal for other errors of the socket.
base::Result<Frame> read_frame(int fd);

// Little-endian integers in payloads. REQUIRES: offset + sizeof(Integer) <= out.size().
template <class Integer>
void set_integer(std::span<std::byte> out, std::size_t offset, Integer value) {
  for (std::size_t i = 0; i < sizeof(Integer); ++i) {
    out[offset + i] = static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * i));
  }
}

// REQUIRES: offset + sizeof(Integer) <= in.size().
template <class Integer>
Integer get_integer(std::span<const std::byte> in, std::size_t offset) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(Integer); ++i) {
    value |= std::to_integer<std::uint64_t>(in[offset + i]) << (8 * i);
  }
  return static_cast<Integer>(value);
}

}  // namespace weft::machine::bootstrap
