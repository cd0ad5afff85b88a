#include "models/channel/mailbox.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace weft::channel {

using base::Result;
using base::Status;
using base::StatusCode;

namespace {

constexpr std::size_t kOwnerBytes = 4096;
// Pages that nobody uses take no memory.
constexpr std::size_t kFileBytes = kOwnerBytes + kMailboxes * sizeof(Mailbox);
static_assert(sizeof(MailboxOwner) <= kOwnerBytes && kOwnerBytes % alignof(Mailbox) == 0);
// All zeros, as a new file is, are a free slot; both processes run one build.
static_assert(Slot::kFree == 0 && std::atomic<std::uint64_t>::is_always_lock_free);

Status failed(StatusCode code, const char* call) {
  return {code, fmt::format("mailboxes of channels for the PEs of this host: {} said '{}'", call,
                            std::strerror(errno))};
}

}  // namespace

Result<MailboxFile> MailboxFile::create() {
  MailboxFile file;
  file.own_descriptor_ = ::memfd_create("weft-mailboxes", MFD_CLOEXEC);
  if (file.own_descriptor_ < 0) return failed(StatusCode::kOutOfMemory, "memfd_create");
  struct stat own{};
  if (::ftruncate(file.own_descriptor_, static_cast<off_t>(kFileBytes)) != 0 ||
      ::fstat(file.own_descriptor_, &own) != 0) {
    return failed(StatusCode::kOutOfMemory, "ftruncate");
  }
  if (Status status = file.map(file.own_descriptor_); status.failed()) return status;
  file.name_ = {own.st_ino, 0, ::getpid(), file.own_descriptor_};
  if (::getrandom(&file.name_.nonce, sizeof file.name_.nonce, 0) != sizeof file.name_.nonce) {
    return failed(StatusCode::kInternal, "getrandom");
  }
  file.owner().nonce.store(file.name_.nonce);
  return file;
}

Result<MailboxFile> MailboxFile::open(const MailboxFileName& name) {
  const std::string path = fmt::format("/proc/{}/fd/{}", name.pid, name.descriptor);
  const auto not_it = [&](const struct stat& found) {
    return !S_ISREG(found.st_mode) || found.st_ino != name.inode ||
           found.st_size != static_cast<off_t>(kFileBytes);
  };
  struct stat found{};
  // Looked at before it is opened: on another host the path may name anything.
  if (::stat(path.c_str(), &found) != 0) return failed(StatusCode::kNotFound, "stat");
  if (not_it(found)) return Status(StatusCode::kNotFound, fmt::format("{} is no file of mailboxes", path));
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) return failed(StatusCode::kNotFound, "open");
  MailboxFile file;
  file.name_ = name;
  Status status = ::fstat(descriptor, &found) != 0 || not_it(found)
                      ? Status(StatusCode::kNotFound, fmt::format("{} is no file of mailboxes", path))
                      : file.map(descriptor);
  ::close(descriptor);
  if (status.failed()) return status;
  if (file.owner().nonce.load() != name.nonce) {
    return Status(StatusCode::kNotFound, fmt::format("{} belongs to another job", path));
  }
  return file;
}

Status MailboxFile::map(int descriptor) {
  void* const mapping = ::mmap(nullptr, kFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (mapping == MAP_FAILED) return failed(StatusCode::kOutOfMemory, "mmap");
  mapping_ = mapping;
  return {};
}

Mailbox& MailboxFile::mailbox(std::size_t number) const {
  auto* const first = static_cast<std::byte*>(mapping_) + kOwnerBytes;
  return *reinterpret_cast<Mailbox*>(first + number * sizeof(Mailbox));
}

MailboxFile::~MailboxFile() {
  if (mapping_ != nullptr) ::munmap(mapping_, kFileBytes);
  if (own_descriptor_ >= 0) ::close(own_descriptor_);
}

}  // namespace weft::channel
