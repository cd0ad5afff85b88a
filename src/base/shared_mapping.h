// A shared file (shared_file.h) that is mapped whole, and that another process recognises by a random number.
//
// The number tells it from a file of another job that happens to have the same inode under the same path, as on another
// host or after process numbers have repeated.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "weft/base/status.h"

#include "base/shared_file.h"

namespace weft::base {

// The name by which another process opens a SharedMapping. It is sent as it lies in memory.
struct SharedMappingName {
  SharedFileReference file;
  std::uint64_t nonce = 0;
};
static_assert(std::has_unique_object_representations_v<SharedMappingName>, "padding would travel");

class SharedMapping {
 public:
  // The random number lies in the first bytes; what lies behind belongs to the user.
  static constexpr std::size_t kNonceBytes = sizeof(std::uint64_t);

  // Nothing is mapped.
  SharedMapping() = default;
  // A new file, all zeros behind the number. `name` as in SharedFile::create(). REQUIRES: size_bytes >= kNonceBytes.
  static Result<SharedMapping> create(const char* name, std::size_t size_bytes);
  // kNotFound if this process cannot see the file, or if it is not the one that was named or has another size.
  static Result<SharedMapping> open(const SharedMappingName& name, std::size_t size_bytes);

  SharedMapping(SharedMapping&& other) noexcept { swap(other); }
  SharedMapping& operator=(SharedMapping&& other) noexcept {
    SharedMapping(std::move(other)).swap(*this);
    return *this;
  }
  // Others cannot open the file any more once its creator has unmapped it; their mappings stay valid.
  ~SharedMapping();

  explicit operator bool() const { return data_ != nullptr; }
  std::byte* data() const { return data_; }
  const SharedMappingName& name() const { return name_; }

 private:
  Status map(const SharedFile& file);
  void swap(SharedMapping& other) noexcept {
    std::swap(file_, other.file_);
    std::swap(name_, other.name_);
    std::swap(data_, other.data_);
  }

  SharedFile file_;  // the creator's, open while others may open it
  SharedMappingName name_;
  std::byte* data_ = nullptr;
};

}  // namespace weft::base
