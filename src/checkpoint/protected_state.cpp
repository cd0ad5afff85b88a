#include "checkpoint/protected_state.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/format.h"

namespace weft::checkpoint_files {

Block::Block(std::size_t size_bytes) : size_bytes_(size_bytes), room_bytes_(size_bytes) {
  if (size_bytes > 0) bytes_ = std::make_unique_for_overwrite<std::byte[]>(size_bytes);
}

void Block::reserve(std::size_t room_bytes) {
  if (room_bytes > room_bytes_) move_to(room_bytes);
}

void Block::append(const void* bytes, std::size_t size_bytes) {
  if (size_bytes == 0) return;
  if (size_bytes > room_bytes_ - size_bytes_) move_to(std::max(2 * room_bytes_, size_bytes_ + size_bytes));
  std::memcpy(bytes_.get() + size_bytes_, bytes, size_bytes);
  size_bytes_ += size_bytes;
}

void Block::release_room() {
  // A little room is worth no copy.
  if (room_bytes_ - size_bytes_ > size_bytes_ / 4) move_to(size_bytes_);
}

void Block::move_to(std::size_t room_bytes) {
  auto larger = std::make_unique_for_overwrite<std::byte[]>(room_bytes);
  if (size_bytes_ > 0) std::memcpy(larger.get(), bytes_.get(), size_bytes_);
  bytes_ = std::move(larger);
  room_bytes_ = room_bytes;
}

base::Status BlockSink::write(const void* data, std::size_t size_bytes) {
  block_.append(data, size_bytes);
  return {};
}

base::Status BlockSink::finish() {
  block_.release_room();
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

std::shared_ptr<Block> ProtectedState::begin_block(std::uint32_t pe) const {
  auto block = std::make_shared<Block>();
  if (const BlockPtr before = find({committed_, pe}); before != nullptr)
    block->reserve(before->size() + before->size() / 8);
  return block;
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
  std::erase_if(blocks_, [&](const auto& entry) {
    const std::uint64_t other = entry.first.state;
    return other != state && (other == committed_ || other >> kIncarnationShift != incarnation);
  });
  set_committed(state, std::move(manifest));
}

void ProtectedState::set_committed(std::uint64_t state, Manifest manifest) {
  committed_ = state;
  manifest_ = std::move(manifest);
}

}  // namespace weft::checkpoint_files
