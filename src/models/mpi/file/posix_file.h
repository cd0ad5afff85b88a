// PosixFile: an open file of the system. Its calls block the process. Threads: any, one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "models/mpi/objects/error.h"

namespace weft::mpi {

// The error of a call of the system that has failed with that errno. `action`: "open", for the sentence.
Error error_of_system(int number, const char* action, const std::string& path);

class PosixFile {
 public:
  PosixFile() = default;
  // Errors: those of error_of_system(), as of all calls here. `flags`: of open(2).
  static Error open(const std::string& path, int flags, PosixFile* opened);
  PosixFile(PosixFile&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)) {}
  PosixFile& operator=(PosixFile&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    std::swap(path_, other.path_);
    return *this;
  }
  ~PosixFile();

  const std::string& path() const { return path_; }
  int descriptor() const { return descriptor_; }

  // `got`: the bytes that have been read, fewer than wanted only at the end of the file.
  Error read(std::span<std::byte> bytes, std::int64_t offset, std::size_t* got) const;
  Error write(std::span<const std::byte> bytes, std::int64_t offset) const;
  Error find_size(std::int64_t* size_bytes) const;
  Error resize(std::int64_t size_bytes) const;
  // Makes room for that many bytes on the device; the file grows to them.
  Error preallocate(std::int64_t size_bytes) const;
  // Returns when all that has been written is on the device.
  Error sync() const;
  Error close();

 private:
  int descriptor_ = -1;
  std::string path_;
};

// A lock of a part of a file against all other processes that lock, also on other hosts. It waits for them.
class FileLock {
 public:
  FileLock() = default;
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock();

  // Errors: MPI_ERR_UNSUPPORTED_OPERATION if the file system has no locks. REQUIRES: `file` outlives the lock.
  Error acquire(const PosixFile& file, bool is_exclusive, std::int64_t offset, std::int64_t size_bytes);

 private:
  int descriptor_ = -1;
  std::int64_t offset_ = 0;
  std::int64_t size_bytes_ = 0;
};

}  // namespace weft::mpi
