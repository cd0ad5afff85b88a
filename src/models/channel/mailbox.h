// The host memory in which the receiving PEs of one host tell the sending ones where channel messages may
// land.
//
// A PE that receives has one file, which the others of its host and user map: a page for the PE and then a
// mailbox for each of its channel ends. Message n of a channel direction has slot n modulo the slots:
//
//     receiver   fills posting and exported, then word := posted n
//     sender     word: posted n -> taken n, by compare-and-swap; the message now goes directly, or with its
//                tag because it cannot; when the bytes are there, outcome := done n
//     receiver   word: posted n -> free, by compare-and-swap, takes an offer back that nobody has taken;
//                word := free once message n has come, on whichever path. Only then may it post n + kSlots.
//
// A sender that does not find its message posted leaves the slot alone. So nobody ever waits for a slot, and
// no bytes from here are trusted beyond what the reader checks.
//
// The file has no name and goes with its last user; others open it through /proc, as ExportedFile does.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "weft/base/status.h"
#include "weft/memory/buffer.h"

namespace weft::channel {

inline constexpr std::size_t kSlots = 64;
inline constexpr std::size_t kMailboxes = 4096;
inline constexpr std::size_t kMaxExportedBytes = 128;

// A buffer in memory that the receiver exports.
struct Posting {
  std::uint64_t export_number = 0;
  std::uint64_t allocation_base = 0;
  std::uint64_t offset_bytes = 0;  // into the allocation
  std::uint64_t size_bytes = 0;
  memory::Place place;
  std::uint32_t exported_bytes = 0;
};

struct Slot {
  static constexpr std::uint64_t kFree = 0;
  static constexpr std::uint64_t posted(std::uint32_t counter) { return std::uint64_t{counter} << 2 | 1; }
  static constexpr std::uint64_t taken(std::uint32_t counter) { return std::uint64_t{counter} << 2 | 2; }
  static constexpr std::uint64_t done(std::uint32_t counter) { return std::uint64_t{counter} << 2 | 3; }

  alignas(64) std::atomic<std::uint64_t> word;
  Posting posting;
  alignas(64) std::array<std::byte, kMaxExportedBytes> exported;
  alignas(64) std::atomic<std::uint64_t> outcome;
};
static_assert(sizeof(std::atomic<std::uint64_t>) + sizeof(Posting) <= 64, "a sender reads one cache line");

struct Mailbox {
  Slot& slot(std::uint32_t counter) { return slots[counter % kSlots]; }
  std::array<Slot, kSlots> slots;
};

// Read by the senders after they have written an outcome.
struct MailboxOwner {
  std::atomic<std::uint64_t> nonce;
  alignas(64) std::atomic<std::uint32_t> is_asleep;
};

// What another process needs to open the file. Travels as it lies in memory.
struct MailboxFileName {
  std::uint64_t inode = 0;
  std::uint64_t nonce = 0;
  std::int32_t pid = 0;
  std::int32_t descriptor = -1;
};

class MailboxFile {
 public:
  // The owner's: no mailbox is in use.
  static base::Result<MailboxFile> create();
  // kNotFound when this process cannot see such a file: on another host, or in a container of its own.
  static base::Result<MailboxFile> open(const MailboxFileName& name);

  MailboxFile(MailboxFile&& other) noexcept { swap(other); }
  MailboxFile& operator=(MailboxFile&& other) noexcept {
    swap(other);
    return *this;
  }
  ~MailboxFile();

  const MailboxFileName& name() const { return name_; }
  MailboxOwner& owner() const { return *static_cast<MailboxOwner*>(mapping_); }
  // REQUIRES: number < kMailboxes.
  Mailbox& mailbox(std::size_t number) const;

 private:
  MailboxFile() = default;
  base::Status map(int descriptor);
  void swap(MailboxFile& other) noexcept {
    std::swap(name_, other.name_);
    std::swap(own_descriptor_, other.own_descriptor_);
    std::swap(mapping_, other.mapping_);
  }

  MailboxFileName name_;
  int own_descriptor_ = -1;  // open for as long as others may come
  void* mapping_ = nullptr;
};

}  // namespace weft::channel
