#include "checkpoint/disk_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/format.h"

namespace weft::checkpoint_files {

namespace {

// Linux writes at most 2 GiB in a call.
constexpr std::size_t kMostBytesOfCall = std::size_t{1} << 30;

// -1, with errno, if that fails.
int open_descriptor(const std::string& path, int flags) {
  int descriptor = -1;
  do {
    descriptor = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
  } while (descriptor < 0 && errno == EINTR);
  return descriptor;
}

}  // namespace

base::Status system_error(const char* action, const std::string& path) {
  const int code = errno;
  return {code == ENOENT ? base::StatusCode::kNotFound : base::StatusCode::kUnsupported,
          base::format("cannot {} {}: {}", action, path,
                       std::error_code(code, std::generic_category()).message())};
}

base::Result<DiskFile> DiskFile::create(const std::string& path) {
  DiskFile file;
  file.path_ = path;
  file.descriptor_ = open_descriptor(path, O_RDWR | O_CREAT | O_TRUNC);
  if (file.descriptor_ < 0) return system_error("create", path);
  return file;
}

base::Result<DiskFile> DiskFile::open(const std::string& path) {
  DiskFile file;
  file.path_ = path;
  file.descriptor_ = open_descriptor(path, O_RDONLY);
  if (file.descriptor_ < 0) return system_error("open", path);
  return file;
}

DiskFile::~DiskFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

base::Result<std::uint64_t> DiskFile::size_bytes() const {
  struct stat found{};
  if (::fstat(descriptor_, &found) != 0) return system_error("read the size of", path_);
  return static_cast<std::uint64_t>(found.st_size);
}

base::Status DiskFile::write(const void* data, std::size_t size_bytes) {
  const auto* bytes = static_cast<const char*>(data);
  while (size_bytes > 0) {
    const ssize_t count = ::write(descriptor_, bytes, std::min(size_bytes, kMostBytesOfCall));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_error("write", path_);
    bytes += count;
    size_bytes -= static_cast<std::size_t>(count);
    written_ += static_cast<std::uint64_t>(count);
  }
  return {};
}

void DiskFile::start_writing_back() {
#ifdef SYNC_FILE_RANGE_WRITE
  // Only a hint: sync() reports what fails.
  static_cast<void>(::sync_file_range(descriptor_, static_cast<off64_t>(written_back_),
                                      static_cast<off64_t>(written_ - written_back_), SYNC_FILE_RANGE_WRITE));
#endif
  written_back_ = written_;
}

base::Status DiskFile::sync() {
  if (::fsync(descriptor_) != 0) return system_error("write to the disk", path_);
  return {};
}

base::Status DiskFile::finish() {
  base::Status status = sync();
  if (status.ok()) drop_cached_pages();
  return status;
}

void DiskFile::drop_cached_pages() {
#ifdef POSIX_FADV_DONTNEED
  static_cast<void>(::posix_fadvise(descriptor_, 0, 0, POSIX_FADV_DONTNEED));  // only a hint
#endif
}

base::Status DiskFile::read(std::uint64_t offset, void* data, std::size_t size_bytes) const {
  auto* bytes = static_cast<char*>(data);
  while (size_bytes > 0) {
    const ssize_t count =
        ::pread(descriptor_, bytes, std::min(size_bytes, kMostBytesOfCall), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_error("read", path_);
    if (count == 0) {
      return {base::StatusCode::kCorrupt,
              base::format("the file {} ends {} bytes too early", path_, size_bytes)};
    }
    bytes += count;
    offset += static_cast<std::uint64_t>(count);
    size_bytes -= static_cast<std::size_t>(count);
  }
  return {};
}

base::Result<bool> DiskFile::try_lock() {
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return true;
  if (errno == EWOULDBLOCK) return false;
  return system_error("lock", path_);
}

base::Status sync_folder(const std::string& path) {
  const int descriptor = open_descriptor(path, O_RDONLY | O_DIRECTORY);
  if (descriptor < 0) return system_error("open", path);
  const int result = ::fsync(descriptor);
  const int code = errno;
  ::close(descriptor);
  errno = code;
  if (result != 0) return system_error("write to the disk", path);
  return {};
}

}  // namespace weft::checkpoint_files
