// The file behind an emulated allocation that other processes of this host and user map: its bytes, and after
// them a page with its generation, which is zero once the owner has freed it.
//
// Threads: one. Another process opens the file through /proc, so that nothing has to be handed over but
// bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "weft/base/status.h"

namespace weft::memory {

class ExportedFile {
 public:
  ExportedFile() = default;
  // `mapped_bytes` is a multiple of the page size. The owner's.
  static base::Result<ExportedFile> create(std::size_t size_bytes, std::size_t mapped_bytes,
                                           std::uint64_t generation);
  // What the owner's exported() says. kNotFound when the allocation was freed meanwhile.
  static base::Result<ExportedFile> open(std::span<const std::byte> exported);

  ExportedFile(ExportedFile&& other) noexcept { swap(other); }
  ExportedFile& operator=(ExportedFile&& other) noexcept {
    swap(other);
    return *this;
  }
  ~ExportedFile();

  explicit operator bool() const { return generation_ != nullptr; }
  int descriptor() const { return descriptor_; }
  std::size_t size_bytes() const { return size_bytes_; }
  std::size_t mapped_bytes() const { return mapped_bytes_; }
  std::vector<std::byte> exported() const;

  bool was_freed() const;
  // The owner's: importers see it from now on.
  void mark_freed();

 private:
  base::Status map_generation();
  void swap(ExportedFile& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    std::swap(size_bytes_, other.size_bytes_);
    std::swap(mapped_bytes_, other.mapped_bytes_);
    std::swap(generation_, other.generation_);
  }

  int descriptor_ = -1;
  std::size_t size_bytes_ = 0;
  std::size_t mapped_bytes_ = 0;
  std::uint64_t* generation_ = nullptr;  // in the shared page
};

}  // namespace weft::memory
