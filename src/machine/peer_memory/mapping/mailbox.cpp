#include "machine/peer_memory/mapping/mailbox.h"

#include "base/format.h"

namespace weft::machine {

using base::Result;
using base::SharedMapping;
using base::Status;

namespace {

constexpr std::size_t kOwnerBytes = 4096;
// Pages that are not used take no memory.
constexpr std::size_t kRingsOffset = kOwnerBytes + kMailboxes * sizeof(Mailbox);
constexpr std::size_t kFileBytes = kRingsOffset + kBounceRings * sizeof(BounceRing);
static_assert(kRingsOffset % alignof(BounceRing) == 0);
static_assert(sizeof(MailboxOwner) <= kOwnerBytes && kOwnerBytes % alignof(Mailbox) == 0);
static_assert(offsetof(MailboxOwner, is_asleep) >= SharedMapping::kNonceBytes);
// A new file is all zeros, which is a free slot. Both processes run the same build.
static_assert(MailboxSlot::kFree == 0 && std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace

Result<MailboxFile> MailboxFile::create() {
  Result<SharedMapping> file = SharedMapping::create("weft-mailboxes", kFileBytes);
  if (!file.ok()) return file.status();
  MailboxFile made(std::move(*file));
  made.owner().scratch_address = reinterpret_cast<std::uintptr_t>(&made.owner().scratch);
  return made;
}

Result<MailboxFile> MailboxFile::open(const MailboxFileName& name) {
  Result<SharedMapping> file = SharedMapping::open(name, kFileBytes);
  if (file.ok()) return MailboxFile(std::move(*file));
  return Status(file.status().code(),
                base::format("the mailbox file of a peer cannot be opened: {}", file.status().message()));
}

Mailbox& MailboxFile::mailbox(std::size_t number) const {
  auto* const first = file_.data() + kOwnerBytes;
  return *reinterpret_cast<Mailbox*>(first + number * sizeof(Mailbox));
}

BounceRing& MailboxFile::bounce_ring(std::size_t number) const {
  auto* const first = file_.data() + kRingsOffset;
  return *reinterpret_cast<BounceRing*>(first + number * sizeof(BounceRing));
}

}  // namespace weft::machine
