// A file in memory that has no name. Other processes of this host and user open it through /proc.
//
// The owner sends reference() to another process as plain bytes; that process passes it to open(). The file
// lives until the last process has closed and unmapped it.
//
// Threads: one at a time. Invariants: the size of a file never changes, because no process can change it (seals).
// open() never opens a device, a pipe or a file other than the one that the reference names, because a reference may
// come from another host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "weft/base/status.h"

namespace weft::base {

// The name by which another process opens a shared file. It is sent as it lies in memory.
struct SharedFileReference {
  std::uint64_t inode = 0;
  std::uint64_t size_bytes = 0;
  std::int32_t pid = 0;
  std::int32_t descriptor = -1;
};
static_assert(std::has_unique_object_representations_v<SharedFileReference>, "padding would travel");

// kOutOfMemory if a limit of this process (`ulimit -f`) forbids a file of that size in shared memory. The system would
// kill the process with SIGXFSZ.
Status check_file_size(std::size_t size_bytes);

class SharedFile {
 public:
  // No file.
  SharedFile() = default;
  // A new file of zeros. `name` is shown in /proc/<pid>/maps. kOutOfMemory if the system or a limit refuses it.
  static Result<SharedFile> create(const char* name, std::size_t size_bytes);
  // kNotFound when this process cannot see the file: it was closed, or it belongs to another host, another
  // user or another PID namespace. kInvalidArgument when the file has another size than the reference says.
  static Result<SharedFile> open(const SharedFileReference& reference);

  SharedFile(SharedFile&& other) noexcept { swap(other); }
  SharedFile& operator=(SharedFile&& other) noexcept {
    swap(other);
    return *this;
  }
  // Closes the file. Mappings stay valid.
  ~SharedFile();

  explicit operator bool() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  std::size_t size_bytes() const { return size_bytes_; }
  // Valid as long as this object is open.
  SharedFileReference reference() const;

  // Maps a part of the file for reading and writing; the caller unmaps it with munmap(). REQUIRES:
  // `offset_bytes` is a multiple of the page size, and the part lies inside the file.
  Result<void*> map(std::size_t offset_bytes, std::size_t size_bytes) const;

 private:
  void swap(SharedFile& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    std::swap(size_bytes_, other.size_bytes_);
    std::swap(inode_, other.inode_);
  }

  int descriptor_ = -1;
  std::size_t size_bytes_ = 0;
  std::uint64_t inode_ = 0;
};

}  // namespace weft::base
