#include "base/shared_mapping.h"

#include <sys/mman.h>
#include <sys/random.h>

#include <atomic>

#include "base/format.h"

namespace weft::base {

namespace {

using Nonce = std::atomic<std::uint64_t>;
static_assert(Nonce::is_always_lock_free && sizeof(Nonce) == SharedMapping::kNonceBytes);

Nonce& nonce_of(std::byte* data) { return *reinterpret_cast<Nonce*>(data); }

}  // namespace

Result<SharedMapping> SharedMapping::create(const char* name, std::size_t size_bytes) {
  Result<SharedFile> file = SharedFile::create(name, size_bytes);
  if (!file.ok()) return file.status();
  SharedMapping made;
  made.name_.file = file->reference();
  if (::getrandom(&made.name_.nonce, sizeof made.name_.nonce, 0) != sizeof made.name_.nonce) {
    return Status(StatusCode::kInternal, "the system gave no random number for a shared file");
  }
  if (Status status = made.map(*file); status.failed()) return status;
  nonce_of(made.data_).store(made.name_.nonce);
  made.file_ = std::move(*file);
  return made;
}

Result<SharedMapping> SharedMapping::open(const SharedMappingName& name, std::size_t size_bytes) {
  if (name.file.size_bytes != size_bytes) {
    return Status(StatusCode::kNotFound,
                  base::format("the shared file that process {} names has {} bytes, and {} are needed",
                               name.file.pid, name.file.size_bytes, size_bytes));
  }
  Result<SharedFile> file = SharedFile::open(name.file);
  if (!file.ok()) return Status(StatusCode::kNotFound, std::string(file.status().message()));
  SharedMapping opened;
  opened.name_ = name;
  if (Status status = opened.map(*file); status.failed()) return status;
  if (nonce_of(opened.data_).load() != name.nonce) {
    return Status(StatusCode::kNotFound,
                  base::format("the shared file that process {} names is another job's", name.file.pid));
  }
  return opened;
}

Status SharedMapping::map(const SharedFile& file) {
  Result<void*> mapping = file.map(0, file.size_bytes());
  if (!mapping.ok()) return mapping.status();
  data_ = static_cast<std::byte*>(*mapping);
  return {};
}

SharedMapping::~SharedMapping() {
  if (data_ != nullptr) ::munmap(data_, name_.file.size_bytes);
}

}  // namespace weft::base
