// The bytes of one element file, on a disk (disk_file.h) or in memory (protected_state.h).
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "weft/base/status.h"

namespace weft::checkpoint_files {

class ByteSink {
 public:
  virtual ~ByteSink() = default;

  // Appends all bytes.
  virtual base::Status write(const void* data, std::size_t size_bytes) = 0;
  // A hint: what has been written since the last call can be stored.
  virtual void start_writing_back() {}
  // Returns when all bytes are stored.
  virtual base::Status finish() = 0;
  // Whether a reader is to find damage of the bytes. It is not, where they stay in memory.
  virtual bool needs_checksums() const { return true; }
};

class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // For errors.
  virtual const std::string& path() const = 0;
  virtual base::Result<std::uint64_t> size_bytes() const = 0;
  // Reads exactly that many bytes. kCorrupt if there are fewer.
  virtual base::Status read(std::uint64_t offset, void* data, std::size_t size_bytes) const = 0;
  // That of the sink.
  virtual bool needs_checksums() const { return true; }
};

}  // namespace weft::checkpoint_files
