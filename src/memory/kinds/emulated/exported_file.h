// The file of an emulated allocation that other processes of this host and user may map.
//
// The file holds the allocation's bytes and then one page with its generation. When the owner frees the
// allocation it sets the generation to zero, and importers see that.
//
// Threads: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "weft/base/status.h"

#include "base/shared_file.h"

namespace weft::memory {

class ExportedFile {
 public:
  // No file.
  ExportedFile() = default;
  // For the owner of the allocation. REQUIRES: `mapped_bytes` is a multiple of the page size.
  static base::Result<ExportedFile> create(std::size_t size_bytes, std::size_t mapped_bytes,
                                           std::uint64_t generation);
  // For an importer; `bytes` are the owner's exported(). kNotFound when the allocation has been freed,
  // kInvalidArgument when the bytes name no exported allocation.
  static base::Result<ExportedFile> open(std::span<const std::byte> bytes);

  ExportedFile(ExportedFile&& other) noexcept { swap(other); }
  ExportedFile& operator=(ExportedFile&& other) noexcept {
    swap(other);
    return *this;
  }
  ~ExportedFile();

  explicit operator bool() const { return generation_ != nullptr; }
  const base::SharedFile& file() const { return file_; }
  std::size_t size_bytes() const { return size_bytes_; }
  // The size of the mapping that holds the allocation. REQUIRES: there is a file.
  std::size_t mapped_bytes() const;
  std::vector<std::byte> exported() const;

  bool was_freed() const;
  // Tells importers that the allocation is freed. For the owner.
  void mark_freed();

 private:
  base::Status map_generation();
  void swap(ExportedFile& other) noexcept {
    std::swap(file_, other.file_);
    std::swap(size_bytes_, other.size_bytes_);
    std::swap(generation_, other.generation_);
  }

  base::SharedFile file_;
  std::size_t size_bytes_ = 0;
  std::uint64_t* generation_ = nullptr;  // in the file's last page
};

}  // namespace weft::memory
