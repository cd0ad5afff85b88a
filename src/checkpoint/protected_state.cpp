#include "checkpoint/protected_state.h"

#include <cstring>

#include "base/format.h"

namespace weft::checkpoint_files {

base::Status BlockSink::write(const void* data, std::size_t size_bytes) {
  const auto* const bytes = static_cast<const std::byte*>(data);
  block_.insert(block_.end(), bytes, bytes + size_bytes);
  return {};
}

base::Status BlockSink::finish() {
  block_.shrink_to_fit();  // it is kept for long
  return {};
}

base::Status BlockSource::read(std::uint64_t offset, void* data, std::size_t size_bytes) const {
  if (offset > block_->size() || size_bytes > block_->size() - offset)
    return {base::StatusCode::kCorrupt, base::format("{} ends too early", name_)};
  if (size_bytes > 0) std::memcpy(data, block_->data() + offset, size_bytes);
  return {};
}

BlockPtr ProtectedState::find(const BlockId& id) const {
  const auto found = blocks_.find(id);
  return found == blocks_.end() ? nullptr : found->second;
}

std::vector<ProtectedState::BlockId> ProtectedState::block_ids() const {
  std::vector<BlockId> ids;
  for (const auto& [id, block] : blocks_) ids.push_back(id);
  return ids;
}

void ProtectedState::drop(std::uint64_t state) {
  std::erase_if(blocks_, [state](const auto& entry) { return entry.first.state == state; });
}

void ProtectedState::commit(std::uint64_t state, Manifest manifest) {
  std::erase_if(blocks_, [state](const auto& entry) { return entry.first.state != state; });
  committed_ = state;
  manifest_ = std::move(manifest);
}

}  // namespace weft::checkpoint_files
