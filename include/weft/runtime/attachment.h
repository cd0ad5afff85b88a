// A buffer that travels with a message but not inside it: it is sent in place, from where it lies, and lands
// in memory of its own before the message is handled.
//
// Move-only. Whoever holds it last gives it back: the sender learns so that its buffer is free again, the
// receiver that landed memory can be reused.
#pragma once

#include <cstdint>
#include <utility>

#include "weft/memory/buffer.h"

namespace weft::runtime {

class Attachment {
 public:
  using Release = void (*)(void* owner, const memory::Buffer& buffer);

  Attachment() = default;
  // `release` is called once, with `owner`, when nobody needs the buffer any more.
  Attachment(const memory::Buffer& buffer, Release release, void* owner)
      : buffer_(buffer), release_(release), owner_(owner) {}
  Attachment(Attachment&& other) noexcept { swap(other); }
  Attachment& operator=(Attachment&& other) noexcept {
    Attachment moved(std::move(other));
    swap(moved);
    return *this;
  }
  ~Attachment() {
    if (release_ != nullptr) release_(owner_, buffer_);
  }

  const memory::Buffer& buffer() const { return buffer_; }
  // False once it has been moved elsewhere.
  explicit operator bool() const { return release_ != nullptr; }

  // The runtime's: memory that arrived, which its receiver owns; and the tag of what has yet to arrive, 0 for
  // none.
  bool is_landed() const { return landed_; }
  std::uint64_t awaited_tag() const { return awaited_tag_; }
  void await(std::uint64_t tag) {
    landed_ = true;
    awaited_tag_ = tag;
  }
  void arrived() { awaited_tag_ = 0; }

 private:
  void swap(Attachment& other) noexcept {
    std::swap(buffer_, other.buffer_);
    std::swap(release_, other.release_);
    std::swap(owner_, other.owner_);
    std::swap(awaited_tag_, other.awaited_tag_);
    std::swap(landed_, other.landed_);
  }

  memory::Buffer buffer_;
  Release release_ = nullptr;
  void* owner_ = nullptr;
  std::uint64_t awaited_tag_ = 0;
  bool landed_ = false;
};

}  // namespace weft::runtime
