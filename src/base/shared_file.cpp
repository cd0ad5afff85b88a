#include "base/shared_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <string>

#include "base/format.h"

namespace weft::base {

namespace {

Status system_failed(StatusCode code, const char* call, std::size_t size_bytes, int error) {
  return {code,
          base::format("a shared file of {} bytes: {} failed with '{}'; see ulimit -n and the memory limit",
                       size_bytes, call, std::strerror(error))};
}

Status not_visible(const std::string& path, std::string_view why) {
  return {StatusCode::kNotFound,
          base::format("{} is not the shared file that another process named: {}", path, why)};
}

// No process can change the size of the file: SIGBUS would kill the processes that have mapped it.
constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW;

// Whether `found` is the file that the reference names.
Status compare(const struct stat& found, const SharedFileReference& reference, const std::string& path) {
  if (!S_ISREG(found.st_mode) || found.st_ino != reference.inode) {
    return not_visible(path, "it is another file, so the owner has closed its own");
  }
  if (static_cast<std::uint64_t>(found.st_size) != reference.size_bytes) {
    return {StatusCode::kInvalidArgument, base::format("{} has {} bytes, and the reference to it names {}",
                                                       path, found.st_size, reference.size_bytes)};
  }
  return {};
}

}  // namespace

Status check_file_size(std::size_t size_bytes) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
      size_bytes <= limit.rlim_cur)
    return {};
  return {StatusCode::kOutOfMemory,
          base::format("a file of {} bytes in shared memory is needed, and this process may make files of {} "
                       "bytes only; raise the limit (ulimit -f unlimited)",
                       size_bytes, limit.rlim_cur)};
}

Result<SharedFile> SharedFile::create(const char* name, std::size_t size_bytes) {
  if (size_bytes > static_cast<std::size_t>(std::numeric_limits<off_t>::max())) {
    return system_failed(StatusCode::kOutOfMemory, "ftruncate", size_bytes, EFBIG);
  }
  if (Status status = check_file_size(size_bytes); status.failed()) return status;
  SharedFile file;
  file.size_bytes_ = size_bytes;
  file.descriptor_ = ::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file.descriptor_ < 0) return system_failed(StatusCode::kOutOfMemory, "memfd_create", size_bytes, errno);
  struct stat own{};
  if (::ftruncate(file.descriptor_, static_cast<off_t>(size_bytes)) != 0 ||
      ::fstat(file.descriptor_, &own) != 0) {
    return system_failed(StatusCode::kOutOfMemory, "ftruncate", size_bytes, errno);
  }
  if (::fcntl(file.descriptor_, F_ADD_SEALS, kSizeSeals | F_SEAL_SEAL) != 0) {
    return system_failed(StatusCode::kInternal, "fcntl(F_ADD_SEALS)", size_bytes, errno);
  }
  file.inode_ = own.st_ino;
  return file;
}

Result<SharedFile> SharedFile::open(const SharedFileReference& reference) {
  const std::string path = base::format("/proc/{}/fd/{}", reference.pid, reference.descriptor);
  struct stat found{};
  // Checked before it is opened: on another host this path may name a device or a pipe.
  if (::stat(path.c_str(), &found) != 0) return not_visible(path, std::strerror(errno));
  if (Status status = compare(found, reference, path); status.failed()) return status;
  SharedFile file;
  file.descriptor_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file.descriptor_ < 0 || ::fstat(file.descriptor_, &found) != 0) {
    return not_visible(path, std::strerror(errno));
  }
  // Checked again: the owner may have replaced the file in between.
  if (Status status = compare(found, reference, path); status.failed()) return status;
  const int seals = ::fcntl(file.descriptor_, F_GET_SEALS);
  if (seals < 0 || (seals & kSizeSeals) != kSizeSeals) return not_visible(path, "its size can change");
  file.size_bytes_ = reference.size_bytes;
  file.inode_ = reference.inode;
  return file;
}

SharedFile::~SharedFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

SharedFileReference SharedFile::reference() const { return {inode_, size_bytes_, ::getpid(), descriptor_}; }

Result<void*> SharedFile::map(std::size_t offset_bytes, std::size_t size_bytes) const {
  void* const mapping = ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_,
                               static_cast<off_t>(offset_bytes));
  if (mapping == MAP_FAILED) return system_failed(StatusCode::kOutOfMemory, "mmap", size_bytes, errno);
  return mapping;
}

}  // namespace weft::base
