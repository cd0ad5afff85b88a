#include "machine/peer_memory/mailbox.h"

#include <sys/mman.h>
#include <sys/random.h>

#include "base/format.h"

namespace weft::machine {

using base::Result;
using base::SharedFile;
using base::Status;
using base::StatusCode;

namespace {

constexpr std::size_t kOwnerBytes = 4096;
// Pages that are not used take no memory.
constexpr std::size_t kRingsOffset = kOwnerBytes + kMailboxes * sizeof(Mailbox);
constexpr std::size_t kFileBytes = kRingsOffset + kBounceRings * sizeof(BounceRing);
static_assert(kRingsOffset % alignof(BounceRing) == 0);
static_assert(sizeof(MailboxOwner) <= kOwnerBytes && kOwnerBytes % alignof(Mailbox) == 0);
// A new file is all zeros, which is a free slot. Both processes run the same build.
static_assert(Slot::kFree == 0 && std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace

Result<MailboxFile> MailboxFile::create() {
  Result<SharedFile> shared = SharedFile::create("weft-mailboxes", kFileBytes);
  if (!shared.ok()) return shared.status();
  MailboxFile file;
  if (Status status = file.map(*shared); status.failed()) return status;
  file.file_ = std::move(*shared);
  file.name_.file = file.file_.reference();
  if (::getrandom(&file.name_.nonce, sizeof file.name_.nonce, 0) != sizeof file.name_.nonce) {
    return Status(StatusCode::kInternal, "the system gave no random number for a mailbox file");
  }
  file.owner().nonce.store(file.name_.nonce);
  return file;
}

Result<MailboxFile> MailboxFile::open(const MailboxFileName& name) {
  if (name.file.size_bytes != kFileBytes) {
    return Status(StatusCode::kNotFound,
                  base::format("a mailbox file has {} bytes, and a peer named one of {}", kFileBytes,
                               name.file.size_bytes));
  }
  Result<SharedFile> shared = SharedFile::open(name.file);
  if (!shared.ok()) {
    return Status(StatusCode::kNotFound,
                  base::format("the mailbox file of a peer cannot be opened: {}", shared.status().message()));
  }
  MailboxFile file;
  if (Status status = file.map(*shared); status.failed()) return status;
  file.name_ = name;
  if (file.owner().nonce.load() != name.nonce) {
    return Status(
        StatusCode::kNotFound,
        base::format("the file that process {} names is the mailbox file of another job", name.file.pid));
  }
  return file;
}

Status MailboxFile::map(const SharedFile& file) {
  Result<void*> mapping = file.map(0, kFileBytes);
  if (!mapping.ok()) return mapping.status();
  mapping_ = *mapping;
  return {};
}

Mailbox& MailboxFile::mailbox(std::size_t number) const {
  auto* const first = static_cast<std::byte*>(mapping_) + kOwnerBytes;
  return *reinterpret_cast<Mailbox*>(first + number * sizeof(Mailbox));
}

BounceRing& MailboxFile::bounce_ring(std::size_t number) const {
  auto* const first = static_cast<std::byte*>(mapping_) + kRingsOffset;
  return *reinterpret_cast<BounceRing*>(first + number * sizeof(BounceRing));
}

MailboxFile::~MailboxFile() {
  if (mapping_ != nullptr) ::munmap(mapping_, kFileBytes);
}

}  // namespace weft::machine
