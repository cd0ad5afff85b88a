#include "models/mpi/file/posix_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "weft/mpi/mpi.h"

#include "base/format.h"

namespace weft::mpi {

namespace {

// A call of the system moves at most 2^31 - 4096 bytes.
constexpr std::size_t kMostBytesPerCall = std::size_t{1} << 30;
constexpr mode_t kNewFileMode = 0666;  // the process's umask applies

int class_of(int number) {
  switch (number) {
    case ENOENT:
      return MPI_ERR_NO_SUCH_FILE;
    case EACCES:
    case EPERM:
      return MPI_ERR_ACCESS;
    case EROFS:
      return MPI_ERR_READ_ONLY;
    case EEXIST:
      return MPI_ERR_FILE_EXISTS;
    case ENAMETOOLONG:
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
    case ENXIO:
      return MPI_ERR_BAD_FILE;
    case ENOSPC:
      return MPI_ERR_NO_SPACE;
    case EDQUOT:
      return MPI_ERR_QUOTA;
    case EBUSY:
    case ETXTBSY:
      return MPI_ERR_FILE_IN_USE;
    case ENOMEM:
      return MPI_ERR_NO_MEM;
    default:
      return MPI_ERR_IO;
  }
}

// Makes a call of the system again as long as signals interrupt it.
template <class Call>
auto uninterrupted(const Call& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

struct flock lock_of(int type, std::int64_t offset, std::int64_t size_bytes) {
  struct flock lock = {};
  lock.l_type = static_cast<short>(type);
  lock.l_whence = SEEK_SET;
  lock.l_start = offset;
  lock.l_len = size_bytes;
  return lock;
}

}  // namespace

Error error_of_system(int number, const char* action, const std::string& path) {
  return {class_of(number),
          base::format("cannot {} {}: {}", action, path, std::generic_category().message(number))};
}

Error PosixFile::open(const std::string& path, int flags, PosixFile* opened) {
  PosixFile file;
  file.path_ = path;
  file.descriptor_ = uninterrupted([&] { return ::open(path.c_str(), flags | O_CLOEXEC, kNewFileMode); });
  if (file.descriptor_ < 0) return error_of_system(errno, "open", path);
  *opened = std::move(file);
  return {};
}

PosixFile::~PosixFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Error PosixFile::close() {
  const int descriptor = std::exchange(descriptor_, -1);
  if (descriptor < 0 || ::close(descriptor) == 0 || errno == EINTR) return {};
  return error_of_system(errno, "close", path_);
}

Error PosixFile::read(std::span<std::byte> bytes, std::int64_t offset, std::size_t* got) const {
  *got = 0;
  while (*got < bytes.size()) {
    const std::span rest = bytes.subspan(*got);
    const ssize_t now = uninterrupted([&] {
      return ::pread(descriptor_, rest.data(), std::min(rest.size(), kMostBytesPerCall),
                     offset + static_cast<std::int64_t>(*got));
    });
    if (now < 0) return error_of_system(errno, "read", path_);
    if (now == 0) break;
    *got += static_cast<std::size_t>(now);
  }
  return {};
}

Error PosixFile::write(std::span<const std::byte> bytes, std::int64_t offset) const {
  while (!bytes.empty()) {
    const ssize_t now = uninterrupted([&] {
      return ::pwrite(descriptor_, bytes.data(), std::min(bytes.size(), kMostBytesPerCall), offset);
    });
    // POSIX allows 0 for a device that takes nothing more.
    if (now <= 0) return error_of_system(now < 0 ? errno : ENOSPC, "write", path_);
    bytes = bytes.subspan(static_cast<std::size_t>(now));
    offset += now;
  }
  return {};
}

Error PosixFile::find_size(std::int64_t* size_bytes) const {
  struct stat status = {};
  if (::fstat(descriptor_, &status) != 0) return error_of_system(errno, "ask for the size of", path_);
  *size_bytes = status.st_size;
  return {};
}

Error PosixFile::resize(std::int64_t size_bytes) const {
  if (uninterrupted([&] { return ::ftruncate(descriptor_, size_bytes); }) == 0) return {};
  return error_of_system(errno, "change the size of", path_);
}

Error PosixFile::preallocate(std::int64_t size_bytes) const {
  if (size_bytes == 0) return {};
  int number = 0;
  do number = ::posix_fallocate(descriptor_, 0, size_bytes);
  while (number == EINTR);
  return number == 0 ? Error() : error_of_system(number, "make room for", path_);
}

Error PosixFile::sync() const {
  // EINVAL: what is no file on a device, such as a pipe, has nothing to write there.
  if (uninterrupted([&] { return ::fsync(descriptor_); }) == 0 || errno == EINVAL || errno == EROFS)
    return {};
  return error_of_system(errno, "write to the device", path_);
}

// Locks of the open file and not of the process: ranks that share a process exclude each other too.
Error FileLock::acquire(const PosixFile& file, bool is_exclusive, std::int64_t offset,
                        std::int64_t size_bytes) {
  struct flock lock = lock_of(is_exclusive ? F_WRLCK : F_RDLCK, offset, size_bytes);
  if (uninterrupted([&] { return ::fcntl(file.descriptor(), F_OFD_SETLKW, &lock); }) != 0)
    return {MPI_ERR_UNSUPPORTED_OPERATION,
            base::format("the file system cannot lock {} ({}), so accesses cannot be atomic; call "
                         "MPI_File_set_atomicity with 0, or use a file system with locks",
                         file.path(), std::generic_category().message(errno))};
  descriptor_ = file.descriptor();
  offset_ = offset;
  size_bytes_ = size_bytes;
  return {};
}

FileLock::~FileLock() {
  if (descriptor_ < 0) return;
  struct flock lock = lock_of(F_UNLCK, offset_, size_bytes_);
  (void)::fcntl(descriptor_, F_OFD_SETLK, &lock);
}

}  // namespace weft::mpi
