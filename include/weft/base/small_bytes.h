// SmallBytes: packed bytes that need no allocation up to 64 bytes. Contributions to reductions and the targets of
// their results are made of these: there is one of each for every element and reduction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "weft/base/pup.h"

namespace weft::base {

class SmallBytes {
 public:
  static constexpr std::size_t kInlineBytes = 64;

  // Empty. The inline bytes have no value until they are written.
  SmallBytes() {
  }  // NOLINT(modernize-use-equals-default): `= default` would clear the inline bytes in SmallBytes{}
  SmallBytes(std::span<const std::byte> bytes) { assign(bytes); }     // NOLINT(google-explicit-constructor)
  SmallBytes(const std::vector<std::byte>& bytes) { assign(bytes); }  // NOLINT(google-explicit-constructor)
  SmallBytes(const SmallBytes& other) { assign(other); }
  SmallBytes& operator=(const SmallBytes& other) {
    if (this != &other) assign(other);
    return *this;
  }
  SmallBytes(SmallBytes&& other) noexcept { take(std::move(other)); }
  SmallBytes& operator=(SmallBytes&& other) noexcept {
    if (this != &other) take(std::move(other));
    return *this;
  }
  ~SmallBytes() = default;

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::byte* data() { return size_ <= kInlineBytes ? inline_ : large_.data(); }
  const std::byte* data() const { return size_ <= kInlineBytes ? inline_ : large_.data(); }
  std::byte* begin() { return data(); }
  std::byte* end() { return data() + size_; }
  const std::byte* begin() const { return data(); }
  const std::byte* end() const { return data() + size_; }

  // The first bytes stay; further ones have any value.
  void resize(std::size_t size) {
    if (size > kInlineBytes) {
      large_.resize(size);
      if (size_ <= kInlineBytes) std::memcpy(large_.data(), inline_, size_);
    } else if (size_ > kInlineBytes) {
      std::memcpy(inline_, large_.data(), size);
    }
    size_ = size;
  }
  void push_back(std::byte byte) {
    resize(size_ + 1);
    data()[size_ - 1] = byte;
  }
  void assign(std::span<const std::byte> bytes) {
    if (bytes.size() > kInlineBytes) {
      large_.assign(bytes.begin(), bytes.end());
    } else if (!bytes.empty()) {
      std::memcpy(inline_, bytes.data(), bytes.size());
    }
    size_ = bytes.size();
  }

  // Packs in the wire format of a std::vector<std::byte>.
  void pup(Pup& p) {
    const std::size_t count = p.count(size_, 1);
    if (p.is_unpacking()) resize(count);
    p.bytes(data(), count);
  }

 private:
  void take(SmallBytes&& other) {
    if (other.size_ > kInlineBytes) {
      large_ = std::move(other.large_);
    } else {
      std::memcpy(inline_, other.inline_, other.size_);
    }
    size_ = std::exchange(other.size_, 0);
  }

  std::size_t size_ = 0;
  std::byte inline_[kInlineBytes];
  std::vector<std::byte> large_;  // in use if there are more than kInlineBytes
};

template <class T>
SmallBytes pack_small(const T& value, void* context = nullptr) {
  SmallBytes bytes;
  bytes.resize(packed_size(value, context));
  Pup p = Pup::packer(bytes.data(), bytes.size(), context);
  p | value;
  return bytes;
}

}  // namespace weft::base
