#include "memory/kinds/emulated/exported_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "fmt/format.h"

namespace weft::memory {

using base::Result;
using base::Status;
using base::StatusCode;

namespace {

// Travels between processes of one build as it lies in memory.
struct Record {
  std::uint64_t inode = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t mapped_bytes = 0;
  std::uint64_t generation = 0;
  std::int32_t pid = 0;
  std::int32_t descriptor = -1;
};

std::size_t page_bytes() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

Status not_exported(std::string_view why) {
  return Status(StatusCode::kInvalidArgument,
                fmt::format("these bytes name no emulated allocation of this host: {}", why));
}

Status freed_by_owner(const Record& record) {
  return Status(StatusCode::kNotFound,
                fmt::format("the emulated allocation of {} bytes that process {} exported has been freed",
                            record.size_bytes, record.pid));
}

}  // namespace

Result<ExportedFile> ExportedFile::create(std::size_t size_bytes, std::size_t mapped_bytes,
                                          std::uint64_t generation) {
  ExportedFile file;
  file.size_bytes_ = size_bytes;
  file.mapped_bytes_ = mapped_bytes;
  file.descriptor_ = ::memfd_create("weft-emulated", MFD_CLOEXEC);
  if (file.descriptor_ < 0 ||
      ::ftruncate(file.descriptor_, static_cast<off_t>(mapped_bytes + page_bytes())) != 0) {
    return Status(StatusCode::kOutOfMemory,
                  fmt::format("no file for sharing {} bytes of emulated device memory: {}; see ulimit -n",
                              size_bytes, std::strerror(errno)));
  }
  if (Status status = file.map_generation(); status.failed()) return status;
  std::atomic_ref(*file.generation_).store(generation);
  return file;
}

Result<ExportedFile> ExportedFile::open(std::span<const std::byte> exported) {
  Record record;
  if (exported.size() != sizeof record) {
    return not_exported(fmt::format("{} bytes instead of {}", exported.size(), sizeof record));
  }
  std::memcpy(&record, exported.data(), sizeof record);
  ExportedFile file;
  file.size_bytes_ = record.size_bytes;
  file.mapped_bytes_ = record.mapped_bytes;
  const std::string path = fmt::format("/proc/{}/fd/{}", record.pid, record.descriptor);
  file.descriptor_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  struct stat found{};
  if (file.descriptor_ < 0 || ::fstat(file.descriptor_, &found) != 0) {
    if (errno == ENOENT) return freed_by_owner(record);
    return not_exported(fmt::format("{} said '{}'", path, std::strerror(errno)));
  }
  // The owner may have closed the file and opened another one with its number.
  if (found.st_ino != record.inode) return freed_by_owner(record);
  const bool fills_its_pages =
      record.size_bytes <= record.mapped_bytes && record.mapped_bytes - record.size_bytes < page_bytes();
  if (!fills_its_pages || static_cast<std::uint64_t>(found.st_size) != record.mapped_bytes + page_bytes()) {
    return not_exported(fmt::format("a file of {} bytes is said to hold {} in {}", found.st_size,
                                    record.size_bytes, record.mapped_bytes));
  }
  if (Status status = file.map_generation(); status.failed()) return status;
  if (std::atomic_ref(*file.generation_).load() != record.generation) return freed_by_owner(record);
  return file;
}

ExportedFile::~ExportedFile() {
  if (generation_ != nullptr) ::munmap(generation_, page_bytes());
  if (descriptor_ >= 0) ::close(descriptor_);
}

Status ExportedFile::map_generation() {
  void* const page = ::mmap(nullptr, page_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_,
                            static_cast<off_t>(mapped_bytes_));
  if (page == MAP_FAILED) {
    return Status(StatusCode::kOutOfMemory,
                  fmt::format("no mapping for shared emulated device memory: {}", std::strerror(errno)));
  }
  generation_ = static_cast<std::uint64_t*>(page);
  return {};
}

std::vector<std::byte> ExportedFile::exported() const {
  struct stat own{};
  ::fstat(descriptor_, &own);
  const Record record{own.st_ino, size_bytes_, mapped_bytes_, std::atomic_ref(*generation_).load(),
                      ::getpid(), descriptor_};
  const auto* begin = reinterpret_cast<const std::byte*>(&record);
  return {begin, begin + sizeof record};
}

bool ExportedFile::was_freed() const { return std::atomic_ref(*generation_).load() == 0; }

void ExportedFile::mark_freed() { std::atomic_ref(*generation_).store(0); }

}  // namespace weft::memory
