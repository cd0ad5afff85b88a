#include "memory/page_lock.h"

namespace weft::memory {

void PageLock::copy_begins(KindBackend& kind, Place device, const Buffer& whole, std::uint64_t copied_bytes) {
  if (is_decided_ || whole.size_bytes < kLeastBytes) return;
  if (copied_bytes_ < whole.size_bytes) {
    copied_bytes_ += copied_bytes;
    return;
  }
  is_decided_ = true;
  if (kind.host_copy_is_async(whole.data, whole.size_bytes)) return;
  if (!kind.lock_host(whole.data, whole.size_bytes, device.device).ok()) return;
  kind_ = &kind;
  data_ = whole.data;
}

void PageLock::release() {
  if (kind_ != nullptr) std::exchange(kind_, nullptr)->unlock_host(data_);
}

}  // namespace weft::memory
