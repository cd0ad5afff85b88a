#include "collective/board.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/format.h"
#include "base/refuse_claim.h"

namespace weft::collective {

static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

bool Boards::make_own() {
  if (own_) return true;
  base::Result<base::SharedMapping> made = base::SharedMapping::create("weft-board", kBoardBytes);
  if (made.ok()) own_ = std::move(*made);
  posts_ = made.ok();
  return posts_;
}

std::optional<BoardReference> Boards::post(std::span<const std::byte> block) {
  if (!make_own()) return std::nullopt;
  const std::size_t size_bytes = (block.size() + 2 * kAlignment - 1) / kAlignment * kAlignment;
  const std::size_t offset_bytes = find_room(size_bytes);
  if (offset_bytes == kBoardBytes) return std::nullopt;
  posted_.push_back({offset_bytes, size_bytes});
  std::byte* const head = own_.data() + offset_bytes;
  new (head) std::atomic<std::uint32_t>(1);
  std::memcpy(head + kAlignment, block.data(), block.size());
  return BoardReference{own_.name(), offset_bytes, block.size()};
}

void Boards::add_reader(const BoardReference& reference) {
  block_at(own_board(reference), reference).readers->fetch_add(1, std::memory_order_relaxed);
}

void Boards::lose(int reader_pe) {
  peers_[static_cast<std::size_t>(reader_pe)].reads = false;
  drop_read();
  if (posted_.empty()) return;
  posted_.clear();
  earlier_.push_back(std::move(own_));
}

std::byte* Boards::own_board(const BoardReference& reference) const {
  if (own_.name().nonce == reference.board.nonce) [[likely]]
    return own_.data();
  for (const base::SharedMapping& board : earlier_) {
    if (board.name().nonce == reference.board.nonce) return board.data();
  }
  return nullptr;
}

void Boards::drop_read() {
  while (!posted_.empty()) {
    const auto* const readers =
        reinterpret_cast<std::atomic<std::uint32_t>*>(own_.data() + posted_.front().offset_bytes);
    if (readers->load(std::memory_order_acquire) != 0) return;
    posted_.pop_front();
  }
}

std::size_t Boards::num_posted() {
  drop_read();
  return posted_.size();
}

std::size_t Boards::find_room(std::size_t size_bytes) {
  if (size_bytes > kBoardBytes - kFirstBytes) return kBoardBytes;
  drop_read();
  if (posted_.empty()) return kFirstBytes;
  const std::size_t begin = posted_.front().offset_bytes;
  const std::size_t end = posted_.back().offset_bytes + posted_.back().size_bytes;
  if (begin < end) {
    if (size_bytes <= kBoardBytes - end) return end;
    return size_bytes <= begin - kFirstBytes ? kFirstBytes : kBoardBytes;
  }
  return size_bytes <= begin - end ? end : kBoardBytes;
}

bool Boards::is_inside(const BoardReference& reference) {
  return reference.offset_bytes >= kFirstBytes && reference.offset_bytes % kAlignment == 0 &&
         reference.offset_bytes <= kBoardBytes - kAlignment &&
         reference.size_bytes <= kBoardBytes - kAlignment - reference.offset_bytes;
}

Boards::Block Boards::block_at(std::byte* board, const BoardReference& reference) {
  std::byte* const head = board + reference.offset_bytes;
  return {{head + kAlignment, reference.size_bytes}, reinterpret_cast<std::atomic<std::uint32_t>*>(head)};
}

std::optional<Boards::Block> Boards::read(int owner_pe, const BoardReference& reference) {
  if (!opens_) return std::nullopt;
  base::SharedMapping& board = peers_[static_cast<std::size_t>(owner_pe)].board;
  if (!board || board.name().nonce != reference.board.nonce) {
    base::Result<base::SharedMapping> opened = base::SharedMapping::open(reference.board, kBoardBytes);
    if (!opened.ok()) return std::nullopt;
    board = std::move(*opened);
  }
  return block_at(board.data(), reference);
}

Boards::Block Boards::refused_by(int reader_pe, const BoardReference& reference) {
  std::byte* const board = own_board(reference);
  bool is_posted = board != nullptr;
  if (board == own_.data()) {
    const auto posted = std::ranges::find(posted_, reference.offset_bytes, &Posted::offset_bytes);
    is_posted = posted != posted_.end() && reference.size_bytes <= posted->size_bytes - kAlignment;
  }
  if (!is_posted || block_at(board, reference).readers->load(std::memory_order_relaxed) == 0) [[unlikely]]
    base::refuse_claim(base::format("PE {} refuses a block that it was not given", reader_pe));
  peers_[static_cast<std::size_t>(reader_pe)].reads = false;
  return block_at(board, reference);
}

}  // namespace weft::collective
