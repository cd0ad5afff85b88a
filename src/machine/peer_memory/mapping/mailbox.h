// The shared host memory in which a receiving PE tells the sending PEs of its host where messages may be
// copied to.
//
// A PE that receives has one file, which the other PEs of its host and user map: a page for the PE, then the
// mailboxes, then the rings of bounce buffers (bounce_ring.h). A posting whose buffer has no exported bytes names a
// ring in offset_bytes. A mailbox serves one stream of messages. Message n of the stream has slot n modulo kSlots:
//
//     receiver   fills buffer and exported, then word := posted n
//     sender     word: posted n -> taken n, by compare-and-swap. It copies the message, and when the bytes are
//                there, outcome := done n. If it cannot copy, it resets word := posted n and sends the message
//                with its tag.
//                Or, for host memory: it fills `shared`, and outcome := shared by n. Both sides copy until
//                `shared` counts all bytes. If the sender has named its memory, the receiver does this: it fills
//                buffer and `shared`, then word := taken n, outcome := shared by n, and tells the sender.
//     receiver   word: posted n -> free, by compare-and-swap, withdraws a posting that is not taken.
//                word := free when message n has come, on any path. Only then may it post n + kSlots.
//
// A sender that does not find its message posted leaves the slot alone, so no side waits for a slot. The
// sender checks every byte that it reads from here before use.
//
// The file is a base::SharedMapping.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "weft/base/status.h"

#include "base/shared_mapping.h"
#include "machine/peer_memory/mapping/bounce_ring.h"
#include "machine/peer_memory/mapping/peer_buffer.h"
#include "machine/peer_memory/mapping/shared_copy.h"

namespace weft::machine {

inline constexpr std::size_t kSlots = 64;
inline constexpr std::size_t kMailboxes = 4096;
inline constexpr std::size_t kBounceRings = 256;

struct MailboxSlot {
  static constexpr std::uint64_t kFree = 0;
  static constexpr std::uint64_t posted(std::uint32_t counter) { return std::uint64_t{counter} << 2 | 1; }
  static constexpr std::uint64_t taken(std::uint32_t counter) { return std::uint64_t{counter} << 2 | 2; }
  static constexpr std::uint64_t done(std::uint32_t counter) { return std::uint64_t{counter} << 2 | 3; }
  // In `outcome`: both sides copy the message, see `shared`.
  static constexpr std::uint64_t shared_by(std::uint32_t counter) { return taken(counter); }

  alignas(64) std::atomic<std::uint64_t> word;
  PeerBuffer buffer;
  alignas(64) std::array<std::byte, kMaxExportedBytes> exported;
  alignas(64) std::atomic<std::uint64_t> outcome;
  alignas(64) SharedCopy shared;
};
static_assert(sizeof(std::atomic<std::uint64_t>) + sizeof(PeerBuffer) <= 64, "a sender reads one cache line");

struct Mailbox {
  MailboxSlot& slot(std::uint32_t counter) { return slots[counter % kSlots]; }
  // Not 0: the last receive of device memory that was started can only be posted with a ring. A sender that finds
  // nothing posted reads it.
  alignas(64) std::atomic<std::uint32_t> receives_by_ring;
  std::array<MailboxSlot, kSlots> slots;
};

// The page of the receiving PE. Senders read it after they have written an outcome.
struct MailboxOwner {
  std::array<std::byte, base::SharedMapping::kNonceBytes> nonce;
  alignas(64) std::atomic<std::uint32_t> is_asleep;
  // Senders try here whether they may write to the owner's memory. Its address at the owner.
  alignas(64) std::uint64_t scratch_address = 0;
  std::uint32_t scratch = 0;
};

using MailboxFileName = base::SharedMappingName;

class MailboxFile {
 public:
  // The owner's file. No mailbox is in use.
  static base::Result<MailboxFile> create();
  // The file of another PE. kNotFound when this process cannot see it, because the PE is on another host or
  // in another container.
  static base::Result<MailboxFile> open(const MailboxFileName& name);

  const MailboxFileName& name() const { return file_.name(); }
  MailboxOwner& owner() const { return *reinterpret_cast<MailboxOwner*>(file_.data()); }
  // REQUIRES: number < kMailboxes.
  Mailbox& mailbox(std::size_t number) const;
  // REQUIRES: number < kBounceRings.
  BounceRing& bounce_ring(std::size_t number) const;

 private:
  explicit MailboxFile(base::SharedMapping file) : file_(std::move(file)) {}

  base::SharedMapping file_;
};

}  // namespace weft::machine
