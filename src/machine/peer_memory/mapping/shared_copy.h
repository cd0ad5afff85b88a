// A message of host memory that the sending and the receiving process copy together. Each takes the next chunk from a
// counter, so a process that computes takes none, and the other copies all of it.
//
// It lies in the slot of the message's posting (mailbox.h). One side begins it: the sender when it finds the posting, or
// the receiver when the sender has named its memory (source_name.h). The next one in the slot is begun when this one has
// been copied; a side that does not know that yet finds another number here, and leaves the counters alone.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "machine/message_sizes.h"

namespace weft::machine {

struct SharedCopy {
  // From this size on a message is shared. One whose announcement names the sender's memory then waits for its receive, and
  // arrives also while its sender computes. Measured, see docs/decisions/host-copies.md: smaller ones are not faster.
  static constexpr std::size_t kLeastBytes = std::size_t{64} << 10;
  // From this size on an announced message (PeerMemory::send_announced) waits for its receive, to be shared. Smaller ones
  // arrive also while their sender computes.
  static constexpr std::size_t kLeastAnnouncedBytes = kLeastHeldBytes;

  struct Chunk {
    std::uint64_t number = 0;
    std::size_t offset_bytes = 0;
    std::size_t size_bytes = 0;  // 0: there is none left
  };
  // Each side gets a half of a small message. Larger chunks save system calls; smaller ones end together.
  static constexpr std::size_t chunk_bytes(std::size_t message_bytes) {
    constexpr std::size_t kPage = 4096;
    return std::clamp((message_bytes / 2 + kPage - 1) / kPage * kPage, std::size_t{32} << 10,
                      std::size_t{256} << 10);
  }
  static constexpr Chunk chunk(std::uint64_t number, std::size_t message_bytes) {
    const std::size_t most = chunk_bytes(message_bytes);
    const std::size_t offset = std::min<std::uint64_t>(number, message_bytes / most + 1) * most;
    return offset >= message_bytes ? Chunk{} : Chunk{number, offset, std::min(most, message_bytes - offset)};
  }

  // `first_chunk`: the ones before it are being copied.
  void begin(std::uint32_t message, std::uint64_t source_in, std::int32_t pid, std::uint32_t first_chunk) {
    source = source_in;
    source_pid = pid;
    copied_bytes.store(0, std::memory_order_relaxed);
    returned.store(0, std::memory_order_relaxed);
    next.store(word(message, first_chunk), std::memory_order_release);
  }
  // Whether `message` has not been replaced by a later one.
  bool is_of(std::uint32_t message) const {
    return next.load(std::memory_order_acquire) >> kChunkBits == message;
  }
  // The next chunk of `message`. While its taker has not counted it, nothing here is replaced.
  Chunk take(std::uint32_t message, std::size_t message_bytes) {
    std::uint64_t now = next.load(std::memory_order_relaxed);
    while (now >> kChunkBits == message) {
      const Chunk taken = chunk(now & kChunkMask, message_bytes);
      if (taken.size_bytes == 0 || next.compare_exchange_weak(now, now + 1, std::memory_order_acq_rel))
        return taken;
    }
    return {};
  }
  void add(std::size_t size_bytes) { copied_bytes.fetch_add(size_bytes, std::memory_order_acq_rel); }
  bool is_done(std::uint32_t message, std::size_t message_bytes) const {
    return !is_of(message) || copied_bytes.load(std::memory_order_acquire) == message_bytes;
  }
  // The receiver could not copy a chunk, and the sender must. There is one such chunk at most.
  void give_back(std::uint32_t message, const Chunk& one) {
    returned.store(word(message, one.number + 1), std::memory_order_release);
  }
  Chunk take_returned(std::uint32_t message, std::size_t message_bytes) {
    std::uint64_t now = returned.load(std::memory_order_acquire);
    if ((now & kChunkMask) == 0 || now >> kChunkBits != message) return {};
    if (!returned.compare_exchange_strong(now, 0, std::memory_order_acq_rel)) return {};
    return chunk((now & kChunkMask) - 1, message_bytes);
  }

  // The sender's memory and process.
  std::uint64_t source = 0;
  std::int32_t source_pid = 0;

 private:
  // A chunk of a message, as one word: both counters say whose they are. 2^32 chunks are 1 PiB.
  static constexpr int kChunkBits = 32;
  static constexpr std::uint64_t kChunkMask = 0xffffffff;
  static constexpr std::uint64_t word(std::uint32_t message, std::uint64_t number) {
    return std::uint64_t{message} << kChunkBits | (number & kChunkMask);
  }

  alignas(64) std::atomic<std::uint64_t> next;
  std::atomic<std::uint64_t> copied_bytes;
  // 1 + the number of the chunk; 0: none.
  std::atomic<std::uint64_t> returned;
};

}  // namespace weft::machine
