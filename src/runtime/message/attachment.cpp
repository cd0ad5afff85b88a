#include "weft/runtime/attachment.h"

#include <cstring>

namespace weft::runtime {

namespace {

struct Shared {
  Attachment held;
  std::size_t holders;
};

void release_share(void* owner, const memory::Buffer& buffer) {
  auto* shared = static_cast<Shared*>(owner);
  // The memory is released only after the work that a holder has queued.
  if (buffer.stream != nullptr) shared->held.use_on(buffer.stream);
  if (--shared->holders == 0) delete shared;
}

}  // namespace

void Attachment::copy_now() {
  if (source_ == nullptr) return;
  std::memcpy(buffer_.data, std::exchange(source_, nullptr), buffer_.size_bytes);
}

Attachment Attachment::share() {
  if (release_ == nullptr) return {};
  copy_now();
  if (release_ != &release_share) {
    const memory::Buffer buffer = buffer_;
    auto* shared = new Shared{std::move(*this), 1};
    *this = Attachment(buffer, &release_share, shared);
  }
  ++static_cast<Shared*>(owner_)->holders;
  return Attachment(buffer_, &release_share, owner_);
}

bool Attachment::is_shared() const {
  return release_ == &release_share && static_cast<const Shared*>(owner_)->holders > 1;
}

}  // namespace weft::runtime
