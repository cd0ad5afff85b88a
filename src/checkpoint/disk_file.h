// A file on a disk. Every failure is a Status that names the file, what was done, and what the system says.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "weft/base/status.h"

#include "checkpoint/storage.h"

namespace weft::checkpoint_files {

// The error of a system call that has failed: "cannot write /data/x: No space left on device". Reads errno.
[[gnu::cold]] base::Status system_error(const char* action, const std::string& path);

class DiskFile final : public ByteSink, public ByteSource {
 public:
  DiskFile() = default;
  // A new file; one of that name is replaced.
  static base::Result<DiskFile> create(const std::string& path);
  // For reading. kNotFound if there is none.
  static base::Result<DiskFile> open(const std::string& path);
  DiskFile(DiskFile&& other) noexcept { swap(other); }
  DiskFile& operator=(DiskFile&& other) noexcept {
    swap(other);
    return *this;
  }
  ~DiskFile() override;

  const std::string& path() const override { return path_; }
  base::Result<std::uint64_t> size_bytes() const override;
  base::Status write(const void* data, std::size_t size_bytes) override;
  // Asks the system to begin writing what has been written since the last call, without waiting for the disk.
  void start_writing_back() override;
  // As sync(), and the system's copies in memory are given up.
  base::Status finish() override;
  // Returns when all bytes are on the disk.
  base::Status sync();
  // Asks the system to give up its copies in memory of what is on the disk. The next files then use that memory again, and the
  // memory of a program is not displaced by files that it rarely reads.
  void drop_cached_pages();
  base::Status read(std::uint64_t offset, void* data, std::size_t size_bytes) const override;
  // Locks it for this open file until it is closed. Returns false if another one has it locked.
  base::Result<bool> try_lock();

 private:
  void swap(DiskFile& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    std::swap(path_, other.path_);
    std::swap(written_, other.written_);
    std::swap(written_back_, other.written_back_);
  }

  int descriptor_ = -1;
  std::string path_;
  std::uint64_t written_ = 0;
  std::uint64_t written_back_ = 0;
};

// The names in a folder are on the disk when this returns.
base::Status sync_folder(const std::string& path);

}  // namespace weft::checkpoint_files
