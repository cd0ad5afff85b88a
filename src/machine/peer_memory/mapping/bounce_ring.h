// The shared host memory through which a sending PE and a receiving PE use a bounce buffer: device memory of the
// receiving PE that the sending PE maps. Messages go through it if the receiver's own buffer cannot be mapped.
//
// A ring serves all messages from one PE to the memory of one device of another. It lies in the mailbox file of the
// receiving PE (mailbox.h); the posting of a receive names it. Entry number n has slot n modulo kBounceEntries:
//
//     sender     has word == free n. It fills in the entry. kChunk: it copies the bytes into the bounce buffer first.
//                Then word := filled n
//     receiver   takes the entries in order. It copies the bytes to where they belong. Then word := free n + kEntries
//
// The sender alone divides the bounce buffer, and uses the bytes of an entry again when the entry is free again. Both
// sides check every byte that they read from here before use.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "machine/machine.h"
#include "machine/peer_memory/mapping/peer_buffer.h"

namespace weft::machine {

inline constexpr std::size_t kBounceEntries = 64;

struct BounceEntry {
  enum class Type : std::uint32_t {
    kNothing,  // a chunk that could not be copied
    kChunk,    // bytes of a message, in the bounce buffer
    kSource,   // all bytes of a message, in memory of the sender that the receiver may map
  };
  // A new file is all zeros, so every entry is free for its first use.
  static constexpr std::uint64_t free_for(std::uint64_t number) { return number / kBounceEntries * 2; }
  static constexpr std::uint64_t filled(std::uint64_t number) { return free_for(number) + 1; }

  alignas(64) std::atomic<std::uint64_t> word;
  Tag stream = 0;  // the name of the message's stream
  std::uint64_t message_offset_bytes = 0;
  std::uint64_t bounce_offset_bytes = 0;
  std::uint64_t size_bytes = 0;
  std::uint32_t message = 0;  // its number
  Type type = Type::kNothing;
  // How far the receiver is with a kSource. Either side leaves kOffered by compare-and-swap.
  enum class Pull : std::uint32_t {
    kOffered,
    kCopying,
    kOver,     // the receiver does not read the source any more
    kRefused,  // the receiver cannot map it
    kRevoked,  // by the sender
  };
  std::atomic<Pull> pull;
  // `source` and `exported` name the sender's memory in an entry of type kSource.
  alignas(64) PeerBuffer source;
  alignas(64) std::array<std::byte, kMaxExportedBytes> exported;
};

struct BounceRing {
  BounceEntry& entry(std::uint64_t number) { return entries[number % kBounceEntries]; }

  // The bounce buffer. Written once, before the first receive is posted that names the ring.
  alignas(64) PeerBuffer buffer;
  alignas(64) std::array<std::byte, kMaxExportedBytes> exported;
  std::array<BounceEntry, kBounceEntries> entries;
};

// The sizes of a bounce buffer.
struct BounceSizes {
  // Measured between two H200, messages of 64 MiB from pool to pool: 4 chunks of 16 MiB in flight reach 352 GB/s, of
  // 8 MiB 334, of 4 MiB 298, of 2 MiB 172; 8 chunks of 8 MiB 334. One copy engine takes 2.5 us between two copies.
  static constexpr std::size_t kBufferBytes = std::size_t{64} << 20;
  // If there is no memory for more.
  static constexpr std::size_t kLeastBufferBytes = std::size_t{8} << 20;
  static constexpr std::size_t kAlignment = 256;

  // Large messages travel in chunks of a quarter of the bounce buffer. A smaller one is divided too, so that both
  // devices copy at the same time, but not into chunks whose copy costs more time to start than to make.
  static constexpr std::size_t chunk_bytes(std::size_t message_bytes, std::size_t buffer_bytes) {
    const std::size_t most = buffer_bytes / 4 / kAlignment * kAlignment;
    const std::size_t least = most < 8 * kAlignment ? most : most / 8 / kAlignment * kAlignment;
    const std::size_t quarter = (message_bytes / 4 + kAlignment - 1) / kAlignment * kAlignment;
    return quarter < least ? least : quarter > most ? most : quarter;
  }
};

}  // namespace weft::machine
