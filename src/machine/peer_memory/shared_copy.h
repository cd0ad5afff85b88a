// A message of host memory that the sending and the receiving process copy together. Each takes the next chunk from a
// counter, so a process that computes takes none, and the other copies all of it.
//
// It lies in the slot of the message's posting (mailbox.h). The sender fills it in before it announces it, and alone
// begins the next one in the slot, after this one has been copied.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace weft::machine {

struct SharedCopy {
  // From this size on a message is shared. Measured, see docs/decisions/host-copies.md: smaller ones are not faster.
  static constexpr std::size_t kLeastBytes = std::size_t{64} << 10;
  // From this size on an announced message (PeerMemory::send_announced) waits for its receive, to be shared. UCX sends
  // smaller ones eagerly (up to 580 KB with UCX 1.22): they arrive also while their sender computes.
  static constexpr std::size_t kLeastAnnouncedBytes = 600'000;

  struct Chunk {
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
    return offset >= message_bytes ? Chunk{} : Chunk{offset, std::min(most, message_bytes - offset)};
  }
  Chunk take(std::size_t message_bytes) {
    return chunk(next_chunk.fetch_add(1, std::memory_order_relaxed), message_bytes);
  }
  void add(std::size_t size_bytes) { copied_bytes.fetch_add(size_bytes, std::memory_order_acq_rel); }
  bool is_done(std::size_t message_bytes) const {
    return copied_bytes.load(std::memory_order_acquire) == message_bytes;
  }

  // The sender's memory and process.
  std::uint64_t source = 0;
  std::int32_t source_pid = 0;
  alignas(64) std::atomic<std::uint64_t> next_chunk;
  std::atomic<std::uint64_t> copied_bytes;
  // 1 + the number of a chunk that the receiver could not copy and the sender must; 0: none.
  std::atomic<std::uint64_t> returned_chunk;
};

}  // namespace weft::machine
